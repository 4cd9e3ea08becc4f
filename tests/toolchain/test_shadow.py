"""The shadow toolkit: what is in it, that it is built once, and that its shims start Python only when they
must.
"""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cccopt.diagnostic import CccError
from cccopt.toolchain import shadow
from cccopt.toolchain.discovery import Nvcc, find_nvcc
from cccopt.toolchain.shadow import shadow_toolkit
from tests.toolchain.conftest import MakeToolkit, script


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CCCOPT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def nvcc(toolkit: MakeToolkit) -> Nvcc:
    return find_nvcc(toolkit())


def test_the_real_nvcc_drives_and_our_tools_come_first(nvcc: Nvcc) -> None:
    folder = shadow_toolkit(nvcc)
    assert os.readlink(folder / "bin/nvcc") == str(nvcc.driver)
    profile = (folder / "bin/nvcc.profile").read_text().splitlines()
    assert f"TOP              = {nvcc.bin}/.." in profile
    assert profile[-2:] == ["CICC_PATH = $(_HERE_)", "PATH += $(_HERE_):"]


def test_it_is_built_once_and_again_for_another_toolkit(nvcc: Nvcc, toolkit: MakeToolkit) -> None:
    first = shadow_toolkit(nvcc)
    (first / "witness").touch()
    assert (shadow_toolkit(nvcc) / "witness").exists()
    other = shadow_toolkit(find_nvcc(toolkit("other")))
    assert other != first
    os.utime(nvcc.driver, ns=(1, 1))
    assert shadow_toolkit(nvcc) not in (first, other)


def test_many_builders_at_once_leave_one_folder(nvcc: Nvcc) -> None:
    with ThreadPoolExecutor(8) as pool:
        folders = set(pool.map(shadow_toolkit, [nvcc] * 16))
    (folder,) = folders
    assert list(folder.parent.iterdir()) == [folder]


def test_a_cache_that_cannot_be_written(nvcc: Nvcc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CCCOPT_CACHE", str(tmp_path / "file"))
    with pytest.raises(CccError) as caught:
        shadow_toolkit(nvcc)
    assert caught.value.diagnostics[0].code == "CCC082"


def test_a_wheels_libraries_get_the_names_the_linker_asks_for(toolkit: MakeToolkit) -> None:
    nvcc = find_nvcc(toolkit())
    (nvcc.root / "lib").mkdir()
    for library in ("libcudart.so.13", "libcudart_static.a"):
        (nvcc.root / "lib" / library).touch()
    folder = shadow_toolkit(nvcc)
    assert sorted(p.name for p in (folder / "lib64").iterdir()) == [
        "libcudart.so",
        "libcudart.so.13",
        "libcudart_static.a",
    ]
    assert f'LIBRARIES =+ $(_SPACE_) "-L{folder}/lib64"' in (folder / "bin/nvcc.profile").read_text()


def test_a_toolkit_that_finds_its_own_libraries_gets_no_other_link_option(toolkit: MakeToolkit) -> None:
    nvcc = find_nvcc(toolkit())
    (nvcc.root / "lib").mkdir()
    (nvcc.root / "lib/libcudart.so.13").touch()
    profile = nvcc.bin / "nvcc.profile"
    profile.write_text(profile.read_text() + 'LIBRARIES =+ $(_SPACE_) "-L$(TOP)/lib"\n')
    folder = shadow_toolkit(nvcc)
    made = (folder / "bin/nvcc.profile").read_text()
    assert f"LIBRARY_PATH += {folder}/lib64:\n" in made
    assert f"-L{folder}" not in made


def test_a_system_toolkits_libraries_are_left_alone(toolkit: MakeToolkit) -> None:
    nvcc = find_nvcc(toolkit())
    (nvcc.root / "lib64").mkdir()
    folder = shadow_toolkit(nvcc)
    assert not (folder / "lib64").exists()


@pytest.mark.parametrize(
    ("text", "starts_python"),
    [
        ("#pragma ccc for\n", True),
        ("int a;\n  #  pragma\tccc if always\n", True),
        ("#pragma cccp\n", False),
        ("#pragma unroll 1\n", False),
        ('const char* s = "#pragma ccc for";\n', False),
    ],
)
def test_shims_start_python_only_for_our_pragmas(
    nvcc: Nvcc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, starts_python: bool
) -> None:
    script(nvcc.cicc, 'echo "real $*"')
    monkeypatch.setattr(shadow, "_interpreter", lambda: str(script(tmp_path / "python", 'echo "python $*"')))
    folder = shadow_toolkit(nvcc)
    (tmp_path / "x.cpp1.ii").write_text(text)
    arguments = ["-arch", "compute_90", str(tmp_path / "x.cpp1.ii"), "-o", "x.ptx"]
    done = subprocess.run(
        [folder / "bin/cicc", *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()
    plain = " ".join(arguments)
    ours = f"python -I -S {folder}/cicc.py {nvcc.cicc} {plain}"
    assert done == (ours if starts_python else f"real {plain}")
