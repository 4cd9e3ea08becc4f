"""The page of a run: well-formed, closed to the network, complete, and at work in a browser where one is installed."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from cccopt.ccc.profitability.decisions import Decision, Decisions
from cccopt.profiling.run_file import RunFile
from cccopt.profiling.sources import Source
from cccopt.report.html import element, markup
from cccopt.report.profile_advice import SuggestedPragma, Suggestion
from cccopt.report.profile_page import MOST_KERNELS, page
from cccopt.report.profile_source import AROUND
from tests.report import browser
from tests.report.example_run import FILE, HEADER, REPORT, SOURCES, TEXT, TRIPS, counted, timed

VOID = {"meta", "rect", "line", "br", "col"}


class Read(HTMLParser):
    """A page as a parser sees it; what is not well-formed fails."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.texts: list[tuple[str, str]] = []
        self.rows: list[list[str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        assert len(found) == len(attrs)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.links += [value or "" for name, value in attrs if name == "href"]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    @property
    def text(self) -> str:
        """What a reader sees."""
        return "".join(data for tag, data in self.texts if tag not in ("script", "style"))

    def of(self, tag: str) -> str:
        """The text in all elements ``tag``."""
        return "".join(data for name, data in self.texts if name == tag)


KERNEL = "_Z6unevenILi1EEvPi"
SUGGESTIONS = (
    Suggestion(
        KERNEL,
        "predicted 1.50x <b>",
        True,
        (SuggestedPragma("#pragma ccc for", FILE, 4, "all & any", "open: <it>"),),
    ),
    Suggestion(KERNEL, "predicted 0.50x", False, (SuggestedPragma("#pragma ccc while", FILE, 4),)),
    Suggestion(KERNEL, "", False, refusals=("CCC038: a barrier",)),
    Suggestion("other", "predicted 9.00x", True, (SuggestedPragma("#pragma ccc grid", FILE, 2),)),
)
DECISIONS = Decisions("GPU <1>", "13.0", {KERNEL: Decision(("6f",), "always", 1.42, 1.38, 1.46)})

PAGES = {
    "counted": lambda: page(counted(), SOURCES, title="a <b> & c"),
    "timed": lambda: page(timed(), SOURCES, reports=[REPORT]),
    "advised": lambda: page(counted(), SOURCES, suggestions=SUGGESTIONS, decisions=DECISIONS),
    "no sources": lambda: page(counted(), {}),
    "empty": lambda: page(RunFile(), {}),
}


@pytest.mark.parametrize("name", PAGES)
def test_it_is_well_formed_and_closed(name: str) -> None:
    text = PAGES[name]()
    read = Read(text)
    assert len(read.ids) == len(set(read.ids))
    assert {link for link in read.links if link[1:] not in read.ids or link[0] != "#"} == set()
    used = {attribute for _, attribute, _ in read.attributes}
    assert not {a for a in used if a.startswith("on")} | used & {
        "src",
        "style",
        "srcset",
        "action",
        "data",
        "xmlns",
    }
    assert not re.search(
        r"https?:|//[a-z]+\.[a-z]+/|@import|url\(", re.sub(r"<td class=\"code\">.*?</td>", "", text)
    )


@pytest.mark.parametrize("kind", ["style", "script"])
def test_its_policy_admits_its_own_style_and_script_alone(kind: str) -> None:
    read = Read(PAGES["counted"]())
    (policy,) = (
        value for _, name, value in read.attributes if name == "content" and value and "default" in value
    )
    digest = base64.b64encode(hashlib.sha256(read.of(kind).encode()).digest()).decode()
    assert "default-src 'none'; style-src 'sha256-" in policy
    assert f"{kind}-src 'sha256-{digest}'" in policy


def of_source(read: Read) -> list[list[str]]:
    """The rows of lines of the source: number, idle, instructions, efficiency, sectors, text."""
    return [r for r in read.rows if len(r) == 6 and r[0].isdecimal() and (not r[1] or r[1].endswith("%"))]


def test_sources_are_text() -> None:
    text = PAGES["counted"]()
    read = Read(text)
    assert text.count("<script>") == text.count("</script>") == 1
    lines = {row[0]: row[5] for row in of_source(read)}
    assert lines["1"] == TEXT.split("\r\n")[0]
    assert "漢字\u3000é \ufffd turned \ufffd[31m \ufffd" in lines["2"]
    assert lines["4"].startswith(TEXT.split("\r\n")[3])
    assert not {c for c in text if ord(c) < 32 and c not in "\n\t"}
    text.encode()


def test_names_that_are_no_utf8_are_shown() -> None:
    (function,) = counted().functions
    page(replace(counted(), functions=(replace(function, shown="caf\udce9"),)), SOURCES).encode()


def test_lines_far_from_what_was_counted_are_left_out() -> None:
    read = Read(PAGES["counted"]())
    numbers = [int(row[0]) for row in of_source(read)]
    # The last line that was counted is the last of the text; line 7 is the header's.
    first = 48 - AROUND
    assert numbers == [*range(1, 10), *range(first, 49), 7]
    assert f"{first - 10} lines without counts" in read.text


def test_every_count_of_a_line_is_there() -> None:
    run = counted()
    (function,) = run.functions
    read = Read(page(run, SOURCES))
    slots = 32 * function.warps
    here = [x for x in function.lines if (x.file, x.line) == (FILE, 3)]
    idle = 100 * sum(x.idle for x in here) / slots
    filled = 100 * sum(x.lanes for x in here) / (32 * sum(x.warps for x in here))
    (row,) = (row for row in of_source(read) if row[0] == "4")
    assert row[1] == f"{idle:.1f} %"
    assert row[3].strip() == f"{filled:.1f} %"
    assert f"loop: 8.0 iterations per warp, {sum(TRIPS) / sum(k > 0 for k in TRIPS):.1f} per lane" in row[5]
    assert "2 branches" in row[5]


def test_branches_have_their_histograms_as_text_too() -> None:
    run = counted()
    (function,) = run.functions
    text = Read(page(run, SOURCES)).text
    for branch in function.branches:
        assert branch.histogram is not None
        assert f"32: {branch.histogram[32]}" in text or not branch.histogram[32]
    without = replace(function, branches=tuple(replace(b, histogram=None) for b in function.branches))
    assert '<svg class="histogram"' not in page(replace(run, functions=(without,)), SOURCES)


def test_kernels_that_were_not_counted_have_their_time() -> None:
    rows = Read(PAGES["timed"]()).rows
    (scan,) = (row for row in rows if row[0].startswith("void cub::Scan"))
    assert scan[:5] == ["void cub::Scan<int>(int const*)", "6.50 ms", "65.0 %", "not counted", "7"]
    (g,) = (row for row in rows if row[0].startswith("g()"))
    assert g[3] == "not counted"
    (heads,) = (row for row in rows if row[0] == "kernel")
    assert {len(row) for row in rows if row[0].startswith(("void", "g()"))} == {len(heads)}


def test_what_became_of_marked_regions() -> None:
    read = Read(PAGES["timed"]())
    (row,) = (row for row in read.rows if row[:2] == ["1", "for"])
    assert row[-1] == (
        "uneven <1>.cu:4: declined, predicted gain 0.91x; CCC050: the loop is <left> as it was"
        "before: 1,210 issue slots per warp iteration (code 91; memory traffic 1,200)"
        "after:  1,330 issue slots per warp iteration (code 60, votes and contexts 40; memory traffic 1,300)"
    )
    assert "became" not in Read(PAGES["counted"]()).text


def test_what_is_suggested_stands_with_its_kernel_and_at_its_lines() -> None:
    read = Read(PAGES["advised"]())
    assert "Worth annotating: predicted 1.50x <b>." in read.text
    assert "Better left alone: predicted 0.50x." in read.text
    assert "CCC038: a barrier" in read.text
    assert ["uneven <1>.cu:4", "#pragma ccc for", "all & any", "open: <it>"] in read.rows
    assert ["uneven <1>.cu:4", "#pragma ccc while", "nothing", ""] in read.rows
    assert "#pragma ccc grid" not in read.text  # the kernel `other` did not run
    (line,) = (row for row in of_source(read) if "write above" in row[-1])
    assert line[0] == "4"
    assert line[-1].count("write above") == 1  # the others do not pay


def test_what_was_measured_stands_with_its_kernel() -> None:
    text = Read(PAGES["advised"]()).text
    assert "Measured, `always`: 1.42x as fast as the plain build (1.38 to 1.46), on GPU <1>." in text
    plain = replace(DECISIONS, kernels={KERNEL: Decision(("6f",), "plain", 1.0, 1.0, 1.0)})
    assert "Measured, `plain`: no other build was faster" in Read(page(counted(), {}, decisions=plain)).text
    assert "Measured" not in Read(page(counted(), {}, decisions=replace(DECISIONS, kernels={}))).text


def test_sources_that_are_missing_or_have_changed_are_said_so() -> None:
    assert f"{FILE} cannot be read" in Read(PAGES["no sources"]()).text
    changed = Read(page(counted(), {FILE: Source(TEXT + "x"), HEADER: Source("")})).text
    assert f"{FILE} has changed since the run" in changed
    assert "has changed" not in Read(PAGES["counted"]()).text
    short = page(counted(), {FILE: Source("one line")})  # no line with these numbers
    assert "one line" in Read(short).text


def test_of_many_kernels_the_first_have_their_source() -> None:
    (function,) = counted().functions
    many = tuple(replace(function, name=f"k{i}", shown=f"k{i}()") for i in range(MOST_KERNELS + 5))
    read = Read(page(replace(counted(), functions=many), SOURCES))
    assert sum(name.startswith("k") and name[1:].isdecimal() for name in read.ids) == MOST_KERNELS
    assert "5 more kernels" in read.text


def test_elements() -> None:
    assert element("p", "<&", ["a", None], class_="x", data_value=1, hidden=True, title=None, open=False) == (
        '<p class="x" data-value="1" hidden>&lt;&amp;a</p>'
    )
    assert element("p", title='"\x00') == '<p title="&quot;\ufffd"></p>'
    assert markup([element("br"), "<br>"]) == "<br/>&lt;br&gt;"


# --- in a browser ---


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Browser]:
    if browser.found() is None:
        pytest.skip("no Chromium is installed")
    with browser.running(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture
def shown(tab: browser.Browser, tmp_path: Path) -> browser.Browser:
    (tmp_path / "page.html").write_text(PAGES["timed"](), encoding="utf-8")
    tab.prefer("light")
    tab.open(tmp_path / "page.html")
    return tab


def focus(tab: browser.Browser) -> str:
    return str(tab.value("document.activeElement.id"))


def test_a_browser_shows_it_without_complaint(shown: browser.Browser) -> None:
    assert shown.troubles() == []
    assert shown.value("document.title") == "A counted run"
    assert shown.value("document.querySelectorAll('script').length") == 1
    assert (
        shown.value("getComputedStyle(document.querySelector('.i5, .i4, .i3')).backgroundColor")
        != "rgba(0, 0, 0, 0)"
    )
    assert shown.value("document.documentElement.scrollWidth <= innerWidth")


def test_keys_lead_to_kernels_and_their_worst_lines(shown: browser.Browser) -> None:
    visited = []
    for key in "jnnpt":
        shown.press(key)
        visited.append(focus(shown))
    assert visited[0] == "k1"
    assert re.fullmatch(r"k1-\d-\d+", visited[1])
    assert visited[1] == visited[3] != visited[2]
    assert visited[4] == "kernels"
    shown.press("?")
    assert shown.value("keys.open")
    shown.value("keys.querySelector('button').click()")
    assert not shown.value("keys.open")
    shown.press("n")
    assert "of the kernel's lane slots idle here" in shown.value("said.textContent")
    assert shown.troubles() == []


def test_tables_are_sorted_by_their_heads(shown: browser.Browser) -> None:
    first = "document.querySelector('table.sortable tbody tr').cells[0].textContent.trim()"
    head = (
        "[...document.querySelectorAll('table.sortable th button')].find(b => b.textContent == '{}').click()"
    )
    assert str(shown.value(first)).startswith("void cub")
    shown.value(head.format("launches"))
    assert str(shown.value(first)).startswith("void cub")
    shown.value(head.format("kernel"))
    assert str(shown.value(first)).startswith("g()")
    shown.value(head.format("warp instructions"))
    assert str(shown.value(first)).startswith("void uneven")


def test_a_link_opens_the_file_that_it_leads_into(shown: browser.Browser, tmp_path: Path) -> None:
    shown.value("document.querySelectorAll('details').forEach(d => d.open = false)")
    name = shown.value("document.querySelector('tr[data-rank]').id")
    shown.value(f"location.hash = '{name}'")
    shown.value("new Promise(done => setTimeout(done, 50))")
    assert shown.value(f"document.getElementById('{name}').closest('details').open")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_can_be_read_on_their_colours(shown: browser.Browser, scheme: str) -> None:
    """A contrast of 4.5 at least (WCAG 2.2, 1.4.3), for each step of the heat and for soft text."""
    shown.prefer(scheme)
    found = shown.value(
        """(() => {
          const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
            .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
            .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
          const contrast = (a, b) => {
            const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
            return (x + 0.05) / (y + 0.05);
          };
          const body = getComputedStyle(document.body);
          const soft = getComputedStyle(document.querySelector(".soft"));
          const cells = [];
          for (const kind of "iw") for (let step = 1; step < 6; step++) {
            const cell = document.createElement("td");
            cell.className = kind + step;
            document.body.append(cell);
            cells.push(contrast(body.color, getComputedStyle(cell).backgroundColor));
            cell.remove();
          }
          return [...cells, contrast(soft.color, body.backgroundColor), contrast(body.color, body.backgroundColor)];
        })()"""
    )
    assert len(found) == 12
    assert min(found) >= 4.5


def test_it_can_be_printed(shown: browser.Browser) -> None:
    shown.value("document.querySelectorAll('details').forEach(d => d.open = false)")
    assert shown.pdf().startswith(b"%PDF")
    assert shown.value("[...document.querySelectorAll('details')].every(d => d.open)")
