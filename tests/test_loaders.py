"""The loaders for CuPy, cuda.core and PyCUDA, without a GPU: the libraries are stand-ins, nvcc is real."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import sysconfig
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cccopt
from cccopt.driver import fat_binary, marked_ptx
from cccopt.source.strip import strip
from cccopt.toolchain.discovery import find_nvcc
from tests.mix import DEFINES, REFUSED, SOURCE, c_names, expected, values

pytestmark = pytest.mark.filterwarnings("error")

TEXT = c_names(SOURCE)


def outcomes(report: dict[str, Any]) -> list[str]:
    return [region["outcome"] for unit in report["units"] for region in unit["regions"]]


# --- fat binaries ----------------------------------------------------------------------------------------------


@pytest.mark.nvcc
def test_without_rewrites_a_fat_binary_is_what_nvcc_makes(tmp_path: Path) -> None:
    (tmp_path / "text.cu").write_text(strip(TEXT))
    command = [find_nvcc().path, "-fatbin", "-arch=sm_80", *DEFINES, "text.cu", "-o", "x.fatbin"]
    subprocess.run(command, cwd=tmp_path, check=True)
    off = fat_binary(TEXT, arch="sm_80", ccc="off", nvcc_options=DEFINES)
    assert off.code == (tmp_path / "x.fatbin").read_bytes()
    on = fat_binary(TEXT, arch="sm_80", ccc="always", nvcc_options=DEFINES)
    assert on.code != off.code
    assert outcomes(on.report) == ["rewritten"] * 2
    assert on.messages == ""


@pytest.mark.nvcc
def test_messages_speak_of_the_text_by_its_name() -> None:
    with pytest.raises(
        cccopt.CccError, match=r"<here>\(8\): error: identifier .FACTOR. is undefined"
    ) as caught:
        fat_binary(TEXT, name="<here>")
    assert "text.cu" not in str(caught.value)
    with pytest.raises(cccopt.CccError) as caught:
        fat_binary(TEXT.replace("#pragma ccc if", "#CCC if"), name="<here>", nvcc_options=DEFINES)
    assert [d.code for d in caught.value.diagnostics] == ["CCC085", "CCC017"]
    assert str(caught.value.diagnostics[1].place) == "<here>:6:1"
    said = fat_binary(TEXT.replace("x = in[i];", "x = in[i]; int idle;"), name="<here>", nvcc_options=DEFINES)
    assert '<here>(5): warning #177-D: variable "idle"' in said.messages
    assert {unit["file"] for unit in said.report["units"]} == {"<here>"}


@pytest.mark.nvcc
def test_options_of_ptxas_count() -> None:
    with pytest.raises(cccopt.CccError, match=r"CCC085(.|\n)*ptxas fatal.*no-such-option"):
        fat_binary(TEXT, nvcc_options=[*DEFINES, "-Xptxas=--no-such-option"])


# --- CuPy ------------------------------------------------------------------------------------------------------


class NoDevice(Exception):
    pass


class RawModule:
    """As CuPy's: it keeps a path, and takes no attribute that its class does not name."""

    __slots__ = ("cooperative", "path")

    def __init__(self, *, path: str, enable_cooperative_groups: bool) -> None:
        self.path, self.cooperative = path, enable_cooperative_groups


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SimpleNamespace:
    """A CuPy whose GPU has compute capability 8.0; its headers hold ``cupy/factor.h``."""
    headers = tmp_path / "cupy" / "_core" / "include" / "cupy"
    headers.mkdir(parents=True)
    (headers / "factor.h").write_text("#define FACTOR 1664525u\n")
    library = SimpleNamespace(
        __file__=str(tmp_path / "cupy" / "__init__.py"),
        RawModule=RawModule,
        cuda=SimpleNamespace(
            Device=lambda: SimpleNamespace(compute_capability="80"),
            runtime=SimpleNamespace(CUDARuntimeError=NoDevice),
        ),
    )
    monkeypatch.setitem(sys.modules, "cupy", library)  # type: ignore[arg-type]
    return library


