"""Pragmas written into source files, each on a line above what it names; nothing else changes.

If the statement does not begin its line (``} else if``), the line is split there. Comments, blanks, line ends and bytes
that are not UTF-8 stay as they are.
"""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from cccopt.advising.pragmas import Pragma, common_block
from cccopt.clauses import Kind
from cccopt.diagnostic import CccError, Diagnostic, error
from cccopt.files import encoded, read_text, write_all
from cccopt.source.candidates import declaration_at
from cccopt.source.lexer import tokens
from cccopt.source.statements import Code
from cccopt.text import Position, SourceText

_FUNCTIONS = (Kind.GRID, Kind.RECURSIVE)
_WORDS = {
    Kind.FOR: ("for", "while", "do"),
    Kind.FOR_VARIABLE: ("for", "while", "do"),
    Kind.WHILE: ("for", "while", "do"),
    Kind.IF: ("if",),
    Kind.ELSE: ("else",),
}


def with_pragmas(pragmas: Iterable[Pragma]) -> dict[str, tuple[str, str]]:
    """For each file, its text without and with the pragmas.

    If a statement has several pragmas, it gets the first of them, with a block as large as all of them need. Raises
    CccError for files that cannot be read (CCC086) and for pragmas that have no line of their own (CCC118).
    """
    by_file: dict[str, list[Pragma]] = defaultdict(list)
    first: dict[tuple[str, Position, bool], Pragma] = {}
    for pragma in pragmas:
        key = (pragma.place.file, pragma.place.position, pragma.kind in _FUNCTIONS)
        block = common_block([first.get(key, pragma).block, pragma.block])
        first[key] = replace(first.get(key, pragma), block=block)
    for pragma in first.values():
        by_file[pragma.place.file].append(pragma)
    texts: dict[str, tuple[str, str]] = {}
    problems: list[Diagnostic] = []
    for file, wanted in by_file.items():
        text = read_text(file)
        code = Code([t for t in tokens(text) if t.kind != "directive"])
        starts = [(p, _start(text, code, p)) for p in wanted]
        problems += [_no_line(p) for p, start in starts if start is None]
        edits = sorted({(start, p.text) for p, start in starts if start is not None})
        texts[file] = (text, _edited(text, edits))
    if problems:
        raise CccError(*problems)
    return texts


def patch(texts: Mapping[str, tuple[str, str]]) -> str:
    """A unified diff that `patch -p0` accepts."""
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for file, (before, after) in texts.items()
        for line in difflib.unified_diff(
            before.splitlines(keepends=True), after.splitlines(keepends=True), file, file
        )
    )


def apply(texts: Mapping[str, tuple[str, str]]) -> None:
    """Write all files, or none. Raises CccError (CCC086)."""
    write_all({file: encoded(after) for file, (_, after) in texts.items()})


def _start(text: str, code: Code, pragma: Pragma) -> int | None:
    """The offset of what a pragma names; None if the text has something else there, namely the use of a macro."""
    offset = SourceText(pragma.place.file, text).offset(pragma.place.position)
    index = next((i for i, t in enumerate(code.tokens) if t.start == offset), None)
    if index is None:
        return None
    if pragma.kind in _FUNCTIONS:
        return code.tokens[declaration_at(code, index)].start
    if pragma.kind is Kind.SWITCH:
        return _switch_around(code, index)
    return offset if code.text(index) in _WORDS[pragma.kind] else None


def _switch_around(code: Code, case: int) -> int | None:
    """The offset of the ``switch`` that the label at the code token ``case`` belongs to."""
    heads = [i for i in range(case) if code.text(i) == "switch"]
    return next((code.tokens[i].start for i in reversed(heads) if code.statement_end(i) > case), None)


def _edited(text: str, edits: Iterable[tuple[int, str]]) -> str:
    pieces: list[str] = []
    done = 0
    for start, words in edits:
        begin = text.rfind("\n", 0, start) + 1
        line = text[begin:start]
        end = "\r\n" if text[: text.find("\n", start) + 1].endswith("\r\n") else "\n"
        if line.strip():
            indent = line[: len(line) - len(line.lstrip())]
            pieces += [text[done:start].rstrip(" \t"), end, words, end, indent]
            done = start
        else:
            pieces += [text[done:begin], words, end]
            done = begin
    return "".join([*pieces, text[done:]])


def _no_line(pragma: Pragma) -> Diagnostic:
    return error(
        "CCC118",
        f"`{pragma.text}` has no line of its own here",
        pragma.place,
        why="the statement comes from a macro",
        help=f'write `_Pragma("{pragma.text.removeprefix("#pragma ")}")` before it in the macro',
    )
