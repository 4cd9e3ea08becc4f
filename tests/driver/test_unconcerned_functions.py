"""Functions that no rewrite concerns go around the passes as text."""

from __future__ import annotations

import random

import pytest

from cccopt import parse
from cccopt.driver.unconcerned_functions import split_module
from cccopt.ptx.ir import Function

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
MARK = "\t// ccc for.begin 1\n"


def body(*lines: str) -> str:
    return "{\n" + "".join(f"\t{line}\n" for line in lines) + "\tret;\n}\n"


def kept(text: str) -> dict[str, bool]:
    """For each definition, whether the passes get to see its body."""
    split = split_module(text)
    functions = [i for i in parse(split.text if split else text).items if isinstance(i, Function)]
    whole = [i for i in parse(text).items if isinstance(i, Function)]
    assert [f.name for f in functions] == [f.name for f in whole]
    return {f.name: s.body is not None for f, s in zip(whole, functions, strict=True) if f.body is not None}


def test_the_marked_their_callers_and_callees_are_seen() -> None:
    call = "call.uni {}, ();".format
    text = (
        HEAD
        + ".func leaf()\n" + body()
        + ".func other()\n" + body(call("leaf"))
        + ".func marked()\n" + body(call("leaf")) .replace("{\n", "{\n" + MARK, 1)
        + ".visible .entry caller()\n" + body(call("marked"), call("beside"))
        + ".func beside()\n" + body()
        + ".entry alone()\n" + body()
    )  # fmt: skip
    assert kept(text) == {
        "leaf": True,
        "other": False,
        "marked": True,
        "caller": True,
        "beside": True,
        "alone": False,
    }


@pytest.mark.parametrize("name", ["_Z{}", "f{}", "$x{}", "{}"])
def test_a_name_counts_where_it_is_a_word(name: str) -> None:
    f, g, h = map(name.format, ("ab", "abc", "b"))
    inner = body(
        f"mov.u64 %rd1, %{f};", f"ld.param.b64 %rd1, [{f}_0];", f"ld.param.b64 %rd1, [x{f}];", f"// {g}"
    )
    text = (
        HEAD
        + f".func {f}()\n" + body()
        + f".func {g}()\n" + body().replace("{\n", "{\n" + MARK, 1)
        + f".entry {h}(.param .u64 {f}_0, .param .u64 x{f})\n" + inner
    )  # fmt: skip
    assert kept(text) == {f: False, g: True, h: True}


def test_lines_keep_their_numbers_and_bodies_come_back() -> None:
    inner = body("// a brace } in a comment", 'call.uni f, (); // "', "/* { */")
    text = (
        HEAD
        + ".func f;\n"
        + f".visible .entry a(.param .u64 a_0)\n.maxntid 128, 1, 1\n.pragma \"x;y {{\";\n{inner}"
        + f".weak .func (.param .b32 r) g(.param .b32 p)\n{inner}"
        + ".entry marked()\n" + body().replace("{\n", "{\n" + MARK, 1)
        + f".func f()\n{inner}"
    )  # fmt: skip
    split = split_module(text)
    assert split is not None
    assert split.text.count("\n") == text.count("\n")
    assert split.text[: split.text.index("// ccc")].count("\n") == text[: text.index("// ccc")].count("\n")
    whole = split.restored(parse(split.text))
    assert parse(whole) == parse(text)
    assert whole.count(inner) == 3


def test_values_of_large_tables_go_around() -> None:
    numbers = ",\n".join(f"{n}, -{n}" for n in range(200))
    tables = f".global .align 4 .b32 large[2][200] = {{{numbers}}};\n.const .b8 small[3] = {{1, 2, 3}};\n"
    text = HEAD + tables + ".entry marked()\n" + body().replace("{\n", "{\n" + MARK, 1)
    split = split_module(text)
    assert split is not None
    assert "199" not in split.text
    assert "{1, 2, 3}" in split.text
    assert split.text.count("\n") == text.count("\n")
    assert parse(split.restored(parse(split.text))) == parse(text)


@pytest.mark.parametrize("text", ["", "nonsense {", ".entry f() {", ".func", ".entry f()", HEAD + ".entry ("])
def test_what_is_not_understood_stays_whole(text: str) -> None:
    assert split_module(text) is None


def test_random_modules_come_back() -> None:
    choose = random.Random(5)
    for _ in range(200):
        names = [f"f{n}" for n in range(choose.randint(1, 8))]
        functions = []
        for name in names:
            lines = [f"call.uni {choose.choice(names)}, ();" for _ in range(choose.randint(0, 2))]
            text = f"{choose.choice(['.visible ', '.weak ', ''])}.func {name}()\n{body(*lines)}"
            if choose.random() < 0.2:
                text = text.replace("{\n", "{\n" + MARK, 1)
            functions.append(f".func {name}();\n" * choose.randint(0, 1) + text)
        whole = HEAD + "".join(functions)
        split = split_module(whole)
        if split is not None:
            assert parse(split.restored(parse(split.text))) == parse(whole)
        marked = {name for name, text in zip(names, functions, strict=True) if MARK in text}
        assert all(kept(whole)[name] for name in marked)
