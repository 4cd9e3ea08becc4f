"""The thesis' spelling is recognised and translated."""

from __future__ import annotations

from cccopt.source.thesis import thesis_annotations


def test_the_pragma_to_write_is_said() -> None:
    text = 'f();\n  #CCC for const // rows\n/*\n#CCC if\n*/\nauto s = R"(\n#CCC if\n)";\n#CCC  if\n#CCCP x\n'
    first, second = thesis_annotations(text, "x.cu")
    assert (first.code, str(first.place)) == ("CCC017", "x.cu:2:3")
    assert "write `#pragma ccc for`," in first.help
    assert str(second.place) == "x.cu:9:1"
    assert "write `#pragma ccc if`," in second.help


def test_a_pragma_is_not_the_thesis_spelling() -> None:
    assert thesis_annotations("#pragma ccc if\nif (a) b;\n", "x.cu") == ()
