"""Pragmas over functions: which definitions they find, and the one marker in their bodies."""

from __future__ import annotations

import pytest

from cccopt.source.annotate import annotate
from cccopt.source.pragmas import SourceError
from cccopt.source.strip import strip
from tests.source.marks import attributes, read

_KERNEL = "#pragma ccc grid\n__global__ void k() {}\n"


def _marked(text: str) -> str:
    annotated = annotate(f"{text}\n;\n{_KERNEL}", "x.cu").text
    assert annotated.count("\n") == f"{text}\n;\n{_KERNEL}".count("\n")
    return read(annotated).rsplit(" ; __global__", 1)[0]


@pytest.mark.parametrize(
    "head",
    [
        "__global__ void k(int* p, int n) @{ S; }",
        'extern "C" __attribute__((global)) void __attribute__((launch_bounds(128, 2))) k(int n) @{ S; }',
        "template <class T, int N = (3 > 2)> static __global__ void k(T* p, A<B<int>> q) @{ S; }",
        "template <> __global__ void k<int, sizeof(int)>(int*) @{ S; }",
        "template <class T> requires requires (T t) { t.f(); } __global__ void k(T) @{ S; }",
        "template <class T> requires (sizeof(T) < 8) [[nodiscard]] inline __global__ auto k(T) -> void @{ S; }",
        "__global__ void ns::k(int x = [] { return 1; }()) noexcept @{ if (a) { S; } }",
    ],
)
def test_a_kernel_gets_a_marker(head: str) -> None:
    assert _marked("#pragma ccc grid\n" + head.replace("@", "")) == head.replace("@{", "{ <grid.begin 1>")


@pytest.mark.parametrize(
    "head",
    [
        "__device__ int f(int a) @{ return a ? f(a - 1) : 0; }",
        "template <class T> __attribute__((host)) __attribute__((device)) T f(T a) const @{ return f(a); }",
        "__device__ bool operator<(A<int> a, A<int> b) @{ return b < a; }",
        "__device__ A operator<<=(A a, int n) @{ return n ? a <<= n - 1 : a; }",
        "__device__ A& operator=(int n) @{ return *this = n - 1; }",
        "struct S { \n__device__ operator int() @{ return int(*this); } };",
        "struct S { \n__device__ auto operator()(int a) -> decltype(a) @{ return (*this)(a); } };",
    ],
)
def test_a_recursive_function_gets_a_marker(head: str) -> None:
    text = (
        head.replace("\n", "\n#pragma ccc recursive\n") if "\n" in head else "#pragma ccc recursive\n" + head
    )
    expected = " ".join(head.replace("@{", "{ <recursive.begin 1>").split())
    assert _marked(text.replace("@", "")) == expected


def test_attributes_and_places() -> None:
    text = (
        "template <class T>\n"
        "#pragma ccc recursive chunk(4) name(insert) independent\n"
        "__device__\n"
        "T f(T a) { return f(a); }\n"
        "#pragma ccc grid block(64, 2) auto collect(2) reduce(max: best)\n"
        "__global__ void __launch_bounds__(128)\n"
        "  k(int* p)\n"
        "{\n"
        "  int best = f(p[0]);\n"
        "#pragma ccc if\n"
        "  if (best) *p = 1;\n"
        "}\n"
    )
    annotated = annotate(text, "x.cu")
    assert attributes(annotated.text) == {
        "recursive.begin 1": "line=4:3 name=insert chunk=4 independent file=x.cu",
        "grid.begin 2": "line=7:3 block=64,2,1 mode=auto reduce=max:best collect=2 file=x.cu",
        "if.begin 3": "line=11:3 file=x.cu",
        "if.end 3": "",
    }
    assert [(r.kind, r.parent) for r in annotated.regions] == [("recursive", None), ("grid", None), ("if", 2)]


def test_a_grid_is_a_loop_around_its_kernel() -> None:
    kernel = "#pragma ccc grid\n__global__ void k() {\n#pragma ccc if\nif (a) S; }\n"
    assert [r.kind for r in annotate(kernel, "x.cu").regions] == ["grid", "if"]
    off = kernel.replace("grid", "grid off", 1)
    assert annotate(off, "x.cu").text == strip(off)
    within = off.replace("if (a)", "for (;;)").replace("ccc if", "ccc for")
    assert [r.kind for r in annotate(within, "x.cu").regions] == ["for"]


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        (
            "#pragma ccc grid\n__device__ void f() {}",
            "CCC012",
            "applies to the definition of a `__global__` function",
        ),
        ("#pragma ccc recursive\n__global__ void f() {}", "CCC012", "a `__device__` function"),
        ("#pragma ccc recursive\nint f() {}", "CCC012", "but is above `int`"),
        ("#pragma ccc grid\n__global__ void k();", "CCC012", "on the line above the definition"),
        ("#pragma ccc grid\ntemplate __global__ void k<int>(int);", "CCC012", "the definition"),
        ("__global__\n#pragma ccc grid\nvoid k() {}", "CCC012", "before its first word"),
        ('#pragma ccc grid\nextern "C" { __global__ void k() {} }', "CCC012", "the definition"),
        ("#pragma ccc grid\nnamespace n { __global__ void k() {} }", "CCC012", "is above `namespace`"),
        ("#pragma ccc recursive\nstruct S { __device__ void f() {} };", "CCC012", "is above `struct`"),
        ("#pragma ccc recursive\nauto f = [=] __device__ (int a) { return a; };", "CCC012", "the definition"),
        ("#pragma ccc recursive", "CCC012", "is above nothing"),
        ("#pragma ccc grid\n__global__ void k() {", "CCC016", "no end"),
        ("#pragma ccc grid\ntemplate <class T", "CCC016", "no end"),
        ("#pragma ccc recursive\n#pragma ccc grid\n__device__ void f() {}", "CCC015", "above one statement"),
        ("#pragma ccc recursive\n__device__ void f() {}", "CCC013", "`#pragma ccc grid` above the kernel"),
        (
            "#pragma ccc grid reduce(+: sum)\n__global__ void k() { f(summary); }",
            "CCC015",
            "`sum`, which does not",
        ),
    ],
)
def test_mistakes(text: str, code: str, says: str) -> None:
    with pytest.raises(SourceError) as caught:
        annotate(f"x;\n{text}", "x.cu")
    assert [d.code for d in caught.value.diagnostics] == [code]
    assert says in str(caught.value)
