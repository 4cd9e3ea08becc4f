"""Random loops, what is known of their independence, and what the emulator finds: `python -m
tests.ccc.legality.random_loops FIRST LAST`.

Where it is *proven*, or proven on conditions that hold in small launches, no two iterations may meet in a conflict.
Where it is *contradicted*, some do if enough iterations run.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cccopt.ccc.function.view import view_of
from cccopt.ccc.legality.independence import Judgement, State, judged
from cccopt.ccc.outcome.choices import Mode
from cccopt.ccc.regions.marked_loops import loops_of
from cccopt.checking import Checker, Finding
from cccopt.clauses import Kind
from cccopt.diagnostic import CccError
from cccopt.driver import marked_ptx
from cccopt.passes import grid_loop
from cccopt.passes.options import Options
from cccopt.passes.pipeline import prepared
from cccopt.ptx.ir import Module
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from tests.kernels.running import only

ARCH = "sm_90"
WORDS = 1 << 14
KERNELS = 40
"""In a file."""

_HEADS = (
    "for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x)",
    "for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x)",
    "for (unsigned i = threadIdx.x; i < n; i += blockDim.x)",
    "for (size_t i = threadIdx.x + size_t(blockIdx.x) * blockDim.x; i < n; i += size_t(gridDim.x) * blockDim.x)",
    "for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < n; i += blockDim.x * blockDim.y)",
    "for (int i = threadIdx.x; i < n; i += 32)",
    "for (int i = 0; i < n; ++i)",
    "for (int i = threadIdx.x * w; i < threadIdx.x * w + w; ++i)",
    "for (int i = n - 1 - int(threadIdx.x); i >= 0; i -= blockDim.x)",
    "for (int i = threadIdx.y; i < n; i += blockDim.y)",
    "for (int i = threadIdx.x + w; i <= n; i += blockDim.x * 2)",
)
_INNER = (
    "",
    "",
    "for (int m = 0; m < w; ++m)",
    "for (int m = 0; m < 4; ++m)",
    "for (int m = i; m < w; m += 2)",
)
_INNER += (
    "for (int m = threadIdx.x; m < w; m += blockDim.x)",
    "for (int m = data[i & 31]; m < data[i + 1 & 31]; ++m)",
)
_INDICES = (
    "i", "i", "i", "i", "i + 1", "i + 2", "2 * i", "2 * i + 1", "3 * i + 1", "i * w", "i * 4", "i & 7", "i / 2",
    "i % w", "i ^ 1", "(unsigned char)i", "n + i", "n - i", "w * i + 2", "5", "threadIdx.x", "blockIdx.x",
    "data[i & 31]", "i * 4 + (i & 3)", "(i >> 2) * 4 + (i & 3)", "i + data[3]", "i / w * w + i % w",
    "threadIdx.x + blockDim.x * w", "i * 2 + (data[i & 31] & 1)", "(i | 1)", "((i << 2) | 2)",
    "(unsigned short)(i * 3)", "i < w ? i : w", "min(int(i), w)", "i + blockDim.x",
)  # fmt: skip
_WITH_INNER = (
    "m", "i + m", "i * w + m", "i * 4 + m", "m * n + i", "m * 4 + i", "threadIdx.x + blockDim.x * m",
    "i * 8 + 2 * m + 1", "(i * w + m) * 2", "i * 4 + (m & 3)", "i - m",
)  # fmt: skip
_CARRIED = (
    "c += 3;", "c += w;", "if (data[i & 31] > 20) ++c;", "c = d, d = i;", "c = i + 1;", "c = 2 * c;", "c += d; d += 2;",
    "c += blockDim.x; d = c - 1;", "do { c += 1; d = c; } while (data[c & 31] > 30);", "c = data[c & 31];",
    "for (d = 0; d < w; ++d) if (data[d & 31] == i % 53) break;", "c ^= 1;", "c -= 64; d = c;",
)  # fmt: skip
_OF_CARRIED = ("c", "c + i", "d", "2 * c + 1", "(c + d)", "(i + c - d)", "c - d + i")
_AROUND = (
    "for (int s = 0; s < 3; ++s)",
    "for (int s = 1; s < 9; s *= 2)",
    "for (int s = data[threadIdx.x & 31]; s > 9; s -= 9)",
)
_OF_OUTER = ("i + s", "i * s", "s", "i + s * n")
_LEAVES = (
    "",
    "",
    "",
    "if (data[i & 31] > 20) continue;",
    "if (data[i & 31] == 50) break;",
    "if (i % 3 == 1) continue;",
)
_VALUES = ("i", "1", "w", "data[i & 31]", "threadIdx.x", "3 * i + 1", "x")
_GUARDS = (
    "",
    "",
    "",
    "if (i < w) ",
    "if (data[i & 31] > 9) ",
    "if (threadIdx.x == 0) ",
    "if (i == 3) ",
    "if (i & 1) ",
    "if (i > 2) ",
)
_TYPES = ("int", "int", "int", "int", "short", "char", "long long", "int2", "Pair")

_HEADER = """
struct Pair { int first; short second; short third; };
__device__ __noinline__ void put(int* at, int x) { *at = x; }
__device__ inline int number(int x) { return x; }
__device__ inline int number(int2 x) { return x.x + x.y; }
__device__ inline int number(Pair x) { return x.first + x.third; }
"""


@dataclass(frozen=True)
class Launch:
    """Sizes of a launch, and the arguments ``n`` and ``w``."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    n: int
    w: int


