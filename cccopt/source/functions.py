"""Function definitions, as far as a pragma above one needs them: ISO C++20 [dcl.fct.def], [temp.pre]."""

from __future__ import annotations

from dataclasses import dataclass

from cccopt.source.statements import Code, Unbalanced

_NO_NAMES = frozenset(
    {"__attribute__", "__declspec", "alignas", "asm", "decltype", "explicit", "noexcept", "requires", "throw"}
)
# How the preprocessor leaves CUDA's execution space specifiers, and how they are written.
_SPACES = {"global": "global", "device": "device", "__global__": "global", "__device__": "device"}


@dataclass(frozen=True, slots=True)
class Definition:
    """A function definition: code token indices of its name and of its body's brace; ``spaces`` are the execution
    spaces that it names (``global``, ``device``)."""

    name: int
    body: int
    spaces: frozenset[str]


def definition(code: Code, index: int) -> Definition | None:
    """The function definition that begins at ``index``, None if something else does; raises `Unbalanced`."""
    name: int | None = None
    spaces: set[str] = set()
    while (word := code.text(index)) not in ("", ";", ":", "}", "{"):
        after = index + 1
        if word == "=":
            return None
        if word in ("__global__", "__device__"):
            spaces.add(_SPACES[word])
        if word == "operator":
            name, after = index, _after_operator(code, index + 1)
        elif word == "requires" and code.text(after) == "requires":
            after = _after_requirements(code, after + 1)
        elif word == "<":
            after = _after_angles(code, index)
            name = index - 1 if code.text(after) == "(" and _may_be_name(code, index - 1) else name
        elif word in ("(", "["):
            after = code.after_bracket(index)
            if word == "(" and code.text(index - 1) == "__attribute__":
                spaces |= {_SPACES[code.text(i)] for i in range(index, after) if code.text(i) in _SPACES}
            elif word == "(" and _may_be_name(code, index - 1):
                name = index - 1
        index = after
    if word != "{" or name is None:
        return None
    return Definition(name, index, frozenset(spaces))


def _may_be_name(code: Code, index: int) -> bool:
    return code.tokens[index].kind == "word" and code.text(index) not in _NO_NAMES


def _after_operator(code: Code, index: int) -> int:
    """Where the parameters of an operator function begin; its name may hold brackets: ``operator()``."""
    index += 1
    while code.text(index) not in ("(", ""):
        index += 1
    return index


def _after_angles(code: Code, index: int) -> int:
    """One past the ``>`` of the template parameters or arguments at ``index``."""
    start, depth = index, 0
    while (word := code.text(index)) != "":
        depth += (word == "<") - (word == ">")
        if depth == 0:
            return index + 1
        index = code.after_bracket(index) if word in ("(", "[", "{") else index + 1
    raise Unbalanced(start)


def _after_requirements(code: Code, index: int) -> int:
    index = code.after_bracket(index) if code.text(index) == "(" else index
    return code.after_bracket(index)
