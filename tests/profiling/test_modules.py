"""Kernels of modules that Python loads: counted ones are handed out, and their counts are read at the end."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cccopt
from cccopt.emulator import Profile, Program
from cccopt.passes.instrument import COUNTED, MODULE_HEAD, instrumented
from cccopt.profiling import modules
from cccopt.profiling.run_file import read
from cccopt.profiling.running import left_in
from cccopt.ptx.ir import Module
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from cccopt.toolchain.instrument import COUNT_VARIABLE
from tests.emulator.kernels import kernel as ptx_kernel
from tests.mix import DEFINES, SOURCE, c_names
from tests.passes.instrumenting import memory_at

LOOP = parse(ptx_kernel(
    "mov.u32 %r4, 0; L: add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, %r0; @%p1 bra L; st.global.u32 [%rd2], %r4;"
))  # fmt: skip


WITH_LINES = ptx_kernel(".loc 1 2 0\nst.global.u32 [%rd2], %r0;") + '.file 1 "{file}"\n'


class Device:
    """The emulator as a device on which a counted module is loaded."""

    def __init__(self, module: Module) -> None:
        self.program = Program(instrumented(module)[0])
        self.head = self.program._variables.addresses[MODULE_HEAD].address

    def copy(self, address: int, size: int) -> bytes:
        return memory_at(self.program, address, size)

    def launch(self, name: str) -> Profile:
        return self.program.launch(name, 2, 70, [np.zeros(4096, np.uint32)])


def lanes(profile: Profile, name: str) -> int:
    return sum(count.lanes for key, count in profile.issues.items() if key[0] == name)


def plain() -> int:
    return lanes(Program(LOOP).launch("k", 2, 70, [np.zeros(4096, np.uint32)]), "k")


def test_a_with_statement_counts_what_is_loaded_in_it(tmp_path: Path) -> None:
    device = Device(LOOP)
    assert modules.current() is None
    with cccopt.profile(tmp_path / "k.ccc.json") as counting:
        assert modules.current() is counting
        loaded = counting.add("<text>", "a GPU", device.head, device.copy, "")
        assert loaded.counted_name("k") == "k" + COUNTED
        assert loaded.counted_name("other") == "other"
        device.launch(loaded.counted_name("k"))
    assert modules.current() is None
    (function,) = counting.run.functions
    assert (function.name, function.unit, counting.run.devices) == ("k", "<text>", ("a GPU",))
    assert sum(line.lanes for line in function.lines) == plain()
    assert read(tmp_path / "k.ccc.json") == counting.run


def test_one_in_another_counts_for_both() -> None:
    device = Device(LOOP)
    with cccopt.profile() as outer:
        with pytest.raises(ZeroDivisionError), cccopt.profile():
            raise ZeroDivisionError
        assert modules.current() is outer
        with cccopt.profile() as inner:
            counting = modules.current()
            assert counting is inner
            counting.add("<text>", "a GPU", device.head, device.copy, "")
            device.launch("k" + COUNTED)
    assert [f.name for f in inner.run.functions] == [f.name for f in outer.run.functions] == ["k"]


def test_a_file_that_cannot_be_written_is_told_first(tmp_path: Path) -> None:
    with pytest.raises(cccopt.CccError, match="CCC086"), cccopt.profile(tmp_path / "none" / "k.ccc.json"):
        pytest.fail("the work is done in vain")


def test_an_exception_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), cccopt.profile(tmp_path / "k.ccc.json"):
        raise ZeroDivisionError
    assert modules.current() is None
    assert not list(tmp_path.iterdir())


def test_under_cccopt_profile_counts_are_left_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave: list[Any] = []
    monkeypatch.setattr(modules.atexit, "register", lambda *what: leave.append(what))
    monkeypatch.setattr(modules, "_innermost", [])
    monkeypatch.setenv("CCC_PROFILE_DIR", str(tmp_path))
    monkeypatch.setenv(COUNT_VARIABLE, "0")
    assert modules.current() is None
    assert modules.as_written("auto") == "off"
    monkeypatch.setenv(COUNT_VARIABLE, "1")
    device = Device(LOOP)
    counting = modules.current()
    assert counting is not None
    assert modules.current() is counting
    counting.add("<text>", "a GPU", device.head, device.copy, "")
    device.launch("k" + COUNTED)
    ((function, *arguments),) = leave
    assert left_in(tmp_path, 0, 0, counted=True).lost  # as yet, it has not come to its end
    function(*arguments[:-1], 0)  # in a process that was forked
    assert not list(tmp_path.glob("*.counts"))
    function(*arguments)
    found = left_in(tmp_path, 0, 0, counted=True)
    assert (found.instrumented, found.used_cuda, found.lost) == (True, True, ())
    assert [(unit.name, unit.device) for unit in found.units] == [("<text>", "a GPU")]
    assert found.units == counting.counts()
    # What the libraries raise then is a reason, not a traceback.
    object.__setattr__(counting.modules[0], "copy", lambda *_: 1 / 0)
    function(*arguments)
    assert "division by zero" in left_in(tmp_path, 0, 0, counted=True).lost[0]


class CupyDevice:
    """As CuPy's, of compute capability 9.0."""

    compute_capability, id = "90", 0

    def __init__(self, number: int = 0) -> None:
        assert number == self.id

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


class RawModule:
    """As CuPy's, with the emulator's memory."""

    device: Device

    def __init__(self, *, path: str, enable_cooperative_groups: bool) -> None:
        self.code = Path(path).read_bytes()

    def get_global(self, name: str) -> SimpleNamespace:
        if name.encode() not in self.code:
            raise KeyError(name)
        return SimpleNamespace(ptr=self.device.head)

    def get_function(self, name: str) -> str:
        return name


