"""Choices are their names wherever text is made of them."""

from __future__ import annotations

import json
import pickle

from cccopt.harness.choices import BuildName, Platform


def test_a_choice_is_its_name_in_text_and_in_json() -> None:
    assert f"{BuildName.AUTO} k=4" == "auto k=4"
    assert str(Platform.GPU) == "%s" % Platform.GPU == "gpu"  # noqa: UP031 - argparse formats so
    assert json.dumps({BuildName.PLAIN: Platform.EMULATOR}, indent=1) == '{\n "plain": "emulator"\n}'


def test_a_choice_and_its_name_are_one_key() -> None:
    assert {BuildName.PLAIN: 1}["plain"] == {"plain": 1}[BuildName.PLAIN] == 1
    assert pickle.loads(pickle.dumps(BuildName.CCC)) is BuildName.CCC
