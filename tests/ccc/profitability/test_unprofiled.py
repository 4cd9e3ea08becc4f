"""What `auto` rewrites without a profile."""

from __future__ import annotations

import pytest

from cccopt.ccc.outcome.choices import Mode, Outcome
from cccopt.ccc.profitability.unprofiled import UNKNOWN
from cccopt.passes.pipeline import Options, run
from tests.fuzz.judge import alone, compile_pair

pytestmark = pytest.mark.nvcc

LOOP = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)"
WORK = "for (int k = 0; k < 40; k++) x = __umulhi(x, x | 1u) ^ x * 1664525u;"
SHORT = "for (int k = first[i]; k < first[i + 1]; k++) atomicAdd(b + to[k], 1u);"
ROW = (
    "for (int k = first[i]; k < first[i + 1]; k++)"
    " { unsigned y = to[k]; for (int q = 0; q < 9; ++q) y = __umulhi(y, y | 1u) ^ y; atomicAdd(b + y % 99, y); }"
)
ENDED = "while (x > 1) { x = x % 2 ? 3 * x + 1 : x / 2; ++steps; }"

DECLINED = {
    "a path": f"#pragma ccc if\nif (x % 3 == 0) {{ {WORK} a[i] = x; }}",
    "paths": f"#pragma ccc if\nif (x % 3 == 0) {{ {WORK} a[i] = x; }} else\n#pragma ccc if\n"
    f"if (x % 5 == 0) {{ {WORK} a[i] = x + 1; }}",
    "a counted loop that costs less than to expand it": f"#pragma ccc for variable\n{SHORT}",
    "a loop that data end": f"unsigned steps = 0;\n#pragma ccc while\n{ENDED}\na[i] = steps;",
    "a loop that data end in a path": f"unsigned steps = 0;\n#pragma ccc if\nif (x % 3 == 0) {{ {WORK}\n"
    f"#pragma ccc while\n{ENDED}\na[i] = steps; }}",
}
REWRITTEN = {
    "a counted loop": (f"#pragma ccc for variable\n{ROW}", {"for", "for variable"}),
    "a counted loop in a path": (
        f"#pragma ccc if\nif (x % 3 == 0) {{ {WORK} a[i] = x;\n#pragma ccc for variable\n{ROW}\n}}",
        {"for", "if", "for variable"},
    ),
    "a counted loop beside a path": (
        f"#pragma ccc if\nif (x % 3 == 0) a[i] = x ^ 1u;\n#pragma ccc for variable\n{ROW}",
        {"for", "for variable"},
    ),
}


def outcomes(body: str, mode: Mode = Mode.AUTO) -> tuple[dict[str, Outcome], str]:
    """What becomes of each kind of region, and the remarks."""
    text = (
        'extern "C" __global__ void __launch_bounds__(128) NAME(int n, unsigned* __restrict__ a,'
        " unsigned* __restrict__ b, const int* __restrict__ first, const int* __restrict__ to) {\n"
        f"#pragma ccc for\n{LOOP} {{\nunsigned x = a[i];\n{body}\n}}\n}}\n"
    )
    pair = compile_pair(text.replace("NAME", "k"))
    result = run(alone(pair, "k").marked, Options(mode=mode))
    return {r.kind: r.outcome for r in result.regions}, " ".join(r.why for r in result.remarks)


@pytest.mark.parametrize("shape", DECLINED)
def test_what_may_lose_is_left_alone(shape: str) -> None:
    found, said = outcomes(DECLINED[shape])
    assert set(found.values()) == {Outcome.DECLINED}
    assert UNKNOWN in said
    assert set(outcomes(DECLINED[shape], Mode.ALWAYS)[0].values()) == {Outcome.REWRITTEN}


@pytest.mark.parametrize("shape", REWRITTEN)
def test_expanded_loops_are_rewritten_with_the_paths_around_them(shape: str) -> None:
    body, rewritten = REWRITTEN[shape]
    found, _ = outcomes(body)
    assert {kind for kind, outcome in found.items() if outcome is Outcome.REWRITTEN} == rewritten
