"""What ccc-nvcc costs over nvcc: ``python bench/wrapper_overhead.py [PAIRS]``.

Times whole commands in pairs, nvcc first in one and ccc-nvcc first in the next, and prints medians: of nvcc, of the
pairs' differences (with their quartiles), and of the differences in processor time. Ends with status 1 where a bar is
missed: 5 % for compiling a file without annotations, half a second for an annotated one. Markers alone change code, so
where no region is rewritten the device compiler (cicc) runs a second time, on the text without markers: that run is
shown apart. On a machine with other work to do differences mean little; the load is printed.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cccopt.resources import folder
from cccopt.toolchain.discovery import find_nvcc

PLAIN = """\
__global__ void work(int n, const float* in, float* out) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) out[i] = 2.0f * in[i];
}
"""
WITH_LIBRARIES = """\
#include <cstdio>
#include <vector>
#include <cub/block/block_reduce.cuh>

__global__ void sum(int n, const float* in, float* out) {
  __shared__ cub::BlockReduce<float, 128>::TempStorage scratch;
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  float total = cub::BlockReduce<float, 128>(scratch).Sum(i < n ? in[i] : 0.0f);
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}

int main() {
  std::vector<float> values(1000, 1.0f);
  std::printf("%zu\\n", values.size());
}
"""
ANNOTATED = """\
__global__ void __launch_bounds__(128) work(int n, const float* in, float* out) {
#pragma ccc for
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
#pragma ccc if
    if (in[i] > 0.5f) {
      float x = in[i];
      for (int k = 0; k < 40; ++k) x = x * 1.25f + 0.5f;
      out[i] = x;
    }
  }
}
"""
# A barrier for all threads of the block is no place to collect work at.
DECLINED = ANNOTATED.replace("    }\n  }\n}", "    }\n    __syncthreads();\n  }\n}")

ARCH = "-arch=sm_90"
FILES, JOBS = 8, 2
SHARE = 0.05
"""Of nvcc's time: what a file without annotations may cost."""
SECONDS = 0.5
"""What an annotated file may cost."""

Command = Callable[[str, Sequence[str]], list[str]]
"""The words of a command, given the compiler and options for it alone."""


@dataclass(frozen=True, slots=True)
class Case:
    """Something to compile, with ccc-nvcc's own options for it.

    ``share`` and ``seconds`` are bars, None where there is none. ``runs`` is how often the device compiler is to
    run, 0 where nothing is annotated; what it does after the first run is not counted.
    """

    name: str
    command: Command
    options: tuple[str, ...] = ()
    share: float | None = None
    seconds: float | None = None
    runs: int = 0


@dataclass(frozen=True, slots=True)
class PairTimes:
    """A case's seconds: of nvcc alone, what ccc-nvcc took more in each pair and how much more processor time, and the
    device compiler's second run.
    """

    nvcc: tuple[float, ...]
    more: tuple[float, ...]
    work: tuple[float, ...]
    second_run: float

    @property
    def plain(self) -> float:
        """The median of nvcc alone."""
        return statistics.median(self.nvcc)

    @property
    def cost(self) -> float:
        """The median of the differences, without the device compiler's second run."""
        return statistics.median(self.more) - self.second_run

    @property
    def processor(self) -> float:
        """The median of the differences in processor time, without the second run."""
        return statistics.median(self.work) - self.second_run

    @property
    def quartiles(self) -> tuple[float, float]:
        """The first and third quartile of the differences, without the second run."""
        first, _, third = statistics.quantiles(self.more, n=4)
        return first - self.second_run, third - self.second_run


def main(pairs: int) -> int:
    """Measure and print; returns the exit status."""
    nvcc = find_nvcc()
    ours = Path(sys.executable).with_name("ccc-nvcc")
    if not ours.exists():
        raise SystemExit("ccc-nvcc is not installed beside this Python: pip install -e .")
    load = os.getloadavg()[0]
    print(f"{_processor()}, {os.cpu_count()} cores, load {load:.1f}; nvcc {nvcc.version}, ", end="")
    print(f"Python {platform.python_version()}; {pairs} pairs of commands a line")
    missed: list[str] = []
    table = Table("", "nvcc s", "more ms", "quartiles", "more %", "processor ms", "second cicc ms", "bar")
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        for case in _cases():
            times = _measure(case, str(nvcc.driver), str(ours), pairs)
            table.add_row(*_row(case, times))
            missed += _missed(case, times)
    Console(width=120).print(table)
    for line in missed:
        print(f"missed: {line}")
    return 1 if missed else 0


