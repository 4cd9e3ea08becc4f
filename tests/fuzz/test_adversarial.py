"""What a random generator does not reach: odd types, shapes of control flow, calls, local and shared memory."""

from __future__ import annotations

from contextlib import suppress

import pytest

from cccopt.ccc.outcome.refusal import Refusal
from cccopt.passes.pipeline import Options
from cccopt.passes.pipeline import run as rewrite_module
from tests.fuzz.judge import alone, judge
from tests.fuzz.test_regressions import compiled, items
from tests.kernels.running import Launch

pytestmark = pytest.mark.nvcc

REFUSED = {
    "recursive": "CCC047",
    "tail_two_paths": "CCC034",
    "tail_then_carry": "CCC035",
    "if_then_break": "CCC032",
    "wrap8": "CCC037",
}
REWRITTEN = (
    "many_predicates",
    "k_post",
    "uniform_differs",
    "always_true_dyn",
    "scope_branch",
    "scope_beside",
    "never",
    "down",
    "called_in_both",
    "lambda",
    "instances",
    "atomics_used",
    "jump_table",
    "switch_blocks",
    "strength",
    "vectors",
    "live_after_loop",
    "goto_out",
    "nested_three",
    "identity",
    "warp_id",
    "either_pointer",
    "wide",
    "tail_of_atomics",
    "called_twice",
    "called_in_path",
    "divergent_branch",
    "two_loops",
    "last_is_break",
    "opaque_scope",
    "do_while_loop",
    "sin_both",
    "big_context",
)
LAUNCHES = (Launch(1, 64, 250), Launch(1, 33, 60))


@pytest.mark.parametrize("kernel", REWRITTEN)
def test_rewritten_rightly(kernel: str) -> None:
    own = alone(compiled("adversarial"), kernel)
    verdict = judge(own, kernel, items, LAUNCHES, forms=("split", "idle lanes"))
    assert not verdict.wrong
    assert all(counts["whole"] for counts in verdict.ran.values())


def test_an_empty_path_is_left_alone() -> None:
    made = rewrite_module(alone(compiled("adversarial"), "empty_path").marked, Options(mode="always"))
    assert [remark.code for remark in made.remarks] == ["CCC054"]
    assert {region.outcome for region in made.regions} == {"declined"}


@pytest.mark.parametrize(("kernel", "code"), REFUSED.items())
def test_refused(kernel: str, code: str) -> None:
    with pytest.raises(Refusal) as caught:
        rewrite_module(alone(compiled("adversarial"), kernel).marked, Options(mode="always", form="split"))
    assert caught.value.diagnostics[0].code == code


@pytest.mark.parametrize("kernel", REFUSED)
def test_what_is_refused_for_a_path_alone_is_right_in_the_carried_form(kernel: str) -> None:
    """Or refused as well."""
    with suppress(Refusal):
        assert not judge(
            alone(compiled("adversarial"), kernel), kernel, items, LAUNCHES, forms=("carried",)
        ).wrong
