"""The headers as a compiler sees them: each alone, what it makes of them, and what it says of misuse."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cccopt.resources import folder
from tests.cte.compiling import STRICT, UNREAD, compiled, ptx_for_all_workers

HEADERS = Path(str(folder("cte_templates")))
WARP_POLICIES = (
    "one_per_lane",
    "sub_warp<2>",
    "sub_warp<4>",
    "sub_warp<8>",
    "sub_warp<16>",
    "sub_warp<32>",
    "warp",
    "warp_segmented",
    "warp_staged",
    "warp_chunked",
    "automatic",
)
SCANNING = ("one_per_lane", "sub_warp<8>", "warp", "automatic")


@pytest.mark.nvcc
def test_each_header_compiles_alone_for_the_oldest_target(tmp_path: Path) -> None:
    for header in sorted(HEADERS.rglob("*.cuh")):
        name = str(header.relative_to(HEADERS))
        source = tmp_path / f"{name.replace('/', '_')}.cu"
        source.write_text(f"#include <{name}>\n#include <{name}>\n")
        done = compiled(source, *UNREAD, "-arch=sm_75", "-o", str(tmp_path / "alone.ptx"))
        assert done.returncode == 0, f"{name}: {done.stderr}"


def test_headers_rely_on_no_lock_step() -> None:
    for header in HEADERS.rglob("*.cuh"):
        text = header.read_text()
        assert "#pragma once" in text, header
        assert not re.search(r"\bvolatile\b|__(shfl|any|all|ballot)(_up|_down|_xor)?\s*\(", text), header


def calls(policies: tuple[str, ...], scanning: tuple[str, ...]) -> str:
    """Kernels with all calls, in one source."""
    body = ["#include <cte.cuh>", "using namespace cte;"]
    for number, policy in enumerate(policies):
        body.append(f"""
__global__ void reduce_{number}(const long long* o, const double* v, double* out) {{
    const int t = blockIdx.x * 128 + threadIdx.x;
    __shared__ storage_for<128, {policy}, double> shared;
    const auto map = [=](long long i, char scale) {{ return v[i] * scale; }};
    const auto add = [](double a, double b) {{ return a + b; }};
    out[t] = for_each_index<128, scanned, {policy}>(shared, o[t], o[t + 1], map, add, 0.0, 'x') +
             for_each_index<128, disjoint, {policy}>(o[t], o[t + 1], map, plus{{}}, 0.0, 'y');
    for_each<128, scanned, {policy}>(o[t], o[t + 1], [=](long long i) {{ out[i] += 1; }});
    for_each<128, disjoint, {policy}>(shared, o[t], o[t + 1], [=](long long i, int k) {{ out[i] += k; }}, 3);
}}""")
    for number, policy in enumerate(scanning):
        body.append(f"""