@pytest.mark.nvcc
def test_cupy_loads_a_fat_binary_for_its_device(cupy: SimpleNamespace) -> None:
    module = cccopt.cupy_module(TEXT, options=DEFINES, ccc="always")
    assert isinstance(module, RawModule)
    made = fat_binary(TEXT, arch="sm_80", ccc="always", nvcc_options=DEFINES)
    assert Path(module.path).read_bytes() == made.code
    assert outcomes(module.report) == ["rewritten"] * 2
    assert not module.cooperative
    # CuPy goes by the path: the same contents again are the same module, others are another.
    again = cccopt.cupy_module(TEXT, options=DEFINES, ccc="always")
    assert again.path == module.path
    other = cccopt.cupy_module(
        '#include "cupy/factor.h"\n' + TEXT, arch="sm_90", ccc="off", enable_cooperative_groups=True
    )
    assert other.path != module.path
    assert (other.cooperative, outcomes(other.report)) == (True, [])


@pytest.mark.nvcc
def test_cupy_says_what_is_refused(cupy: SimpleNamespace) -> None:
    text = c_names(REFUSED)
    with pytest.raises(cccopt.CccError) as caught:
        cccopt.cupy_module(text, options=DEFINES)
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, str(diagnostic.place)) == ("CCC036", "<cupy_module>:7:5")
    assert diagnostic.place is not None
    assert diagnostic.place.line_text == "    if (x % 3 == 0) {"
    with pytest.warns(UserWarning, match=r"warning\[CCC036\](.|\n)*<cupy_module>:7:5"):
        module = cccopt.cupy_module(text, options=DEFINES, keep_going=True)
    assert Path(module.path).read_bytes() == fat_binary(strip(text), arch="sm_80", nvcc_options=DEFINES).code


def test_cupy_refuses_name_expressions(cupy: SimpleNamespace) -> None:
    with pytest.raises(cccopt.CccError, match="CCC097"):
        cccopt.cupy_module(TEXT, arch="sm_90", name_expressions=["mix"])


def test_cupy_without_a_gpu_asks_for_the_architecture(cupy: SimpleNamespace) -> None:
    def none() -> None:
        raise NoDevice("cudaErrorNoDevice")

    cupy.cuda.Device = none
    with pytest.raises(cccopt.CccError, match=r"CCC093(.|\n)*cudaErrorNoDevice(.|\n)*arch="):
        cccopt.cupy_module(TEXT)


def test_no_cupy_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(cccopt.CccError, match=r"CCC092(.|\n)*CuPy(.|\n)*pip install"):
        cccopt.cupy_module(TEXT, arch="sm_90")


def test_modules_of_a_process_are_removed_at_its_end() -> None:
    program = "from cccopt.loaders import _folder; print(_folder()); assert _folder().is_dir()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not Path(done.stdout.strip()).exists()


# --- cuda.core -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ObjectCode:
    """As much of cuda.core's as is needed."""

    code: bytes | bytearray | str
    name: str = ""
    symbol_mapping: dict[str, bytes] = field(default_factory=dict)
    code_type: str = "ptx"

    @staticmethod
    def from_ptx(module: Any, *, name: str = "", symbol_mapping: Any = None) -> ObjectCode:
        return ObjectCode(module, name, symbol_mapping or {})

    @staticmethod
    def from_ltoir(module: Any) -> ObjectCode:
        return ObjectCode(module, code_type="ltoir")


@pytest.fixture(params=["stand-in", "cuda.core"])
def object_codes(request: pytest.FixtureRequest) -> Any:
    """The class of object codes: ours, and cuda.core's where it is installed."""
    if request.param == "stand-in":
        return ObjectCode
    return pytest.importorskip("cuda.core").ObjectCode


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> str:
    source = tmp_path_factory.mktemp("mix") / "mix.cu"
    source.write_text(TEXT)
    return marked_ptx(source, nvcc_options=DEFINES)


@pytest.mark.nvcc
def test_object_code_is_rewritten_and_keeps_its_names(object_codes: Any, marked: str, tmp_path: Path) -> None:
    file = tmp_path / "mix.ptx"
    file.write_text(marked)
    # cuda.core hands out NVRTC's text with the zero byte that ends it.
    for code in (marked.encode(), marked.encode() + b"\0", str(file)):
        given = object_codes.from_ptx(code, name="mix.cu", symbol_mapping={"mix<int>": b"mix"})
        made = cccopt.optimize(given, ccc="always")
        assert made.code == cccopt.transform(marked, ccc="always").ptx.encode() + b"\0"
        assert (made.name, made.symbol_mapping) == ("mix.cu", {"mix<int>": b"mix"})
        assert type(made) is type(given)


