"""Active lanes by line: ours, of an instrumented program, against Nsight Compute's, of the plain one.

Both are put on the lines of the plain cubin's own table (`cccopt.profiling.machine_code`), as Nsight Compute does. Its
counts are by machine instruction: of one under a predicate the lanes that are on are taken, of all others the active
ones. Which these are, the machine code says before anything is counted.

Ours are taken two ways: *PTX*, as `cccopt profile` shows them, and *machine*, weighted by the plain cubin's
instructions (`cccopt.profiling.machine_lines`). *Active* holds the active lanes of the latter against all active lanes
of Nsight Compute, predicated or not.

Efficiencies are compared and not counts: Nsight Compute sees the first launches of each kernel, we see all. So programs
are to be run with few launches (`once` in a recipe), or with launches that do the same.
"""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.profile.ncu import Ncu, Profiled
from bench.profile.programs import COUNTED, PLAIN, Built, command_of, environment_of, observed
from cccopt.diagnostic import CccError
from cccopt.passes.counting.layout import Layout, of_bytes
from cccopt.profiling.counts import FunctionCounts, by_name, counts_of, functions_of
from cccopt.profiling.machine_code import MachineInstruction, machine_code
from cccopt.profiling.machine_lines import Origins, machine_lines, ptx_origins
from cccopt.profiling.names import shown
from cccopt.profiling.running import ProgramRun

NEAR = (2.0, 5.0)
WAYS = ("ptx", "machine", "active")
TARGETS = (0.80, 0.95)
APART = 0.10

Place = tuple[str, int]


@dataclass(frozen=True)
class Code:
    """The machine code of a kernel in a cubin of the plain build, and what its PTX is (`ptx_origins`)."""

    instructions: tuple[MachineInstruction, ...]
    origins: Origins
    sizes: Mapping[str, int]


@dataclass(frozen=True)
class Counted:
    """What we counted of a kernel, and ``others`` of its unit, all by name."""

    layout: Layout
    counts: FunctionCounts
    launches: int | None
    others: Mapping[str, FunctionCounts] = field(default_factory=dict)


def compared(built: Built, ncu: Ncu, launches: int, limit: float) -> dict[str, Any]:
    """Compare all kernels of a program that both have counted."""
    result: dict[str, Any] = {"program": built.name, "kernels": [], "why": ""}
    run, seen = observed(built, COUNTED, counted=True, limit=limit, once=True)
    if run.status or not seen.units:
        return {
            **result,
            "why": f"the counted run: status {run.status}, {len(seen.units)} units {seen.lost[:1]}",
        }
    with tempfile.TemporaryDirectory(prefix="cccopt-") as name:
        place = Path(name)
        command = command_of(built.recipe, once=True)
        theirs = ncu.profile(command, built.folders[PLAIN], environment_of(built), place, launches, limit)
    if theirs.why:
        return {**result, "why": theirs.why}
    return {**result, "kernels": kernels(counted_in(seen), codes_in(built.keep), theirs.kernels)}


def kernels(
    ours: Mapping[str, Counted], codes: Mapping[str, Sequence[Code]], theirs: Mapping[str, Profiled]
) -> list[dict[str, Any]]:
    """Both sides' efficiencies of kernels that we counted, or why they cannot be compared."""
    found = []
    for name, counted in ours.items():
        candidates = codes.get(name, [])
        profiled = profile_of(name, candidates, theirs)
        if profiled is None:
            found.append({"kernel": shown(name), "why": _missing(candidates, theirs)})
        else:
            found.append(kernel(name, counted, *profiled))
    return found


def _missing(codes: Sequence[Code], theirs: Mapping[str, Profiled]) -> str:
    if not codes:
        return "not in the cubins of the plain build"
    return f"not in ncu's profile, which has {', '.join(name[:40] for name in theirs)[:120]}"


def counted_in(seen: ProgramRun) -> dict[str, Counted]:
    """Kernels that ran, by name; of one name in several files the one with most warps."""
    found: dict[str, Counted] = {}
    for unit in seen.units:
        layout = of_bytes(unit.layout)
        all_counts = by_name(counts_of(layout, unit.counts))
        for counts in all_counts.values():
            name = counts.layout.name
            before = found.get(name)
            if (
                not counts.layout.kernel
                or not warps_of(counts)
                or (before and warps_of(before.counts) > warps_of(counts))
            ):
                continue
            launched = [time.launches for time in seen.times if time.name == name and time.counted]
            found[name] = Counted(layout, counts, sum(launched) if launched else None, all_counts)
    return found


def warps_of(counts: FunctionCounts) -> int:
    """How many warps all units of a function ran, summed."""
    return sum(unit.warps for unit in counts.units)


def codes_in(keep: Path) -> dict[str, list[Code]]:
    """The functions in the cubins of a folder, by name."""
    found: dict[str, list[Code]] = defaultdict(list)
    for path in sorted(keep.rglob("*.cubin")):
        try:
            code = machine_code(path.read_bytes())
            origins, sizes = ptx_origins(code) if code.ptx.strip() else ({}, {})
        except (ValueError, CccError):
            continue
        for name, instructions in code.functions.items():
            found[name].append(Code(instructions, origins, sizes))
    return found