def _cases() -> Iterator[Case]:
    """All that is measured; writes the sources into the current folder."""
    for name, text in (("small", PLAIN), ("cub", WITH_LIBRARIES), ("one", ANNOTATED), ("declined", DECLINED)):
        Path(f"{name}.cu").write_text(text)
    for name in ("bfs.cu", "graph.cuh"):
        shutil.copy(folder("samples") / "bfs" / name, name)
    yield Case("small, -c", _one("-c", "small"), share=SHARE)
    yield Case("small, -ptx", _one("-ptx", "small"))
    yield Case("vector and CUB, -c", _one("-c", "cub"), share=SHARE)
    yield Case("vector and CUB, -ptx", _one("-ptx", "cub"))
    yield Case(f"{FILES} small, make -j{JOBS}", _make("small"), share=SHARE)
    yield Case("annotated, --ccc=off", _one("-c", "one"), ("--ccc=off",), seconds=SECONDS, runs=1)
    yield Case("annotated, one region", _one("-c", "one"), ("--ccc=always",), seconds=SECONDS, runs=1)
    yield Case("samples/bfs", _one("-c", "bfs"), ("--ccc=always",), seconds=SECONDS, runs=1)
    declined = ("--ccc=always", "--ccc-keep-going")
    yield Case("annotated, declined", _one("-c", "declined"), declined, seconds=SECONDS, runs=2)
    rounds = FILES / JOBS
    yield Case(f"{FILES} annotated, make -j{JOBS}", _make("one"), ("--ccc=always",), seconds=SECONDS * rounds)


def _one(kind: str, source: str) -> Command:
    return lambda compiler, options: [compiler, *options, ARCH, kind, f"{source}.cu", "-o", f"{source}.out"]


def _make(source: str) -> Command:
    """``make`` of several objects, which are all made anew."""
    names = [f"{source}{number}" for number in range(FILES)]
    for name in names:
        shutil.copy(f"{source}.cu", f"{name}.cu")
    makefile = f"{source}.mk"
    rule = f"%.o: %.cu\n\t$(NVCC) {ARCH} -c $< -o $@\n"
    Path(makefile).write_text(f"all: {' '.join(f'{name}.o' for name in names)}\n{rule}")
    make = ["make", "-s", "-B", f"-j{JOBS}", "-f", makefile]
    return lambda compiler, options: [*make, f"NVCC={' '.join([compiler, *options])}"]


def _measure(case: Case, nvcc: str, ours: str, pairs: int) -> PairTimes:
    commands = case.command(nvcc, ()), case.command(ours, case.options)
    for command in commands:
        _seconds(command)  # the first one may build what later ones find
    plain, more, work = [], [], []
    for pair in range(pairs):
        order = (0, 1) if pair % 2 == 0 else (1, 0)
        taken = {which: _seconds(commands[which]) for which in order}
        plain.append(taken[0][0])
        more.append(taken[1][0] - taken[0][0])
        work.append(taken[1][1] - taken[0][1])
    return PairTimes(tuple(plain), tuple(more), tuple(work), _second_run(case, ours) if case.runs else 0.0)


def _seconds(command: Sequence[str]) -> tuple[float, float]:
    """What ``command`` takes, and the processor time of all its processes."""
    start, used = time.perf_counter(), _used()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    taken, work = time.perf_counter() - start, _used() - used
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return taken, work


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _second_run(case: Case, ours: str) -> float:
    """What the device compiler took after its first run; checks that it ran as often as the case is to show."""
    found = []
    for _ in range(3):
        _seconds(case.command(ours, [*case.options, "--ccc-report=report.json"]))
        (unit,) = json.loads(Path("report.json").read_text())["units"]
        runs = unit["device_compiler_seconds"]
        if len(runs) != case.runs:
            raise SystemExit(f"{case.name}: cicc ran {len(runs)} times, not {case.runs}")
        found.append(sum(runs[1:]))
    return statistics.median(found)


def _row(case: Case, times: PairTimes) -> list[str]:
    low, high = times.quartiles
    bar = f"{case.share:.0%}" if case.share is not None else ""
    bar = f"{1000 * case.seconds:.0f} ms" if case.seconds is not None else bar
    return [
        case.name,
        f"{times.plain:.2f}",
        f"{1000 * times.cost:.0f}",
        f"{1000 * low:.0f} to {1000 * high:.0f}",
        f"{times.cost / times.plain:.1%}",
        f"{1000 * times.processor:.0f}",
        f"{1000 * times.second_run:.0f}" if case.runs > 1 else "",
        bar,
    ]


def _missed(case: Case, times: PairTimes) -> Iterator[str]:
    if case.share is not None and times.cost > case.share * times.plain:
        yield f"{case.name} costs {times.cost / times.plain:.1%} of nvcc's time, more than {case.share:.0%}"
    if case.seconds is not None and times.cost > case.seconds:
        yield f"{case.name} costs {times.cost:.2f} s, more than {case.seconds:.1f} s"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 15))
