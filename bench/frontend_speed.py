"""How fast PTX is read and printed, and what that costs a build: ``python bench/frontend_speed.py [PAIRS]``.

Modules from 10 kB to 20 MB repeat the kernels of the samples, as nvcc compiles them, under new names. Each module goes
through a process of its own: parse, print, split (`split_module`), and the peak memory that they take over the text.
Both ways of parsing are measured where lark-cython is installed. Then whole commands, nvcc and ccc-nvcc in turn, on
CUDA sources of 15,000 to 20,000 lines of PTX: one annotated kernel among large ones, and one that is large itself (no
bar: a rewritten kernel holds its code more than twice, and ptxas takes far longer for that). What ptxas takes longer
counts into the bar, and is told apart.
Ends with status 1 where a bar is missed.
"""

from __future__ import annotations

import csv
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cccopt.driver import compile, marked_ptx
from cccopt.driver.unconcerned_functions import split_module
from cccopt.passes.pipeline import Options, run
from cccopt.ptx.ir import Function
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_function, print_item, print_module
from cccopt.resources import folder
from cccopt.toolchain.discovery import find_nvcc

SIZES = (10_000, 100_000, 1_000_000, 20_000_000)
RATES = {"plain": 0.5, "lark-cython": 1.0}
"""MB/s of parsing and printing that must be reached from the second size on."""

MEMORY = 100.0
"""Bytes that may be taken for a byte of text, from the third size on: below, the parser's tables count."""

SHARE = 0.15
"""The part of nvcc's time that ccc-nvcc may add where an annotated kernel is among large ones."""

RUNS = 3


def main(pairs: int) -> int:
    """Print both tables; returns 1 where a bar is missed."""
    console = Console(width=None if sys.stdout.isatty() else 110)
    missed = [*_modules(console), *_builds(console, pairs)]
    for line in missed:
        print(f"missed: {line}")
    return 1 if missed else 0


# --- modules ---


def _modules(console: Console) -> Iterator[str]:
    functions = [*_functions()]
    table = Table("text", "parser", "parse", "print", "both", "split", "memory", box=None, padding=(0, 2))
    for column in table.columns[2:]:
        column.justify = "right"
    growth = []
    with tempfile.TemporaryDirectory() as place:
        for kind in _parsers():
            rates = {}
            for size in SIZES:
                file = Path(place) / f"{size}.ptx"
                if not file.exists():
                    file.write_text(module(functions, size))
                result = _measured(file, kind)
                rates[size] = both = result["size"] / (result["parse"] + result["print"]) / 1e6
                memory = result["memory"] / result["size"]
                speeds = (f"{result['size'] / result[key] / 1e6:.2f} MB/s" for key in ("parse", "print"))
                split = f"{result['size'] / result['split'] / 1e6:.0f} MB/s"
                table.add_row(
                    f"{size / 1e6:g} MB", kind, *speeds, f"{both:.2f} MB/s", split, f"{memory:.0f} x"
                )
                if size >= SIZES[1] and both < RATES[kind]:
                    yield f"{kind}: {both:.2f} MB/s for {size / 1e6:g} MB, less than {RATES[kind]}"
                if size >= SIZES[2] and memory > MEMORY:
                    yield f"{kind}: {memory:.0f} times the text of {size / 1e6:g} MB, more than {MEMORY:.0f}"
            growth.append(f"{kind}: {rates[SIZES[-1]] / rates[SIZES[1]]:.2f}")
    console.print(table)
    print(f"MB/s at {SIZES[-1] / 1e6:g} MB over MB/s at {SIZES[1] / 1e6:g} MB: {', '.join(growth)}\n")


def _functions() -> Iterator[tuple[str, str]]:
    """Names and texts of the samples' kernels; the first text is a module's heading."""
    sources = sorted(folder("samples").glob("*/*.cu"))
    modules = [parse(compile(source, ccc="off").ptx) for source in sources]
    yield "", "\n".join(print_item(i) for i in modules[0].items if not isinstance(i, Function)) + "\n"
    yield from ((f.name, print_function(f) + "\n") for m in modules for f in m.functions() if f.body)


def module(functions: Sequence[tuple[str, str]], size: int) -> str:
    """A module of at least ``size`` characters: the functions over and over, under new names."""
    (_, heading), *kernels = functions
    pieces, length, number = [heading], len(heading), 0
    while length < size:
        name, text = kernels[number % len(kernels)]
        pieces.append(text.replace(name, f"{name}_{number}"))
        length += len(pieces[-1])
        number += 1
    return "".join(pieces)


def _parsers() -> list[str]:
    try:
        import lark_cython  # noqa: F401
    except ImportError:
        return ["plain"]
    return ["plain", "lark-cython"]


