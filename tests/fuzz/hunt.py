"""Hunts for wrong rewrites: `python -m tests.fuzz.hunt FIRST LAST [--keep DIR]` judges files of random kernels.

Prints one line for each kernel that goes wrong and a table of outcomes; ``--keep`` writes the text of each culprit.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from pathlib import Path

from cccopt.ccc.refusal import Refusal
from cccopt.diagnostic import CccError
from tests.fuzz.cuda_kernels import arguments, source
from tests.fuzz.judge import alone, compile_pair, judge
from tests.passes.running import Launch

LAUNCHES = (
    Launch(1, 64, 300),
    Launch(2, 33, 200),
    Launch(1, (16, 5), 150),
    Launch(1, 256, 700),
    Launch(1, 32, 33),
    Launch(3, 96, 500),
    Launch(1, (48, 2), 200),
)
ODD = (Launch(1, 64, 0), Launch(1, 32, 1), Launch(2, 32, 31), Launch(1, 1, 5))
CHOICES = (("auto",), ("split",), ("idle lanes",), ("idle lanes",))
TARGETS = (
    ("sm_90", ()),
    ("sm_90", ()),
    ("sm_100", ()),
    ("sm_75", ()),
    ("sm_90", ("-lineinfo",)),
    ("sm_90", ("-Xcicc", "-O1")),
    ("sm_100", ("-lineinfo",)),
)


def hunt(seed: int, kernels: int) -> list[tuple[str, str, str, str]]:
    """(kernel, outcome, detail, text) for each kernel of one file."""
    draw = random.Random(seed)
    arch, options = draw.choice(TARGETS)
    text = source(seed, kernels)
    pair = compile_pair(text, arch, ("-fmad=false", *options))
    found = []
    for place in range(kernels):
        name = f"k{place}"
        own = alone(pair, name)
        launches = (draw.choice(LAUNCHES), draw.choice(ODD))
        forms = draw.choice(CHOICES)
        try:
            verdict = judge(
                own, name, arguments, launches, forms=forms, seeds=(draw.randrange(99),), assembler=arch
            )
            outcome, detail = ("WRONG", verdict.wrong) if verdict.wrong else ("ok", "")
            if not verdict.wrong and any(c.get("take") and c.get("drain") for c in verdict.ran.values()):
                outcome = "ok, take and drain ran"
        except Refusal as problem:
            outcome, detail = problem.diagnostics[0].code, problem.diagnostics[0].message
        except CccError as problem:
            outcome, detail = f"ERROR {problem.diagnostics[0].code}", problem.diagnostics[0].message
        except (ValueError, KeyError, IndexError, AssertionError, RecursionError) as problem:
            outcome, detail = "CRASH", repr(problem)
        found.append((name, outcome, f"{arch} {' '.join(options)} {detail}", text))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--kernels", type=int, default=6)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    outcomes: Counter[str] = Counter()
    for seed in range(options.first, options.last):
        try:
            results = hunt(seed, options.kernels)
        except (AssertionError, CccError) as problem:
            print(seed, "INVALID", str(problem)[:400], flush=True)
            continue
        for name, outcome, detail, text in results:
            outcomes[outcome] += 1
            if not outcome.startswith("ok"):
                print(seed, name, outcome, detail[:200], flush=True)
            if outcome.split()[0] in ("WRONG", "ERROR", "CRASH") and options.keep is not None:
                (options.keep / f"{seed}_{name}.cu").write_text(text)
        if seed % 10 == 9:
            print("...", seed, dict(outcomes), flush=True)
    print(dict(outcomes))


if __name__ == "__main__":
    main()
