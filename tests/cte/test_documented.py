"""What the headers say: each public name has a snippet that compiles, its parameters, and what it takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from cccopt.resources import folder
from tests.cte.compiling import UNREAD, compiled

HEADERS = Path(str(folder("cte_templates")))
DECLARED = re.compile(
    r" *template <(.*?)>(?: __device__| __forceinline__| static)* "
    r"(?:struct |using |bool |void |T )(\w+)(?:\((.*)\))?(?: [{:=].*|;)"
)
SNIPPET = re.compile(r"^/// @code\n((?:///.*\n)+?)/// @endcode\n", re.MULTILINE)
KERNEL = """__global__ void kernel(int rows, const int* offsets, const int* columns, const float* values, int* levels,
                       float* out) {{
    [[maybe_unused]] const int row = min(int(blockIdx.x * 256 + threadIdx.x), rows);
    [[maybe_unused]] const int begin = offsets[row], end = offsets[min(row + 1, rows)];
    {{
{text}    }}
}}
"""


class Declaration(NamedTuple):
    """A template that a public header declares, the comment before it, and what a caller has to know to name it."""

    header: str
    name: str
    doc: str
    parameters: frozenset[str]


@cache
def text_of(name: str) -> str:
    return (HEADERS / name).read_text(encoding="utf-8")


@cache
def public_headers() -> tuple[str, ...]:
    """Those that declare names outside of ``detail``; the one that includes all is one of them."""
    names = (str(header.relative_to(HEADERS)) for header in sorted(HEADERS.rglob("*.cuh")))
    return tuple(
        n for n in names if n == "cte.cuh" or re.search(r"^namespace cte(::kernel)? \{$", text_of(n), re.M)
    )


def names_in(parameters: str) -> Iterator[str]:
    """The names of a list's elements, without those of elements that have none."""
    depth, flat = 0, ""
    for character in parameters:
        depth -= character in ">)"
        flat += character if depth == 0 else ""
        depth += character in "<("
    for element in flat.split(","):
        if found := re.search(r"[ &*.](\w+)$", element.partition("=")[0].strip()):
            yield found[1]


def declarations(header: str) -> Iterator[Declaration]:
    """The templates that a comment precedes. Types that a call deduces are no parameters."""
    comment: list[str] = []
    lines = iter(text_of(header).splitlines())
    for line in lines:
        if line.strip().startswith("///"):
            comment.append(re.sub("^ */// ?", "", line))
            continue
        if comment and line.strip().startswith("template <"):
            head = line
            while not re.search(r"[{;]$", head):
                head += " " + next(lines).strip()
            if found := DECLARED.fullmatch(head):
                template, name, inner = found[1], found[2], found[3] or ""
                given = (n for n in names_in(template) if not re.search(rf"\b{n}\b", inner))
                yield Declaration(header, name, "\n".join(comment), frozenset((*given, *names_in(inner))))
        comment = []


def documented() -> list[Declaration]:
    """Declarations whose comment has a snippet or parameters: those that users call or name."""
    every = (d for header in public_headers() for d in declarations(header))
    return [d for d in every if "@code" in d.doc or "@param" in d.doc]


def test_public_headers_are_known() -> None:
    assert {"cte.cuh", "cte/policy.cuh", "cte/storage.cuh", "cte/tasks.cuh", "cte/any.cuh"} <= set(
        public_headers()
    )
    assert "cte/kernel/virtual_split.cuh" in public_headers()
    assert not {"cte/warp.cuh", "cte/sharing.cuh", "cte/kernel/atomics.cuh"} & set(public_headers())


@pytest.mark.parametrize("header", public_headers())
def test_each_public_header_has_a_snippet(header: str) -> None:
    assert SNIPPET.search(text_of(header)), header


@pytest.mark.nvcc
def test_the_snippets_in_the_headers_compile(tmp_path: Path) -> None:
    """Those with a function stand for themselves, others are the body of a kernel over rows of a sparse matrix."""
    includes = "".join(f"#include <{name}>\n" for name in public_headers())
    source = [includes]
    for header in public_headers():
        for number, found in enumerate(SNIPPET.findall(text_of(header))):
            text = re.sub("(?m)^#include.*\n", "", re.sub("(?m)^/// ?", "", found))
            name = f"{re.sub('[/.]', '_', header)}_{number}"
            whole = text if "__global__" in text else KERNEL.format(text=text)
            source.append(f"namespace {name} {{\n{whole}}}\n")
    assert len(source) > 20
    (tmp_path / "snippets.cu").write_text("\n".join(source))
    done = compiled(tmp_path / "snippets.cu", *UNREAD, "-arch=sm_90", "-o", str(tmp_path / "out.ptx"))
    assert done.returncode == 0, done.stderr


def described(declaration: Declaration) -> set[str]:
    """The parameters that the comment describes; several may share a line."""
    lines = re.findall(r"@t?param +((?:\w+, )*\w+) ", declaration.doc)
    return {name for line in lines for name in line.split(", ")}


@pytest.mark.parametrize("declaration", documented(), ids=lambda d: f"{d.header}:{d.name}")
def test_parameters_are_described(declaration: Declaration) -> None:
    """All of them, and none that there is not; a form of a call may describe what it adds and name the other form."""
    known = described(declaration)
    assert known <= declaration.parameters
    referred = re.search(r"^See `(\w+)`.* for everything else\.$", declaration.doc, re.MULTILINE)
    for other in documented():
        if referred and other.name == referred[1]:
            known |= described(other)
    assert declaration.parameters <= known


def test_each_policy_says_what_it_does_when_to_use_it_and_what_it_takes() -> None:
    for header in sorted((HEADERS / "cte/policies").glob("*.cuh")):
        found = re.search(
            rf"((?:^///.*\n)+)(?:template .*\n)?struct {header.stem}\b", header.read_text(), re.MULTILINE
        )
        assert found, header.name
        text = " ".join(re.sub("(?m)^/// ?", "", found[1]).split())
        for part in (
            r"^A policy(, and the default)?: ",
            r" Use it (if|for|as) ",
            "@code",
            r"contract of cte/policy\.cuh",
        ):
            assert re.search(part, text), f"{header.name}: {part}"
        assert re.search(r"a call uses (no|\d+ bytes of) shared memory.* and \d+ registers", text), (
            header.name
        )
