"""A seeded generator of short kernels as people write them, with the signature of `cuda_memory`: one marked loop, some
marked paths in it, and a few pieces of few ideas (`natural_pieces`) in each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from tests.fuzz import (
    cuda_kernels,
    natural_exits,
    natural_indices,
    natural_loops,
    natural_queues,
    natural_records,
    natural_sums,
    natural_tiles,
    natural_updates,
)
from tests.fuzz.cuda_kernels import Kernel
from tests.fuzz.cuda_memory import Mode, formals
from tests.fuzz.natural_pieces import Loop, Piece, Site

HEAD = cuda_kernels.HEAD + natural_records.HEAD

IDEAS: dict[str, tuple[Callable[[Site], Piece | None], ...]] = {
    "indices": natural_indices.PIECES,
    "queues": natural_queues.PIECES,
    "sums": natural_sums.PIECES,
    "updates": natural_updates.PIECES,
    "exits": natural_exits.PIECES,
    "records": natural_records.PIECES,
    "tiles": natural_tiles.PIECES,
}
LOOPS = ("while", "for variable")
_FORMS = (
    *("if",) * 4,
    *("if else",) * 2,
    "switch",
    *("while",) * 4,
    *("for variable",) * 7,
    *("while in if",) * 2,
    *("for variable in if",) * 3,
    *("if in while",) * 2,
    *("if in for variable",) * 2,
    "if in loop",
)
_UNROLLED = ("",) * 5 + (
    "#pragma unroll 2",
    "#pragma unroll 2",
    "#pragma unroll 4",
    "#pragma unroll 1",
    "#pragma unroll",
)
_BLOCKS = (32, 64, 64, 64, 96, 128, 256)


class _Kernel:
    """Writes one kernel."""

    def __init__(self, draw: Random, ideas: Sequence[str], *, grid: bool) -> None:
        self.draw, self.ideas = draw, ideas
        self.site = Site(draw, grid)
        self.pieces: list[Piece] = []
        self.after: list[str] = []

    def chance(self, probability: float) -> bool:
        return self.draw.random() < probability

    def piece(self) -> Piece:
        """One piece of any idea; an update of a sum where all memory is taken."""
        for _ in range(6):
            found = self.draw.choice(IDEAS[self.draw.choice(self.ideas)])(self.site)
            if found is not None:
                break
        else:
            found = Piece(("atomicAdd(&count[y & 15u], k + 1u);",))
        self.pieces.append(found)
        return found

    # --- paths ---

    def region(self) -> list[str]:
        """One path, with what precedes and follows it in its iteration."""
        form = self.draw.choice(_FORMS)
        site, looped = self.site, form not in ("if", "if else", "switch", "if in loop")
        site.inner = looped
        made = [self.piece() for _ in range(self.draw.choice((1, 1, 1, 2)))]
        if form == "switch" and len(made) == 1:
            made.append(self.piece())
        begin = [line for piece in made for line in piece.begin]
        after = [line for piece in made for line in piece.after]
        path = [line for piece in made for line in piece.path]
        other = [line for piece in made for line in piece.other]
        ordered = any(piece.ordered for piece in made)
        if not ordered and self.chance(0.6):
            form = form.replace("while", "for variable")
        elif ordered and not (form == "for variable" and self.chance(0.2)):
            form = form.replace("for variable", "while")
        leaves = any(p.leaves for p in made)
        if looped and " in " in form and form.startswith("if") and leaves:
            form = form[len("if in ") :]
        lines = self._form(form, made, path, other, leaves=leaves)
        if self.chance(0.3):
            self.after += after
            after = []
        return [*begin, *lines, *after]

    def _form(
        self, form: str, made: list[Piece], path: list[str], other: list[str], *, leaves: bool
    ) -> list[str]:
        if form in ("if", "if else"):
            return self._if(
                self._once(path),
                self._once(other or ["atomicAdd(&count[3], y);"]) if form == "if else" or other else [],
            )
        if form == "switch":
            lines = [f"#pragma ccc switch{self.words()}", f"switch (x >> 2 & {self.draw.choice((3, 7))}u) {{"]
            for number, piece in enumerate(made):
                lines += [f"  case {number}: {{", *self._once([*piece.path]), "  break; }"]
            return [*lines, "  default: break;", "}"]
        if form == "if in loop":
            q = self.site.name("q")
            unroll = self.draw.choice(("#pragma unroll 1", "#pragma unroll", ""))
            bound = self.draw.choice(("3u", "(x & 3u)"))
            lines = [
                unroll,
                f"for (unsigned {q} = 0u; {q} < {bound}; {q}++) {{",
                f"  unsigned k = {q}, y = hash32(x + {q});",
            ]
            return [*lines, f"#pragma ccc if{self.words()}", f"if ({self.test('y')}) {{", *path, "}", "}"]
        if form == "while":
            return self._while(path, leaves=leaves)
        if form == "for variable":
            return self._variable(path, leaves=leaves)
        if form.endswith(" in if"):
            inner = (
                self._while(path, leaves=leaves)
                if form.startswith("while")
                else self._variable(path, leaves=leaves)
            )
            inner = [self.draw.choice(("", "atomicAdd(&count[x & 15u], 1u);")), *inner]
            return self._if(inner, [])
        inner = [f"#pragma ccc if{self.words()}", f"if ({self.site.condition()}) {{", *path, "}"]
        inner += ["atomicAdd(&count[5], y & 7u);"] if self.chance(0.4) else []
        return (
            self._while(inner, leaves=False)
            if form.endswith("while")
            else self._variable(inner, leaves=False)
        )

    def _once(self, path: list[str]) -> list[str]:
        """The body of a path that is no loop: the lines once, or in an unmarked loop."""
        if self.chance(0.55):
            work = self.draw.choice(("", "for (unsigned q = 0u; q < 5u; q++) y = y * 1664525u + (y >> 7);"))
            return [
                f"unsigned k = {self.draw.choice(('x >> 9 & 7u', '3u', 'x & 15u', 'at & 7u'))}, y = hash32(x + 1u);",
                work,
                *path,
            ]
        loop = natural_loops.counted(self.site, "(x >> 6 & 7u)", "x") if self.chance(0.5) else None
        if loop is None or loop.before:
            q = self.site.name("q")
            loop = Loop(f"for (unsigned {q} = 0u; {q} < (x >> 6 & 7u); {q}++) {{", f"unsigned k = {q};")
        return [
            self.draw.choice(_UNROLLED),
            loop.head,
            loop.begin,
            f"unsigned y = {self._y()};",
            *path,
            loop.end,
        ]

    def _y(self) -> str:
        return self.draw.choice(
            ("a[(x + k) % items]", "hash32(x + k)", "x * (k + 3u)", "(x ^ k) * 2654435761u")
        )

    def test(self, x: str) -> str:
        return self.draw.choice(
            (
                f"({x} & 3u) == 1u",
                f"({x} & 1u) != 0u",
                f"({x} & 7u) == 5u",
                f"({x} >> 3 & 15u) > 10u",
                f"(int){x} < 0",
            )
        )

    def _if(self, body: list[str], other: list[str]) -> list[str]:
        lines = [f"#pragma ccc if{self.words()}", f"if ({self.test('x')}) {{", *body, "}"]
        if other:
            lines += [f"#pragma ccc else{self.words()}"] if self.chance(0.7) else []
            lines += ["else {", *other, "}"]
        return lines

    def _while(self, path: list[str], *, leaves: bool) -> list[str]:
        if self.chance(0.35):
            loop, y = natural_loops.counted(self.site, "(x >> 6 & 15u)", "x"), f"unsigned y = {self._y()};"
        else:
            loop, y = natural_loops.by_data(self.site), ""
            while leaves and loop.step:
                loop = natural_loops.by_data(self.site)
        return ["{", *self._loop("while", loop, y, path), "}"]

    def _variable(self, path: list[str], *, leaves: bool) -> list[str]:
        length = self.site.name("len")
        loop = natural_loops.counted(self.site, length, "x")
        lines = self._loop("for variable", loop, f"unsigned y = {self._y()};", path)
        return [
            "{",
            f"unsigned {length} = {self.draw.choice(('x >> 6 & 15u', 'x >> 6 & 7u', 'a[x % items] & 15u'))};",
            *lines,
            "}",
        ]

    def _loop(self, word: str, loop: Loop, y: str, path: list[str]) -> list[str]:
        pragma = f"#pragma ccc {word}{self.words()}"
        if word == "while" or self.chance(0.2):
            pragma += self.draw.choice(("", "", "", " chunk(2)", " chunk(4)"))
        # A counted loop that nvcc unrolls is not expanded.
        unroll = self.draw.choice(_UNROLLED) if word == "while" or self.chance(0.3) else ""
        return [loop.before, pragma, unroll, loop.head, loop.begin, y, *path, loop.step, loop.end]

    def words(self) -> str:
        """Clauses of a path."""
        return self.draw.choice(("",) * 8 + (" hoist", " nohoist"))

    # --- the kernel ---

    def body(self, block: str) -> list[str]:
        draw = self.draw
        lines = ["unsigned linear = threadIdx.y * blockDim.x + threadIdx.x, size = blockDim.x * blockDim.y;"]
        lines += ["unsigned all = gridDim.x * size, me = blockIdx.x * size + linear;", natural_queues.LENGTH]
        if self.site.grid:
            iteration = ["if (me >= (unsigned)n) return;", "unsigned at = me;", *self._iteration()]
            return [*lines, *(line for piece in self.pieces for line in piece.ahead), *iteration]
        drawn = natural_loops.marked(self.site)
        iteration = self._iteration()
        loop = next((piece.loop for piece in self.pieces if piece.loop is not None), drawn)
        lines += [line for piece in self.pieces for line in piece.ahead]
        if self.chance(0.3):
            lines.append(
                draw.choice(
                    (
                        "if (me % 7u == 3u) return;",
                        "if (me >= (unsigned)n) return;",
                        "if (hash32(me) % 5u == 0u) return;",
                        "if (linear == size - 1u) return;",
                    )
                )
            )
        sums = [piece.reduce.split(": ")[1] for piece in self.pieces if piece.reduce]
        reduce = f" reduce(+: {', '.join(sums)})" if sums else ""
        lines += [
            loop.before,
            f"#pragma ccc for{reduce}{block}",
            draw.choice(("",) * 5 + ("#pragma unroll 2",)),
            loop.head,
            loop.begin,
        ]
        lines += [*iteration, loop.step, loop.end]
        return lines + [line for piece in self.pieces for line in piece.end]

    def _iteration(self) -> list[str]:
        x = self.draw.choice(("a[at % items] ^ hash32(at)", "hash32(at)", "a[at % items] * (at + 1u)"))
        lines = [f"unsigned x = {x};"]
        for _ in range(self.draw.choice((1, 1, 1, 2))):
            lines += self.region()
        return lines + self.after


def kernel(seed: int, name: str, ideas: Sequence[str] = tuple(IDEAS)) -> Kernel:
    """One kernel of one or two of the ideas, with the functions that only it calls."""
    draw = Random(seed)
    chosen = draw.sample(list(ideas), min(len(ideas), draw.choice((1, 1, 2))))
    grid, threads = draw.random() < 0.08, draw.choice(_BLOCKS)
    bounds, block = (
        (f"__launch_bounds__({threads}) ", "") if draw.random() < 0.8 else ("", f" block({threads})")
    )
    made = _Kernel(draw, chosen, grid=grid)
    lines = [line for line in made.body(block) if line]
    mode = (
        Mode.SCRATCH
        if any(piece.scratch for piece in made.pieces)
        else Mode.MEETING
        if any(piece.meeting for piece in made.pieces)
        else Mode.APART
    )
    # Plain pointers are what most of these ideas are about.
    taken = formals(draw if draw.random() < 0.25 else None)
    pragma = f"#pragma ccc grid{block}\n" if grid else ""
    functions = "".join(f"{function}\n" for piece in made.pieces for function in piece.functions)
    text = (
        f'{functions}{pragma}extern "C" __global__ void {bounds}{name}({taken}) {{\n'
        + "\n".join(lines)
        + "\n}\n"
    )
    return Kernel(name, text.replace("NAME_", f"{name}_"), mode, threads, draw.choice((1, 1, 2)))


def kernels(seed: int, count: int, ideas: Sequence[str] = tuple(IDEAS)) -> list[Kernel]:
    """The kernels ``k0``, ``k1``, ... of one file, which needs `HEAD` ahead of them."""
    return [kernel(seed * 1000 + place, f"k{place}", ideas) for place in range(count)]
