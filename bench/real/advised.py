"""What `cccopt advise` finds in the gallery's programs: `python -m bench.real.advised FOLDER CHECKOUTS`.

FOLDER is that of `python -m bench.real --build-only --out FOLDER`. Each program is built, without our pragmas, with its
candidates marked and counted, and run; the suggestions that are predicted to pay off or are worth measuring are written
into a fresh copy of the source. That copy is counted, too, and built twice: `advised` by `auto`, with these counts as a
profile, and `applied` by `always`. The first and second alternatives to the suggestions are built by `always` as
`second` and `third`. `python -m bench.real --run FOLDER --json RESULTS` runs all of them in turn with the others, and
`python -m bench.real.advised --table RESULTS` compares them with the annotations written by hand.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.real import result
from bench.real.counted import COUNTS, RECOUNTED, WORDS, built, cccopt, count_applied, count_candidates, fresh
from bench.real.measure import prepare
from bench.real.program import PROGRAMS, read_program, read_programs
from bench.real.recipe import Recipe, read_recipe
from bench.real.running import RECIPE
from bench.real.table import speedups

ADVISED, APPLIED = "advised", "applied"
ALTERNATIVES = {2: "second", 3: "third"}
"""The builds with alternatives, by the alternative's number."""
ADVICE = "advice.json"

_DROPPED = (".cu", ".cpp", ".c", ".o", ".a")


def advise(name: str, out: Path, checkouts: Sequence[Path]) -> str:
    """Build, count and advise on a program, and build what is advised; returns what went wrong, or nothing."""
    program, place = read_program(PROGRAMS / f"{name}.toml"), (out / name).absolute()
    recipe = read_recipe(place / RECIPE)
    if wrong := prepare(recipe, place / "inputs"):
        return wrong
    if wrong := count_candidates(program, recipe, checkouts, place):
        return wrong
    folder = fresh(program, recipe, checkouts, place / ADVISED)
    asked = ["advise", str(place / COUNTS), *_options((place / WORDS).read_text().split("\n"))]
    if wrong := cccopt([*asked, "--json", str(place / ADVICE)], folder, {}):
        return f"no advice: {wrong}"
    advice = json.loads((place / ADVICE).read_text())["kernels"]
    numbers = suggested(advice)
    if wrong := _applied(asked, numbers, folder):
        return wrong
    if wrong := count_applied(recipe, folder, place / ADVISED / "tree", place):
        return wrong
    shutil.copytree(place / ADVISED / "tree", place / APPLIED / "tree", dirs_exist_ok=True)
    found = result.read(out / name)
    found["advice"] = advice
    for variant, mode in ((ADVISED, f"auto --ccc-profile={place / RECOUNTED}"), (APPLIED, "always")):
        where = place / variant / "tree" / folder.relative_to(place / ADVISED / "tree")
        found["builds"][variant] = _build(recipe, where, place / variant, mode)
    for number, variant in ALTERNATIVES.items():
        if not any(len(advice[n - 1]["alternatives"]) > number - 2 for n in numbers):
            continue
        folder = fresh(program, recipe, checkouts, place / variant)
        if wrong := _applied(asked, alternatives(advice, number), folder):
            return wrong
        found["builds"][variant] = _build(recipe, folder, place / variant, "always")
    result.write(found, out)
    failed = [variant for variant, build in found["builds"].items() if not build["succeeded"]]
    return f"not built as {', '.join(failed)}" if failed else ""


def _applied(asked: Sequence[str], numbers: Sequence[int | str], folder: Path) -> str:
    """Write suggestions into the sources in a folder; returns what went wrong, or nothing."""
    if not numbers:
        return ""
    wrong = cccopt([*asked, "--apply", "--only", ",".join(map(str, numbers))], folder, {})
    return f"not applied: {wrong}" if wrong else ""


def _build(recipe: Recipe, folder: Path, place: Path, mode: str) -> dict[str, Any]:
    succeeded = built(recipe, folder, place, f'exec ccc-nvcc --ccc={mode} "$@"')
    return {"succeeded": succeeded, "seconds": 0.0}


def alternatives(advice: Sequence[dict[str, Any]], number: int) -> list[str]:
    """The alternatives with this number to what is `suggested`; for kernels without one, the suggestion itself."""
    return [
        f"{n}.{number}" if len(advice[n - 1]["alternatives"]) > number - 2 else str(n)
        for n in suggested(advice)
    ]


