"""ccache in front of ``ccc-nvcc``: what hits, what misses, and what is never stored."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cccopt.toolchain.discovery import find_nvcc
from tests.cli.builds import documented, is_rewritten, make_command
from tests.cli.test_annotated import KERNEL, REFUSED

pytestmark = [
    pytest.mark.nvcc,
    pytest.mark.skipif(shutil.which("ccache") is None, reason="ccache is not installed"),
]

Cached = Callable[..., tuple[str, str]]


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cached:
    """Runs the documented compilation of kernel.cu through a new cache: gives what came of it, and what was said."""
    make_command(tmp_path / "bin")
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("CCACHE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CCC_NVCC", str(find_nvcc().path))
    Path("kernel.cu").write_text(KERNEL)

    def compile_kernel(more: str = "", mode: str = "always") -> tuple[str, str]:
        command = documented("ccache ccc-nvcc").replace("=always", f"={mode}") + f" -no-compress {more}"
        Path("kernel.o").unlink(missing_ok=True)
        subprocess.run(["ccache", "--zero-stats"], check=True, capture_output=True)
        done = subprocess.run(command, shell=True, capture_output=True, text=True)
        stats = subprocess.run(["ccache", "--print-stats"], check=True, capture_output=True, text=True).stdout
        counts = {name: int(count) for name, count in (line.split("\t") for line in stats.splitlines())}
        outcomes = {
            "direct hit": counts["direct_cache_hit"],
            "hit": counts["preprocessed_cache_hit"],
            "miss": counts["cache_miss"],
            "failed": counts["compile_failed"],
        }
        (outcome,) = [name for name, count in outcomes.items() if count]
        assert (done.returncode == 0) == (outcome != "failed")
        return outcome, done.stdout + done.stderr

    return compile_kernel


@pytest.mark.parametrize("hit", ["direct hit", "hit"])
def test_what_is_told_apart(hit: str, cached: Cached, monkeypatch: pytest.MonkeyPatch) -> None:
    if hit == "hit":
        monkeypatch.setenv("CCACHE_NODIRECT", "1")
    kernel, source = Path("kernel.o"), Path("kernel.cu")
    assert cached() == ("miss", "")
    first = kernel.read_bytes()
    assert is_rewritten(first, texts=1)
    assert cached() == (hit, "")
    assert kernel.read_bytes() == first

    source.write_text(KERNEL.replace("ccc if", "ccc if off"))
    assert cached() == ("miss", "")
    assert not is_rewritten(kernel.read_bytes(), texts=1)

    source.write_text(KERNEL)
    assert cached() == (hit, "")
    assert kernel.read_bytes() == first
    # Options are hashed alike in both modes.
    if hit == "hit":
        assert cached(mode="off") == ("miss", "")
        assert not is_rewritten(kernel.read_bytes(), texts=1)


def test_a_refusal_is_not_stored(cached: Cached) -> None:
    Path("kernel.cu").write_text(REFUSED)
    for _ in range(2):
        outcome, said = cached()
        assert outcome == "failed"
        assert "error[CCC038]" in said
        assert not Path("kernel.o").exists()


def test_a_warning_is_said_again(cached: Cached) -> None:
    Path("kernel.cu").write_text(REFUSED)
    outcome, first = cached("--ccc-keep-going")
    assert outcome == "miss"
    assert "warning[CCC038]" in first
    assert cached("--ccc-keep-going") == ("direct hit", first)


def test_another_compiler_behind_the_same_command(
    cached: Cached, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    variable, _, value = documented("CCACHE_COMPILERCHECK").removeprefix("export ").partition("=")
    monkeypatch.setenv(variable, value.strip("'"))
    Path("kernel.cu").write_text("__global__ void work() {}\n")
    assert cached()[0] == "miss"
    assert cached()[0] == "direct hit"
    with monkeypatch.context() as changed:
        changed.setenv("PRETENDED_VERSION", "99.0")
        assert cached()[0] == "miss"
    # Options in nvcc's own variables: ccache does not look at these.
    with monkeypatch.context() as changed:
        changed.setenv("NVCC_APPEND_FLAGS", "--ccc=off")
        assert cached()[0] == "miss"
    monkeypatch.setenv("CCC_NVCC", str(pretended_toolkit(tmp_path / "toolkit")))
    assert cached()[0] == "miss"


def pretended_toolkit(folder: Path) -> Path:
    """The nvcc of a toolkit that differs from the real one in its version alone."""
    nvcc = find_nvcc()
    for tool in nvcc.bin.iterdir():
        (folder / "bin").mkdir(parents=True, exist_ok=True)
        (folder / "bin" / tool.name).symlink_to(tool)
    for part in nvcc.root.iterdir():
        if part.name != "bin":
            (folder / part.name).symlink_to(part)
    driver = folder / "bin/nvcc"
    driver.unlink()
    driver.write_text(
        f"""#!/bin/sh
case "$*" in
  --version) '{nvcc.driver}' "$@" | sed 's/V{nvcc.version}/V{nvcc.version}9/' ;;
  *) exec '{nvcc.driver}' "$@" ;;
esac
"""
    )
    driver.chmod(0o755)
    return driver
