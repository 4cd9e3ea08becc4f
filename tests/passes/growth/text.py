"""The text of marked kernels, piece by piece: what `shapes` and `marks` are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

_TYPES = {"r": "b32", "rd": "b64", "p": "pred", "f": "f32"}

HEADING = ".version 9.0\n.target sm_90\n.address_size 64\n"

_PARAMETERS = ("data", "table", "out", "more")


class Kernel:
    """The text of a kernel with fresh registers; ``loop`` and ``path`` put marks around what they hold."""

    def __init__(self, name: str = "k", threads: int = 32) -> None:
        self.name, self.threads = name, threads
        self.lines: list[str] = []
        self.local: list[str] = []
        self._count: Counter[str] = Counter()
        self._region = 0
        for parameter in _PARAMETERS:
            self(f"ld.param.u64 %{parameter}, [{name}_{parameter}];")
        self.count = self.made("r", "ld.param.u32 {}, [" + name + "_n];")
        self.thread = self.made("r", "mov.u32 {}, %tid.x;")

    def __call__(self, line: str) -> None:
        self.lines.append(line)

    def new(self, kind: str) -> str:
        """A fresh register (or label, ``L``)."""
        self._count[kind] += 1
        return f"L{self._count[kind]}_{self.name}" if kind == "L" else f"%{kind}{self._count[kind]}"

    def made(self, kind: str, line: str) -> str:
        """A fresh register, which ``line`` computes: ``{}`` stands for it."""
        register = self.new(kind)
        self(line.format(register))
        return register

    def number(self) -> int:
        """The number of the next region."""
        self._region += 1
        return self._region

    def constant(self, value: int = 0) -> str:
        """A register with that value."""
        return self.made("r", f"mov.u32 {{}}, {value};")

    def some(self, value: str) -> str:
        """A predicate that holds for some values."""
        bits = self.made("r", f"and.b32 {{}}, {value}, 5;")
        return self.made("p", f"setp.eq.s32 {{}}, {bits}, 1;")

    def element(self, base: str, index: str) -> str:
        """The address of a word of a parameter's array."""
        offset = self.made("rd", f"mul.wide.u32 {{}}, {index}, 4;")
        return self.made("rd", f"add.s64 {{}}, %{base}, {offset};")

    def read(self, index: str, base: str = "table") -> str:
        """A word of an array that nobody writes."""
        return self.made("r", f"ld.global.nc.u32 {{}}, [{self.element(base, index)}];")

    def store(self, index: str, value: str, base: str = "out") -> None:
        """Store a word of an array."""
        self(f"st.global.u32 [{self.element(base, index)}], {value};")

    def chain(self, value: str, length: int) -> str:
        """A value that ``length`` operations in a row compute, each from the one before."""
        for _ in range(length):
            value = self.made("r", f"mad.lo.s32 {{}}, {value}, 5, 7;")
        return value

    def shared(self, value: str, length: int) -> str:
        """The same where each operation reads the one before twice."""
        for _ in range(length):
            value = self.made("r", f"add.s32 {{}}, {value}, {value};")
        return value

    def hash(self, value: str, length: int) -> str:
        """The same with two operations, of which the second reads both operands of the first."""
        for _ in range(length):
            high = self.made("r", f"shr.u32 {{}}, {value}, 3;")
            value = self.made("r", f"xor.b32 {{}}, {value}, {high};")
        return value

    def branches(self, value: str, length: int) -> str:
        """A value that ``length`` branches in a row may change."""
        result = self.made("r", f"mov.u32 {{}}, {value};")
        for k in range(length):
            past = self.new("L")
            self(f"@{self.some(value if k % 2 else result)} bra {past};")
            self(f"mad.lo.s32 {result}, {result}, 3, {value};")
            self.store(result, value)
            self(f"{past}:")
        return result

    def counted(self, body: Callable[[str], object], bound: str) -> None:
        """An unmarked loop."""
        counter, again = self.constant(), self.new("L")
        self(f"{again}:")
        body(counter)
        self(f"add.s32 {counter}, {counter}, 1;")
        self(f"@{self.made('p', f'setp.lt.u32 {{}}, {counter}, {bound};')} bra {again};")

    def loop(self, body: Callable[[str], object], clauses: str = "", bound: str = "") -> None:
        """A marked loop whose index ``body`` gets."""
        region, again, done = self.number(), self.new("L"), self.new("L")
        index = self.made("r", f"mov.u32 {{}}, {self.thread};")
        bound = bound or self.count
        self(f"// ccc for.begin {region} {clauses}")
        self(f"@{self.made('p', f'setp.ge.u32 {{}}, {index}, {bound};')} bra {done};")
        self(f"{again}:")
        self(f"// ccc body.begin {region}")
        body(index)
        self(f"// ccc body.end {region}")
        self(f"add.s32 {index}, {index}, {self.threads};")
        self(f"@{self.made('p', f'setp.lt.u32 {{}}, {index}, {bound};')} bra {again};")
        self(f"{done}:")
        self(f"// ccc for.end {region}")

    def path(self, condition: str, body: Callable[[], object], clauses: str = "independent") -> None:
        """A marked path."""
        region, past = self.number(), self.new("L")
        self(f"@!{condition} bra {past};")
        self(f"// ccc if.begin {region} {clauses}")
        body()
        self(f"// ccc if.end {region}")
        self(f"{past}:")

    def tasks(self, body: Callable[[str], object], bound: str, clauses: str = "kind=while") -> None:
        """A marked loop of tasks; ``body`` gets its counter."""
        region, again, done = self.number(), self.new("L"), self.new("L")
        counter = self.constant()
        self(f"// ccc for.begin {region} variable {clauses}")
        self(f"@{self.made('p', f'setp.ge.u32 {{}}, {counter}, {bound};')} bra {done};")
        self(f"{again}:")
        self(f"// ccc body.begin {region}")
        body(counter)
        self(f"// ccc body.end {region}")
        self(f"add.s32 {counter}, {counter}, 1;")
        self(f"@{self.made('p', f'setp.lt.u32 {{}}, {counter}, {bound};')} bra {again};")
        self(f"{done}:")
        self(f"// ccc for.end {region}")

    def text(self) -> str:
        """The kernel."""
        registers = [f".reg .{type} %{kind}<{self._count[kind] + 1}>;" for kind, type in _TYPES.items()]
        parameters = [*(f".param .u64 {self.name}_{p}" for p in _PARAMETERS), f".param .u32 {self.name}_n"]
        heading = f".visible .entry {self.name}({', '.join(parameters)}) .maxntid {self.threads}, 1, 1"
        first = [*registers, f".reg .b64 {', '.join(f'%{p}' for p in _PARAMETERS)};", *self.local]
        return "\n".join((heading, "{", *first, *self.lines, "ret;", "}", ""))


