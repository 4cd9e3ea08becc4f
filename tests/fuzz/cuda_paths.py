"""Marked pieces of random kernels: every pragma that names a path or a loop of tasks, nested in each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.fuzz.cuda_memory import ACTUALS, TURNS, formals
from tests.fuzz.cuda_pieces import Scope, Writer

_COUNTED = (
    ("unsigned {k} = 0u; {k} < {lim}; ++{k}", "{k}"),
    ("unsigned {k} = 0u; {k} < {lim}; ++{k}", "{k}"),
    ("unsigned {k} = {lo}; {k} < {hi}; {k}++", "{k} - {lo}"),
    ("int {k} = (int){lo}; {k} < (int){hi}; {k}++", "(unsigned){k} - {lo}"),
    ("int {k} = (int){lim} - 1; {k} >= 0; --{k}", "(unsigned){k}"),
    ("long long {k} = {lo}; {k} != (long long){hi}; ++{k}", "(unsigned){k} - {lo}"),
    ("unsigned long long {k} = {lo}; {k} < {hi}; ++{k}", "(unsigned){k} - {lo}"),
    ("unsigned short {k} = 0; {k} < (unsigned short){lim}; {k} += 2", "(unsigned){k}"),
    ("unsigned {k} = {lim}; {k} > 0u; {k} -= 1u", "{k} - 1u"),
    ("int {k} = -(int){lim}; {k} <= 0; {k} += 3", "(unsigned)({k} + (int){lim})"),
    ("unsigned {k} = {lim}; {k}-- > 0u;", "{k}"),
    ("unsigned char {k} = 0; {k} != (unsigned char){lim}; {k}++", "(unsigned){k}"),
)
"""Heads of `for variable`, and the number of an inner iteration, below TURNS."""


@dataclass
class PathWriter(Writer):
    """Writes marked pieces, too. ``independent`` lets pragmas say that, a share ``often`` of them do. ``functions`` go
    ahead of the kernel.
    """

    kernel: str = "k0"
    independent: bool = False
    often: float = 1.0
    functions: list[str] = field(default_factory=list)
    real_sums: list[str] = field(default_factory=list)

    def statement(self, scope: Scope) -> None:
        if scope.marks > 0 and self.chance(0.16):
            self.marked(scope)
        else:
            super().statement(scope)

    def marked(self, scope: Scope) -> None:
        """A marked piece of any kind."""
        kinds: list[tuple[Callable[[Scope], None], int]] = [
            (self.marked_if, 30),
            (self.named_block, 8),
            (self.chain, 20),
            (self.marked_switch, 16),
            (self.variable, 26),
            (self.marked_while, 24),
            (self.recursive, 0 if self.functions or scope.turn is not None else 14),
        ]
        writers, weights = zip(*kinds, strict=True)
        self.random.choices(writers, weights)[0](scope)

    def clauses(self, *, loop: bool = False, switch: bool = False) -> str:
        """Clauses for the pragma of a path; ``loop`` for a loop of tasks."""
        words = ""
        if self.independent and self.chance(self.often):
            words += " independent"
        if self.chance(0.12):
            words += self.random.choice((" hoist", " nohoist"))
        if loop and self.chance(0.25):
            words += f" chunk({self.random.choice((1, 2, 3, 4, 9))})"
        if switch and self.chance(0.35):
            words += f" collect({self.random.randrange(1, 4)})"
        return words + self.random.choice(("",) * 18 + (" always", f" name(here{self.names})"))

    def _path(self, scope: Scope) -> Scope:
        return replace(
            scope.inner(marks=scope.marks - 1, path=True), depth=self.random.choice((0, 1, 1)), jumps=()
        )

    def _body(self, scope: Scope, result: str = "", *, some: bool = False) -> None:
        """The statements of a path, most often some effect among them, and always where ``some`` is asked for."""
        self.indent += 1
        self.block(scope, self.random.choice((0, 1, 1, 2, 3)))
        if result:
            self.say(f"{result} = {scope.values.unsigned()};")
        elif self.chance(0.8) or some:
            self.touch(scope)
        self.indent -= 1

    # --- paths ---

    def marked_if(self, scope: Scope) -> None:
        """An ``if`` with or without a result, an ``else`` (marked or not)."""
        result = self.declare(scope, "unsigned") if self.chance(0.2) else ""
        if result:
            del scope.values.known[result]
        self.say(f"#pragma ccc if{self.clauses()}")
        self.say(f"if ({scope.values.condition(self.random.choice((1, 3, 5, 9, 15)))}) {{")
        self._body(self._path(scope), result)
        self.say("}")
        if self.chance(0.25):
            marked = self.chance(0.7)
            if marked:
                self.say(f"#pragma ccc else{self.clauses()}")
            self.say("else {")
            self._body(self._path(scope) if marked else replace(scope.inner(), jumps=()), result)
            self.say("}")
        self._use(scope, result)

    def _use(self, scope: Scope, result: str) -> None:
        """Reads a path's result once, in a store, or lets all that follows read it."""
        if not result:
            return
        if self.chance(0.85):
            change = self.random.choice((" + 3u", " ^ at", ""))
            self.say(self.memory.keep(f"{result}{change}", scope.turn))
        else:
            scope.values.learn(result, "unsigned")

    def named_block(self, scope: Scope) -> None:
        """A block in braces, which all lanes enter that come by."""
        self.say(f"#pragma ccc if{self.clauses()}")
        self.say("{")
        self._body(self._path(scope))
        self.say("}")

    def chain(self, scope: Scope) -> None:
        """Marked arms of a chain of ``if``s."""
        arms = self.random.randrange(2, 5)
        for arm in range(arms):
            self.say(f"#pragma ccc if{self.clauses()}")
            self.say(f"if ({scope.values.condition(5)}) {{")
            self._body(self._path(scope))
            self.say("} else" if arm < arms - 1 else "}")
        if self.chance(0.5):
            self.say(f"#pragma ccc else{self.clauses()}")
            self.say("else {")
            self._body(self._path(scope))
            self.say("}")

    def marked_switch(self, scope: Scope) -> None:
        """Cases, some of which share statements; with a result they end in code that reads it."""
        cases = self.random.choice((2, 3, 4, 6, 8))
        result = self.declare(scope, "unsigned") if self.chance(0.3) else ""
        if result:
            del scope.values.known[result]
        self.say(f"#pragma ccc switch{self.clauses(switch=True)}")
        self.say(f"switch ((hash32({scope.values.unsigned(1)} ^ first) >> 3) & {7 if cases > 3 else 3}u) {{")
        for case in range(cases):
            shared = f" case {case + 8}:" if self.chance(0.15) else ""
            self.say(f"case {case}:{shared} {{")
            inner = self._path(scope)
            marks = inner.marks if self.chance(0.1) else 0
            # A switch in which no case does anything is refused (CCC018).
            self._body(replace(inner, depth=0, marks=marks), result, some=case == 0)
            self.say("break; }")
        if self.chance(0.3):
            self.say("default: {")
            self._body(replace(self._path(scope), depth=0, marks=0), result)
            self.say("break; }")
        else:
            self.say("default: break;")
        self.say("}")
        self._use(scope, result)

    # --- loops of tasks ---

    def _task(self, scope: Scope, turn: str, jumps: tuple[str, ...]) -> Scope:
        """The scope of an inner iteration. One in another loop of tasks has no number of its own."""
        inner = scope.inner(marks=scope.marks - 1, path=True)
        return replace(inner, depth=1, turn=turn if scope.turn is None else "", jumps=jumps)

    def variable(self, scope: Scope) -> None:
        """A `for variable`: counted, now and then as often in all lanes, unless it breaks or hands something on."""
        k, lo, lim, hi = (self.name() for _ in range(4))
        most = self.random.choice((3, 7, 15)) if scope.turn is None else 3
        known = self.chance(0.15)
        count = f"{self.random.randint(1, most)}" if known else ""
        self.say(f"unsigned {lim} = {count or f'(hash32({scope.values.unsigned(1)}) + first) & {most}'}u;")
        self.say(f"unsigned {lo} = ({scope.values.unsigned(1)}) & 63u, {hi} = {lo} + {lim};")
        carried = (
            self.declare(scope, self.random.choice(("unsigned", "long long", "short")))
            if self.chance(0.2)
            else ""
        )
        total = self._total(scope) if self.chance(0.3) else ("", "")
        head, number = self.random.choice(_COUNTED)
        jumps = ("continue",) * self.chance(0.5) + ("break",) * self.chance(0.12)
        names = {"k": k, "lo": lo, "lim": lim, "hi": hi}
        inner = self._task(scope, number.format(**names), jumps)
        inner.values.known.pop(carried, None)
        self.say(f"#pragma ccc for variable{self.clauses(loop=True)}")
        self.say(f"for ({head.format(**names)}) {{")
        inner.values.learn(k, head.split(" {k}")[0])
        if carried:
            inner.values.learn(carried, scope.values.known[carried], assignable=True)
        self.indent += 1
        self.block(inner, self.random.choice((1, 1, 2, 3)))
        self.say(total[0] and f"{total[0]} {total[1].format(inner.values.unsigned(1))};")
        if carried:
            self.say(f"{carried} = {inner.values.of(scope.values.known[carried])};")
        elif not total[0] or self.chance(0.4):
            self.touch(inner)
        self.indent -= 1
        self.say("}")
        self._end(scope, carried)
        if total[0] in self.real_sums and scope.turn is None:
            self.say(f"reals[at * 2u + {self.real_sums.index(total[0])}u] = {total[0]};")
        elif total[0]:
            self._use(scope, total[0])

    def _total(self, scope: Scope) -> tuple[str, str]:
        """A sum that begins anew in each iteration: its name, and how it is updated."""
        name = self.name()
        if self.sums and scope.turn is None and len(self.real_sums) < 2 and self.chance(0.4):
            self.say(f"float {name} = 0.5f;")
            self.real_sums.append(name)
            return name, "+= (float)(({}) & 255u) * 0.01f"
        self.say(f"unsigned {name} = {scope.values.unsigned(1)};")
        return name, self.random.choice(("+= {}", "-= {}", "^= {}", "|= {}", "*= {} | 1u"))

    def _end(self, scope: Scope, carried: str) -> None:
        """What follows a loop reads what it handed on in a store, or anywhere, or not at all."""
        if carried and self.chance(0.65):
            self.say(self.memory.keep(f"(unsigned){carried}", scope.turn))
        if carried and not self.chance(0.15):
            del scope.values.known[carried]

    def marked_while(self, scope: Scope) -> None:
        """A loop whose inner iterations keep their order: ended by data, by a count, or by both."""
        k, x = self.name(), self.declare(scope, "unsigned")
        more = [self.declare(scope) for _ in range(self.random.choice((0, 0, 1, 2)))]
        most = self.random.choice((4, 9, TURNS - 1)) if scope.turn is None else 3
        often = f"({x} >> {self.random.randrange(28)} & {self.random.choice((3, 7))}u) != 2u"
        ending = self.random.choice((often, often, f"hash32({x} + at) % 5u != 1u", "true"))
        free = self.chance(0.15)
        inner = self._task(scope, "" if free else f"{k} - 1u", ("break",) if free else ("break", "continue"))
        if not self.chance(0.35):
            inner = replace(inner, jumps=())
        self.say("" if free else f"unsigned {k} = 0u;")
        self.say(f"#pragma ccc while{self.clauses(loop=True)}")
        test = f"({x} >> 20) & 7u" if free else f"({ending}) && {k} < {most}u"
        form = "do" if free else self.random.choice(("do", "while", "for"))
        for name in (x, *more):
            inner.values.learn(name, scope.values.known[name], assignable=name != x)
        step = self.random.choice(
            ("hash32({0} + at)", "{0} * 1664525u + ({0} >> 7) + 12345u", "{0} * 3u + {1}")
        )
        heads = {"do": "do {", "while": f"while ({test}) {{"}
        last = step.format(x, "first")
        self.say(heads.get(form, f"for (; {test}; {x} = {last}) {{"))
        self.indent += 1
        if free:
            step = "({0} ^ {0} >> 15) * 0x846ca68bU + at"
            self.say(f"{x} = {step.format(x)};")
        else:
            self.say(f"{k}++;")
            inner.values.learn(k, "unsigned")
        self.block(inner, self.random.choice((1, 1, 2, 3)))
        for name in more:
            if self.chance(0.6):
                self.say(f"{name} = {inner.values.of(scope.values.known[name])};")
        if form == "while" or (form == "do" and not free):
            self.say(f"{x} = {step.format(x, inner.values.unsigned(1))};")
        self.indent -= 1
        self.say(f"}} while ({test});" if form == "do" else "}")
        for name in (x, *more):
            self._end(scope, name)

    def recursive(self, scope: Scope) -> None:
        """A call of a function that calls itself last; the function is written too, with paths of its own."""
        name = f"{self.kernel}_again"
        result = self.chance(0.35)
        values = replace(
            scope.values.fork(path=True), known={"at": "unsigned", "first": "unsigned", "x": "unsigned"}
        )
        inner = Scope(values, 1, scope.marks - 1, "(unsigned)left")
        lines, indent, sums = self.lines, self.indent, self.sums
        self.lines, self.indent, self.sums = [], 1, ()
        with self.memory.without_own(), self.idioms.without_own():
            self.functions.append("")
            self.block(inner, self.random.randrange(1, 3))
            self.touch(inner)
        call = f"{name}(at, me, first, {inner.values.unsigned()}, left - 1, {ACTUALS})"
        self.say(f"if (left > 0 && (hash32(x + at) & 3u) != 0u) {'return ' if result else ''}{call};")
        self.say("return x;" if result else "")
        body, self.lines, self.indent, self.sums = self.lines, lines, indent, sums
        attribute = self.random.choice(("", "", "__noinline__ "))
        self.functions[-1] = "\n".join(
            (
                f"#pragma ccc recursive{self.clauses(loop=True)}",
                f"static __device__ {attribute}{'unsigned' if result else 'void'} {name}"
                f"(unsigned at, unsigned me, unsigned first, unsigned x, int left, {formals(None)}) {{",
                *body,
                "}",
            )
        )
        call = f"{name}(at, me, first, {scope.values.unsigned()}, (int)(first & 7u), {ACTUALS})"
        self.say(self.memory.keep(call, scope.turn) if result else f"{call};")
