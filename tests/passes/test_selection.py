"""`--ccc-form` and `--ccc-only`: which regions are rewritten, and in which form."""

from __future__ import annotations

import pytest

import cccopt
from cccopt.diagnostic import CccError
from tests.kernels.ptx_counted_loops import counted
from tests.kernels.ptx_loops import FOR, IF, PATH, SECOND, VARIABLE, inner_loop, loop, path

OTHER = "xor.b32 %r10, %value, 5; atom.global.add.u32 %r11, [%other_i], %r10;"
TWO = loop(
    body=path(clauses="independent name=first") + path(OTHER, region=SECOND, label="2", clauses="name=second")
)
NESTED = loop(body=path(PATH + inner_loop("st.global.u32 [%other_i], %k;")))


def rewritten(text: str, only: str = "", form: str = "auto") -> dict[int, str]:
    """The regions that are rewritten, each with its form."""
    regions = cccopt.transform(text, ccc="always", only=only, form=form).report["units"][0]["regions"]
    return {region["region"]: region["form"] for region in regions if region["outcome"] == "rewritten"}


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ("", {FOR, IF, SECOND}),
        (f"{FOR}", {FOR, IF, SECOND}),
        (f"{IF}", {FOR, IF}),
        ("second", {FOR, SECOND}),
        (f":{10 * IF}", {FOR, IF}),
        (f"loop.cu:{10 * SECOND}", {FOR, SECOND}),
        (f"first, {SECOND}", {FOR, IF, SECOND}),
        # Another file of the program: nothing here.
        (f"other.cu:{10 * IF}", set()),
    ],
)
def test_a_region_comes_with_the_loops_around_it_and_what_is_inside(only: str, expected: set[int]) -> None:
    assert set(rewritten(TWO, only)) == expected


def test_an_inner_region_comes_with_all_around_it() -> None:
    assert set(rewritten(NESTED, str(VARIABLE))) == {FOR, IF, VARIABLE}
    assert set(rewritten(NESTED, str(IF))) == {FOR, IF, VARIABLE}


def test_what_is_left_out_is_as_if_it_were_not_marked() -> None:
    unmarked = loop(
        body=path(clauses="independent name=first") + _without_marks(path(OTHER, region=SECOND, label="2"))
    )
    assert (
        cccopt.transform(TWO, ccc="always", only="first").ptx == cccopt.transform(unmarked, ccc="always").ptx
    )


def _without_marks(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.strip().startswith("// ccc"))


@pytest.mark.parametrize("only", ["9", "third", ":77", "loop.cu:77", f"{IF},third"])
def test_a_word_that_names_no_region_is_an_error(only: str) -> None:
    with pytest.raises(CccError) as caught:
        cccopt.transform(TWO, ccc="always", only=only)
    (problem,) = caught.value.diagnostics
    assert problem.code == "CCC089"
    assert f"`{only.rpartition(',')[2]}` is not a region" in problem.message
    assert f"{SECOND} (`if`, `second` at loop.cu:{10 * SECOND}:3)" in problem.why


def test_with_the_mode_off_nothing_is_asked() -> None:
    assert cccopt.transform(TWO, ccc="off", only="9").ptx == TWO


@pytest.mark.parametrize(
    ("form", "of_loop", "of_path"),
    [
        ("auto", "split", "expanded"),
        ("split", "split", "expanded"),
        ("idle-lanes", "idle lanes", "expanded"),
        ("stack", "split", "split"),
        ("split,stack", "split", "split"),
        ("idle-lanes,stack", "idle lanes", "idle lanes"),
    ],
)
def test_a_form_is_forced(form: str, of_loop: str, of_path: str) -> None:
    found = rewritten(loop(counted()), form=form)
    assert found == {FOR: of_loop, VARIABLE: of_path}


def test_a_form_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(CccError, match=r"CCC089.*`idle lanes` is not a loop form"):
        cccopt.transform(TWO, form="idle lanes")