def profile_of(
    name: str, codes: Sequence[Code], theirs: Mapping[str, Profiled]
) -> tuple[Code, Profiled] | None:
    """The profile of a kernel and the code that was profiled: by its name, as far as versions of ncu agree on that."""
    full, base = _plain_name(shown(name)), _base_name(shown(name))
    ranked = (
        [each for each in theirs if each == name],
        [each for each in theirs if _plain_name(each) == full],
        [each for each in theirs if _base_name(each) == base],
    )
    for names in ranked:
        for each in names:
            for code in codes:
                if _same(code, theirs[each]):
                    return code, theirs[each]
    return None


def _same(code: Code, profiled: Profiled) -> bool:
    """Whether they are the same code: as many instructions, but for what stands behind the end, guarded in the same
    places. (Functions that a kernel calls may follow it on the page.)
    """
    if len(profiled.instructions) < len(code.instructions):
        return False
    pairs = list(zip(code.instructions, profiled.instructions, strict=False))
    agree = sum(bool(re.match(r"\s*@", theirs.text)) == ours.guarded for ours, theirs in pairs)
    return agree >= 0.98 * len(pairs)


def _plain_name(name: str) -> str:
    """A demangled name without what demanglers differ in."""
    name = re.sub(r"\bconst\b|\b(?:void|std::)\s*|\((?:bool|char|short|int|long|unsigned \w+)\)", "", name)
    return re.sub(r"\s+", "", name)


def _base_name(name: str) -> str:
    found = re.match(r"(?:void\s+)?([\w:~]+)", name.replace("(anonymous namespace)::", ""))
    return found[1].rpartition("::")[2] if found else name


# --- one kernel ----------------------------------------------------------------------------------------------------


def kernel(name: str, counted: Counted, code: Code, profiled: Profiled) -> dict[str, Any]:
    """Both sides' efficiencies, line by line."""
    lines: dict[Place, dict[str, Any]] = {}
    for place, (warps, lanes, active, predicated, size) in _theirs(code, profiled).items():
        lines[place] = {
            "file": place[0],
            "line": place[1],
            "warps": warps,
            "ncu": _efficiency(warps, lanes),
            "ncu_active": _efficiency(warps, active),
            "predicated": predicated / size,
        }
    for way, found in _ours(counted, code).items():
        for place, (warps, lanes) in found.items():
            if place in lines:
                lines[place][way] = _efficiency(warps, lanes)
    return {
        "kernel": shown(name),
        "why": "",
        "launches": counted.launches,
        "launches_ncu": profiled.launches,
        "lines": list(lines.values()),
    }


def _efficiency(warps: int, lanes: int) -> float | None:
    """Percent of the lanes; none where no warp was."""
    return 100 * lanes / (32 * warps) if warps else None


def _theirs(code: Code, profiled: Profiled) -> dict[Place, list[int]]:
    """By line: warps, lanes to compare with, active lanes, instructions under a predicate, instructions."""
    found: dict[Place, list[int]] = defaultdict(lambda: [0] * 5)
    for ours, theirs in zip(code.instructions, profiled.instructions, strict=False):
        total = found[place_of(ours.file, ours.line)]
        added = (theirs.warps, theirs.compared, theirs.lanes, int(theirs.predicated), 1)
        for k, add in enumerate(added):
            total[k] += add
    return found


def _ours(counted: Counted, code: Code) -> dict[str, dict[Place, tuple[int, int]]]:
    """Warps and lanes by line, for each way."""
    found: dict[str, dict[Place, tuple[int, int]]] = {"ptx": {}, "machine": {}, "active": {}}

    def add(way: str, place: Place, warps: int, lanes: int) -> None:
        before = found[way].get(place, (0, 0))
        found[way][place] = (before[0] + warps, before[1] + lanes)

    for function in functions_of(counted.layout, [counted.counts], ""):
        for each in function.lines:
            add("ptx", place_of(each.file, each.line), each.warps, each.lanes)
    known = {**counted.others, counted.counts.layout.name: counted.counts}
    if counted.counts.layout.name not in code.sizes:
        return {"ptx": found["ptx"]}
    try:
        machine = machine_lines(known, code.instructions, code.origins, code.sizes)
    except ValueError:
        return {"ptx": found["ptx"]}
    for line in machine:
        add("machine", place_of(line.file, line.line), line.warps, line.on)
        add("active", place_of(line.file, line.line), line.warps, line.lanes)
    return found


def place_of(file: str, line: int) -> Place:
    """A place that is the same in both builds: their folders are not."""
    name = re.sub(r"(^|/)\./", r"\1", file)
    while (shorter := re.sub(r"(^|/)(?!\.\.(?:/|$))[^/]+/\.\.(/|$)", r"\1", name)) != name:
        name = shorter
    return name.rpartition("/tree/")[2], line


# --- all of them ---------------------------------------------------------------------------------------------------


