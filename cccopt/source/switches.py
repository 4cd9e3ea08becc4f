"""The cases of a switch as pieces of text that can be marked: ISO C++20 [stmt.label], [stmt.switch].

    case 1: case 2: S; T; break;      the group of the labels 1 and 2: its work is `S; T;`
    case 3: { S; return; }            its work begins before `{` and ends before `return`
    default: break;                   no work

A group that falls through into the next one is refused: the next one has two ways in, so it is not a path of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cccopt.source.statements import Code

_JUMPS = frozenset({"break", "continue", "goto", "return"})
_NO_WORK = frozenset({";", "{", "}"})


@dataclass(frozen=True, slots=True)
class CaseGroup:
    """What is done for some labels of a switch: code token indices of the first label, of the work's first token
    and one past its last; ``text`` is that label without blanks (``default``)."""

    label: int
    start: int
    end: int
    text: str


class NoPath(Exception):
    """Something at the token ``index`` keeps the cases from being paths: what, why, and what helps."""

    def __init__(self, index: int, problem: str, why: str, help_text: str) -> None:
        super().__init__(problem)
        self.index = index
        self.problem = problem
        self.why = why
        self.help = help_text


def groups(code: Code, head: int) -> Iterator[CaseGroup]:
    """The groups of the ``switch`` at ``head`` that have work, in order; raises `NoPath` and `Unbalanced`."""
    body = code.after_head(head)
    if code.text(body) != "{":
        raise NoPath(body, "the body of the `switch` is not a block", "", "write it in braces")
    labels: list[tuple[int, int]] = []
    inside: dict[int, list[tuple[int, int]]] = {}
    for begin, end, found in _statements(code, body):
        _check_nested(code, begin, end)
        if found:
            labels.append((found[0], begin))
            inside[found[0]] = []
        if labels and begin < end:
            inside[labels[-1][0]].append((begin, end))
    for number, (label, start) in enumerate(labels, start=1):
        jump = _work_end(code, inside[label])
        if jump is None and number < len(labels):
            raise _falls_through(label)
        last = inside[label][-1][1] if inside[label] else start
        end = last if jump is None else jump
        if any(code.text(index) not in _NO_WORK for index in range(start, end)):
            yield CaseGroup(label, start, end, _label_text(code, label))


def _statements(code: Code, opening: int) -> Iterator[tuple[int, int, list[int]]]:
    """The statements of a block: where each begins after its labels and ends, and its ``case`` and ``default``
    labels."""
    index, closing = opening + 1, code.after_bracket(opening) - 1
    while index < closing:
        begin, labels = _after_labels(code, index)
        # A label may end its block (C++23).
        index = code.statement_end(begin) if begin < closing else closing
        yield begin, index, labels


def _after_labels(code: Code, index: int) -> tuple[int, list[int]]:
    found = []
    while (after := code.after_label(label := code.after_attributes(index))) != label:
        if code.text(label) in ("case", "default"):
            found.append(label)
        index = after
    return index, found


def _check_nested(code: Code, begin: int, end: int) -> None:
    """Check that no label of this switch is inside one of its statements (Duff's device)."""
    index = begin
    while index < end:
        word = code.text(index)
        if word == "switch":
            index = code.statement_end(code.after_head(index))
            continue
        if word == "case" or (word == "default" and code.text(index + 1) == ":"):
            raise NoPath(
                index,
                f"a `{word}` label is inside another statement of the `switch`",
                "a path may be entered only at its beginning",
                "write all labels at the outermost level, or put `#pragma ccc if` above a block in each case instead",
            )
        index += 1


def _work_end(code: Code, statements: list[tuple[int, int]]) -> int | None:
    """One past the work, which ends before its final jump; None if control runs off the end."""
    head = -1
    while statements:
        begin, end = statements[-1]
        head = code.after_attributes(begin)
        if code.text(head) != "{":
            break
        statements = [(b, e) for b, e, _ in _statements(code, head) if b < e]
    if not statements:
        return None
    if code.text(head) not in _JUMPS:
        return None
    if code.text(head) == "return" and not all(_is_plain(code, index) for index in range(head + 1, end - 1)):
        raise NoPath(
            head,
            "the `return` of a case computes a value outside of the path",
            "the path ends before the jump that leaves the `switch`",
            "store the value in a variable first, and return that",
        )
    return begin


def _is_plain(code: Code, index: int) -> bool:
    return code.tokens[index].kind != "punctuator" or code.text(index) in ("-", "::", "{", "}")


def _falls_through(label: int) -> NoPath:
    return NoPath(
        label,
        "a case of the `switch` falls through into the next one",
        "its work would belong to two paths",
        "end the case with `break`, or put `#pragma ccc if` above a block in each case instead",
    )


def _label_text(code: Code, label: int) -> str:
    """The label as the value of a marker's attribute, which holds no blanks."""
    if code.text(label) == "default":
        return "default"
    text = "".join(code.text(index) for index in range(label + 1, code.after_label(label) - 1))
    return "".join(rf"\x{ord(c):02x}" if c.isspace() else c for c in text)