@pytest.mark.nvcc
def test_cupy_gets_counted_kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    device = RawModule.device = Device(LOOP)
    runtime = SimpleNamespace(
        getDeviceProperties=lambda _: {"name": b"a GPU"},
        deviceSynchronize=lambda: None,
        memcpy=lambda to, at, size, _: ctypes.memmove(to, device.copy(at, size), size),
        memcpyDeviceToHost=2,
    )
    cuda = SimpleNamespace(
        Device=CupyDevice, runtime=runtime, driver=SimpleNamespace(CUDADriverError=KeyError)
    )
    library = SimpleNamespace(__file__=str(tmp_path / "cupy" / "__init__.py"), RawModule=RawModule, cuda=cuda)
    monkeypatch.setitem(sys.modules, "cupy", library)  # type: ignore[arg-type]
    with cccopt.profile() as counting:
        module = cccopt.cupy_module(c_names(SOURCE), options=DEFINES, ccc="always")
        assert module.get_function("k") == "k" + COUNTED
        assert b"mix" + COUNTED.encode() in module.code
        device.launch("k" + COUNTED)
        # Without a kernel there is nothing to count.
        empty = cccopt.cupy_module("__constant__ int only;")
        assert empty.get_function("k") == "k"
    assert [f.name for f in counting.run.functions] == ["k"]
    assert counting.run.devices == ("a GPU",)


class ObjectCode:
    """As cuda.core's, loaded on the emulator."""

    code_type, name = "ptx", "mix.cu"

    def __init__(self, code: bytes, symbol_mapping: dict[Any, Any]) -> None:
        self.code, self.symbol_mapping = code, symbol_mapping
        self.handle = Program(parse(code.rstrip(b"\0").decode()))

    @staticmethod
    def from_ptx(code: bytes, *, name: str, symbol_mapping: dict[Any, Any]) -> ObjectCode:
        assert name == ObjectCode.name
        return ObjectCode(code, symbol_mapping)

    def launch(self, name: str | bytes) -> Profile:
        symbol = self.symbol_mapping.get(name, name if isinstance(name, bytes) else name.encode())
        return self.handle.launch(symbol.decode(), 2, 70, [np.zeros(4096, np.uint32)])


class CoreDriver:
    """As much of cuda.bindings' driver as is needed, with the memory of ``loaded``."""

    NO_CONTEXT = 201

    def __init__(self) -> None:
        self.contexts = ["primary"]
        self.loaded: Program | None = None

    def cuCtxGetCurrent(self) -> tuple[int, str]:
        return 0, self.contexts[-1]

    def cuCtxGetDevice(self) -> tuple[int, int | None]:
        return (0, 3) if self.contexts else (self.NO_CONTEXT, None)

    def cuDeviceGetName(self, size: int, device: int) -> tuple[int, bytes]:
        assert device == 3
        return 0, b"a GPU".ljust(size, b"\0")

    def cuLibraryGetGlobal(self, library: Program, name: bytes) -> tuple[int, int, int]:
        self.loaded = library
        return 0, library._variables.addresses[name.decode()].address, 32

    def cuCtxPushCurrent(self, context: str) -> tuple[int]:
        self.contexts.append(context)
        return (0,)

    def cuCtxPopCurrent(self) -> tuple[int, str]:
        return 0, self.contexts.pop()

    def cuCtxSynchronize(self) -> tuple[int]:
        return (0,)

    def cuMemcpyDtoH(self, to: bytearray, address: int, size: int) -> tuple[int]:
        assert self.loaded is not None
        to[:] = memory_at(self.loaded, address, size)
        return (0,)


def test_cuda_core_gets_counted_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = CoreDriver()
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", driver)  # type: ignore[arg-type]
    given = ObjectCode(print_module(LOOP).encode() + b"\0", {"count<int>": b"k", "n": "k", "other": b"other"})
    with cccopt.profile() as counting:
        made = cccopt.optimize(given, ccc="always")
        assert made.symbol_mapping["other"] == b"other"
        for name in ("k", b"k", "count<int>", "n"):
            made.launch(name)
        driver.contexts.append("another")
        # Without a kernel there is nothing to count.
        empty = ObjectCode(b".version 9.0\n.target sm_90\n.address_size 64\n.global .u32 only;\n", {})
        assert cccopt.optimize(empty) is empty
    (function,) = counting.run.functions
    assert (function.name, function.unit, counting.run.devices) == ("k", "mix.cu", ("a GPU",))
    assert sum(line.lanes for line in function.lines) == 4 * plain()
    assert driver.contexts == ["primary", "another"]


def test_cuda_core_counts_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = CoreDriver()
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", driver)  # type: ignore[arg-type]
    monkeypatch.setattr(driver, "cuCtxGetCurrent", lambda: (0, None))
    driver.contexts.clear()
    given = ObjectCode(print_module(LOOP).encode(), {})
    with cccopt.profile(), pytest.raises(cccopt.CccError, match=r"CCC093(.|\n)*set_current"):
        cccopt.optimize(given)


def test_the_text_is_kept_and_named(tmp_path: Path) -> None:
    """Temporary files are gone when counts are read; their text is not."""
    text = "#pragma ccc for\nkernel\n"
    device = Device(parse(WITH_LINES.replace("{file}", str(tmp_path / "gone" / "kernel.cu"))))
    with cccopt.profile() as counting:
        loaded = counting.add("<text>", "a GPU", device.head, device.copy, text)
        device.launch(loaded.counted_name("k"))
    (line, *_) = counting.run.functions[0].lines
    assert Path(line.file).name == "kernel.cu"
    assert Path(line.file).read_text() == text
    assert line.line == 1  # the second of the text, without the pragma's
    assert list(counting.run.sources) == [line.file]
