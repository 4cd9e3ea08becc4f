"""No module outside the instruction table lists opcodes to state a fact about them.

A *list* is two or more different opcodes, by their first parts, in one place: in a set, tuple, list or dict, in a
string that is split, in the cases of one ``match``, in the comparisons of one condition or of one ``if`` with its
``elif``. What several opcodes have in common is a fact, and a word of the table (`cccopt.ptx.isa_table`).

A match on one opcode is no list, whatever its modifiers: a rewrite that looks for the ``setp.lt`` of a loop's test, or
for a ``mov`` between two registers, asks about the shape of the code in front of it and may name what it looks for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import cccopt
from cccopt.ptx.isa_table import ROWS

PACKAGE = Path(cccopt.__file__).parent

IMPLEMENTED = (
    "ptx/isa_table.py",
    "ptx/isa.py",  # the operators of reductions, two of which are named as opcodes are
    "emulator/semantics/",
    "ccc/legality/flag_values.py",
    "emulator/atomics.py",
    "emulator/collectives.py",
    "emulator/codegen.py",
    "emulator/memory_code.py",
)
"""The table itself, and what computes or generates code for each opcode."""

ALLOWED: dict[tuple[str, str], str] = {
    (
        "ccc/legality/operators.py",
        "and max min or xor",
    ): "the opcode that is emitted for an operator of a pragma",
    ("ccc/legality/conflicts.py", "and not or"): "how the predicate of a branch is made, opcode by opcode",
    ("ccc/legality/guards.py", "and not"): "how the predicate of a branch is made, opcode by opcode",
    ("ccc/legality/guards.py", "and or"): "how the predicate of a branch is made, opcode by opcode",
    (
        "ccc/legality/iteration_accesses.py",
        "tex tld4",
    ): "the beginnings of opcodes that read textures, which no kernel writes through these",
    ("ccc/legality/operators.py", "max min"): "operators, as a pragma spells them",
    (
        "ccc/legality/symbolic_values.py",
        "add cvt cvta mad mov mul neg or rem shl sub",
    ): "the opcodes of which this module says what polynomial they make",
    (
        "ccc/output_check/claims.py",
        "atom setp shfl",
    ): "statements of the code that the rewrite emits, one by one",
    (
        "ccc/output_check/draining.py",
        "setp shfl",
    ): "statements of the code that the rewrite emits, one by one",
    ("emulator/judging.py", "and max min or"): "operations that were recorded at run time",
    (
        "ptx/operands.py",
        "bra brx",
    ): "the syntax of a branch: its last operand is a label, whatever it looks like",
    ("source/pragmas.py", "max min"): "operators of a pragma, in a package that knows no PTX",
}
"""Lists that state no fact, by module and opcodes, and what they are instead."""


def opcodes(node: ast.AST) -> set[str]:
    """The opcodes that ``node`` itself lists, by their first parts."""
    texts: list[str] = []
    for part in parts(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            texts.append(part.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split":
        texts = [word for text in texts for word in text.split()]
    return {name for text in texts if (name := text.partition(".")[0]) in ROWS}


def parts(node: ast.AST) -> Iterator[ast.expr | None]:
    """The expressions that stand side by side in ``node``."""
    match node:
        case ast.Set(elements) | ast.Tuple(elements) | ast.List(elements):
            yield from elements
        case ast.Dict(keys, values):
            yield from (*keys, *values)
        case ast.Call(ast.Attribute(value, "split")):
            yield value
        case ast.Match(_, cases):
            patterns = (pattern for case in cases for pattern in ast.walk(case.pattern))
            yield from (pattern.value for pattern in patterns if isinstance(pattern, ast.MatchValue))
        case ast.BoolOp():
            yield from compared(node)
        case ast.If(test, _, others):
            yield from compared(test)
            if len(others) == 1 and isinstance(others[0], ast.If):
                yield from parts(others[0])


def compared(condition: ast.expr) -> Iterator[ast.expr]:
    """What a condition compares with."""
    for node in ast.walk(condition):
        if isinstance(node, ast.Compare):
            yield from node.comparators


def lists(source: str) -> set[str]:
    """The lists of opcodes in ``source``, each as its opcodes in alphabetical order."""
    found = (opcodes(node) for node in ast.walk(ast.parse(source)))
    return {" ".join(sorted(listed)) for listed in found if len(listed) > 1}


def test_no_module_lists_opcodes() -> None:
    found: set[tuple[str, str]] = set()
    for file in sorted(PACKAGE.rglob("*.py")):
        name = file.relative_to(PACKAGE).as_posix()
        if not name.startswith(IMPLEMENTED):
            found |= {(name, listed) for listed in lists(file.read_text(encoding="utf-8"))}
    assert found == set(ALLOWED)


def test_what_is_a_list() -> None:
    assert lists('X = frozenset({"add", "sub"})') == {"add sub"}
    assert lists('X = {"add": 1, "fma": 2, "other": 3}') == {"add fma"}
    assert lists('X = "mul mad".split()') == {"mad mul"}
    assert lists('i.base in ("ld", "st")') == {"ld st"}
    assert lists('i.opcode.startswith(("ld.local", "st.local"))') == {"ld st"}
    assert lists('a.base == "ret" or a.base == "exit"') == {"exit ret"}
    assert lists('if b == "ret": x()\nelif b == "exit": y()') == {"exit ret"}
    assert lists('match b:\n  case ("mul" | "mul24"): x()\n  case "add": y()') == {"add mul mul24"}


def test_what_is_none() -> None:
    assert lists('i.base == "mov"') == set()
    assert lists('i.opcode in ("setp.lt.s32", "setp.lt.u32")') == set()
    assert lists('"""add, sub and mul."""') == set()
    assert lists('["global", "shared"]') == set()
