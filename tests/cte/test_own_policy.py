"""A policy that keeps the contract of cte/policy.cuh works in all calls; a breach of it is refused in a sentence."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from cccopt.emulator import Program
from tests.cte import test_policies
from tests.cte.compiling import compiled, ptx_of_kernels
from tests.cte.support import ALL
from tests.test_docs import BLOCKS

pytestmark = pytest.mark.nvcc


@cache
def documented_policy() -> str:
    """The policy of docs/cte.md, without the kernel that uses it."""
    (text,) = (b.text for b in BLOCKS if b.page.name == "cte.md" and "struct owner_reduces" in b.text)
    return text.partition('extern "C"')[0]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    place = tmp_path_factory.mktemp("ptx")
    (place / "policy.cuh").write_text(f"#pragma once\n{documented_policy()}")
    options = ("-DPOLICY=owner_reduces", "-include", str(place / "policy.cuh"))
    return Program(ptx_of_kernels("warp_policies", place, *options), "owner_reduces")


@pytest.mark.parametrize("kernel", test_policies.REDUCTIONS)
def test_its_reductions_keep_the_order(program: Program, kernel: str) -> None:
    test_policies.reduce(program, kernel, ALL)


@pytest.mark.parametrize("kernel", test_policies.VISITS)
def test_it_runs_every_fine_task_once(program: Program, kernel: str) -> None:
    test_policies.visit(program, kernel, ALL)


def test_calls_of_several_types_use_its_memory_in_turn(program: Program) -> None:
    test_policies.test_calls_share_a_storage_of_the_callers(lambda _: program, "owner_reduces")


@pytest.mark.parametrize(
    ("stays", "calls"), [(test_policies.EVERYONE, 0xFFFFFFFE), (0x0F0F3C01, test_policies.EVERYONE)]
)
def test_lanes_of_a_warp_that_is_not_whole_run_their_own_tasks(
    program: Program, stays: int, calls: int
) -> None:
    helped = test_policies.partly(
        lambda _: program, "owner_reduces", 64, test_policies.EVERYONE, test_policies.EVERYONE
    )
    assert helped[29] == 32
    assert (test_policies.partly(lambda _: program, "owner_reduces", 64, stays, calls) == 0).all()


POLICY = """#include <cte.cuh>
struct broken {
    static constexpr bool whole_block = false;
    template <int BlockDim, class T, class... Call>
    struct temp {};
    template <int BlockDim, class Layout, class Temp, class T, class Index, class Map, class Reduce, class... D>
    __device__ static T reduce(Temp&, Index begin, Index end, Map& map, Reduce& op, T init, const D&... descriptors) {
        for (Index i = begin; i < end; ++i) init = op(init, map(i, descriptors...));
        return init;
    }
};
__global__ void sums(const int* ends, float* out) {
    const auto map = [=](int i) { return out[i]; };
    out[0] = cte::for_each_index<64, cte::scanned, broken>(ends[0], ends[1], map, cte::plus{}, 0.0f);
    cte::for_each<64, cte::scanned, broken>(ends[0], ends[1], [=](int i) { out[i] = 1; });
}
"""
BREACHES = {
    "does not say who calls": (
        "static constexpr bool whole_block = false;",
        "",
        "member static constexpr bool whole_block",
    ),
    "says it in a number": (
        "bool whole_block = false",
        "int whole_block = 0",
        "member static constexpr bool whole_block",
    ),
    "declares no memory": (
        "struct temp {};",
        "struct memory {};",
        "member template temp<int BlockDim, class T, class... Call>",
    ),
    "constructs its memory": (
        "struct temp {};",
        "struct temp { int n; __device__ temp() : n(1) {} };",
        "must not have a constructor or destructor of its own",
    ),
    "needs more in a call": (
        "struct temp {};",
        "struct temp { int n[1 + sizeof...(Call)]; };",
        "must have at least the size and the alignment of that of any call",
    ),
    "has no reduction": ("static T reduce(", "static T run(", "static T reduce(temp&"),
    "returns something else": ("static T reduce(", "static T* reduce(", "static T reduce(temp&"),
    "takes no descriptors": (
        "T init, const D&... descriptors",
        "T init, int, const D&... descriptors",
        "static T reduce(temp&",
    ),
}


def test_what_breaches_are_made_of_compiles(tmp_path: Path) -> None:
    (tmp_path / "policy.cu").write_text(POLICY)
    done = compiled(
        tmp_path / "policy.cu",
        "-ptx",
        "-Werror",
        "all-warnings",
        "-arch=sm_90",
        "-o",
        str(tmp_path / "o.ptx"),
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("breach", BREACHES)
def test_a_breach_of_the_contract_is_refused_in_a_sentence(breach: str, tmp_path: Path) -> None:
    """It is what nvcc says first, and says alone."""
    old, new, sentence = BREACHES[breach]
    assert POLICY.count(old) == 1
    (tmp_path / "policy.cu").write_text(POLICY.replace(old, new))
    done = compiled(tmp_path / "policy.cu", "-ptx", "-arch=sm_90", "-o", str(tmp_path / "o.ptx"))
    assert done.returncode != 0
    errors = re.findall(r"error: (.*)", done.stderr)
    assert errors
    for error in errors:
        assert sentence in error, done.stderr
        assert "cte/policy.cuh" in error
