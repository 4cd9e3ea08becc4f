"""The rule by which the gallery's candidates are found, on made-up kernels."""

from pathlib import Path

import pytest

from bench.real.draw import Candidate, candidates, functions, in_order, ways


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("while (x > 1) x /= 2;", ("exits",)),
        ("for (int i = 0; i < n; ++i) if (i == x) break;", ("exits",)),
        ("int end = row[v]; for (int i = 0; i < end; ++i) f += i;", ("counts",)),
        ("for (int i = 0; i < n; ++i) { if (in[i] > 0) work(i); }", ("branch",)),
        ("for (int i = 0; i < n; ++i) { if (in[i] > 0) x = i; }", ()),
        ("switch (x) { case 0: y = 1; }", ("switch",)),
        ("for (int i = 0; i < n; ++i) sum += in[i];", ()),
        ("out[v] = in[v];", ()),
    ],
)
def test_how_the_lanes_differ(body: str, expected: tuple[str, ...]) -> None:
    assert ways(f"{{ {body} }}") == expected


def test_functions_are_found_with_bounds_templates_and_without_comments() -> None:
    text = """
    // __global__ void hidden() {}
    template <int N> __global__ void __launch_bounds__(256, 2) first(int n) { if (n) { n = 1; } }
    static __device__ inline float second(float x) { return x; }
    __global__ void declared(int n);
    """
    assert [(each.kernel, each.name) for each in functions(text)] == [(True, "first"), (False, "second")]


def write(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "main.cu").write_text(text)
    return folder


def test_callees_count_and_barriers_do_not(tmp_path: Path) -> None:
    text = """
    __device__ int walk(int x) { while (x > 1) x /= 2; return x; }
    __global__ void calls(int* out) { out[0] = walk(out[1]); }
    __global__ void waits(int* out) { __syncthreads(); out[0] = walk(out[1]); }
    """
    program = write(tmp_path / "made-up", text)
    assert list(candidates(program)) == [Candidate("made-up", "main.cu", "calls", ("exits",))]


def test_long_kernels_are_left_out(tmp_path: Path) -> None:
    text = "__global__ void k(int x) {" + "\n  x += 1;" * 500 + " while (x > 1) x /= 2; }"
    assert not list(candidates(write(tmp_path / "long", text)))


def test_the_order_is_that_of_hashes() -> None:
    names = [f"program{index}" for index in range(20)]
    assert in_order(names) == in_order(names[::-1]) != names
