"""Draw kernels that diverge from a folder of programs, by a rule that knows nothing of what cccopt can rewrite.

    $ python -m bench.real.draw CHECKOUT/src --suffix=-cuda

A program is a folder. A kernel of it, with the text of the `__device__` functions of the same folder that it calls,
is a candidate if

* it has at most 400 lines, so that somebody who annotates can read it,
* its threads do not wait for each other: no barrier, shuffle, vote or `__shared__`, which `docs/annotations.md` sends
  away under `grid`,
* it diverges, as far as its text tells, in one of four ways:
  `exits`   a `while` or `do` loop, or a `for` with a `break` or `return` in it,
  `counts`  a `for` whose bounds hold a loaded value (an element of an array, or a variable that was set from one),
  `branch`  in a loop, an `if` on a loaded value whose branch holds a loop, a call or three statements,
  `switch`  a `switch` on anything.

Programs come in the order of the SHA-256 of their names, so that the choice is no one's.
"""

import argparse
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SUFFIXES = (".cu", ".cuh", ".h", ".hpp", ".cl", ".inl")
WAITS = re.compile(
    r"\b(__syncthreads\w*|__syncwarp|__shared__|__shfl\w*|__ballot\w*|__any_sync|__all_sync|__match_\w+|barrier"
    r"|cooperative_groups|cg::\w+|tiled_partition\w*|cub::Block\w*|cub::Warp\w*|wmma\w*)\b"
)
FUNCTION = re.compile(r"__(global|device)__[^;{}=]*?\b(\w+)\s*\(")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
LOADED = re.compile(r"\b(\w+)\s*(?:[-+*|&^]|<<|>>)?=(?!=)[^=;][^;]*\[")
LONGEST = 400


@dataclass(frozen=True, slots=True)
class Function:
    """A function on the device: whether it is a kernel, its name, and its body, braces included."""

    kernel: bool
    name: str
    body: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A kernel and the ways in which its text says that it diverges."""

    program: str
    file: str
    kernel: str
    ways: tuple[str, ...]


def closing(text: str, start: int, pair: str = "{}") -> int:
    """The index past the bracket that closes the one at `start`; the end of the text where none does."""
    depth = 0
    for index in range(start, len(text)):
        depth += (text[index] == pair[0]) - (text[index] == pair[1])
        if depth == 0:
            return index + 1
    return len(text)


def functions(text: str) -> Iterator[Function]:
    """The device functions that a file defines."""
    text = COMMENT.sub(" ", text)
    for match in FUNCTION.finditer(text):
        kind, name = match.groups()
        start = match.end() - 1
        if name == "__launch_bounds__":
            named = re.compile(r"\b(\w+)\s*\(").search(text, closing(text, start, "()"))
            if named is None:
                continue
            name, start = named.group(1), named.end() - 1
        after = closing(text, start, "()")
        brace = re.compile(r"[\s\w]*\{").match(text, after)
        if brace:
            yield Function(kind == "global", name, text[brace.end() - 1 : closing(text, brace.end() - 1)])


def with_callees(function: Function, known: dict[str, Function]) -> str:
    """The text of a function and of all that it calls, each once."""
    texts, todo, seen = [], [function], {function.name}
    while todo:
        current = todo.pop()
        texts.append(current.body)
        for name in sorted(
            set(re.findall(r"\b(\w+)\s*(?:<[^;{}()]*>)?\s*\(", current.body)) & known.keys() - seen
        ):
            seen.add(name)
            todo.append(known[name])
    return "\n".join(texts)


def statement(text: str, start: int) -> str:
    """The statement at `start`: a block in braces, or all up to the semicolon."""
    brace = re.compile(r"\s*\{").match(text, start)
    if brace:
        return text[brace.end() - 1 : closing(text, brace.end() - 1)]
    end = text.find(";", start)
    return text[start : end + 1]


def headed(text: str, keyword: str) -> Iterator[tuple[str, str]]:
    """Each `keyword (head) statement` of a text, as its head and its statement."""
    for match in re.finditer(rf"\b{keyword}\s*\(", text):
        after = closing(text, match.end() - 1, "()")
        yield text[match.end() - 1 : after], statement(text, after)


def depends(head: str, loaded: frozenset[str]) -> bool:
    """Whether an expression reads an array or a variable that was set from one."""
    return "[" in head or bool(loaded & set(re.findall(r"\w+", head)))


def heavy(branch: str) -> bool:
    """Whether a branch is worth collecting: a loop, a call, or three statements."""
    return branch.count(";") >= 3 or bool(re.search(r"\b(for|while|[a-z]\w+)\s*\(", branch))


def ways(text: str) -> tuple[str, ...]:
    """How the lanes of a warp may differ in this text."""
    loaded = frozenset(LOADED.findall(text))
    loops = [*headed(text, "for"), *headed(text, "while")]
    leaves = any(re.search(r"\b(break|return)\b", body) for _, body in headed(text, "for"))
    found = {
        "exits": bool(re.search(r"\bwhile\s*\(", text)) or leaves,
        "counts": any(depends(head, loaded) for head, _ in headed(text, "for")),
        "branch": any(
            depends(head, loaded) and heavy(branch)
            for _, body in loops
            for head, branch in headed(body, "if")
        ),
        "switch": bool(re.search(r"\bswitch\s*\(", text)),
    }
    return tuple(way for way, holds in found.items() if holds)


def candidates(program: Path) -> Iterator[Candidate]:
    """The kernels of a program that the rule admits."""
    texts = {
        path: list(functions(path.read_text(errors="replace")))
        for path in sorted(program.rglob("*"))
        if path.suffix in SUFFIXES and path.is_file()
    }
    known = {each.name: each for found in texts.values() for each in found if not each.kernel}
    for path, found in texts.items():
        for each in found:
            text = with_callees(each, known)
            short = text.count("\n") < LONGEST
            if each.kernel and short and not WAITS.search(text) and (how := ways(text)):
                yield Candidate(program.name, str(path.relative_to(program)), each.name, how)


def in_order(names: list[str]) -> list[str]:
    """Names in the order of their hashes."""
    return sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())


def main() -> None:
    """Print the candidates of each program, in the order of the draw."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("folder", type=Path, help="the folder whose folders are the programs")
    options.add_argument("--suffix", default="", help="how the names of these folders end")
    given = options.parse_args()
    programs = [
        each.name for each in given.folder.iterdir() if each.is_dir() and each.name.endswith(given.suffix)
    ]
    for name in in_order(programs):
        for each in candidates(given.folder / name):
            print(f"{each.program}\t{each.file}\t{each.kernel}\t{','.join(each.ways)}")


if __name__ == "__main__":
    main()