@dataclass(frozen=True)
class Outcome:
    """What is known of a kernel's loop marked ``kind``, and the conflicts that the emulator found in it."""

    text: str
    kind: Kind
    judgement: Judgement
    conflicts: tuple[Finding, ...]

    @property
    def wrong(self) -> bool:
        """Whether the judgement is refuted."""
        if self.judgement.state is State.PROVEN:
            return bool(self.conflicts)
        if not self.judgement.conditions:
            return False
        apart = any("no two threads" in condition for condition in self.judgement.conditions)
        return any(f.first.thread == f.second.thread or not apart for f in self.conflicts)


def kernel(name: str, draw: random.Random) -> str:
    """The text of a kernel."""
    grid = draw.random() < 0.2
    carried = "" if grid or draw.random() < 0.6 else draw.choice(_CARRIED)
    around = "" if grid or draw.random() < 0.8 else draw.choice(_AROUND)
    head = draw.choice(_HEADS)
    inner = draw.choice(_INNER)
    restrict = "__restrict__ " if draw.random() < 0.5 else ""
    more = _OF_CARRIED * 3 * bool(carried) + _OF_OUTER * 3 * bool(around)
    body = "".join(f"    {_statement(draw, bool(inner), more)}\n" for _ in range(draw.randint(1, 3)))
    before = f"    {_statement(draw, False)}\n" if inner and draw.random() < 0.5 else ""
    mark = "#pragma ccc for variable\n    " if draw.random() < 0.5 else ""
    inside = f"{before}    {mark}{inner} {{\n{body}    }}\n" if inner else body
    threads = draw.choice(("", "", " __launch_bounds__(128)"))
    parameters = f"int n, int w, const int* __restrict__ data, int* {restrict}a, int* {restrict}b"
    signature = f'extern "C" __global__ void{threads} {name}({parameters})'
    shared = "  __shared__ int t[2048];\n" if not grid and draw.random() < 0.2 else ""
    if shared:
        inside = inside.replace("((int*)a)", "t")
    end = "  if (x == 12345) b[0] = x;\n}\n"
    if not grid:
        leave = draw.choice(_LEAVES)
        step = f"    {carried}\n" if carried else ""
        inside = f"    {leave}\n{step}{inside}" if draw.random() < 0.5 else f"    {leave}\n{inside}{step}"
        before = f"{shared}  int x = 7, c = threadIdx.x * 2, d = 0;\n"
        after = end.replace("x ==", "x + c + d ==")
        return f"{signature} {{\n{before}  {around}\n#pragma ccc for\n  {head} {{\n{inside}  }}\n{after}"
    index, leave = draw.choice(
        (
            ("int i = threadIdx.x + blockIdx.x * blockDim.x;", "if (i >= n) return;"),
            ("int i = threadIdx.x + blockIdx.x * blockDim.x;", ""),
            ("int i = threadIdx.x, y = blockIdx.x; i += y * w;", "if (threadIdx.x >= w) return;"),
            ("int i = threadIdx.x;", ""),
            ("int c = threadIdx.x + blockIdx.x * blockDim.x, r = threadIdx.y + blockIdx.y * blockDim.y, i = r * n + c;",
             "if (c >= n || r >= w) return;"),
        )
    )  # fmt: skip
    path = "#pragma ccc if\n  if (data[i & 31] > 3) x += data[x & 31];\n"
    return f"#pragma ccc grid\n{signature} {{\n  {index} {leave}\n  int x = 7;\n{path}{inside}\n{end}"


def _statement(draw: random.Random, inner: bool, more: tuple[str, ...] = ()) -> str:
    index = draw.choice(_WITH_INNER if inner and draw.random() < 0.7 else _INDICES + more)
    array, guard, type = draw.choice("aaab"), draw.choice(_GUARDS), draw.choice(_TYPES)
    value, place = draw.choice(_VALUES), f"(({type}*){array})[{index}]"
    made = {"int2": f"make_int2({value}, 1)", "Pair": f"Pair{{int({value}), 1, 2}}"}.get(type, value)
    whole = type in ("int2", "Pair")
    kinds = (
        ["store", "store", "load"]
        + ([] if whole else ["update"])
        + (["atomic", "call", "add"] if type == "int" else [])
    )
    match draw.choice(kinds):
        case "load":
            return f"{guard}x += number({place});"
        case "update":
            return f"{guard}{place} += {value};"
        case "atomic":
            return f"{guard}atomicAdd(&{place}, 1);"
        case "add":
            return f"{guard}x += atomicMax(&{place}, int({value}));"
        case "call":
            return f"{guard}put(&{place}, {value});"
    if type == "Pair" and draw.random() < 0.5:
        return f"{guard}{place}.{draw.choice(('first', 'second', 'third'))} = {value};"
    return f"{guard}{place} = {made};"


