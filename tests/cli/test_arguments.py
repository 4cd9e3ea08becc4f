"""Kernel arguments and launch shapes on a command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cccopt.cli.arguments import parse_argument, parse_shape
from cccopt.cli.verify import first_difference
from cccopt.diagnostic import CccError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i32:-5", np.int32(-5)),
        ("u64:0xffffffffffffffff", np.uint64(2**64 - 1)),
        ("i8:127", np.int8(127)),
        ("f32:0.5", np.float32(0.5)),
        ("f64:-inf", np.float64("-inf")),
    ],
)
def test_scalars_have_the_type_they_name(text: str, expected: np.generic) -> None:
    value = parse_argument(text)
    assert value == expected
    assert value.dtype == expected.dtype


def test_buffers(tmp_path: Path) -> None:
    zeros = parse_argument("zeros:u16:7")
    assert (zeros.dtype, zeros.shape, zeros.any()) == (np.uint16, (7,), False)
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "a.npy", array)
    loaded = parse_argument(str(tmp_path / "a.npy"))
    assert isinstance(loaded, np.ndarray)
    assert np.array_equal(loaded, array)
    assert loaded.dtype == array.dtype


@pytest.mark.parametrize(
    "text",
    [
        "5",
        "i32",
        "i32:",
        "i32:1.5",
        "i32:2147483648",
        "u8:-1",
        "i7:1",
        "zeros:f32",
        "zeros:f32:-1",
        "zeros:x:1",
    ],
)
def test_what_cannot_be_an_argument_is_refused(text: str) -> None:
    with pytest.raises(CccError) as caught:
        parse_argument(text)
    assert caught.value.diagnostics[0].code == "CCC089"
    assert f"`{text}`" in caught.value.diagnostics[0].message


def test_a_file_that_is_no_array(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_text("text")
    with pytest.raises(CccError) as caught:
        parse_argument(str(tmp_path / "a.npy"))
    assert caught.value.diagnostics[0].code == "CCC089"
    with pytest.raises(CccError) as caught:
        parse_argument(str(tmp_path / "absent.npy"))
    assert caught.value.diagnostics[0].code == "CCC086"


def test_shapes() -> None:
    assert parse_shape("16") == (16, 1, 1)
    assert parse_shape("16,2") == (16, 2, 1)
    assert parse_shape("16,2,3") == (16, 2, 3)
    for text in ("", "0", "1,2,3,4", "a", "1,,1", "-1"):
        with pytest.raises(CccError):
            parse_shape(text)


def test_the_first_difference_counts_every_bit() -> None:
    before = np.array([[1, 2], [3, 4]], np.int32)
    assert first_difference(before, before.copy()) is None
    after = before.copy()
    after[1, 0] = 9
    assert first_difference(before, after) == ((1, 0), 3, 9)
    zero = np.array([0.0], np.float32)
    assert first_difference(zero, -zero) is not None
    nan = np.array([np.nan], np.float64)
    assert first_difference(nan, nan.copy()) is None


def test_a_tolerance_is_for_floating_point_alone() -> None:
    before = np.array([1.0, 1000.0])
    after = np.array([1.0, 1000.5])
    assert first_difference(before, after, rtol=1e-3) is None
    assert first_difference(before, after, rtol=1e-4) == ((1,), 1000.0, 1000.5)
    assert first_difference(before.astype(int), before.astype(int) + 1, rtol=1.0) is not None
    assert first_difference(np.array([np.nan]), np.array([1.0]), rtol=1.0) is not None
