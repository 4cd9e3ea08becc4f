"""A check of rewritten functions that knows nothing of how they were made.

A rewrite that went wrong may give right results on every test: a missing barrier shows on some GPUs, sometimes. So each
rewritten function is looked at again, as code (`regions` says what is taken on trust):

* `convergence`: all 32 lanes come to each vote, shuffle and barrier;
* `ordering`: barriers order what lanes hand to one another, and no task is left on a stack;
* `local_copies`: local memory that waits on a stack comes back to where it was;
* `assignment`: no register is read unwritten that was not in the original;
* loops have one entry each, unless some had several before.

Each check is one pass of data-flow, or two. What fails is an internal error (CCC099), and no code is written.
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
    """Check that ``after``, which was ``before``, is a sound rewrite. Raises CccError (CCC099) if it is not."""
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
    """What is wrong with a rewritten function, and in which of its rewritten ``loops``, if in one."""
    for loop in loops:
        region = LoopCode(code, loop)
        yield from ((loop, found) for found in convergence_violations(region))
        yield from ((loop, found) for found in ordering_violations(region))
        yield from ((loop, found) for found in local_violations(region))
    yield from ((None, found) for found in assignment_violations(before, code))
    yield from ((None, found) for found in _second_entries(before, code))


def _second_entries(before: Function, code: FunctionCode) -> Iterator[Violation]:
    """Loops with two entries where the function had none."""
    found = irreducible_edges(code.cfg)
    if found and not irreducible_edges(build(before.body or ())):
        for source, _ in found:
            yield Violation(code.cfg.blocks[source].stop - 1, "a loop may be entered in two places")


def _place_of(loop: RewrittenLoop | None, loops: Sequence[RewrittenLoop]) -> Place | None:
    return (loop or loops[0]).place


def _statement(code: FunctionCode, index: int) -> str:
    """The statement with its block, and the source line that the PTX says it is from."""
    block = code.cfg.blocks[code.cfg.block_of(index)]
    text = print_statement(code.body[index]).strip()
    what = f"`{text}`" if isinstance(code.body[index], Instruction) else "what begins"
    return f"{what} in block `{block.label or block.index}`"
