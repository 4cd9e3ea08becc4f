"""A check of rewritten functions that knows nothing about how they were made.

A wrong rewrite may give right results in every test: a missing barrier shows only on some GPUs, and only sometimes. So
the code of each rewritten function is checked again (`regions` says what is taken on trust):

* `convergence`: all 32 lanes reach each vote, shuffle and barrier;
* `ordering`: barriers order the data that lanes pass to one another, and no task is left on a stack;
* `local_copies`: local memory that was saved on a stack is put back where it was;
* `assignment`: no register is read before it is written, unless the original already did so;
* each loop has one entry, unless some had several before.

Each check takes one or two data-flow passes. A failure is an internal error (CCC099), and no code is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cccopt.analysis.cfg import build
from cccopt.analysis.loops import irreducible_edges
from cccopt.ccc.outcome.rewritten_loop import RewrittenLoop
from cccopt.ccc.output_check.assignment import assignment_violations
from cccopt.ccc.output_check.convergence import convergence_violations
from cccopt.ccc.output_check.local_copies import local_violations
from cccopt.ccc.output_check.ordering import ordering_violations
from cccopt.ccc.output_check.regions import FunctionCode, LoopCode, Violation
from cccopt.diagnostic import CccError, error
from cccopt.ptx.ir import Function, Instruction
from cccopt.ptx.printer import print_statement
from cccopt.text import Place

__all__ = ["Violation", "check_output", "violations"]


def check_output(before: Function, after: Function, loops: Sequence[RewrittenLoop]) -> None:
    """Check that ``after`` is a sound rewrite of ``before``. Raises CccError (CCC099) if it is not."""
    code = FunctionCode(before, after)
    for loop, found in violations(before, code, loops):
        raise CccError(
            error(
                "CCC099",
                f"internal error: the rewritten code of `{after.name}` is not sound: {found.message}",
                _place_of(loop, loops),
                why=f"{_statement(code, found.statement)} does not pass the check of rewritten code",
                help="please report this with the files kept by `--ccc-keep`; `--ccc=off` compiles without the rewrite",
            )
        )


def violations(
    before: Function, code: FunctionCode, loops: Sequence[RewrittenLoop]
) -> Iterator[tuple[RewrittenLoop | None, Violation]]:
    """The violations in a rewritten function, each with that of the rewritten ``loops`` that it is in, if any."""
    for loop in loops:
        region = LoopCode(code, loop)
        yield from ((loop, found) for found in convergence_violations(region))
        yield from ((loop, found) for found in ordering_violations(region))
        yield from ((loop, found) for found in local_violations(region))
    yield from ((None, found) for found in assignment_violations(before, code))
    yield from ((None, found) for found in _second_entries(before, code))


def _second_entries(before: Function, code: FunctionCode) -> Iterator[Violation]:
    """Loops with two entries, if the function had none before."""
    found = irreducible_edges(code.cfg)
    if found and not irreducible_edges(build(before.body or ())):
        for source, _ in found:
            yield Violation(code.cfg.blocks[source].stop - 1, "a loop may be entered in two places")


def _place_of(loop: RewrittenLoop | None, loops: Sequence[RewrittenLoop]) -> Place | None:
    return (loop or loops[0]).place


def _statement(code: FunctionCode, index: int) -> str:
    """The statement and its block, in words."""
    block = code.cfg.blocks[code.cfg.block_of(index)]
    text = print_statement(code.body[index]).strip()
    what = f"`{text}`" if isinstance(code.body[index], Instruction) else "what begins"
    return f"{what} in block `{block.label or block.index}`"