def launches(text: str, draw: random.Random) -> Iterator[Launch]:
    """Launches that have one thread along axes of which the kernel reads no index."""
    for _ in range(3):
        flat = "threadIdx.y" not in text
        block = draw.choice(((32,), (64,), (40,), (128,)) if flat else ((8, 4), (32, 2), (5, 6), (16, 8)))
        grid = (draw.randint(1, 3), draw.randint(1, 2)) if "blockIdx.y" in text else (draw.randint(1, 3),)
        yield Launch(grid, block, draw.choice((20, 100, 300, 500)), draw.choice((1, 3, 8, 40)))


def outcomes(seed: int, count: int = KERNELS) -> Iterator[Outcome]:
    """What is known and found of the kernels of a seed."""
    draw = random.Random(seed)
    texts = [kernel(f"k{i}", draw) for i in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "random.cu"
        source.write_text(_HEADER + "".join(texts))
        marked = marked_ptx(source, arch=ARCH, nvcc_options=("-lineinfo", "-w"))
        original = parse(marked)
        module = prepared(original)
        for i, text in enumerate(texts):
            own = only(original, f"k{i}")
            grid = "#pragma ccc grid" in text
            looped = print_module(_looped(own)).replace(" kind=grid", "") if grid else print_module(own)
            found = list(_findings(looped, f"k{i}", text, draw))
            for kind, judgement in judgements(module, f"k{i}"):
                as_checked = Kind.FOR if kind is Kind.GRID else kind
                yield Outcome(text, kind, judgement, tuple(f for f in found if f.loop.pragma == as_checked))


def judgements(module: Module, name: str) -> Iterator[tuple[Kind, Judgement]]:
    """What is known of each promise that a kernel's pragmas make."""
    function = next(f for f in module.functions() if f.name == name and f.body is not None)
    view = view_of(module, function)
    for annotation in view.annotations.values():
        loops = (
            loops_of(view, annotation) if annotation.kind in (Kind.FOR, Kind.GRID, Kind.FOR_VARIABLE) else []
        )
        restricted = {i for each in view.annotations.values() for i in each.restricted}
        bodies = view.markers("body.begin", annotation.region)
        if len(loops) == 1 and all(view.cfg.block_of(i) in loops[0].blocks for i in bodies):
            yield annotation.kind, judged(view, loops[0], annotation.kind, restricted=restricted)


def _looped(module: Module) -> Module:
    """The kernel as one block runs it that does the work of all: the check looks at the iterations of a warp alone."""
    return grid_loop.run(module, Options(Mode.ALWAYS, keep_going=True, resident=1)).module


def _findings(marked: str, name: str, text: str, draw: random.Random) -> Iterator[Finding]:
    for launch in launches(text, draw):
        checker = Checker(marked)
        a, b = (np.arange(WORDS, dtype=np.int32) for _ in range(2))
        data = np.array([(7 * i * i + 3) % 53 for i in range(64)], np.int32)
        try:
            checker.launch(name, launch.grid, launch.block, [launch.n, launch.w, data, a, b])
            yield from checker.result().conflicts
        except CccError:
            continue  # an index out of bounds, or no iteration


def main() -> None:
    """Hunt, and print what is refuted and how often there was which state."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--show", action="store_true", help="print kernels of which nothing is known, too")
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    for seed in range(arguments.first, arguments.last):
        for outcome in outcomes(seed):
            conditions = " on conditions" if outcome.judgement.conditions else ""
            state = f"{outcome.kind}: {outcome.judgement.state}{conditions}"
            counts[state + (", conflict" if outcome.conflicts else "")] += 1
            lost = outcome.judgement.state is State.CONTRADICTED and not outcome.conflicts
            unknown = (
                arguments.show
                and outcome.judgement.state is State.OPEN
                and not outcome.conflicts
                and not conditions
            )
            if outcome.wrong or unknown or (lost and arguments.show):
                print(f"seed {seed}, {state}: {outcome.judgement}\n{outcome.text}")
                print("\n".join(f"  {f.kind} {f.first} {f.second}" for f in outcome.conflicts[:1]))
                counts["WRONG"] += outcome.wrong
    for state, count in sorted(counts.items()):
        print(f"{count:6} {state}")


if __name__ == "__main__":
    main()
