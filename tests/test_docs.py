"""The documentation holds: links, commands, codes, pragmas and snippets are checked against the code."""

from __future__ import annotations

import argparse
import ast
import importlib
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import networkx
import numpy as np
import pytest

import cccopt
from bench import package_map
from cccopt.ccc.outcome import conditions, refusal
from cccopt.cli import main as command_line
from cccopt.harness import workload
from cccopt.harness.workload import load
from cccopt.source.pragmas import SourceError, parse_pragma
from cccopt.text import Place, Position
from cccopt.toolchain import options
from cccopt.toolchain.discovery import find_nvcc

REPOSITORY = Path(__file__).resolve().parent.parent
PAGES = sorted(
    [
        *REPOSITORY.glob("*.md"),
        *(p for p in REPOSITORY.glob("docs/**/*.md") if p.parent.name != "codes"),
        *REPOSITORY.glob("samples/*.md"),
        *REPOSITORY.glob("bench/*.md"),
    ]
)
FENCE = re.compile(r"^(?P<mark>```+)(?P<language>\w*)\n(?P<text>.*?)^(?P=mark)$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its page, the line behind its opening fence, its language and its text."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}"


def blocks() -> Iterator[Block]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in FENCE.finditer(text):
            line = text.count("\n", 0, found.start()) + 2
            yield Block(page, line, found["language"], found["text"])


BLOCKS = tuple(blocks())
PYTHON = [block for block in BLOCKS if block.language == "python"]


def commands() -> Iterator[tuple[str, str]]:
    """Commands of `console` blocks (behind ``$``) and `sh` blocks (every line), with their places."""
    for block in BLOCKS:
        for number, line in enumerate(block.text.split("\n"), block.line):
            place = f"{block.page.relative_to(REPOSITORY)}:{number}"
            if block.language == "console" and line.startswith("$ "):
                yield place, line[2:]
            elif block.language in ("sh", "bash", "shell") and line.strip():
                yield place, line.strip()


COMMANDS = list(commands())


# --- what there is --------------------------------------------------------------------------------------------


def slugs(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ +(.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def targets(page: Path) -> list[str]:
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text(encoding="utf-8")))
    return re.findall(r"\]\(([^)\s]+)\)", text)


def broken_links(page: Path) -> list[str]:
    """The relative links of a page that lead nowhere."""
    broken = []
    for target in targets(page):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = page if not name else page.parent / name
        if not file.exists() or (anchor and anchor not in slugs(file)):
            broken.append(target)
    return broken


