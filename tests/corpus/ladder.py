"""The ladder: what must hold of any PTX that ptxas takes, rung by rung, with nothing kept from its text.

    tokens      the printed module has the tokens of the text, white space and comments aside
    nodes       the printed module parses to the same nodes
    known       the table of instructions has a row for every instruction
    verified    the verifier finds nothing
    defined     what an instruction reads, some instruction of the function writes (copies and stores aside)
    flow        control flow graph and liveness of every function can be built
    code        ptxas makes the same machine code of the text and of the printed module
    rebuilt     and again after the pipeline, with every node made anew
    renamed     the same machine code with registers under other names, declared in another order
    clobbered   what constants stand in registers that liveness calls dead does not show in the machine code

*Machine code* is the content of each ``.text`` section of the cubin. The last two rungs take the text for a
target without ``debug``: they count on ptxas to delete what is dead.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cccopt.analysis import cfg, effects, liveness
from cccopt.passes import pipeline
from cccopt.ptx import isa
from cccopt.ptx.ir import Instruction, Module
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module, print_statement
from cccopt.ptx.scopes import with_unique_names
from cccopt.ptx.verifier import verify
from tests.corpus.rewrites import clobbered, rebuilt, renamed, without_debug
from tests.ptx.elf import code_sections
from tests.ptx.tokens import tokens

Code = dict[str, bytes]
SEED = 1


class RefusedError(Exception):
    """What ptxas said of a text that it does not take."""


class FallenError(Exception):
    """What is wrong with a text on a rung."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a text fared on one rung; ``problem`` is empty where the rung holds."""

    rung: str
    problem: str = ""


