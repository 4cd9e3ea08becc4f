"""`__restrict__` parameters of the kernel around a pragma: by position, and only where the text alone tells."""

from __future__ import annotations

import pytest

from cccopt.source.annotate import annotate

LOOP = """
#pragma ccc for
  for (;;) {
#pragma ccc if
    if (a[0]) { b[0] = 1; }
  }
"""


def restricted(parameters: str, before: str = "", *, head: str = "__attribute__((global)) void") -> list[str]:
    """What the markers say of a kernel with these parameters, and code before its loop."""
    text = f"{head} k({parameters}) {{ {before} {LOOP} }}\n"
    marked = annotate(text, "k.cu").text
    return [word for word in marked.split() if word.startswith("restrict=")]


POSITIONS = {
    "float* __restrict__ a, float* b": "0",
    "int n, float* __restrict a, const float* const __restrict__ b": "1,2",
    "float *__restrict__ a, float * const __restrict__ b": "0,1",
    "Pair<int, 4> p, T* __restrict__ a": "1",
    "float (*f)(int, int), float* __restrict__ a": "1",
    "const __attribute__((grid_constant)) Big big, float* __restrict__ a": "1",
}


@pytest.mark.parametrize("parameters", POSITIONS)
def test_positions(parameters: str) -> None:
    assert restricted(parameters) == [f"restrict={POSITIONS[parameters]}"]


NONE = (
    "float* a, float* b",
    "float* __restrict__ * a",
    "T __restrict__ a",
    "Pointers __restrict__... a",
    "float* __restrict__ a, int n = 3",
    "Less<(1 < 2)> l, float* __restrict__ a",
    "",
)


@pytest.mark.parametrize("parameters", NONE)
def test_what_is_not_known_is_left_out(parameters: str) -> None:
    assert restricted(parameters) == []


@pytest.mark.parametrize(
    "before", ["a = b;", "float** p = &a;", "f(1, &a);", "float*& r = a;", "if (b) { a = b; }"]
)
def test_a_parameter_that_may_be_another_pointer_is_none(before: str) -> None:
    assert restricted("float* __restrict__ a, float* b", before) == []


@pytest.mark.parametrize(
    "before", ["a += 4;", "if (a == b) return;", "f(b && a);", "float* p = a;", "g[0] = a[1];"]
)
def test_its_copies_and_offsets_are_the_same_pointer(before: str) -> None:
    assert restricted("float* __restrict__ a, float* b", before) == ["restrict=0"]


@pytest.mark.parametrize(
    "head",
    [
        "template <class T, int N> __attribute__((global)) void __attribute__((launch_bounds(256)))",
        "__global__ void",
    ],
)
def test_heads_of_kernels(head: str) -> None:
    assert restricted("float* __restrict__ a", head=head) == ["restrict=0"]


@pytest.mark.parametrize(
    "head", ["__attribute__((device)) void", "static void", "inline __host__ __device__ float"]
)
def test_of_functions_that_may_be_inlined_nothing_is_said(head: str) -> None:
    assert restricted("float* __restrict__ a", head=head) == []


def test_the_pragma_of_the_kernel_itself() -> None:
    text = "#pragma ccc grid\n__global__ void k(int n, float* __restrict__ a) { if (n) { a[0] = 1; } }\n"
    assert "restrict=1" in annotate(text, "k.cu").text


def test_blocks_and_lambdas_around_the_loop() -> None:
    assert restricted("float* __restrict__ a", "auto f = [&](int x) { return x; }; { int y; }") == [
        "restrict=0"
    ]
    text = f"__global__ void k(float* __restrict__ a) {{ if (1) {{ g([&](int* x) {{ {LOOP} }}); }} }}"
    assert "restrict=0" in annotate(text, "k.cu").text
    text = text.replace("[&](int* x)", "[=] __attribute__((device)) (int* x)")
    assert "restrict" not in annotate(text, "k.cu").text.replace("__restrict__", "")


def test_a_kernel_that_begins_far_before_its_loop() -> None:
    assert restricted("float* __restrict__ a", "int x; /* */ x = 1;\n" * 2000) == ["restrict=0"]
