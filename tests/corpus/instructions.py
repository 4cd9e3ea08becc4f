"""PTX instructions for every row of the instruction table, which ptxas is asked about.

``instructions.txt`` holds them by target. ``<r:4>`` stands for ``{%r0, %r1, %r2, %r3}``; the first letters
of a register are its kind: ``%p`` predicates, ``%b`` 8, ``%h`` 16, ``%r`` 32, ``%rd`` 64, ``%q`` 128 bits, ``%f`` and
``%fd`` floats. ``python -m tests.corpus.instructions`` assembles them and prints which row ptxas takes where.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cccopt.ptx.ir import Instruction
from cccopt.ptx.isa_rows import row_of
from cccopt.ptx.isa_table import ROWS, Row
from cccopt.ptx.parser import parse
from tests.ptx.conftest import tool

VERSION = "9.0"

GAPS: dict[str, str] = {
    "vote": "without `.sync` gone with sm_70, and ptxas of CUDA 13.0 begins at sm_75",
    "shfl": "without `.sync` gone with sm_70, and ptxas of CUDA 13.0 begins at sm_75",
}
"""Rows that no ptxas of CUDA 13.0 takes, and why."""

MODULE = """.version {version}
.target {target}
.address_size 64
.global .align 128 .b8 gm[256];
.const .align 16 .b8 cm[64];
.global .texref tx;
.global .surfref sf;
.func fun () {{ ret; }}
.func (.reg .b32 r) fun2 (.reg .b32 a) {{ mov.b32 r, a; ret; }}
"""
FUNCTION = """.entry k{number} (.param .b64 param) {{
.reg .pred %p<8>; .reg .b8 %b<8>; .reg .b16 %h<16>; .reg .b32 %r<64>; .reg .b64 %rd<32>;{wide}
.reg .f32 %f<64>; .reg .f64 %fd<32>; .reg .v4 .b32 v4;
.shared .align 128 .b8 sm[1024]; .local .align 16 .b8 lm[64]; .param .b32 out;
proto: .callprototype (.reg .b32 _) _ (.reg .b32 _); proto0: .callprototype _; table: .branchtargets LABEL, LABEL;
LABEL:
{lines}
ret;
}}
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """One instruction as text, without ``;``, and the target it is for."""

    text: str
    target: str


def _spell(text: str) -> str:
    """``<r:4>`` written out."""

    def vector(match: re.Match[str]) -> str:
        return "{" + ", ".join(f"%{match[1]}{i}" for i in range(int(match[2]))) + "}"

    return re.sub(r"<(\w+):(\d+)>", vector, text)


@cache
def samples() -> tuple[Sample, ...]:
    """All samples in file order."""
    found: list[Sample] = []
    target = ""
    for line in Path(__file__).with_suffix(".txt").read_text().splitlines():
        if line.startswith("#"):
            target = line[1:].strip()
        else:
            found += [Sample(_spell(part.strip()), target) for part in line.split(";") if part.strip()]
    return tuple(found)


def module(lines: Iterable[str], target: str, version: str = VERSION) -> tuple[str, list[int]]:
    """PTX with one kernel a line of ``lines``, and the number of the text's line where each stands."""
    text = MODULE.format(version=version, target=target)
    if "texmode_independent" in target:
        text += ".global .samplerref smp;\n"
    where: list[int] = []
    for number, line in enumerate(lines):
        wide = " .reg .b128 %q<8>;" if "%q" in line else ""  # they came with PTX 8.3
        head, _, tail = FUNCTION.format(number=number, wide=wide, lines="\n").partition("\n\n")
        text += head + "\n"
        where.append(text.count("\n") + 1)
        text += line + ";\n" + tail.lstrip("\n")
    return text, where


def instruction(sample: Sample) -> Instruction:
    """The node of ``sample``."""
    text, (line,) = module([sample.text], sample.target)
    *_, kernel = parse(text).functions()
    return next(s for s in kernel.body or () if isinstance(s, Instruction) and _line(s) == line)


def _line(instruction: Instruction) -> int:
    return 0 if instruction.position is None else instruction.position.line


def refusals(lines: list[str], target: str, version: str = VERSION) -> dict[int, str]:
    """What ptxas says against each of ``lines``, by its index; those that it takes are not in it."""
    text, where = module(lines, target, version)
    index_of = {line: index for index, line in enumerate(where)}
    found: dict[int, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "x.ptx"
        source.write_text(text)
        command = [
            tool("ptxas"),
            f"-arch={target.partition(',')[0]}",
            "-O0",
            str(source),
            "-o",
            f"{folder}/x.cubin",
        ]
        result = subprocess.run(command, capture_output=True, text=True)
    for line, message in re.findall(r"line (\d+); (?:error|fatal) *: (.*)", result.stdout + result.stderr):
        found.setdefault(index_of.get(int(line), -1), message)
    if result.returncode and not found:
        found[-1] = result.stderr
    return found


def verdicts(wanted: Iterable[Sample]) -> dict[Sample, str]:
    """What ptxas says against each sample on its own target (nothing: it takes it)."""
    by_target: dict[str, list[Sample]] = defaultdict(list)
    for sample in wanted:
        by_target[sample.target].append(sample)
    told: dict[Sample, str] = {}
    for target, mine in by_target.items():
        left = mine
        while left:
            said = refusals([s.text for s in left], target)
            told.update((s, said.get(i, "")) for i, s in enumerate(left))
            # A syntax error ends the run: what stands behind it is asked about again.
            fatal = [
                i for i, message in said.items() if "syntax error" in message or "Parsing error" in message
            ]
            if -1 in said:
                told.update((s, said[-1]) for s in left if not told[s])
            left = left[fatal[0] + 1 :] if fatal and fatal[0] >= 0 else []
    return told


def coverage(told: dict[Sample, str]) -> dict[Row, list[Sample]]:
    """The accepted samples of each row of the table."""
    rows: dict[Row, list[Sample]] = {row: [] for family in ROWS.values() for row in family}
    for sample, message in told.items():
        made = instruction(sample)
        row = row_of(made.opcode, len(made.operands))
        if row is not None and not message:
            rows[row].append(sample)
    return rows


def main() -> None:
    """Print the table: row, operands, how many samples ptxas takes, on which targets."""
    told = verdicts(samples())
    rows = coverage(told)
    for row, mine in rows.items():
        targets = ", ".join(dict.fromkeys(s.target for s in mine))
        print(f"{row.opcode:32}{row.operands:32}{len(mine):4}  {targets or GAPS.get(row.opcode, 'MISSING')}")
    refused = {s: m for s, m in told.items() if m}
    for sample, message in refused.items():
        print(f"{sample.target}: {sample.text}: {message}")
    print(
        f"{len(told) - len(refused)} of {len(told)} instructions, {sum(map(bool, rows.values()))} of {len(rows)} rows"
    )


if __name__ == "__main__":
    main()
