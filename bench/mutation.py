"""Removes each rule of legality, each barrier and each guard of the rewrite in turn, and asks the tests.

`python -m bench.mutation --list` names the mutants, `python -m bench.mutation` runs them. A *mutant* is the package
with one change:

    rule        a `raise` of a refusal does nothing
    condition   a test of several parts in the code of the rules lacks one of them (only with ``--conditions``)
    barrier     a `bar.warp.sync` is not written
    guard       an instruction of the rewrite loses its guard
    clear       a register is not given a value before a join

One copy of the package holds all mutants, each guarded by a switch (`bench.mutation_probe`). The tests run once with
all switches off; then each mutant meets the tests that came to its place and saw another value there, in a process of
its own, until one fails (`bench.mutation_tests`). Tests that fail without any mutant are left out and named.

A mutant is *killed* by the first test that fails. What no test kills is *equivalent*, for a reason that `EQUIVALENT`
gives, or it *survives*: a test is missing. Exit status 1 if any survives. Needs nvcc; the first run takes minutes.

DeMillo, Lipton, Sayward, "Hints on test data selection: help for the practicing programmer", IEEE Computer 11(4), 1978.
Untch, Offutt, Harrold, "Mutation analysis using mutant schemata", ISSTA 1993 (one program with all mutants).
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
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.mutation_equivalent import EQUIVALENT, OUT_OF_TIME

ROOT = Path(__file__).resolve().parent.parent

ORDER = tuple(
    f"ccc/legality/{name}.py"
    for name in ("rules", "order", "thread_memory", "growth", "locks", "deciding", "inner_iterations")
)
RULES = (
    *ORDER,
    *(
        f"ccc/legality/{name}.py"
        for name in ("sunk_code", "continuation", "recomputation", "local_memory", "local_context")
    ),
    *(f"ccc/legality/{name}.py" for name in ("reductions", "operators", "flags", "flag_values")),
    *(
        f"ccc/legality/{name}.py"
        for name in ("in_lane", "waiting", "carrying", "carried_region", "exclusive", "counted_loops")
    ),
    *(f"ccc/plan/{name}.py" for name in ("context", "block_size", "pool", "in_lane")),
    "ccc/regions/marked_loops.py",
    "ccc/regions/paths.py",
    "passes/grid_loop.py",
    "passes/recursion.py",
)
CODE = (
    *(
        f"ccc/codegen/{name}.py"
        for name in (
            "votes_at_joins", "path_vote", "push_pop", "task_copies", "drain", "partial_results", "region_code",
            "rewrite", "sorting", "expansion", "in_place", "own_nodes", "joins", "in_lane", "carried", "dispatch",
            "claim", "copies", "versions",
        )
    ),
    "ccc/plan/partials.py",
    "ccc/plan/stack.py",
)  # fmt: skip
TESTS = (
    *(
        f"tests/{name}.py"
        for name in (
            "ccc/legality/test_rules", "ccc/legality/test_order", "ccc/legality/test_thread_memory",
            "ccc/legality/test_inner_iterations", "ccc/codegen/test_barriers", "ccc/output_check/test_output_check",
            "ccc/legality/test_in_lane", "ccc/output_check/test_in_lane", "ccc/legality/test_carried_region",
            "ccc/legality/test_local_context", "ccc/plan/test_stack_room",
            "ccc/legality/test_sunk_code", "ccc/regions/test_marked_loops", "ccc/plan/test_context",
            "ccc/codegen/test_sorting", "ccc/codegen/test_expansion", "ccc/legality/test_counted_loops",
            "ccc/codegen/test_expanded_reductions", "ccc/legality/test_reductions",
            "ccc/legality/test_refused_reductions", "passes/test_grid_loop", "passes/test_recursion",
            "passes/test_awkward_kernels", "passes/test_random_kinds",
            "passes/test_flag_reductions", "ccc/legality/test_flag_values",
            "fuzz/test_reduced_sums", "fuzz/test_regressions",
        )
    ),
)  # fmt: skip
"""Those of the rules and of the code that the rewrite makes; tests of cost and growth would count the switches."""

PROBE = "from cccopt import mutation_probe as _probe"


@dataclass(frozen=True)
class Mutant:
    """One change: its kind, the file below the package, the line, the function, and the text of what changes."""

    kind: str
    file: str
    line: int
    name: str
    """Says what changes without the line, so that it holds when code around it moves."""


class Switches(ast.NodeTransformer):
    """Puts each mutant of a file under a switch; the numbers go on from ``first``."""

    def __init__(self, file: str, source: str, *, first: int = 0) -> None:
        self.file, self.source, self.first = file, source, first
        self.rules = file in RULES
        self.found: list[Mutant] = []
        self._functions: list[str] = []
        self._seen: Counter[str] = Counter()

    def visit(self, node: ast.AST) -> Any:
        """The node with its own mutants; those inside come first."""
        named = isinstance(node, ast.FunctionDef | ast.ClassDef)
        if named:
            self._functions.append(node.name)
        self.generic_visit(node)
        if named:
            self._functions.pop()
        return self._rule(node) if self.rules else self._code(node)

    def _rule(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Raise) and _is_refusal(node):
            switch = ast.UnaryOp(ast.Not(), self._switch("rule", node))
            return ast.If(switch, [node], [])
        if isinstance(node, ast.BoolOp):
            constant = isinstance(node.op, ast.And)
            node.values = [self._value(value, constant) for value in node.values]
        return node

    def _value(self, value: ast.expr, constant: bool) -> ast.expr:
        number = ast.Constant(self._add("condition", value))
        return ast.Call(_attribute("value"), [number, value, ast.Constant(constant)], [])

    def _code(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.List | ast.Tuple):
            node.elts = [self._element(element) for element in node.elts]
        elif isinstance(node, ast.GeneratorExp | ast.ListComp) and _called(node.elt) == "clear":
            first = node.generators[0]
            first.iter = ast.IfExp(self._switch("clear", node), ast.Tuple([], ast.Load()), first.iter)
        elif isinstance(node, ast.Call) and _called(node) == "op":
            plain = [k for k in node.keywords if k.arg != "guard"]
            if len(plain) < len(node.keywords):
                bare = ast.Call(node.func, node.args, plain)
                return ast.IfExp(self._switch("guard", node), bare, node)
        return node

    def _element(self, element: ast.expr) -> ast.expr:
        kind = "barrier" if _is_barrier(element) else "clear" if _called(element) == "clear" else ""
        if not kind:
            return element
        none, one = ast.Tuple([], ast.Load()), ast.Tuple([element], ast.Load())
        return ast.Starred(ast.IfExp(self._switch(kind, element), none, one), ast.Load())

    def _switch(self, kind: str, node: ast.expr | ast.stmt) -> ast.expr:
        return ast.Call(_attribute("on"), [ast.Constant(self._add(kind, node))], [])

    def _add(self, kind: str, node: ast.expr | ast.stmt) -> int:
        text = " ".join((ast.get_source_segment(self.source, node) or "").split())
        name = f"{kind} {self.file} {'.'.join(self._functions)}: {text[:90]}"
        self._seen[name] += 1
        again = f" ({self._seen[name]})" if self._seen[name] > 1 else ""
        self.found.append(Mutant(kind, self.file, node.lineno, name + again))
        return self.first + len(self.found) - 1


def mutants() -> tuple[list[Mutant], dict[str, str]]:
    """All of them, in the order of the files, and the text of each file with its switches."""
    found: list[Mutant] = []
    texts = {}
    for file in (*RULES, *CODE):
        source = (ROOT / "cccopt" / file).read_text(encoding="utf-8")
        switches = Switches(file, source, first=len(found))
        tree = switches.visit(ast.parse(source))
        found += switches.found
        texts[file] = ast.unparse(ast.fix_missing_locations(_with_probe(tree)))
    return found, texts


def _with_probe(tree: ast.Module) -> ast.Module:
    after = next(i for i, s in enumerate(tree.body) if isinstance(s, ast.ImportFrom)) + 1
    tree.body[after:after] = ast.parse(PROBE).body
    return tree


def _attribute(name: str) -> ast.expr:
    return ast.Attribute(ast.Name("_probe", ast.Load()), name, ast.Load())


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


def tree_with(texts: dict[str, str], tree: Path) -> None:
    """Writes a checkout whose package has all mutants. Links would lead back to the package without them."""
    for name in ("cccopt", "tests", "samples", "bench", "ptx_grammar", "cte_templates", "docs"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tree)
    shutil.copy(ROOT / "bench" / "mutation_probe.py", tree / "cccopt")
    for file, text in texts.items():
        (tree / "cccopt" / file).write_text(text, encoding="utf-8")


def run(wanted: dict[int, Mutant], texts: dict[str, str], options: argparse.Namespace) -> dict[int, str]:
    """What pytest says of each mutant by number: the killer, or an empty text."""
    with tempfile.TemporaryDirectory(prefix="cccopt-mutants-") as folder:
        tree, job, answer = Path(folder) / "tree", Path(folder) / "job.json", Path(folder) / "answer.json"
        tree_with(texts, tree)
        cache = options.cache or Path(folder) / "cache"
        cache.mkdir(parents=True, exist_ok=True)
        job.write_text(
            json.dumps(
                {
                    "mutants": {number: mutant.name for number, mutant in wanted.items()},
                    "jobs": options.jobs,
                    "seconds": options.seconds,
                    "cache": str(cache.resolve()),
                    "answer": str(answer),
                }
            )
        )
        command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist"]
        environment = {
            **os.environ,
            "PYTHONPATH": str(tree),
            "PYTHONDONTWRITEBYTECODE": "1",
            "CCCOPT_MUTATION": str(job),
        }
        plugin = ["-p", "bench.mutation_tests"]
        subprocess.run([*command, *plugin, *options.tests], cwd=tree, env=environment, check=False)
        if not answer.exists():
            sys.exit("error: pytest ended without an answer")
        return {int(number): killer for number, killer in json.loads(answer.read_text()).items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="name the mutants, run nothing")
    parser.add_argument("--only", default="", help="mutants whose name holds this text")
    parser.add_argument("--conditions", action="store_true", help="also each part of each test of the rules")
    parser.add_argument("--order", action="store_true", help="only the rules about order and memory")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=300, help="of tests for one mutant")
    parser.add_argument(
        "--cache", type=Path, help="folder that keeps nvcc's output and the run without mutants"
    )
    parser.add_argument("--json", type=Path, help="file for the outcomes")
    parser.add_argument(
        "--again", action="store_true", help="keep what the file says was killed, run the rest"
    )
    parser.add_argument("tests", nargs="*", default=list(TESTS), help="what pytest runs")
    options = parser.parse_args()
    found, texts = mutants()
    chosen = {
        number: mutant
        for number, mutant in enumerate(found)
        if options.only in mutant.name
        and (options.conditions or mutant.kind != "condition")
        and (not options.order or mutant.file in ORDER)
    }
    stale = EQUIVALENT.keys() - {mutant.name for mutant in found}
    if stale:
        sys.exit("error: no such mutant is left: " + "; ".join(sorted(stale)))
    if options.list:
        print("\n".join(f"{m.file}:{m.line}: {m.name}" for m in chosen.values()))
        return
    before = json.loads(options.json.read_text()) if options.again and options.json is not None else {}
    killed = {name: killer for name, killer in before.items() if is_killer(killer)}
    left = {number: mutant for number, mutant in chosen.items() if mutant.name not in killed}
    found_now = run(left, texts, options) if left else {}
    killers = {n: killed.get(m.name, "") or found_now[n] for n, m in chosen.items()}
    if options.json is not None:
        outcomes = {m.name: killers[number] for number, m in chosen.items()}
        options.json.write_text(json.dumps({**before, **outcomes}, indent=1))
    print()
    sys.exit(1 if print_table(chosen, killers) else 0)


def is_killer(answer: str) -> bool:
    """Whether what a run says of a mutant names a test."""
    return answer not in ("", OUT_OF_TIME)


def print_table(chosen: dict[int, Mutant], killers: dict[int, str]) -> int:
    """Each mutant with what became of it, and the sums; how many survive."""
    sums: Counter[str] = Counter()
    for number, mutant in chosen.items():
        killer = killers[number]
        killed = is_killer(killer)
        what = "killed" if killed else "equivalent" if mutant.name in EQUIVALENT else "SURVIVES"
        sums[what] += 1
        why = killer if killed else EQUIVALENT.get(mutant.name, killer)
        print(f"{what:10} {mutant.file}:{mutant.line}: {mutant.name}\n{'':13}{why}")
    print(
        f"{len(chosen)} mutants, {sums['killed']} killed, {sums['equivalent']} equivalent,"
        f" {sums['SURVIVES']} survive"
    )
    return sums["SURVIVES"]


if __name__ == "__main__":
    main()