def complaint(command: str) -> str:
    """What is wrong with a command line; an empty string when it can be run as it is written."""
    words = shlex.split(command)
    program, rest = Path(words[0]).name, words[1:]
    if program == "cccopt":
        return _refused_by_argparse(rest)
    if program == "ccc-nvcc":
        ours, _ = options.split(rest)
        return " ".join(option for option in ours if not options.is_known(option))
    if program == "make":
        made = re.findall(r"^([a-z]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
        unknown = {word for word in rest if "=" not in word} - set(made)
        return f"no target {', '.join(sorted(unknown))}" if unknown else ""
    if program == "pip":
        asked = {extra for word in rest for extra in re.findall(r"\[(\w+)\]", word)}
        known = re.findall(r"^(\w+) = \[", (REPOSITORY / "pyproject.toml").read_text(), re.MULTILINE)
        return f"no extra {', '.join(sorted(asked - set(known)))}" if asked - set(known) else ""
    if program in ("python", "bash"):
        missing = [
            word for word in rest if word.endswith((".py", ".sh")) and not (REPOSITORY / word).is_file()
        ]
        return f"no file {', '.join(missing)}" if missing else ""
    if program in ("cd", "git", "nvcc", "rm") or words[0].startswith("./"):
        return ""
    return f"the documentation shows a program that this test does not know: {program}"


def _refused_by_argparse(arguments: list[str]) -> str:
    try:
        command_line.parser().parse_args(arguments)
    except SystemExit as stop:
        return "" if stop.code == 0 else f"argparse refuses {arguments}"
    return ""


def annotations(block: Block) -> list[str]:
    return re.findall(r"^\s*#pragma (ccc\b.*?)(?:\s*//.*)?$", block.text, re.MULTILINE)


def verdict(pragma: str) -> str:
    """``supported``, or the code that a pragma is refused with."""
    try:
        parse_pragma(pragma, lambda offset, word: Place("page", Position(1, offset + 1), pragma))
    except SourceError as problem:
        return problem.diagnostics[0].code
    return "supported"


# --- that it holds --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page) == []


@pytest.mark.parametrize("page", [p for p in PAGES if p.name != "CHANGELOG.md"], ids=lambda p: p.stem)
def test_files_that_are_named_exist(page: Path) -> None:
    named = re.findall(r"`((?:cccopt|cte_templates|ptx_grammar|bench|tests)/[\w./-]+)`", page.read_text())
    placeholders = re.compile(r"NAME|FILE|FOLDER")
    missing = [n for n in named if not placeholders.search(n) and not (REPOSITORY / n).exists()]
    assert missing == []


def test_the_map_of_the_packages_is_what_they_import() -> None:
    """`python -m bench.package_map` writes it anew. Packages do not import each other in a circle."""
    assert networkx.is_directed_acyclic_graph(package_map.imports())
    assert package_map.page(package_map.PAGE.read_text()) == package_map.PAGE.read_text()


def test_pages_can_be_reached_from_the_readme() -> None:
    reached, work = set(), [REPOSITORY / "README.md"]
    while work:
        page = work.pop().resolve()
        if page in reached or page.suffix != ".md" or not page.is_file():
            continue
        reached.add(page)
        work += [page.parent / target.partition("#")[0] for target in targets(page) if ":" not in target]
    assert {page.resolve() for page in PAGES} - reached == set()


@pytest.mark.parametrize(("place", "command"), COMMANDS, ids=[place for place, _ in COMMANDS])
def test_commands_exist(place: str, command: str) -> None:
    assert complaint(command) == ""


def test_every_command_is_shown_in_the_user_guide() -> None:
    (commands,) = (
        action.choices
        for action in command_line.parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    pages = ("docs/user-guide.md", "docs/emulator.md")
    text = "\n".join((REPOSITORY / page).read_text() for page in pages)
    assert {name for name in commands if f"$ cccopt {name}" not in text} == set()


@pytest.mark.parametrize("page", ["docs/ccc-nvcc.md", "docs/codes/CCC083.md"])
def test_all_options_of_ccc_nvcc_are_described(page: str) -> None:
    text = (REPOSITORY / page).read_text()
    written = [options.spelled(name, value) for name, value, *_ in options.TABLE if name != options.PREFIX]
    written += [options.spelled(options.PREFIX, mode) for mode in options.MODES]
    assert {option for option in written if f"| `{option}` |" not in text} == set()


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_python_compiles_and_names_what_exists(block: Block) -> None:
    tree = ast.parse(block.text, str(block))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("cccopt"):
            module = importlib.import_module(node.module)
            assert [name.name for name in node.names if not hasattr(module, name.name)] == []
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "cccopt":
            assert hasattr(importlib.import_module("cccopt"), node.attr), node.attr


@pytest.mark.nvcc
@pytest.mark.parametrize("block", [b for b in PYTHON if "cccopt.compile(" in b.text], ids=str)
def test_python_runs(
    block: Block, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(REPOSITORY)
    exec(compile(block.text, str(block), "exec"), {})
    assert capsys.readouterr().out != ""


@pytest.mark.nvcc
def test_the_emulators_figures_are_what_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if find_nvcc().version != "13.0.88":
        pytest.skip("the page has the figures of nvcc 13.0.88")
    (block,) = (
        b for b in BLOCKS if b.page.name == "emulator.md" and b.text.startswith("$ cccopt emulate after")
    )
    command, *shown = block.text.splitlines()
    source = REPOSITORY / "samples/bfs/bfs.cu"
    monkeypatch.chdir(tmp_path)
    Path("after.ptx").write_text(cccopt.compile(source, ccc="always", nvcc_options=["-O3"]).ptx)
    inputs = load("bfs").inputs("demo", seed=1)
    for name in ("levels", "row", "neighbours"):
        np.save(f"{name}.npy", np.asarray(inputs[name]))
    assert command_line.main(shlex.split(command)[2:]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line.split() for line in printed] == [line.split() for line in shown]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_codes_have_pages(page: Path) -> None:
    codes = set(re.findall(r"\bCCC\d{3}\b", page.read_text(encoding="utf-8")))
    assert {code for code in codes if not (REPOSITORY / "docs/codes" / f"{code}.md").is_file()} == set()


def test_the_index_of_codes_is_complete() -> None:
    lines = (REPOSITORY / "docs/codes.md").read_text().split("\n")
    for page in sorted((REPOSITORY / "docs/codes").glob("*.md")):
        title = page.read_text().split("\n", 1)[0].partition(": ")[2]
        assert f"| [{page.stem}](codes/{page.name}) | {title} |" in lines


@pytest.mark.parametrize("block", [b for b in BLOCKS if annotations(b)], ids=str)
def test_annotations_in_snippets_are_accepted(block: Block) -> None:
    assert {pragma: verdict(pragma) for pragma in annotations(block)} == dict.fromkeys(
        annotations(block), "supported"
    )


@pytest.mark.parametrize("block", [b for b in BLOCKS if "bfs(int vertices" in b.text], ids=str)
def test_the_example_is_the_sample(block: Block) -> None:
    def code(text: str) -> list[str]:
        """The lines without comments and white space."""
        lines = (line.partition("//")[0].split() for line in text.split("\n"))
        return [" ".join(words) for words in lines if words]

    example, sample = code(block.text), code((REPOSITORY / "samples/bfs/bfs.cu").read_text())
    assert example == sample[(start := sample.index(example[0])) : start + len(example)]


@pytest.mark.nvcc
@pytest.mark.parametrize("block", [b for b in BLOCKS if "__global__" in b.text and annotations(b)], ids=str)
def test_whole_kernels_are_rewritten(block: Block, tmp_path: Path) -> None:
    source = tmp_path / "kernel.cu"
    source.write_text(block.text)
    program = cccopt.compile(source, ccc="always")
    (unit,) = program.report["units"]
    assert {region["outcome"] for region in unit["regions"]} == {"rewritten"}
    assert len(unit["regions"]) == len(annotations(block))


def test_the_reference_says_what_is_supported() -> None:
    text = (REPOSITORY / "docs/annotations.md").read_text()
    here = re.findall(r"^\| `#pragma (ccc [^`]*)` \|", text, re.MULTILINE)
    assert {verdict(pragma) for pragma in here} == {"supported"}
    for kind in ("for", "for variable", "while", "if", "else", "switch", "recursive", "grid"):
        assert f"ccc {kind}" in here, kind


def test_the_reference_names_every_clause() -> None:
    known = verdict_help("ccc if no_such_word")
    text = (REPOSITORY / "docs/annotations.md").read_text()
    assert len(known) > 5
    cells = re.findall(r"^\| ([^|]*) \|", text.partition("\n## Clauses\n")[2], re.MULTILINE)
    assert {word for word in known if not re.search(rf"`{word}[`(]", "\n".join(cells))} == set()


def test_the_samples_page_names_every_sample() -> None:
    text = (REPOSITORY / "samples/README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == set(workload.names())


def verdict_help(pragma: str) -> list[str]:
    """The clauses that the message about an unknown one lists."""
    with pytest.raises(SourceError) as caught:
        parse_pragma(pragma, lambda offset, word: Place("page", Position(1, 1), pragma))
    return re.findall(r"`(\w+)`", caught.value.diagnostics[0].help)


# --- that the checks themselves can fail ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "cccopt optimize x.ptx",
        "cccopt bench bfs --on tpu",
        "cccopt transform in.ptx",
        "ccc-nvcc --ccc=sometimes -c x.cu",
        "make coffee",
        "pip install '.[gpus]'",
        "python bench/no_such.py",
        "frobnicate",
    ],
)
def test_a_wrong_command_is_noticed(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert complaint(command) != ""


def test_a_broken_link_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A b\n[x](no.md) [y](#a-b) [z](#no) [w](page.md#a-b)\n")
    assert broken_links(page) == ["no.md", "#no"]


def test_what_is_refused_is_what_the_rules_say() -> None:
    """The table of rules is the code's, and names each rule once."""
    assert conditions.table() in (REPOSITORY / "docs/how-it-works.md").read_text(encoding="utf-8")
    rules = {value.code for value in vars(refusal).values() if isinstance(value, refusal.Rule)}
    named = [code for _, codes in conditions.HOLDS for code in codes]
    assert sorted(named) == sorted(rules)
