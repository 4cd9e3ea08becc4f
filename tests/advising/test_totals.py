"""Sums over the iterations of a marked loop: `reduce(+: ...)` makes the paths that update them movable."""

from __future__ import annotations

from pathlib import Path

import pytest

from cccopt.advising.suggestions import advise_on_source, promises_of
from cccopt.advising.totals import totals_in
from cccopt.text import Place, Position
from tests.advising.test_suggestions import ARCH, rewritten

HEAD = "template <class T> __global__ void k(int n, const T* a, T* out) {\n"

COUNTER = """
__global__ void __launch_bounds__(128) hits(int n, const unsigned* __restrict__ a, unsigned* out) {
  unsigned found = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned x = a[i];
    if (x % 5 == 0) {
      for (int k = 0; k < 200; ++k) x = x * 1664525u + 1013904223u ^ x >> 3;
      if (x & 1) ++found;
    }
  }
  atomicAdd(out, found);
}
"""


def totals(folder: Path, before: str, body: str) -> tuple[str, ...]:
    """The totals of a loop with this body, in a kernel."""
    file = folder / "k.cu"
    lines = [
        HEAD.rstrip(),
        f"  {before}",
        f"  for (int i = threadIdx.x; i < n; i += 32) {body}",
        "}",
    ]
    file.write_text("\n".join(lines))
    return totals_in(Place(str(file), Position(3, 3), lines[2]))


@pytest.mark.parametrize(
    ("before", "body", "names"),
    [
        ("unsigned s = 0;", "if (a[i] > 1) ++s;", ("s",)),
        ("unsigned s = 0;", "{ if (a[i] > 1) s++; else s--; }", ("s",)),
        ("double s = 0;", "if (a[i] > 1) s += a[i];", ("s",)),
        ("float s = 0, t = 0;", "{ s += a[i]; if (a[i] > 1) t -= 2; }", ("s", "t")),
        ("float s = 0;", "{ float t = 0; t += a[i]; s += t; }", ("s",)),
        ("int s = 0;", "{ if (s < 9) s += 1; }", ()),  # read
        ("int s = 0;", "s = a[i];", ()),
        ("const T* s = a;", "{ out[i] = a[i]; s += 2; }", ()),  # a pointer
        ("int s = 0;", "out[s++] = a[i];", ()),
    ],
)
def test_what_iterations_only_add_to(before: str, body: str, names: tuple[str, ...], tmp_path: Path) -> None:
    assert totals(tmp_path, before, body) == names


def test_in_macros_there_are_none(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text(f"#define LOOP for (;n;--n) ++s;\n{HEAD}  int s = 0;\n  LOOP\n}}\n")
    assert totals_in(Place(str(file), Position(4, 3), "")) == ()


@pytest.mark.nvcc
def test_a_counter_is_named_if_tasks_can_move_only_then(tmp_path: Path) -> None:
    source = tmp_path / "hits.cu"
    source.write_text(COUNTER)
    (advice,) = advise_on_source(source, arch=ARCH)
    assert [p.text for p in advice.pragmas] == ["#pragma ccc for reduce(+: found)", "#pragma ccc if"]
    assert any("in any order" in promise for _, promise in promises_of(advice))
    assert rewritten(source, [advice]) == {advice.kernel}