def suggested(advice: Sequence[dict[str, Any]]) -> list[int]:
    """The numbers of the suggestions that are predicted to pay off or are worth measuring, uncontradicted."""
    return [
        number
        for number, kernel in enumerate(advice, 1)
        if (kernel["pays"] or kernel["may_pay"])
        and all(judged["state"] != "contradicted" for judged in kernel["independence"])
    ]


def _options(words: Sequence[str]) -> list[str]:
    """The options of a compilation that change its code, as those of `cccopt advise`."""
    found: list[str] = []
    before = ""
    for word in words:
        kept = (
            word.startswith("-") and word not in ("-o", "-c") and not word.startswith(("-arch", "-l", "-L"))
        )
        if before in ("-Xcompiler", "-I", "-D", "-Xcicc", "-x") or (kept and not word.endswith(_DROPPED)):
            found.append(f"--nvcc={word}")
        before = word
    return list(found)


def table(results: Sequence[dict[str, Any]]) -> str:
    """Each kernel with the pragmas that were written by hand and those advised, and their times, as Markdown."""
    lines = [
        "| program | kernel | by hand | advised | predicted | plain/always | plain/applied | plain/advised |"
        " alternatives | plain/second | plain/third |",
        "|" + " --- |" * 11,
    ]
    for found in results:
        advice = {_short(a["shown"]): a for a in found.get("advice", ())}
        gains = [speedups(found, variant) for variant in ("always", APPLIED, ADVISED)]
        others = [speedups(found, variant) for variant in ALTERNATIVES.values()]
        for kernel in next(iter(found["kernels"].values()), ()):
            name = kernel["kernel"]
            said = advice.get(name, {})
            hand = ", ".join(f"{a['pragma'].split(' block')[0]} @{a['line']}" for a in kernel["annotations"])
            besides = "; ".join(f"{_pragmas(a)} ({a['gain']:.2f})" for a in said.get("alternatives", ()))
            gain = said.get("gain")
            cells = (
                found["program"],
                name,
                hand,
                f"{_word(said)}{_pragmas(said)}" if said else "-",
                f"{gain:.2f}" if gain else "-",
                *(_times(each, name) for each in gains),
                besides or "-",
                *(_times(each, name) for each in others),
            )
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _pragmas(said: dict[str, Any]) -> str:
    return ", ".join(f"{p['pragma'].removeprefix('#pragma ccc ')} @{p['line']}" for p in said["pragmas"])


def _word(said: dict[str, Any]) -> str:
    """What is to be done with a suggestion, nothing where it pays off."""
    if said["pays"]:
        return ""
    return "measure: " if said["may_pay"] else "leave it: "


def _times(gains: dict[str, float], name: str) -> str:
    if name in gains:
        return f"{gains[name]:.2f}"
    return ", ".join(f"{gain:.2f} ({what})" for what, gain in gains.items()) or "-"


def _short(shown: str) -> str:
    """A kernel's name without namespaces, template arguments and parameters."""
    return shown.partition("(")[0].partition("<")[0].split()[-1].rpartition(":")[2]


def main() -> int:
    """Advise on all programs of a folder, or print the table of their results."""
    options = argparse.ArgumentParser(
        prog="python -m bench.real.advised", description=(__doc__ or "").splitlines()[0]
    )
    options.add_argument(
        "out", type=Path, metavar="FOLDER", help="the folder of builds, or with --table the results"
    )
    options.add_argument("checkouts", nargs="*", type=Path, help="folders with the checkouts")
    options.add_argument("--only", action="append", default=[], metavar="NAME", help="this program alone")
    options.add_argument("--jobs", type=int, default=1, help="programs at a time (default: %(default)s)")
    options.add_argument("--table", action="store_true", help="print the table of results")
    given = options.parse_args()
    if given.table:
        print(table(json.loads(given.out.read_text())))
        return 0
    names = [p.name for p in read_programs(tuple(given.only)) if (given.out / p.name / result.FILE).exists()]
    with ThreadPoolExecutor(given.jobs) as pool:
        for name, wrong in zip(
            names, pool.map(lambda n: advise(n, given.out, given.checkouts), names), strict=True
        ):
            print(f"{name}: {wrong or 'advised'}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
