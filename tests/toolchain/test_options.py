"""Which words of a command line are ours, and what nvcc's say."""

from __future__ import annotations

from pathlib import Path

import pytest

from cccopt.ccc.outcome.choices import spelled
from cccopt.cli.nvcc import _configuration
from cccopt.toolchain import options
from cccopt.toolchain.settings import Settings


def test_ours_are_taken_out_in_order() -> None:
    ours, others = options.split(["-O3", "--ccc=off", "-c", "--ccc=always", "x.cu", "--ccc-verbose"])
    assert ours == ["--ccc=off", "--ccc=always", "--ccc-verbose"]
    assert others == ["-O3", "-c", "x.cu"]
    assert Settings.of_words(ours) == Settings("always", verbose=True)


def test_ours_are_taken_out_of_nvccs_variables() -> None:
    before, after, rest = options.split_variables(
        {"NVCC_PREPEND_FLAGS": "-O3 --ccc=always", "NVCC_APPEND_FLAGS": '-DX="a b"', "PATH": "--ccc=off"}
    )
    assert (before, after) == (["--ccc=always"], [])
    # A variable without options of ours is nvcc's as it is.
    assert rest == {"NVCC_PREPEND_FLAGS": "-O3"}
    before, after, rest = options.split_variables({"NVCC_APPEND_FLAGS": "--ccc-verbose -O3 --ccc=off"})
    assert (before, after, rest) == ([], ["--ccc-verbose", "--ccc=off"], {"NVCC_APPEND_FLAGS": "-O3"})


def test_every_option_of_the_table_is_known() -> None:
    values = {options.PREFIX: "auto", "--ccc-resident": "1", "--ccc-form": "split", "--ccc-stacks": "global"}
    values[options.INSTRUMENT] = options.SAMPLED
    for name, value, does, otherwise in options.TABLE:
        option = options.spelled(name, value and values.get(name, "x"))
        assert options.is_known(option), option
        assert does
        # A value of an option that may be omitted has its default in the line without it.
        assert otherwise or (name == options.INSTRUMENT and value)


@pytest.mark.parametrize(
    "option",
    [
        "--ccc",
        "--ccc=often",
        "--ccc-keep",
        "--ccc-report=",
        "--ccc-profile=",
        "--ccc-profiles=x",
        "--ccc-resident",
        "--ccc-resident=",
        "--ccc-resident=0",
        "--ccc-resident=-1",
        "--ccc-resident=many",
        "--ccc-resident=2147483648",
        "--ccc-form",
        "--ccc-form=",
        "--ccc-form=idle lanes",
        "--ccc-form=stack,split",
        "--ccc-stacks",
        "--ccc-stacks=local",
        "--ccc-only",
        "--ccc-only=",
        "--ccc-only=1,,2",
        "--cccx",
        "--ccc-verbose=1",
    ],
)
def test_what_is_no_option_of_ours(option: str) -> None:
    assert not options.is_known(option)


def test_forms_are_shown_as_the_option_spells_them() -> None:
    for word, (form, _) in options.FORMS.items():
        assert form == "auto" or spelled(form) == word.removesuffix(",stack")


def test_ptx_is_asked_for_in_many_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("inner").write_text("-O3 '-ptx'")
    Path("outer").write_text("-optf inner --options-file=outer")
    Path("other").write_text("-DX='-ptx of a string'")
    assert options.makes_ptx(["-ptx", "x.cu"], {})
    assert options.makes_ptx(["--ptx", "x.cu"], {})
    assert options.makes_ptx(["x.cu"], {"NVCC_APPEND_FLAGS": "-ptx"})
    assert options.makes_ptx(["--options-file", "other,outer", "x.cu"], {})
    assert options.makes_ptx(["x.cu"], {"NVCC_PREPEND_FLAGS": "--options-file=inner"})
    assert not options.makes_ptx(["-c", "-optf", "other", "ptx.cu", "-o", "x.ptx"], {})
    assert not options.makes_ptx(["-optf", "missing"], {})
    assert list(options.words_in_files(["-ptx", "-optf=inner"], {})) == ["-O3", "-ptx"]


def test_an_output_is_no_input() -> None:
    words = [
        "a.ptx",
        "-o",
        "b.ptx",
        "--output-file",
        "c.ptx",
        "-oo.ptx",
        "--output-file=d.ptx",
        "e.ptx",
        "f.cu",
    ]
    assert [words[n] for n in options.ptx_inputs(words)] == ["a.ptx", "e.ptx"]


def test_settings_travel_through_the_environment() -> None:
    settings = Settings(
        "off",
        keep_going=True,
        verbose=True,
        keep="/k",
        reports="/r",
        stamp="// s",
        resident=7,
        form="idle-lanes,stack",
        only="1,near,a b.cu:7",
        stacks="global",
    )
    assert Settings.from_environment(settings.environment()) == settings
    assert Settings.from_environment({}) == Settings()


def test_the_stamp_tells_forms_and_selections_apart() -> None:
    told = [[], ["--ccc-form=split"], ["--ccc-form=stack"], ["--ccc-only=1"], ["--ccc-only=2"]]
    told += [["--ccc-stacks=global"], ["--ccc-stacks=shared"]]
    assert len({_configuration(ours) for ours in told}) == len(told)
    assert _configuration([]) == _configuration(["--ccc-form=auto"])
