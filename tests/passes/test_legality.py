"""Each legality rule: an illegal loop that is refused with its code, and a legal twin that is rewritten and gives the
same results (DESIGN 6). The loops are in `rules`.
"""

from __future__ import annotations

import pytest

from cccopt.ccc.refusal import Refusal
from tests.passes.ptx_loops import LAUNCHES, arguments, module, uneven_arguments
from tests.passes.rules import COLLECTIVES, RULES
from tests.passes.running import compare, rewritten


@pytest.mark.parametrize("name", RULES)
def test_illegal_is_refused(name: str) -> None:
    rule = RULES[name]
    with pytest.raises(Refusal) as caught:
        rewritten(module(**rule.illegal))
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
    make, launches = (arguments, LAUNCHES[:1]) if convergent else (uneven_arguments, LAUNCHES)
    ran = compare(marked, "k", make, launches, seeds=())
    for counts in ran.values():
        assert counts["whole"]
        assert counts["push"]
