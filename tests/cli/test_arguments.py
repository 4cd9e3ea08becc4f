"""Kernel arguments and launch shapes on a command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cccopt.cli.arguments import parse_argument, parse_shape
from cccopt.cli.main import main
from cccopt.cli.verify import first_difference
from cccopt.diagnostic import CccError
from tests.cli.test_commands import MARKED


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


def test_files_that_are_no_arrays(tmp_path: Path) -> None:
    file = tmp_path / "a.npy"
    np.save(file, np.arange(100))
    whole = file.read_bytes()
    np.savez(tmp_path / "z.npz", a=np.arange(3))
    swapped = tmp_path / "swapped.npy"
    np.save(swapped, np.arange(3, dtype=np.dtype(np.int32).newbyteorder()))
    contents = [b"", b"garbage", bytes(range(256)), whole[:60], whole[:-8], (tmp_path / "z.npz").read_bytes()]
    for content in (*contents, swapped.read_bytes()):
        file.write_bytes(content)
        with pytest.raises(CccError) as caught:
            parse_argument(str(file))
        (diagnostic,) = caught.value.diagnostics
        assert diagnostic.code == "CCC089"
        assert diagnostic.why


@pytest.mark.parametrize("count", [10**17, 10**30])
def test_more_zeros_than_memory(count: int) -> None:
    with pytest.raises(CccError, match="it does not fit into memory"):
        parse_argument(f"zeros:f64:{count}")


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [
        ("emulate", "--shared", "-5"),
        ("emulate", "--shared", "many"),
        ("verify", "--rtol", "-1"),
        ("verify", "--rtol", "nan"),
        ("verify", "--rtol", "inf"),
        ("bench", "--seed", "-1"),
    ],
)
def test_numbers_out_of_range(
    command: str, option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = {
        "emulate": "a.ptx k --grid 1 --block 1",
        "verify": "a.ptx b.ptx k --grid 1 --block 1",
        "bench": "",
    }
    with pytest.raises(SystemExit, match="2"):
        main([command, *words[command].split(), f"{option}={value}"])
    assert f"argument {option}: `{value}` is no" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["emulate"], ["verify", "marked.ptx"]])
def test_what_fails_on_the_emulator_names_the_file(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("marked.ptx").write_text(MARKED)
    few = ["--arg", "i32:100", "--arg", "zeros:i32:1", "--arg", "zeros:i32:1"]
    assert main([*command, "marked.ptx", "tripl", "--grid", "1", "--block", "32", *few]) == 1
    assert "  --> marked.ptx:29:" in capsys.readouterr().err
