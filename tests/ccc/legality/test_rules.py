"""Each legality rule: an illegal loop that is refused with its code, and a legal twin that is rewritten and gives the
same results (DESIGN 6).

    illegal                                     legal
    for (...) {                                 for (...) {
      if (value % 4 == 0) out[i] = f(value);      if (value % 4 == 0) out[i] = f(value);
      other[i] = out[i];       // CCC036          x = a[i];               // nobody stores to a
    }                                           }

The twin differs from the illegal loop in what the rule is about, so that neither a rule that refuses all nor one that
refuses nothing passes. The loops are in `illegal_loops` and `illegal_code`.
"""

from __future__ import annotations

import pytest

from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.refusal import Refusal
from cccopt.ptx.parser import parse
from tests.ccc.legality.illegal_code import COLLECTIVES, RULES
from tests.kernels.ptx_loops import LAUNCHES, arguments, module, uneven_arguments
from tests.kernels.running import compare, rewritten


@pytest.mark.parametrize("name", RULES)
def test_illegal_is_refused(name: str) -> None:
    rule = RULES[name]
    with pytest.raises(Refusal) as caught:
        rewritten(module(**rule.illegal), "split")
    (said,) = caught.value.diagnostics
    assert said.code == rule.code
    assert said.place is not None
    assert (said.place.file, said.place.position.line) == ("loop.cu", 10 * rule.at)
    assert said.why
    assert said.help
    assert rule.says in said.help


@pytest.mark.parametrize("name", RULES)
def test_the_legal_twin_is_rewritten(name: str) -> None:
    rule = RULES[name]
    marked = module(**rule.legal)
    if not rule.runs:
        assert {r.outcome for r in rewritten(marked).regions} == {"rewritten"}
        return
    # What needs whole warps gets lanes that all make the same trips.
    convergent = any(f"{c} " in name for c in (*COLLECTIVES, "bar.warp.sync"))
    make, launches = (arguments, LAUNCHES[:1]) if convergent else (uneven_arguments, rule.launches)
    ran = compare(marked, "k", make, launches, seeds=())
    for counts in ran.values():
        assert counts["whole"]
        assert counts["push"]


SHARED_BY_ITERATIONS = (
    "an atomic in the path",
    "an atomic whose result is read",
    "two kinds of atomics",
    "one shared array",
    "local memory read behind",
    "local memory that one trip leaves to the next",
)
"""Loops that break the pragma's promise: their results depend on the order of iterations."""


@pytest.mark.parametrize("name", [name for name in RULES if name not in SHARED_BY_ITERATIONS])
def test_the_illegal_loop_keeps_its_results_in_the_carried_form(name: str) -> None:
    rule = RULES[name]
    marked = module(**rule.illegal)
    try:
        rewritten(marked, "carried")
    except Refusal:
        # Order within an iteration is no reason, but what decides on the next one is.
        assert rule.code != "CCC036" or name == "a bound read again in each trip"
        return
    make, launches = (uneven_arguments, rule.launches) if rule.runs else (arguments, LAUNCHES[:1])
    (ran,) = compare(marked, "k", make, launches, forms=("carried",), seeds=(1, 2)).values()
    assert ran["push"]


FUNCTION = """.version 9.0
.target sm_90
.address_size 64
.func work(.param .u32 n);
.func other(.param .u32 n)
{{ {called} ret; }}
.func work(.param .u32 n)
{{
    .reg .pred %p<9>; .reg .b32 %r<20>;
    ld.param.u32 %r1, [n]; mov.u32 %r5, 0;
    // ccc for.begin 1 line=10:3 file=loop.cu
LOOP:
    // ccc body.begin 1
    and.b32 %r7, %r5, 3; setp.ne.u32 %p1, %r7, 0; @%p1 bra JOIN;
    // ccc if.begin 2 line=20:3 file=loop.cu
    add.u32 %r9, %r5, 1;
    // ccc if.end 2
JOIN:
    // ccc body.end 1
    add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, %r1; @%p3 bra LOOP;
    // ccc for.end 1
    {{ .param .b32 x; st.param.b32 [x], 1; call.uni other, (x); }}
    ret;
}}
"""


def test_a_loop_in_a_function_that_can_call_itself_is_refused() -> None:
    call = "{ .param .b32 x; st.param.b32 [x], 1; call.uni work, (x); }"
    assert rewritten(parse(FUNCTION.format(called=""))).regions
    with pytest.raises(Refusal) as caught:
        rewritten(parse(FUNCTION.format(called=call)), "split")
    assert caught.value.diagnostics[0].code == "CCC047"


def test_a_path_of_a_function_may_name_a_variable_of_the_module() -> None:
    text = FUNCTION.format(called="").replace(".func", ".global .u32 g;\n.func", 1)
    stores = text.replace("// ccc if.end 2", "red.global.add.u32 [g], %r9;\n    // ccc if.end 2")
    assert {r.outcome for r in rewritten(parse(stores)).regions} == {"rewritten"}


def test_every_rule_has_an_illegal_loop() -> None:
    """Those of contexts, stacks and functions included; loops over blocks and recursion have tests of their own."""
    elsewhere = {f"CCC{number:03}" for number in (43, 47, 57, 60, 61, 62, 63, 65, 66, 67, 104)}
    rules = {value.code for value in vars(refusal).values() if isinstance(value, refusal.Rule)}
    assert rules == {rule.code for rule in RULES.values()} | elsewhere
