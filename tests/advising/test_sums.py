"""The variables of `reduce(+: ...)`, found in the source."""

from __future__ import annotations

from pathlib import Path

import pytest

from cccopt.advising.sums import sums_in
from cccopt.text import Place, Position

HEAD = "template <class T> __global__ void k(int n, const T* a, T* out) {\n"


def _sums(folder: Path, body: str) -> tuple[str, ...]:
    """The sums of the loop that begins on the last line of ``body`` but one, in a kernel."""
    file = folder / "k.cu"
    file.write_text(f"{HEAD}{body}\n  out[0] = 0;\n}}\n")
    lines = file.read_text().split("\n")
    line = next(i for i, text in enumerate(lines) if text.lstrip().startswith("for"))
    loop = Place(str(file), Position(line + 1, lines[line].index("for") + 1), lines[line])
    return sums_in([loop], Place(str(file), Position(1, HEAD.index("k(") + 1), lines[0]))


@pytest.mark.parametrize(
    ("before", "loop", "names"),
    [
        ("float s = 0;", "s += a[k];", ("s",)),
        ("float s = 0, t = 0;", "{ s += a[k]; t -= a[k] * a[k]; }", ("s", "t")),
        ("float3 f;", "{ f.x += a[k]; f.y += a[k]; }", ("f.x", "f.y")),
        ("T s[2];", "s[0] += a[k];", ("s[0]",)),
        ("double s = 0;", "if (a[k] > 0) s += a[k];", ("s",)),
        ("int s = 0;", "s += 1;", ()),
        ("const T* p = a; float s = 0;", "{ s += *p; p += 2; }", ("s",)),
        ("float s = 0;", "{ float t = 0; t += a[k]; s += t; }", ("s",)),
        ("float s = 0;", "s = a[k];", ()),
        ("", "out[k] += a[k];", ()),
    ],
)
def test_sums_are_what_the_loop_updates(
    before: str, loop: str, names: tuple[str, ...], tmp_path: Path
) -> None:
    assert _sums(tmp_path, f"  {before}\n  for (int k = 0; k < n; k += 2) {loop}") == names


def test_a_clause_cannot_name_what_is_in_another_function(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text(
        f"__device__ void f(float& s, int n) {{\n  for (;n;--n) s += n;\n}}\n{HEAD}  f(a, n);\n}}\n"
    )
    loop = Place(str(file), Position(2, 3), "")
    assert sums_in([loop], Place(str(file), Position(4, HEAD.index("k(") + 1), "")) == ()


def test_a_loop_of_a_macro_has_none(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text(f"#define LOOP for (;n;--n) s += n;\n{HEAD}  float s = 0;\n  LOOP\n}}\n")
    assert sums_in([Place(str(file), Position(4, 3), "")], Place(str(file), Position(2, 36), "")) == ()
