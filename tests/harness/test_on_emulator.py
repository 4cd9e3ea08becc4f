"""The emulator's runner: what setup fills, what is counted, what is shared and what is checked."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pytest

from cccopt.diagnostic import CccError
from cccopt.harness.choices import BuildName
from cccopt.harness.on_emulator import run_on_emulator
from cccopt.harness.result import BuildResult
from cccopt.harness.workload import FULL, Array, Inputs, Launch, Sample, State, Workload, Zeros

HEADER = ".version 7.0\n.target sm_75\n.address_size 64\n"


def kernel(name: str, operation: str) -> str:
    """A kernel that stores ``operation`` of the thread's `from` into its `to`."""
    return f"""
.visible .entry {name}(.param .u64 from, .param .u64 to)
{{
  .reg .b32 %r<3>;
  .reg .b64 %rd<4>;
  mov.u32 %r1, %tid.x;
  ld.param.u64 %rd1, [from];
  ld.param.u64 %rd2, [to];
  mad.wide.u32 %rd1, %r1, 4, %rd1;
  mad.wide.u32 %rd2, %r1, 4, %rd2;
  ld.global.u32 %r2, [%rd1];
  {operation}
  st.global.u32 [%rd2], %r2;
  ret;
}}
"""


FILL = kernel("fill", "add.s32 %r2, %r1, 5;")
SPOIL = kernel("spoil", "add.s32 %r2, %r2, 1;")
BUILDS = {
    BuildName.PLAIN: HEADER + FILL + SPOIL + kernel("twice", "shl.b32 %r2, %r2, 1;"),
    BuildName.CCC: HEADER + kernel("twice", "add.s32 %r2, %r2, %r2;"),
    "wrong": HEADER + kernel("twice", "add.s32 %r2, %r2, 1;"),
    "lacks": HEADER + FILL,
}


class Twice:
    SIZES = ("small", FULL)
    RESULTS: tuple[str, ...] = ("doubled",)

    def inputs(self, size: str, seed: int) -> Inputs:
        return {"numbers": Zeros(32, np.int32), "doubled": Zeros(32, np.int32), "factor": 2}

    def setup(self, state: State) -> Generator[Launch, None, None]:
        state["factor"] = 2.0
        yield Launch("fill", (1, 1, 1), (32, 1, 1), (state["numbers"], state["numbers"]))

    def launches(self, state: State) -> Generator[Launch, None, None]:
        yield Launch("twice", (1, 1, 1), (32, 1, 1), (state["numbers"], state["doubled"]))
        # What the plain build alone has, and what only it may run.
        yield Launch("fill", (1, 1, 1), (1, 1, 1), (state["numbers"], state["doubled"]), timed=False)

    def reference(self, inputs: Mapping[str, Any]) -> Mapping[str, Array]:
        assert inputs["factor"] == 2.0
        doubled = 2 * inputs["numbers"]
        doubled[0] = 5
        return {"doubled": doubled}

    def check(self, result: Mapping[str, Any], expected: Mapping[str, Array]) -> str:
        assert "numbers" not in result
        wrong = int((result["doubled"] != expected["doubled"]).sum())
        return f"{wrong} are not doubled" if wrong else ""


def sample(workload: object) -> Sample:
    return Sample("twice", Path("twice.cu"), cast(Workload, workload))


@pytest.mark.parametrize("size", ["small", FULL])
def test_setup_and_launches_that_are_not_timed_are_run_by_the_plain_build_and_not_counted(size: str) -> None:
    ours = sample(Twice())
    builds = {name: BUILDS[name] for name in (BuildName.PLAIN, BuildName.CCC, "wrong")}
    plain, ccc, wrong = run_on_emulator(ours.instance(size, 1), builds)
    # The kernel has nine instructions, and one warp runs it once.
    assert plain.counts.warp_instructions == ccc.counts.warp_instructions == 9
    assert len(plain.launches) == 1
    assert (plain.wrong, ccc.wrong) == ("", "")
    # numbers are i + 5: i + 6 is twice that nowhere; cell 0 is written by the plain build.
    assert wrong.wrong == "31 are not doubled"


def test_an_array_that_is_not_in_results_cannot_be_written() -> None:
    class Spoils(Twice):
        def launches(self, state: State) -> Generator[Launch, None, None]:
            yield Launch("spoil", (1, 1, 1), (32, 1, 1), (state["numbers"], state["numbers"]))

    ours = sample(Spoils())
    with pytest.raises(CccError, match="read-only"):
        run_on_emulator(ours.instance("small", 1), {BuildName.PLAIN: BUILDS[BuildName.PLAIN]})


@pytest.mark.parametrize("attribute", ["RESULTS", "SCRATCH"])
def test_results_that_are_no_arrays_are_an_error(attribute: str) -> None:
    workload = Twice()
    setattr(workload, attribute, ("factor",))
    ours = sample(workload)
    with pytest.raises(CccError, match=rf"CCC090.*`factor`.*`{attribute}`(?s:.*)`numbers`, `doubled`"):
        run_on_emulator(ours.instance("small", 1), {BuildName.PLAIN: BUILDS[BuildName.PLAIN]})


@pytest.mark.parametrize("size", ["small", FULL])
def test_scratch_can_be_written_and_is_looked_at_unless_it_is_large(size: str) -> None:
    class Spoils(Twice):
        SCRATCH = ("numbers",)
        seen: ClassVar[list[set[str]]] = []

        def launches(self, state: State) -> Generator[Launch, None, None]:
            yield from super().launches(state)
            yield Launch("spoil", (1, 1, 1), (32, 1, 1), (state["numbers"], state["numbers"]), timed=False)

        def check(self, result: Mapping[str, Any], expected: Mapping[str, Array]) -> str:
            self.seen.append({name for name in result if name != "factor"})
            if "numbers" in result and (result["numbers"] != np.arange(32) + 6).any():
                return f"scratch holds {result['numbers'][:2]}"
            return super().check({name: result[name] for name in self.RESULTS}, expected)

    ours = sample(Spoils())
    # Each run begins with what setup left there: what one adds to it no other sees.
    builds = {name: BUILDS[name] for name in (BuildName.PLAIN, BuildName.CCC)}
    assert [r.wrong for r in run_on_emulator(ours.instance(size, 1), builds)] == ["", ""]
    assert Spoils.seen == [{"doubled"} if size == FULL else {"doubled", "numbers"}] * 2


def test_a_build_that_fails_ends_the_run_or_is_told() -> None:
    ours = sample(Twice())
    builds = {name: BUILDS[name] for name in (BuildName.PLAIN, "lacks", BuildName.CCC)}
    with pytest.raises(CccError, match="no kernel `twice`"):
        run_on_emulator(ours.instance("small", 1), builds)
    plain, lacks, ccc = run_on_emulator(
        ours.instance("small", 1),
        builds,
        on_failure=lambda name, problem: BuildResult(name, (), (), problem.diagnostics[0].message),
    )
    assert (plain.wrong, ccc.wrong) == ("", "")
    assert "no kernel `twice`" in lacks.wrong