def _measured(file: Path, kind: str) -> dict[str, float]:
    # The choice is made as the parser is imported.
    hidden = "sys.modules['lark_cython'] = None; " if kind == "plain" else ""
    program = f"import runpy, sys; {hidden}runpy.run_path(sys.argv[1], run_name='__main__')"
    command = [sys.executable, "-c", program, __file__, "--one", str(file)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _one(file: str) -> dict[str, float]:
    """Measures one module in this process: seconds of processor time (the best of some runs) and bytes."""
    text = Path(file).read_text()
    parse("")
    before = _peak()
    times: dict[str, list[float]] = {"parse": [], "print": [], "split": []}
    for _ in range(1 if len(text) > 5_000_000 else RUNS):
        start = time.process_time()
        made = parse(text)
        parsed = time.process_time()
        printed = print_module(made)
        times["parse"].append(parsed - start)
        times["print"].append(time.process_time() - parsed)
        del made, printed
    memory = _peak() - before
    marked = text.replace("{\n", "{\n// ccc for.begin 1\n", 1)
    start = time.process_time()
    split = split_module(marked)
    times["split"].append(time.process_time() - start)
    assert split is not None
    return {"size": len(text), "memory": memory, **{name: min(found) for name, found in times.items()}}


def _peak() -> int:
    """The most memory that this process has held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# --- builds ---


def _builds(console: Console, pairs: int) -> Iterator[str]:
    heads = ("source", "PTX lines", "nvcc", "ccc-nvcc adds", "share", "ptxas' part", "passes")
    table = Table(*heads, box=None, padding=(0, 2))
    for column in table.columns[1:]:
        column.justify = "right"
    nvcc, ours = str(find_nvcc().path), str(Path(sys.executable).with_name("ccc-nvcc"))
    cases = {"among large kernels": (40, 160, 30), "a large kernel": (1, 0, 4900)}
    with tempfile.TemporaryDirectory() as place:
        for name, (kernels, statements, marked) in cases.items():
            source = Path(place) / "k.cu"
            source.write_text("".join(cuda(kernels, statements, marked)))
            ptx = compile(source, ccc="always")
            assert any(r["outcome"] == "rewritten" for u in ptx.report["units"] for r in u["regions"]), name
            lines = ptx.original_ptx.count("\n")
            options = ["-c", "-arch=sm_90", str(source), "-o", str(Path(place) / "k.o")]
            commands = [[nvcc, *options], [ours, "--ccc=always", *options]]
            times: list[list[tuple[float, float]]] = [[], []]
            for pair in range(pairs):
                for which in (0, 1) if pair % 2 else (1, 0):
                    times[which].append(_seconds(commands[which], Path(place) / "times.csv"))
            plain = statistics.median(whole for whole, _ in times[0])
            added, longer = (
                statistics.median(b[n] - a[n] for a, b in zip(*times, strict=True)) for n in range(2)
            )
            seconds = (f"{longer:.2f} s", f"{_passes(source):.2f} s")
            table.add_row(
                name, f"{lines:,}", f"{plain:.2f} s", f"{added:.2f} s", f"{added / plain:.1%}", *seconds
            )
            if added > SHARE * plain and kernels > 1:
                yield f"{name}: {added / plain:.1%} of nvcc's time, more than {SHARE:.0%}"
    console.print(table)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


def _passes(source: Path) -> float:
    """What reading, rewriting and printing the marked PTX takes."""
    marked = marked_ptx(source)
    start = time.perf_counter()
    split = split_module(marked)
    result = run(parse(marked if split is None else split.text), Options(mode="always"))
    assert (print_module(result.module) if split is None else split.restored(result.module)) != marked
    return time.perf_counter() - start


def _seconds(command: Sequence[str], times: Path) -> tuple[float, float]:
    """What a compilation takes, and ptxas in it by nvcc's own account."""
    start = time.perf_counter()
    subprocess.run([*command, "--time", str(times)], check=True, capture_output=True)
    whole = time.perf_counter() - start
    with times.open(newline="") as stream:
        phases = [[cell.strip() for cell in row] for row in csv.reader(stream)]
    times.unlink()
    (ptxas,) = (float(row[6]) for row in phases if row[1] == "ptxas")
    return whole, ptxas / 1000


def cuda(kernels: int, statements: int, marked: int) -> Iterator[str]:
    """A source of ``kernels`` kernels without annotations and one whose marked path has ``marked`` statements."""
    choices = random.Random(1)
    for number in range(kernels):
        yield f"__global__ void plain_{number}(int n, const float* in, float* out) {{\n"
        yield "  int i = threadIdx.x + blockIdx.x * blockDim.x;\n  float a = in[i], b = 2.0f * a, c = 1.0f;\n"
        yield from _statements(choices, statements)
        yield "  out[i] = a + b + c;\n}\n"
    yield "__global__ void __launch_bounds__(128) marked(int n, const float* __restrict__ in, float* out) {\n"
    yield "#pragma ccc for\n  for (int i = threadIdx.x; i < n; i += 128) {\n"
    yield "#pragma ccc if independent\n    if (in[i] > 0.5f) {\n  float a = in[i], b = 2.0f * a, c = 1.0f;\n"
    yield from _statements(choices, marked)
    yield "  out[i] = a + b + c;\n    }\n  }\n}\n"


def _statements(choices: random.Random, count: int) -> Iterable[str]:
    forms = (
        "  if ({x} > {k}.25f) {{ {y} = {y} * {z} + {k}.5f; out[i + {k}] = {y}; }}\n",
        "  {x} = {y} * {z} + {k}.0f;\n",
        "  {x} += in[i + {k}] * {y};\n",
        "  {x} = __fsqrt_rn({y} + {z});\n",
        "  if ({x} < {k}.0f) {x} = {y} - {z}; else {y} = {x} - {z};\n",
    )
    for k in range(count):
        x, y, z = (choices.choice("abc") for _ in range(3))
        yield choices.choice(forms).format(x=x, y=y, z=z, k=k)


if __name__ == "__main__":
    if sys.argv[-2:-1] == ["--one"]:
        print(json.dumps(_one(sys.argv[-1])))
    else:
        sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