__global__ void scan_{number}(const int* o, const float* v, float* out) {{
    const int t = blockIdx.x * 128 + threadIdx.x;
    const auto write = [=](int i, float prefix) {{ out[i] = prefix; }};
    const auto map = [=](int i) {{ return v[i]; }};
    out[t] += exclusive_scan<128, scanned, {policy}>(o[t], o[t + 1], map, plus{{}}, 0.0f, write);
    out[t] += any<128, disjoint, {policy}>(o[t], o[t + 1], [=](int i, float least) {{ return v[i] > least; }}, 3.0f);
}}""")
    return "\n".join(body)


@pytest.mark.nvcc
def test_all_calls_compile_for_the_oldest_target(tmp_path: Path) -> None:
    source = tmp_path / "calls.cu"
    blocks = ("block", "merge_path", "thread_warp_block", "automatic_block")
    source.write_text(calls((*WARP_POLICIES, *blocks), (*SCANNING, "thread_warp_block")))
    done = compiled(source, *UNREAD, "-arch=sm_75", "-o", str(tmp_path / "calls.ptx"))
    assert done.returncode == 0, done.stderr


@pytest.mark.nvcc
def test_warp_policies_use_no_local_memory_and_no_block_barrier(tmp_path: Path) -> None:
    source = tmp_path / "calls.cu"
    source.write_text(calls(WARP_POLICIES, SCANNING))
    done = compiled(source, *STRICT, "-arch=sm_90", "-o", str(tmp_path / "calls.ptx"))
    assert done.returncode == 0, done.stderr
    ptx = (tmp_path / "calls.ptx").read_text()
    assert ptx.count(".entry") == len(WARP_POLICIES) + len(SCANNING)
    assert "bar.warp.sync" in ptx
    assert not re.search(r"(?<!isspacep)\.local\b|__local_depot", ptx)
    assert not re.search(r"\bbar\.(?!warp)|\bbarrier\b", ptx)
    # A warp of one is no warp: nothing is moved without saying between whom.
    assert not re.search(r"\b(shfl|vote)\.(?!sync)", ptx)


@pytest.mark.nvcc
@pytest.mark.parametrize("kernels", ["warp_policies", "scan_and_any"])
def test_values_of_several_words_stay_in_registers(
    tmp_path_factory: pytest.TempPathFactory, kernels: str
) -> None:
    ptx = ptx_for_all_workers(kernels, tmp_path_factory, "-DPOLICY=cte::automatic")
    assert not re.search(r"(?<!isspacep)\.local\b|\bbar\.(?!warp)", ptx)


LARGE_BLOCK = """#include <cte.cuh>
struct wide { double a, b, c, d; };
struct add {
    __device__ wide operator()(const wide& x, const wide& y) const { return {x.a + y.a, x.b, x.c, x.d}; }
};
template <class Layout, class T, class Index, class Op>
__device__ T sum(const Index* ends, const T* values, Op op) {
    const auto map = [=](Index i) { return values[i]; };
    return cte::for_each_index<1024, Layout>(ends[threadIdx.x], ends[threadIdx.x + 1], map, op, T{});
}
__global__ void __launch_bounds__(1024) large_values(const long long* ends, const wide* values, wide* out) {
    out[threadIdx.x] = sum<cte::scanned>(ends, values, add{});
}
__global__ void __launch_bounds__(1024) several_ways(const int* ends, const double* values, double* out) {
    out[threadIdx.x] = sum<cte::scanned>(ends, values, cte::plus{}) + sum<cte::disjoint>(ends, values, cte::plus{});
}
template <class Policy>
__device__ double of_block(const int* ends, const double* values) {
    const auto map = [=](int i, int scale) { return values[i] * scale; };
    const int begin = ends[threadIdx.x], end = ends[threadIdx.x + 1];
    return cte::for_each_index<1024, cte::scanned, Policy>(begin, end, map, cte::plus{}, 0.0, begin);
}
#define OF_BLOCK(POLICY) \\
    __global__ void __launch_bounds__(1024) POLICY##_of_1024(const int* ends, const double* values, double* out) { \\
        out[threadIdx.x] = of_block<cte::POLICY>(ends, values); \\
    }
