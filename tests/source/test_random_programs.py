"""Random nests of statements: the generator prints each program plain and as it must come out marked."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cccopt.source.annotate import annotate
from cccopt.source.lexer import tokens
from cccopt.source.strip import strip
from tests.slow import drawn
from tests.source.marks import read


@dataclass(frozen=True)
class Node:
    """A statement: the pragma over it, its text with a `@` for each statement in it, and those."""

    pragma: str
    template: str
    inner: tuple[Node, ...] = ()

    @property
    def takes_else(self) -> bool:
        """Whether an `else` behind it would be taken for its own."""
        if self.template.startswith("if") and "else" not in self.template:
            return True
        return not self.template.endswith(("}", ";")) and self.inner[-1].takes_else


_SIMPLE = (
    "n += 1;",
    ";",
    "{ }",
    'n += sizeof("}{;" R"x(;}")x");',
    "n += '}' + 1'000'0;",
    "[&](int a) { if (a) n++; else { n--; } }(n ? 1 : 2);",
    "switch (n) { case 1: case 'x': n = 2; break; default: ; }",
    "try { n++; } catch (int) { n--; } catch (...) { }",
)
_HEADS = {
    "loop": (
        "for (int i = 0; i < n; ++i) @",
        "for (char c : {'{', ';'}) @",
        "for (; [] { return 0; }(); ) @",
        "while (n--) @",
        "do @ while (0);",
    ),
    "if": ("if (n < 2) @", "if constexpr (sizeof(n) > 3) @", "if (int m = n; (m)) [[likely]] @"),
    "else": ("if (n) @ else @", "if (n > 1) @ else [[unlikely]] @"),
    "marked else": (
        "if (n) @\n#pragma ccc else\nelse @",
        "if (n > 1) @ else [[unlikely]]\n#pragma ccc else\n@",
    ),
    "other": ("[[maybe_unused]] switch (n) @",),
}
_SWITCH = "switch (n) { case 1: n++; @ break; case 2: case 'x': { @ break; } default: @ }"


def _with_statements(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    blocks = st.builds(
        lambda pragma, parts: Node(pragma, "{ " + "@ " * len(parts) + "}", tuple(parts)),
        st.sampled_from(["", "if"]),
        st.lists(inner, max_size=4),
    )
    loops = st.builds(
        lambda pragma, head, part: Node(pragma, head, (part,)),
        st.sampled_from(["", "for", "for variable", "while"]),
        st.sampled_from(_HEADS["loop"]),
        inner,
    )
    ifs = st.builds(
        lambda pragma, head, part: Node(pragma, head, (part,)),
        st.sampled_from(["", "if"]),
        st.sampled_from(_HEADS["if"]),
        inner,
    )
    with_else = st.builds(
        lambda pragma, head, then, other: Node(pragma, head, (_closed(then), other)),
        st.sampled_from(["", "if"]),
        st.sampled_from(_HEADS["else"]),
        inner,
        inner,
    )
    both = st.builds(
        lambda head, then, other: Node("if", head, (_closed(then), _behind(head, other))),
        st.sampled_from(_HEADS["marked else"]),
        inner,
        inner,
    )
    switches = st.builds(
        lambda pragma, *parts: Node(pragma, _SWITCH, parts),
        st.sampled_from(["", "switch"]),
        *[inner] * 3,
    )
    others = st.builds(lambda head, part: Node("", head, (part,)), st.sampled_from(_HEADS["other"]), inner)
    return st.one_of(blocks, loops, ifs, with_else, both, switches, others)


def _closed(node: Node) -> Node:
    return Node("", "{ @ }", (node,)) if node.takes_else else node


def _behind(head: str, node: Node) -> Node:
    """Two pragmas in a row would name one statement."""
    return Node("", "{ @ }", (node,)) if "ccc else\n@" in head and node.pragma else node


NODES = st.recursive(st.builds(Node, st.just(""), st.sampled_from(_SIMPLE)), _with_statements, max_leaves=12)


def _plain(node: Node) -> str:
    pragma = f"\n#pragma ccc {node.pragma}\n" if node.pragma else ""
    return pragma + _filled(node.template, [_plain(part) for part in node.inner])


def _filled(template: str, parts: list[str]) -> str:
    first, *rest = template.split("@")
    return first + "".join(part + after for part, after in zip(parts, rest, strict=True))


class _Expected:
    """Prints a tree with its markers, by the drawing in `cccopt.source.annotate`."""

    def __init__(self) -> None:
        self.regions = 0

    def print(self, node: Node) -> str:
        if not node.pragma:
            return _filled(node.template, [self.print(part) for part in node.inner])
        self.regions += 1
        number = self.regions
        if node.template.startswith("{"):
            return f"{{ <if.begin {number}> {{ {self._inside(node)} }} <if.end {number}> }}"
        if node.pragma == "switch":
            return self._switch(node)
        event = "if" if node.pragma == "if" else "body"
        head, behind = node.template.split("@", 1)
        whole = self._branch(event, number, head, node.inner[0])
        if "#pragma ccc else" in behind:
            self.regions += 1
            whole += self._branch("if", self.regions, behind.replace("@", ""), node.inner[1])
        else:
            whole += _filled(behind, [self.print(part) for part in node.inner[1:]])
        return whole if event == "if" else f"{{ <for.begin {number}> <unroll 1> {whole} <for.end {number}> }}"

    def _branch(self, event: str, number: int, head: str, part: Node) -> str:
        # An attribute in front of the branch goes into the braces with it.
        head, attribute, rest = head.replace("#pragma ccc else", "").partition("[[")
        inside = f"{attribute}{rest} {self.print(part)}"
        return f"{head} {{ <{event}.begin {number}> {{{inside} }} <{event}.end {number}> }}"

    def _switch(self, node: Node) -> str:
        """The cases with work are counted ahead of what is in them; the first has some in any event."""
        self.regions -= 1
        edges = []
        for part in ("n", *map(_plain, node.inner[1:])):
            has_work = any(t.kind != "directive" and t.text not in ";{}" for t in tokens(part))
            self.regions += has_work
            number = self.regions
            edges.append((f"<if.begin {number}>", f"<if.end {number}>") if has_work else ("", ""))
        one, two, other = (self.print(part) for part in node.inner)
        return (
            f"switch (n) {{ case 1: {edges[0][0]} n++; {one} {edges[0][1]} break;"
            f" case 2: case 'x': {edges[1][0]} {{ {two} {edges[1][1]} break; }}"
            f" default: {edges[2][0]} {other} {edges[2][1]} }}"
        )

    def _inside(self, node: Node) -> str:
        return _filled(node.template, [self.print(part) for part in node.inner])


def function(name: str, node: Node) -> str:
    """A whole function, with an annotated loop first, so that paths may stand alone."""
    return f"void {name}(int n) {{\n#pragma ccc for\nfor (;;) ; {_plain(node)} }}\n"


def _words(text: str) -> list[str]:
    return [t.text for t in tokens(text)]


@given(NODES)
@settings(max_examples=drawn(300))
def test_random_programs_are_marked_as_drawn(node: Node) -> None:
    text = function("f", node)
    annotated = annotate(text, "x.cu")
    printer = _Expected()
    expected = printer.print(
        Node("", "void f(int n) { @ @ }", (Node("for", "for (;;) @", (Node("", ";"),)), node))
    )
    assert _words(read(annotated.text)) == _words(" ".join(expected.split()))
    assert annotated.text.count("\n") == text.count("\n")
    assert len(annotated.regions) == printer.regions


@given(NODES)
@settings(max_examples=drawn(100))
def test_marking_none_is_stripping(node: Node) -> None:
    text = function("f", node)
    assert annotate(text, "x.cu", only=()).text == strip(text)
    assert _words(strip(text)) == [t.text for t in tokens(text) if t.kind != "directive"]


def test_a_host_compiler_takes_marked_programs(tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ on this machine")
    programs: list[str] = []

    @given(NODES)
    @settings(max_examples=drawn(150), database=None, derandomize=True)
    def collect(node: Node) -> None:
        programs.append(function(f"f{len(programs)}", node))

    collect()
    text = annotate("".join(programs), "x.cu").text
    assert text.count("asm volatile") > 300
    source = tmp_path / "marked.cpp"
    source.write_text("#include <initializer_list>\n" + text)
    command = [compiler, "-std=c++20", "-fsyntax-only", "-w", str(source)]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
