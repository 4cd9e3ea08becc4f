"""Declined means untouched: functions in which nothing was rewritten come from nvcc's PTX for the text without markers.

Markers by themselves change code. If one annotated piece of source became several functions (a template, an inlined
function), it cannot lose its markers for only some of them, so these come from another compilation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from cccopt.driver.function_texts import MARKER, WORD, FunctionText, definitions

_SECTION = re.compile(r"\.section\s+\.debug_str\s*\{([^}]*)\}")
_STRING = re.compile(r"^(\S+):([^:$]*)", re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*")
_NAME = re.compile(r"(?<![.\w$%])[A-Za-z_$%][\w$]*")  # not part of a directive
_LABEL = re.compile(r"\$L__info_string\d+")


def with_originals(made: str, marked: str, rewritten: Collection[str], plain: Callable[[], str]) -> str:
    """``made`` with the functions that have markers in ``marked`` and are not ``rewritten`` replaced by those of
    ``plain()``. Functions that name something ``made`` does not have stay as they are: the two compilations may have
    different variables.
    """
    found = definitions(marked)
    own = definitions(made)
    if found is None or own is None:
        return made
    left = {d.name for d in found if d.body is not None and MARKER.search(marked, d.body, d.end)} - {
        *rewritten
    }
    if not left:
        return made
    original = plain()
    others = definitions(original)
    if others is None:
        return made
    made, labels = _with_strings(made, _strings(original))
    own = definitions(made)
    assert own is not None, "strings of line information are in no function"
    bodies = {d.name: original[d.start : d.end] for d in others if d.body is not None}
    missing = {d.name for d in others} - {d.name for d in own}
    declared = _declarations(original, others) - _declarations(marked, found)
    missing |= {name for declaration in declared for name in _NAME.findall(declaration)}
    pieces: list[str] = []
    at = 0
    for definition in own:
        text = bodies.get(definition.name)
        if definition.body is None or definition.name not in left or text is None:
            continue
        if missing.isdisjoint(WORD.findall(text)):
            pieces += (made[at : definition.start], _LABEL.sub(lambda found: labels[found[0]], text))
            at = definition.end
    return "".join((*pieces, made[at:]))


def _with_strings(made: str, strings: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """``made`` with the ``strings`` of another compilation added, and a map from their old labels to those in it."""
    here = _strings(made)
    labels = {_without_spaces(value): label for label, value in here.items()}
    added: list[str] = []
    for value in strings.values():
        if _without_spaces(value) not in labels:
            label = labels[_without_spaces(value)] = f"$L__info_string{len(here) + len(added)}"
            added.append(f"{label}:\n{value}\n")
    if added:
        section = _SECTION.search(made)
        if section is None:
            made = f"{made}\t.section\t.debug_str\n\t{{\n{''.join(added)}\n\t}}\n"
        else:
            made = f"{made[: section.end() - 1].rstrip()}\n{''.join(added)}\n\t{made[section.end() - 1 :]}"
    return made, {label: labels[_without_spaces(value)] for label, value in strings.items()}


def _strings(text: str) -> dict[str, str]:
    """The strings of line information by label: names of inlined functions."""
    sections = "".join(_SECTION.findall(text))
    return {label: value.strip() for label, value in _STRING.findall(sections)}


def _without_spaces(value: str) -> str:
    """A string in a form to compare: nvcc and our printer space its bytes differently."""
    return "".join(value.split())


def _declarations(text: str, found: Sequence[FunctionText]) -> set[str]:
    """A module's declarations outside functions, with single blanks, without the strings of line information."""
    at = 0
    pieces: list[str] = []
    for definition in found:
        if definition.body is not None:
            pieces.append(text[at : definition.start])
            at = definition.end
    outside = _COMMENT.sub("", _SECTION.sub("", "".join((*pieces, text[at:]))))
    return {" ".join(declaration.split()) for declaration in outside.split(";")}
