"""Lanes that trap in a path, in a loop of tasks or after both: what they run first reads values of their task."""

from __future__ import annotations

import numpy as np
import pytest

from cccopt.emulator import EmulatorError, Program
from cccopt.passes.pipeline import Options, Refusal
from cccopt.passes.pipeline import run as rewrite_module
from cccopt.ptx.ir import Module
from tests.kernels.running import compiled, only

pytestmark = pytest.mark.nvcc
N = 300
PLACE = 77
TRAPPING = {"in_path": (1, 3), "in_tasks": (33,), "after": (1, 14), "beside": (1, 14), "shared_trap": (3, 14)}
"""Values of an element for which its iteration traps, by kernel."""
FORMS = {
    "in_path": ("split", "idle lanes", "carried", "in lane"),
    "in_tasks": ("split", "idle lanes", "carried", "in lane"),
    "after": ("carried", "in lane"),
    "beside": ("split", "idle lanes", "carried", "in lane"),
    "shared_trap": ("carried", "in lane"),
}


def _run(module: Module, kernel: str, value: int, shuffle: int | None) -> tuple[list[int], str]:
    """What is stored, and the message of the trap."""
    data = (np.arange(N, dtype=np.uint32) * 193) | 1024
    data[PLACE] = value
    out = np.zeros(N, np.uint32)
    try:
        Program(module).launch(kernel, 1, 64, [N, data, out], shuffle=shuffle)
    except EmulatorError as problem:
        (said,) = problem.diagnostics
        return [], f"{said.code} {said.message.partition(' in thread')[0]}"
    return out.tolist(), ""


@pytest.mark.parametrize(
    ("kernel", "form"), [(kernel, form) for kernel, forms in FORMS.items() for form in forms]
)
def test_lanes_trap_as_before(kernel: str, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    marked = only(compiled("traps", "sm_90"), kernel)
    plain = rewrite_module(marked, Options("off")).module
    result = rewrite_module(marked, Options("always", form=form))
    assert {region.form for region in result.regions} == {form}
    for value in (*TRAPPING[kernel], 4):
        expected = _run(plain, kernel, value, None), capsys.readouterr().err
        assert bool(expected[0][1]) is (value != 4)
        for shuffle in (None, 1):
            assert (_run(result.module, kernel, value, shuffle), capsys.readouterr().err) == expected


def test_a_trap_that_others_share_does_not_print_values_of_another_iteration() -> None:
    with pytest.raises(Refusal, match="CCC032"):
        rewrite_module(only(compiled("traps", "sm_90"), "shared_trap"), Options("always", form="split"))