@pytest.mark.nvcc
def test_rewritten_object_code_computes_the_same(marked: str) -> None:
    given, rounds = values(1000), 5
    made = cccopt.optimize(ObjectCode(marked.encode()), ccc="always")
    result = np.zeros_like(given)
    ptx = bytes(made.code).rstrip(b"\0").decode()
    cccopt.emulate(ptx, "mix", grid=(2, 1, 1), block=(128, 1, 1), args=[1000, rounds, given, result])
    np.testing.assert_array_equal(result, expected(given, rounds))


@pytest.mark.nvcc
def test_object_code_that_stays_as_it_is_comes_back_itself(object_codes: Any, marked: str) -> None:
    for code, mode in (
        (marked.encode(), "off"),
        (b".version 9.0\n.target sm_90\n.address_size 64\n", "always"),
    ):
        given = object_codes.from_ptx(code)
        assert cccopt.optimize(given, ccc=mode) is given


@pytest.mark.nvcc
def test_object_code_with_a_refused_region(object_codes: Any, tmp_path: Path) -> None:
    source = tmp_path / "mix.cu"
    source.write_text(c_names(REFUSED))
    given = object_codes.from_ptx(marked_ptx(source, nvcc_options=DEFINES).encode(), name="mix")
    with pytest.raises(cccopt.CccError, match="CCC036"):
        cccopt.optimize(given)
    with pytest.warns(UserWarning, match="CCC036"):
        assert cccopt.optimize(given, keep_going=True) is given


def test_object_code_without_ptx_is_refused(object_codes: Any) -> None:
    with pytest.raises(cccopt.CccError, match=r"CCC097(.|\n)*`ltoir`"):
        cccopt.optimize(object_codes.from_ltoir(b"BC"))
    with pytest.raises(cccopt.CccError, match=r"CCC097(.|\n)*`bytes`"):
        cccopt.optimize(b".version 9.0")
    with pytest.raises(cccopt.CccError, match=r"CCC001(.|\n)*<ObjectCode>:1:1"):
        cccopt.optimize(object_codes.from_ptx(b"no PTX"))
    with pytest.raises(cccopt.CccError, match=r"CCC086(.|\n)*/no/such\.ptx"):
        cccopt.optimize(object_codes.from_ptx("/no/such.ptx"))


# --- PyCUDA ----------------------------------------------------------------------------------------------------


class DriverError(Exception):
    pass


class CompileError(DriverError):
    pass


