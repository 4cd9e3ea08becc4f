"""What the in-lane form refuses (`cccopt.ccc.legality.in_lane`), under the codes of similar refusals in other forms."""

from __future__ import annotations

from cccopt.ccc.outcome.refusal import Rule

_APART = "lanes of a warp would run it in different iterations, while others wait elsewhere"

TARGET = Rule(
    "CCC108",
    "on `{}`, the lanes of a warp cannot wait for one another",
    "before `sm_70`, a warp has one program counter for all of its lanes, so diverged lanes cannot vote"
    " together",
    "compile for a newer GPU, or set `.target sm_70` or newer in the PTX",
)
UNKNOWN = Rule(
    "CCC044",
    "the marked loop runs the instruction `{}`, which cccopt does not know",
    "it is not known what the instruction synchronizes, so nothing can be proved about the loop",
    "move the instruction out of the loop, update cccopt, or add it to cccopt's table (docs/extending.md)",
)
BARRIER = Rule(
    "CCC038",
    "the marked loop runs `{}`",
    f"{_APART}: they could wait for each other forever",
    "move the waiting code out of the loop, or leave the loop unmarked",
)
COLLECTIVE = Rule(
    "CCC040",
    "the marked loop runs `{}`",
    f"{_APART}, and the result of this instruction depends on the lanes that run it together",
    "move warp-wide operations out of the loop",
)
CLOCK = Rule(
    "CCC040",
    "the marked loop reads `{}`",
    "a lane waits for others in the loop, and the measurement would include that time",
    "move the measurement out of the loop",
)
CALL = Rule(
    "CCC041",
    "the marked loop calls a function that cannot be inspected",
    "the target of an indirect or external call may contain a barrier, or wait for another lane",
    "define the function in this file, or add `pure(NAME)` to the loop's pragma if it neither stores, nor waits, nor"
    " depends on which thread runs it",
)
WAITING = Rule(
    "CCC039",
    "the marked loop may wait for another thread",
    "the trip count of the loop, or of a loop or recursion in it, depends on what an atomic, volatile or ordered"
    " access returns, and the lane that determines this value may be waiting for the lane that runs the loop",
    "make the loop end on a count or on the lane's own progress, or move an inner loop out of the marked one",
)
EXCHANGE = Rule(
    "CCC109",
    "lanes may pass values to one another in the marked loop",
    "it loads and stores the same shared or volatile memory, which other lanes of the warp may use as"
    " well, and the rewrite changes the order in which lanes run",
    "keep the values in local variables, or add `independent` to the loop's pragma if no lane reads what another one"
    " writes in the loop",
)