def shares(lines: Iterable[Mapping[str, Any]], way: str) -> list[float]:
    """The shares of warp instructions on lines within each of `NEAR` points."""
    kept = [line for line in lines if line["warps"]]
    total = sum(line["warps"] for line in kept)
    found = []
    for near in NEAR:
        within = sum(
            line["warps"] for line in kept if (off := offset(line, way)) is not None and abs(off) <= near
        )
        found.append(within / total if total else 0.0)
    return found


def offset(line: Mapping[str, Any], way: str) -> float | None:
    """By how many points we are above Nsight Compute."""
    ours, theirs = line.get(way), line["ncu_active" if way == "active" else "ncu"]
    return None if ours is None or theirs is None else ours - theirs


def _kernels(found: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    for each in found:
        for kernel in each["kernels"]:
            if not kernel["why"]:
                yield each, kernel


def weighted(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """All lines of all kernels, each kernel with the same weight: one long kernel would decide alone."""
    lines: list[dict[str, Any]] = []
    for each, kernel in _kernels(found):
        total = sum(line["warps"] for line in kernel["lines"])
        for line in kernel["lines"] if total else ():
            names = {"program": each["program"], "kernel": kernel["kernel"]}
            lines.append({**line, **names, "warps": line["warps"] / total})
    return lines


def show(found: Sequence[Mapping[str, Any]], console: Console, worst: int = 15) -> None:
    """Print a line a kernel, the worst lines, and the shares in all."""
    table = Table(box=None, pad_edge=False)
    table.add_column("program")
    table.add_column("kernel")
    for title in ("launches", "ncu %", *(f"{way} <{near:.0f}" for way in WAYS for near in NEAR), "pred"):
        table.add_column(title, justify="right")
    for each, kernel in _kernels(found):
        lines = kernel["lines"]
        total = sum(line["warps"] for line in lines)
        lanes = sum(line["warps"] * line["ncu"] for line in lines if line["warps"])
        marked = sum(line["warps"] for line in lines if line["predicated"])
        table.add_row(
            each["program"][:20],
            kernel["kernel"].partition("(")[0].removeprefix("void ")[-24:],
            f"{kernel['launches']}/{kernel['launches_ncu']}",
            f"{lanes / total:.1f}" if total else "-",
            *(f"{100 * share:.1f}" for way in WAYS for share in shares(lines, way)),
            f"{100 * marked / total:.0f}" if total else "-",
        )
    console.print(table)
    for line in summary(found):
        console.print(line, soft_wrap=True)
    console.print("worst lines (machine), by warp instructions and distance:")
    for row in worst_lines(found)[:worst]:
        by = " ".join(f"{way} {row[way]:.1f}" if row.get(way) is not None else f"{way} -" for way in WAYS)
        console.print(
            f"  {row['program']} {_base_name(row['kernel'])} {Path(row['file']).name}:{row['line']}:"
            f" {100 * row['warps']:.1f} % of it; ncu {row['ncu']:.1f} (active {row['ncu_active']:.1f}); {by};"
            f" predicated {100 * row['predicated']:.0f} %",
            soft_wrap=True,
        )


def worst_lines(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Those where we are furthest off, by the warp instructions that they hold."""

    def badness(line: Mapping[str, Any]) -> float:
        off = offset(line, "machine")
        return float(line["warps"] * (100 if off is None else abs(off)))

    far = [line for line in weighted(found) if line["warps"] and badness(line) > NEAR[0] * line["warps"]]
    return sorted(far, key=badness, reverse=True)


def summary(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """The shares in all, and what could not be compared."""
    lines = weighted(found)
    kernels = list(_kernels(found))
    said = []
    # Listed apart: the lines with the greatest part of predicated instructions, as long as the bar allows.
    kept, apart = without_apart(lines)
    for title, some in (
        ("all lines", lines),
        (f"without {100 * apart:.1f} % that are most predicated", kept),
    ):
        for way in WAYS:
            pooled = shares(some, way)
            passing = sum(
                all(
                    share >= target
                    for share, target in zip(shares(kernel["lines"], way), TARGETS, strict=True)
                )
                for _, kernel in kernels
            )
            said.append(
                f"{title}, {way}: {100 * pooled[0]:.1f} % within {NEAR[0]:.0f} points,"
                f" {100 * pooled[1]:.1f} % within {NEAR[1]:.0f}"
                + (f"; {passing} of {len(kernels)} kernels reach 80 and 95 %" if some is lines else "")
            )
    for each in found:
        if each["why"]:
            said.append(f"{each['program']}: {each['why']}")
        said += [f"{each['program']}: {k['kernel'][:50]}: {k['why']}" for k in each["kernels"] if k["why"]]
    return said


def without_apart(lines: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], float]:
    """The lines but for those with the greatest part of predicated instructions, and the share that these hold, at
    most `APART`. Chosen by the machine code alone.
    """
    total = sum(line["warps"] for line in lines) or 1
    ordered = sorted(lines, key=lambda line: (-line["predicated"], str(line["file"]), line["line"]))
    kept: list[dict[str, Any]] = []
    apart = 0.0
    for line in ordered:
        if line["predicated"] and apart + line["warps"] / total <= APART:
            apart += line["warps"] / total
        else:
            kept.append(line)
    return kept, apart