OF_BLOCK(block)
OF_BLOCK(merge_path)
OF_BLOCK(thread_warp_block)
OF_BLOCK(automatic_block)
"""


@pytest.mark.nvcc
def test_the_largest_blocks_have_shared_memory_for_large_values_and_several_ways(tmp_path: Path) -> None:
    source = tmp_path / "large.cu"
    source.write_text(LARGE_BLOCK)
    done = compiled(
        source, "-cubin", "-arch=sm_90", "-Werror", "all-warnings", "-o", str(tmp_path / "large.cubin")
    )
    assert done.returncode == 0, done.stderr


MANY_TYPES = """#include <cte.cuh>
template <int BlockDim, class T>
__device__ void sum(const int* ends, T* values) {
    const auto map = [=](int i) { return values[i]; };
    const int begin = ends[threadIdx.x], end = ends[threadIdx.x + 1];
    values[threadIdx.x] = cte::for_each_index<BlockDim, cte::scanned>(begin, end, map, cte::plus{}, T(0));
}
template <int BlockDim>
__global__ void __launch_bounds__(BlockDim) many(const int* e, float* a, int* b, unsigned* c, double* d, long long* f) {
    sum<BlockDim>(e, a);
    sum<BlockDim>(e, b);
    sum<BlockDim>(e, c);
    sum<BlockDim>(e, d);
    sum<BlockDim>(e, f);
}
template __global__ void many<256>(const int*, float*, int*, unsigned*, double*, long long*);
template __global__ void many<512>(const int*, float*, int*, unsigned*, double*, long long*);
"""


@pytest.mark.nvcc
def test_calls_with_values_of_one_size_share_their_shared_memory(tmp_path: Path) -> None:
    source = tmp_path / "many.cu"
    source.write_text(MANY_TYPES)
    done = compiled(source, "-cubin", "-arch=sm_90", "-Xptxas=-v", "-o", str(tmp_path / "many.cubin"))
    assert done.returncode == 0, done.stderr
    # Strips of values of 4 bytes and of 8 (larger in the larger block), the board and, by type, what pieces came to.
    told = dict(
        re.findall(r"Compiling entry function '_Z4manyILi(\d+)E.*?(\d+) bytes smem", done.stderr, re.S)
    )
    assert {block: int(size) for block, size in told.items()} == {
        "256": 2 * 8192 + 992 + 8 * 16 * (3 * 4 + 2 * 8),
        "512": 3 * 8192 + 1984 + 16 * 16 * (3 * 4 + 2 * 8),
    }


SETUP = """#include <cte.cuh>
using namespace cte;
struct copied { float x; __device__ copied() {} __device__ copied(const copied& o) : x(o.x) {} };
__device__ float add(float a, float b) { return a + b; }
struct map { __device__ float operator()(long long) const { return 1.0f; } };
struct plus_of { template <class A, class B> __device__ A operator()(A a, B) const { return a; } };
struct copies { __device__ copied operator()(int) const { return {}; } };
struct put { __device__ void operator()(int, float) const {} };
struct hit { __device__ bool operator()(int) const { return true; } };
__shared__ storage<64, char> chars;
__shared__ storage_for<64, warp_staged, float> staged_only;
"""
MISUSES = {
    "for_each_index<64, scanned, sub_warp<3>>(0, 1, map{}, plus_of{}, 0.0f)": "has 2, 4, 8, 16 or 32 lanes",
    "for_each_index<64, scanned, sub_warp<64>>(0, 1, map{}, plus_of{}, 0.0f)": "has 2, 4, 8, 16 or 32 lanes",
    "for_each_index<100, scanned, warp>(0, 1, map{}, plus_of{}, 0.0f)": "a multiple of 32, up to 1024",
    "for_each_index<2048, scanned, warp>(0, 1, map{}, plus_of{}, 0.0f)": "a multiple of 32, up to 1024",
    "any<48, scanned>(0, 1, hit{})": "a multiple of 32, up to 1024",
    "for_each_index<64, float>(0, 1, map{}, plus_of{}, 0.0f)": "cte::scanned or cte::disjoint",
    "for_each<64, warp>(0, 1, hit{})": "cte::scanned or cte::disjoint",
    "for_each_index<64, scanned>(short{0}, short{1}, map{}, plus_of{}, 0.0f)": "indices of 32 or 64 bits",
    "for_each_index<64, scanned>(0.0f, 1.0f, map{}, plus_of{}, 0.0f)": "indices of 32 or 64 bits",
    "for_each_index<64, scanned>(chars, 0, 1, copies{}, plus_of{}, 0.0)": "this cte::storage is too small",
    "for_each_index<32, scanned>(chars, 0, 1, map{}, plus_of{}, 'c')": "for blocks of another size",
    "for_each_index<64, scanned, warp>(staged_only, 0, 1, map{}, plus_of{}, 0.0f)": "for another policy",
    "for_each_index<64, scanned>(staged_only, 0, 1, map{}, plus_of{}, 0.0f)": "for another policy",
    "for_each_index<64, scanned, warp>(chars, 0, 1, map{}, plus_of{}, 'c')": "for another policy",
    "for_each_index<64, scanned, warp>(0, 1, copies{}, plus_of{}, copied{})": "make the type trivially copyable",
    "for_each<64, scanned, warp>(0, 1, [](int, copied) {}, copied{})": "make the type trivially copyable",
    "exclusive_scan<64, scanned, warp_staged>(0, 1, map{}, plus_of{}, 0.0f, put{})": "cte::exclusive_scan runs with",
    "exclusive_scan<64, scanned, block>(0, 1, map{}, plus_of{}, 0.0f, put{})": "cte::exclusive_scan runs with",
    "any<64, scanned, merge_path>(0, 1, hit{})": "cte::any runs with",
}


@pytest.mark.nvcc
def test_misuse_is_refused_in_sentences(tmp_path: Path) -> None:
    """Each for itself: of several, a compiler reports some."""
    for number, (call, sentence) in enumerate(MISUSES.items()):
        source = tmp_path / f"misuse_{number}.cu"
        source.write_text(f"{SETUP}__global__ void k() {{ {call}; }}\n")
        done = compiled(source, "-ptx", "-arch=sm_90", "-o", str(tmp_path / "misuse.ptx"))
        assert done.returncode != 0, call
        first, *more = done.stderr.split("): error")[1:]
        assert sentence in " ".join(first.split()), f"{call}: {done.stderr}"
        assert not more or "policy" not in sentence, f"{call}: {done.stderr}"


@pytest.mark.nvcc
def test_the_right_use_of_what_misuses_are_made_of_compiles(tmp_path: Path) -> None:
    source = tmp_path / "use.cu"
    source.write_text(
        f"{SETUP}__global__ void k() {{\n"
        "for_each_index<64, scanned>(chars, 0, 1, map{}, plus_of{}, 'c');\n"
        "for_each_index<64, scanned, warp_staged>(staged_only, 0, 1, map{}, plus_of{}, 0.0f);\n"
        "exclusive_scan<64, scanned, warp>(0, 1, map{}, plus_of{}, 0.0f, put{});\n"
        "for_each<64, scanned>(0u, 1u, hit{}); any<64, scanned>(0, 1, hit{}); }\n"
    )
    done = compiled(source, "-ptx", "-arch=sm_90", "-o", str(tmp_path / "use.ptx"))
    assert done.returncode == 0, done.stderr
