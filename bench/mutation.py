"""Removes each rule of legality, each barrier and each guard of the rewrite in turn, and asks the tests.

`python -m bench.mutation --list` names the mutants, `python -m bench.mutation` runs them. A *mutant* is the package
with one change:

    rule        a `raise` of a refusal does nothing
    condition   a test of several parts in the code of the rules lacks one of them (only with ``--conditions``)
    barrier     a `bar.warp.sync` is not written
    guard       an instruction of the rewrite loses its guard
    clear       a register is not given a value ahead of a join

A mutant is *killed* by the first test that fails, and *survives* if all pass. What survives is either equivalent (the
change cannot be seen from outside) or shows a test that is missing. Needs nvcc; a mutant takes up to some minutes.

DeMillo, Lipton, Sayward, "Hints on test data selection: help for the practicing programmer", IEEE Computer 11(4), 1978.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

RULES = (
    "ccc/legality.py", "ccc/order.py", "ccc/thread_memory.py", "ccc/growth.py", "ccc/spinning.py", "ccc/tails.py",
    "ccc/context.py", "ccc/regions.py", "ccc/local_memory.py", "ccc/reductions.py", "ccc/trip_order.py",
    "ccc/block_size.py", "passes/grid_loop.py", "passes/recursion.py",
)  # fmt: skip
CODE = (
    "ccc/tasks.py", "ccc/rewrite.py", "ccc/sorting.py", "ccc/expansion.py", "ccc/partials.py", "ccc/stack.py",
    "ccc/in_place.py", "ccc/own_nodes.py", "ccc/sites.py",
)  # fmt: skip
TESTS = (
    "tests/passes/test_legality.py", "tests/passes/test_barriers.py", "tests/passes/test_regions.py",
    "tests/passes/test_tails.py", "tests/passes/test_context.py", "tests/passes/test_sorting.py",
    "tests/passes/test_expansion.py", "tests/passes/test_trips.py", "tests/passes/test_sums.py",
    "tests/passes/test_reductions.py", "tests/passes/test_grid_loop.py", "tests/passes/test_recursion.py",
    "tests/passes/test_order.py", "tests/passes/test_awkward.py", "tests/fuzz", "tests/passes",
)  # fmt: skip
"""In the order in which they run: quick ones first."""


@dataclass(frozen=True)
class Mutant:
    """One change: the kind, the file below the package, the line, the source text of what changes, and the new text."""

    kind: str
    file: str
    line: int
    before: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.kind:9} {self.file}:{self.line}: {self.before}"


def mutants() -> Iterator[Mutant]:
    """All of them, in the order of the files."""
    for file in (*RULES, *CODE):
        source = (ROOT / "cccopt" / file).read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            for kind, target, replacement in _changes(node, rules=file in RULES):
                before = ast.get_source_segment(source, target) or ""
                text = _replaced(source, target, replacement)
                shown = " ".join(before.split())[:100]
                yield Mutant(kind, file, target.lineno, shown, text)


def _changes(node: ast.AST, *, rules: bool) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    """What may be changed at a node: the kind, the node to replace, its new text."""
    if rules and isinstance(node, ast.Raise) and _is_refusal(node):
        yield "rule", node, "pass"
    elif rules and isinstance(node, ast.BoolOp):
        for value in node.values:
            yield "condition", value, "True" if isinstance(node.op, ast.And) else "False"
    elif rules:
        return
    elif isinstance(node, ast.List | ast.Tuple):
        for element in node.elts:
            kind = "barrier" if _is_barrier(element) else "clear" if _called(element) == "clear" else ""
            if kind:
                yield kind, element, "*()"
    elif isinstance(node, ast.GeneratorExp | ast.ListComp) and _called(node.elt) == "clear":
        yield "clear", node.generators[0].iter, "()"
    elif (
        isinstance(node, ast.Call) and _called(node) == "op" and any(k.arg == "guard" for k in node.keywords)
    ):
        plain = ast.Call(node.func, node.args, [k for k in node.keywords if k.arg != "guard"])
        yield "guard", node, ast.unparse(plain)


def _called(node: ast.expr) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _is_refusal(node: ast.Raise) -> bool:
    call = node.exc
    name = call.func if isinstance(call, ast.Call) else call
    text = "" if name is None else ast.unparse(name)
    return any(word in text for word in ("refuse", "reordered", "_live_out", "_carries", "_Not", "Refusal"))


def _is_barrier(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or _called(node) != "op" or not node.args:
        return False
    return isinstance(node.args[0], ast.Constant) and node.args[0].value == "bar.warp.sync"


def _replaced(source: str, node: ast.expr | ast.stmt, text: str) -> str:
    lines = source.splitlines(keepends=True)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    first, last = lines[node.lineno - 1], lines[node.end_lineno - 1]
    # Columns count bytes.
    head = first.encode()[: node.col_offset].decode()
    tail = last.encode()[node.end_col_offset :].decode()
    return "".join((*lines[: node.lineno - 1], head, text, tail, *lines[node.end_lineno :]))


def judged(mutant: Mutant, tests: list[str], seconds: float) -> str:
    """The first test that fails with the mutant; empty if all pass, ``timeout`` where they do not end."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for name in ("tests", "samples", "bench", "ptx_grammar", "cte_templates", "docs"):
            (tree / name).symlink_to(ROOT / name)
        shutil.copytree(ROOT / "cccopt", tree / "cccopt", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", tree)
        (tree / "cccopt" / mutant.file).write_text(mutant.text, encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "--no-header",
            "-p",
            "no:cacheprovider",
            *tests,
        ]
        environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                command,
                cwd=tree,
                env=environment,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "timeout"
    if done.returncode == 0:
        return ""
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0][:160] if failed else f"exit status {done.returncode}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="name the mutants, run nothing")
    parser.add_argument("--only", default="", help="mutants whose name holds this text")
    parser.add_argument("--conditions", action="store_true", help="also each part of each test of the rules")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=900, help="for one mutant")
    parser.add_argument("--json", type=Path, help="file for the outcomes")
    parser.add_argument("tests", nargs="*", default=list(TESTS), help="what pytest runs")
    options = parser.parse_args()
    kinds = [mutant for mutant in mutants() if options.conditions or mutant.kind != "condition"]
    chosen = [mutant for mutant in kinds if options.only in mutant.name]
    if options.list:
        print("\n".join(mutant.name for mutant in chosen))
        return
    outcomes: dict[str, str] = {}
    with ThreadPoolExecutor(options.jobs) as pool:
        found = pool.map(lambda mutant: judged(mutant, options.tests, options.seconds), chosen)
        for mutant, killer in zip(chosen, found, strict=True):
            outcomes[mutant.name] = killer
            print(f"{'killed  ' if killer else 'SURVIVES'} {mutant.name}", flush=True)
            if options.json is not None:
                options.json.write_text(json.dumps(outcomes, indent=1))
    survivors = sum(not killer for killer in outcomes.values())
    print(f"{len(outcomes)} mutants, {len(outcomes) - survivors} killed, {survivors} survive")


if __name__ == "__main__":
    main()
