"""Unmarked statements of random kernels: declarations, assignments, loops, branches, switches, memory, sums."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from tests.fuzz.cuda_idioms import Idioms
from tests.fuzz.cuda_memory import Memory, Mode
from tests.fuzz.cuda_sums import Sum
from tests.fuzz.cuda_values import TYPES, Values


@dataclass(frozen=True)
class Scope:
    """Where a statement stands.

    ``depth`` limits unmarked nesting and ``marks`` marked nesting. ``turn`` numbers the inner iterations of the loop of
    tasks around (`Memory.write`). ``jumps`` are the words that may leave an inner iteration early.
    """

    values: Values
    depth: int
    marks: int
    turn: str | None = None
    jumps: tuple[str, ...] = ()

    def inner(self, *, marks: int | None = None, path: bool = False) -> Scope:
        """A scope in this one, with variables of its own."""
        return replace(
            self,
            values=self.values.fork(path=path),
            depth=self.depth - 1,
            marks=self.marks if marks is None else marks,
        )


@dataclass
class Writer:
    """A kernel being written: its lines, and what the statements may use."""

    random: Random
    mode: Mode
    memory: Memory
    sums: tuple[Sum, ...]
    idioms: Idioms
    lines: list[str] = field(default_factory=list)
    names: int = 0
    indent: int = 1

    def say(self, line: str) -> None:
        if line:
            self.lines.append(line if line.startswith("#") else "  " * self.indent + line)

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def block(self, scope: Scope, count: int) -> None:
        """Some statements in ``scope``, which learns what they declare."""
        for _ in range(count):
            self.statement(scope)

    def statement(self, scope: Scope) -> None:
        """One statement drawn from all kinds."""
        if self.idioms.wants():
            for line in self.idioms.statement(scope.values):
                self.say(line)
            return
        kinds = [
            (self.declare, 30),
            (self.touch, 22),
            (self.assign, 8),
            (self.update, 14 if self.sums else 0),
        ]
        if scope.depth > 0:
            kinds += [(self.inner_loop, 8), (self.branch, 8), (self.switch, 2), (self.local_array, 2)]
        if scope.jumps:
            kinds.append((self.jump, 6))
        statements, weights = zip(*kinds, strict=True)
        self.random.choices(statements, weights)[0](scope)

    # --- values ---

    def declare(self, scope: Scope, type: str = "") -> str:
        type = type or self.random.choice(TYPES)
        name, values = self.name(), scope.values
        value = self.memory.read(values) if type == "unsigned" and self.chance(0.4) else values.of(type)
        self.say(f"{type} {name} = {value};")
        values.learn(name, type, assignable=True)
        return name

    def assign(self, scope: Scope) -> None:
        own = sorted(scope.values.own & scope.values.known.keys())
        if own:
            name = self.random.choice(own)
            self.say(f"{name} = {scope.values.of(scope.values.known[name])};")

    def touch(self, scope: Scope) -> None:
        self.say(self.memory.write(scope.values, scope.turn))

    def update(self, scope: Scope) -> None:
        self.say(self.random.choice(self.sums).update(scope.values))

    def jump(self, scope: Scope) -> None:
        word = self.random.choice(scope.jumps)
        self.say(
            f"if (({scope.values.unsigned(1)} + first) % {self.random.choice((5, 9, 37))}u == 3u) {word};"
        )

    # --- control flow that nobody marked ---

    def inner_loop(self, scope: Scope) -> None:
        """A loop of few trips; ``total`` is handed from one to the next and read behind it."""
        total, counter = self.name(), self.name()
        inner = replace(scope.inner(marks=0), jumps=("break", "continue"))
        bound = f"(({scope.values.unsigned(1)}) & {self.random.choice((1, 3, 7))}u)"
        self.say(f"unsigned {total} = {scope.values.unsigned(1)};")
        for variable in (total, counter):
            inner.values.learn(variable, "unsigned")
        form = self.random.randrange(5)
        if form == 0:
            self.say(f"unsigned {counter} = {bound}; while ({counter} > 0u) {{ {counter}--;")
        elif form == 1:
            inner = replace(inner, jumps=("break",))
            self.say(f"unsigned {counter} = 0u; do {{")
        elif form == 2:
            self.say(f"for (short {counter} = (short){bound}; {counter} >= 0; {counter} -= 2) {{")
        else:
            self.say(self.random.choice(("#pragma unroll 1", "#pragma unroll 2", "", "#pragma unroll")))
            self.say(f"for (unsigned {counter} = 0u; {counter} < {bound}; {counter}++) {{")
        self.indent += 1
        self.say(f"{total} = {inner.values.unsigned()};")
        self.block(inner, self.random.choice((0, 0, 1)))
        self.indent -= 1
        self.say(f"}} while (++{counter} < {bound});" if form == 1 else "}")
        scope.values.learn(total, "unsigned", assignable=True)

    def branch(self, scope: Scope) -> None:
        """An ``if``, with or without an ``else``, that writes a variable read behind it."""
        name = self.declare(scope, "unsigned")
        self.say(f"if ({scope.values.condition(7)}) {{")
        self.indent += 1
        inner = scope.inner()
        self.block(inner, self.random.choice((1, 1, 2)))
        self.say(f"{name} = {inner.values.unsigned(1)};")
        self.indent -= 1
        self.say("}" if self.chance(0.5) else f"}} else {{ {name} ^= {scope.values.unsigned(1)}; }}")

    def switch(self, scope: Scope) -> None:
        name = self.declare(scope, "unsigned")
        cases = self.random.choice((2, 3, 5))
        self.say(f"switch (({scope.values.unsigned(1)}) & 7u) {{")
        for case in range(cases):
            # `continue` belongs to the loop around, `break` to the switch.
            inner = replace(scope.inner(), jumps=())
            self.say(f"  case {case}: {{")
            self.indent += 2
            self.block(inner, self.random.choice((0, 0, 0, 1)))
            self.say(f"{name} = {inner.values.unsigned(1)};")
            self.indent -= 2
            self.say("  }" if self.chance(0.2) else "  break; }")
        self.say("  default: break;")
        self.say("}")

    def local_array(self, scope: Scope) -> None:
        """An array of the lane's own, its places found in data."""
        name, read = self.name(), self.name()
        values = scope.values
        start = ", ".join(values.unsigned(1) for _ in range(4))
        self.say(f"unsigned {name}[4] = {{{start}}};")
        self.say(f"{name}[({values.unsigned(1)}) & 3u] ^= {values.unsigned(1)};")
        self.say(f"unsigned {read} = {name}[({values.unsigned(1)}) & 3u];")
        values.learn(read, "unsigned", assignable=True)