def module(*texts: str) -> str:
    """A module of functions."""
    return HEADING + "\n".join(texts)


def in_loop(body: Callable[[Kernel, str], object], clauses: str = "") -> str:
    k = Kernel()
    k.loop(lambda i: body(k, i), clauses)
    return module(k.text())


def in_path(body: Callable[[Kernel, str, str], object], clauses: str = "independent") -> str:
    """A kernel with one path; ``body`` gets the index and a word read for it."""

    def iteration(k: Kernel, i: str) -> None:
        word = k.read(i, "data")
        k.path(k.some(word), lambda: body(k, i, word), clauses)
        k.store(i, k.chain(word, 1), "more")

    return in_loop(iteration)


def ahead(values: Callable[[Kernel, str], str]) -> str:
    """A value that the iteration computes, and the path uses as a place and as data."""

    def iteration(k: Kernel, i: str) -> None:
        word = k.read(i, "data")
        value = values(k, word)
        k.path(k.some(word), lambda: k.store(i, k.read(value)))

    return in_loop(iteration)


def behind(values: Callable[[Kernel, str], str]) -> str:
    """A value that the path writes; what reads it is computed behind the path, with its tasks."""

    def iteration(k: Kernel, i: str) -> None:
        result = k.read(i, "data")
        k.path(k.some(result), lambda: k(f"add.s32 {result}, {k.read(result)}, 3;"), "")
        k.store(i, values(k, result))

    return in_loop(iteration)