def imported_again(name: str) -> ModuleType:
    """A module of its own, over what is in `sys.modules` now."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass
class Pycuda:
    """A PyCUDA that runs the nvcc it is given, as `pycuda.compiler` does, and keeps what it would load."""

    folder: Path
    module: ModuleType = field(default_factory=lambda: ModuleType("cccopt.pycuda"))
    context: bool = True
    loaded: list[bytes] = field(default_factory=list)
    cached: dict[object, bytes] = field(default_factory=dict)

    def get_device(self) -> None:
        if not self.context:
            raise DriverError("no currently active context?")

    def compile(
        self,
        source: str,
        nvcc: str = "nvcc",
        options: list[str] | None = None,
        keep: bool = False,
        no_extern_c: bool = False,
        arch: str | None = None,
        code: str | None = None,
        cache_dir: str | bool | None = None,
        include_dirs: Sequence[str] = (),
        target: str = "cubin",
    ) -> bytes:
        text = source if no_extern_c else f'extern "C" {{\n{source}\n}}\n'
        options = [*(options or []), "-arch", arch or "sm_80"]
        options += ["-code", code] if code is not None else []
        options += [f"-I{folder}" for folder in include_dirs]
        key = (text, *options)
        if cache_dir is not False and key in self.cached:
            return self.cached[key]
        (self.folder / "kernel.cu").write_text(text)
        command = [nvcc, f"--{target}", *options, "kernel.cu"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CompileError(done.stderr)
        if done.stdout + done.stderr:
            warnings.warn(done.stdout + done.stderr, stacklevel=4)
        made = (self.folder / f"kernel.{target}").read_bytes()
        if cache_dir is not False:
            self.cached[key] = made
        return made


@pytest.fixture
def pycuda(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Pycuda:
    """A PyCUDA in the place of the installed one, and `cccopt.pycuda` as it is when imported over that."""
    library = Pycuda(tmp_path)

    class SourceModule:
        def __init__(
            self, source, nvcc="nvcc", options=None, keep=False, no_extern_c=False, arch=None, code=None,
            cache_dir=None, include_dirs=None,
        ):  # fmt: skip
            made = library.compile(
                source, nvcc, options, keep, no_extern_c, arch, code, cache_dir, include_dirs or []
            )
            library.loaded.append(made)

    package, compiler, driver = (ModuleType(f"pycuda{name}") for name in ("", ".compiler", ".driver"))
    compiler.__dict__.update(
        SourceModule=SourceModule, compile=library.compile, DEFAULT_NVCC_FLAGS=["-DROUNDED"]
    )
    driver.__dict__.update(Context=library, Error=DriverError, CompileError=CompileError)
    for module in (package, compiler, driver):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    library.module = imported_again("cccopt.pycuda")
    return library


@pytest.mark.nvcc
def test_pycuda_compiles_with_ccc_nvcc(pycuda: Pycuda) -> None:
    module = pycuda.module.SourceModule(SOURCE, options=DEFINES, ccc="always")
    plain = pycuda.module.SourceModule(SOURCE, options=DEFINES, ccc="off")
    assert isinstance(module, sys.modules["pycuda.compiler"].SourceModule)
    assert pycuda.loaded[0] != pycuda.loaded[1]
    assert outcomes(module.report) == ["rewritten"] * 2
    assert outcomes(plain.report) == []
    assert "ccc_whole" in module.ptx
    assert ".entry mix(" in plain.ptx
    assert "ccc_whole" not in plain.ptx
    # The report did not go through PyCUDA's cache, whose keys are the options.
    assert len(pycuda.cached) == 2
    pycuda.module.SourceModule(SOURCE, options=DEFINES, ccc="always")
    assert len(pycuda.cached) == 2
    assert pycuda.loaded[2] == pycuda.loaded[0]


@pytest.mark.nvcc
def test_pycudas_arguments_mean_what_they_meant(pycuda: Pycuda, tmp_path: Path) -> None:
    (tmp_path / "factor").mkdir()
    (tmp_path / "factor/factor.h").write_text("#ifdef ROUNDED\n#define FACTOR 1664525u\n#endif\n")
    text = '#include "factor.h"\n' + TEXT
    # PyCUDA's own defaults stand where no options are given.
    arguments = {"no_extern_c": True, "include_dirs": [str(tmp_path / "factor")]}
    module = pycuda.module.SourceModule(text, arch="compute_90", code="sm_90", ccc="always", **arguments)
    assert ".target sm_90" in module.ptx
    assert [unit["arch"] for unit in module.report["units"]] == ["compute_90"]
    with pytest.raises(CompileError, match="FACTOR"):
        pycuda.module.SourceModule(text, options=[], **arguments)


@pytest.mark.nvcc
def test_pycudas_error_holds_what_is_refused(pycuda: Pycuda) -> None:
    with pytest.raises(CompileError, match=r"error\[CCC036\](.|\n)*kernel\.cu:8:5"):
        pycuda.module.SourceModule(REFUSED, options=DEFINES)
    with pytest.warns(UserWarning, match=r"warning\[CCC036\]"):
        pycuda.module.SourceModule(REFUSED, options=DEFINES, keep_going=True)


def test_pycuda_without_a_context(pycuda: Pycuda) -> None:
    pycuda.context = False
    with pytest.raises(cccopt.CccError, match=r"CCC093(.|\n)*no currently active(.|\n)*autoprimaryctx"):
        pycuda.module.SourceModule(SOURCE, arch="sm_90")


def test_no_pycuda_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pycuda", "pycuda.compiler", "pycuda.driver"):
        monkeypatch.setitem(sys.modules, name, None)
    module = imported_again("cccopt.pycuda")
    with pytest.raises(cccopt.CccError, match=r"CCC092(.|\n)*PyCUDA(.|\n)*cccopt\[gpu\]"):
        module.SourceModule(SOURCE)


def test_ccc_nvcc_is_sought_beside_python_and_on_path(
    pycuda: Pycuda, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / name))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(cccopt.CccError, match="CCC080"):
        pycuda.module.SourceModule(SOURCE)
    for folder in ("bin", "scripts"):
        program = tmp_path / folder / "ccc-nvcc"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\necho "$*" >kernel.cubin\necho {folder} >>kernel.cubin\n')
        program.chmod(0o755)
        pycuda.module.SourceModule(SOURCE, options=["-O3"], ccc="always", keep_going=True)
        assert pycuda.loaded.pop().decode() == (
            f"--cubin -O3 --ccc=always --ccc-keep-going -arch sm_80 kernel.cu\n{folder}\n"
        )
        pycuda.cached.clear()
