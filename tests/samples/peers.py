"""A sample's plain build and its hand-written peer, run side by side on the emulator."""

from __future__ import annotations

from pathlib import Path

from cccopt.harness.choices import BuildName
from cccopt.harness.on_emulator import run_on_emulator
from cccopt.harness.result import BuildResult
from cccopt.harness.workload import Sample
from cccopt.toolchain.invoke import run_nvcc
from cccopt.toolchain.settings import Settings


def ptx_of(source: Path, folder: Path) -> str:
    """What nvcc makes of ``source`` without any rewrite."""
    output = folder / f"{source.parent.name}-{source.stem}.ptx"
    arguments = ["-O3", "-std=c++17", "-ptx", "-arch=sm_90", str(source), "-o", str(output)]
    done = run_nvcc(arguments, Settings("off"), capture=True)
    assert done.status == 0, done.errors
    return output.read_text()


def plain_and_peer(
    sample: Sample, repository: Path, folder: Path, size: str = "small"
) -> tuple[BuildResult, BuildResult]:
    """Both builds' results on the emulator, with what is wrong with them."""
    peer = repository / "bench" / "handwritten" / sample.source.name
    builds = {BuildName.PLAIN: ptx_of(sample.source, folder), BuildName.HANDWRITTEN: ptx_of(peer, folder)}
    plain, handwritten = run_on_emulator(sample.instance(size, 1), builds)
    return plain, handwritten