def assemble(command: Sequence[str], text: str) -> Code:
    """The machine code that ``command`` (ptxas with its options) makes of ``text``; RefusedError else."""
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder, "a.ptx"), Path(folder, "a.cubin")
        source.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [*command, str(source), "-o", str(cubin)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RefusedError((done.stderr or f"ptxas ended with {done.returncode}").strip()[:400])
        return code_sections(cubin.read_bytes())


_TARGET = re.compile(r"^\s*\.target\s+(\w+)([^\n]*)", re.MULTILINE)


def assembler(tools: Sequence[str], text: str, *, debug: bool = True) -> tuple[tuple[str, ...], Code]:
    """The first command that takes ``text``, with the options of its target, and what it makes of it.

    ``tools`` are ptxas of several toolkits: a version of PTX needs one that knows it. Code for linking
    (``-rdc=true``) is taken under ``-c`` alone. With ``debug`` a target with that word gets ``-g``.
    """
    target = _TARGET.search(text)
    arch, words = ("sm_75", "") if target is None else target.groups()
    options = [f"-arch={arch}", "-w", *(["-g"] if debug and "debug" in words else [])]
    said: list[str] = []
    for tool in tools:
        for more in ([], ["-c"]):
            command = (tool, *options, *more)
            try:
                return command, assemble(command, text)
            except RefusedError as refused:
                said.append(str(refused))
    raise RefusedError(min(said, key=len) if said else "no ptxas")


def _compare(code: Code, other: Code) -> None:
    if code.keys() != other.keys():
        raise FallenError(f"sections {sorted(code.keys() ^ other.keys())}")
    changed = [name for name in code if code[name] != other[name]]
    if changed:
        raise FallenError(f"{len(changed)} of {len(code)} sections differ: {changed[0]}")


@dataclass(frozen=True)
class _Climb:
    """One text on its way up; what several rungs need is made once."""

    text: str
    tools: tuple[str, ...]

    @cached_property
    def module(self) -> Module:
        return parse(self.text)

    @cached_property
    def printed(self) -> str:
        return print_module(self.module)

    @cached_property
    def original(self) -> tuple[tuple[str, ...], Code]:
        return assembler(self.tools, self.text)

    @cached_property
    def optimized(self) -> tuple[Module, tuple[str, ...], Code]:
        module = without_debug(self.module)
        if module == self.module:
            return (module, *self.original)
        return (module, *assembler(self.tools, print_module(module), debug=False))

    def same_tokens(self) -> None:
        mine, theirs = tokens(self.printed), tokens(self.text)
        for at, (a, b) in enumerate(zip(mine, theirs, strict=False)):
            if a != b:
                raise FallenError(f"`{' '.join(mine[at : at + 8])}` for `{' '.join(theirs[at : at + 8])}`")
        if len(mine) != len(theirs):
            raise FallenError(f"{len(mine)} tokens for {len(theirs)}")

    def same_nodes(self) -> None:
        if parse(self.printed) != self.module:
            raise FallenError("other nodes")

    def all_known(self) -> None:
        opcodes = [
            s.opcode
            for f in self.module.functions()
            for s in f.body or ()
            if isinstance(s, Instruction) and not isa.facts(s).known
        ]
        if opcodes:
            raise FallenError(", ".join(f"`{opcode}`" for opcode in dict.fromkeys(opcodes)))

    def verified(self) -> None:
        verify(self.module)

    def defined(self) -> None:
        # Compilers leave undefined what nobody looks at: padding and empty classes, which they copy and store.
        for function in with_unique_names(self.module).functions():
            body = function.body or ()
            parameters = {v.name for v in (*function.returns, *function.parameters) if v.space == "reg"}
            written = parameters.union(*(effects.writes(s) for s in body))
            for statement in body:
                if isinstance(statement, Instruction) and statement.base in ("mov", "st"):
                    continue
                for name in sorted(effects.reads(statement) - written):
                    raise FallenError(f"nothing writes `{name}` of `{print_statement(statement).strip()}`")

    def flow(self) -> None:
        for function in self.module.functions():
            if function.body is not None:
                graph = cfg.build(function.body)
                live = liveness.liveness(graph, function.body)
                if len(live.live_in) != len(graph.blocks):
                    raise FallenError(f"no liveness for some blocks of `{function.name}`")

    def same_code(self) -> None:
        command, code = self.original
        _compare(code, assemble(command, self.printed))

    def same_rebuilt(self) -> None:
        command, code = self.original
        again = print_module(rebuilt(pipeline.run(rebuilt(self.module), pipeline.Options()).module))
        if again != self.printed:  # the rung before has assembled that text
            _compare(code, assemble(command, again))
        else:
            self.same_code()

    def same_renamed(self) -> None:
        module, command, code = self.optimized
        _compare(code, assemble(command, print_module(renamed(module, SEED, reorder=True))))

    def same_clobbered(self) -> None:
        module, command, _ = self.optimized
        zeros = print_module(clobbered(module, SEED, lambda bits: 0))
        others = print_module(clobbered(module, SEED, _other))
        _compare(assemble(command, zeros), assemble(command, others))


def _other(bits: int) -> int:
    """Anything but zero; a predicate can only be true."""
    return -1 if bits == 1 else 0x5A3C96E187B4D20F % (1 << bits - 1)


def unchanged_by_constants(text: str, tools: Sequence[str], *, heads: bool) -> tuple[int, int]:
    """Of how many sections the code stays as it was with constants in dead registers, and of how many in all."""
    module, command, code = _Climb(text, tuple(tools)).optimized
    other = assemble(command, print_module(clobbered(module, SEED, lambda bits: 0, heads=heads)))
    return sum(other[name] == code[name] for name in code), len(code)


RUNGS: dict[str, Callable[[_Climb], None]] = {
    "tokens": _Climb.same_tokens,
    "nodes": _Climb.same_nodes,
    "known": _Climb.all_known,
    "verified": _Climb.verified,
    "defined": _Climb.defined,
    "flow": _Climb.flow,
    "code": _Climb.same_code,
    "rebuilt": _Climb.same_rebuilt,
    "renamed": _Climb.same_renamed,
    "clobbered": _Climb.same_clobbered,
}
"""The rungs in order, by name."""

TEXT_ALONE = ("tokens", "nodes", "known", "verified", "defined", "flow")
"""The rungs that need no ptxas."""


def climb(text: str, tools: Sequence[str], rungs: Sequence[str] = tuple(RUNGS)) -> tuple[Outcome, ...]:
    """How ``text`` fares on each of ``rungs``; ``tools`` are the paths of ptxas of one or more toolkits."""
    state = _Climb(text, tuple(tools))
    return tuple(Outcome(rung, _problem(RUNGS[rung], state)) for rung in rungs)


def _problem(rung: Callable[[_Climb], None], state: _Climb) -> str:
    try:
        rung(state)
    except Exception as problem:  # whatever a rung raises is its answer: the table goes on
        return f"{type(problem).__name__}: {problem}"
    return ""
