"""Refusals and remarks: what the rewrite reports if it could change results, or if the user should know something.

A refusal is an error with a code, the CUDA line, the reason and what would help (DESIGN 6); the pages of
``cccopt explain`` are in ``docs/codes``.
"""

from __future__ import annotations

from dataclasses import dataclass

from cccopt.diagnostic import CccError, Diagnostic, Severity, error
from cccopt.text import Place


class Refusal(CccError):
    """The region cannot be rewritten without a risk to its results."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One legality rule: its code, what is wrong, why it matters, what helps; ``{}`` is replaced by details."""

    code: str
    message: str
    why: str
    help: str


NO_LOOP = Rule(
    "CCC030",
    "the {} marked `{}` is not inside a loop marked `for` or a kernel marked `grid`",
    "tasks are collected over the iterations of a loop, and only these pragmas say that iterations may be reordered",
    "put `#pragma ccc for` above the loop that contains it or that calls its function, let that function be inlined"
    " there (`__forceinline__`), or remove this pragma",
)
OTHER_ENTRY = Rule(
    "CCC031",
    "control flow enters the marked path at a point other than its beginning",
    "the compiler merged code of this path with code of another path; a task could start in its middle",
    "mark only one of the paths, or move the code that they share (often a function call) out of both",
)
LOOP_ENTRY = Rule(
    "CCC031",
    "control flow enters the marked loop at a point other than its beginning",
    "a warp could enter the loop without passing the code that prepares its stacks",
    "let control enter the loop only at its beginning (no `goto` or `case` label inside it)",
)
BEGINS_ITERATION = Rule(
    "CCC031",
    "an iteration of the marked loop begins with the marked path",
    "lanes that wait at the path could not be distinguished from lanes that are about to begin an iteration",
    "mark only a part of the path, or put other code of the iteration before it",
)
OTHER_EXIT = Rule(
    "CCC032",
    "control flow leaves the marked path at a point other than its end",
    "a `break`, `return` or `goto` inside the path, or a `continue` that does not lead to the end of the path, decides"
    " what its own lane does next, but the task may run later and in another lane",
    "move the jump out of the path: test its condition before the path begins; instead of a `continue`, wrap the rest"
    " of the iteration in an `if`",
)
IRREDUCIBLE = Rule(
    "CCC033",
    "the marked loop has irreducible control flow",
    "a cycle with two entries has no single header at which the warp could reconverge",
    "rewrite the jumps into the loop as structured control flow",
)
LIVE_OUT = Rule(
    "CCC034",
    "{} is written in the marked path and read after it",
    "the path may run later and in another lane, after this lane has already read the value",
    "{}",
)
CARRIED = Rule(
    "CCC035",
    "{} is carried from one run of the marked path to a later one",
    "runs of the path are reordered and moved to other lanes, so a later run would read a different value",
    "make iterations independent; if the value is a sum, or is updated by another associative operator, declare it"
    " on the loop (`#pragma ccc for reduce(+: name)`), or update it in memory (atomicAdd)",
)
NEXT_ITERATION = Rule(
    "CCC035",
    "the next iteration, or the code after the marked loop, depends on {}",
    "this value is computed after the path, which may run later and in another lane",
    "before the path, compute what the next iteration depends on, or make iterations independent",
)
REDUCTIONS = Rule(
    "CCC035",
    "paths update {} registers with `{}`, but the clause `reduce` names only {} of them",
    "any lane may update a reduction, in any order, so the clause has to cover each of these registers",
    "name all variables that paths update with this operator, or none",
)
CARRY_FLAG = Rule(
    "CCC122",
    "the carry flag is live at the beginning or end of the marked path",
    "the path may run later and in another lane, whose carry flag has a different value",
    "put all instructions of the chain (`add.cc`, `addc`, ...) into one `asm` statement",
)
MEMORY = Rule(
    "CCC036",
    "the marked path and the rest of its iteration may touch the same memory",
    "as a task, the path runs later than the code that follows it in the source: {}",
    "{}",
)
MEMORY_INNER = Rule(
    "CCC036",
    "the marked path and other inner iterations of the loop around it may touch the same memory",
    "as a task, the path runs later than inner iterations that follow it, but the order within an iteration of the"
    " marked loop must be kept: {}",
    "{}",
)
SCRATCH = Rule(
    "CCC037",
    "the marked path writes to per-thread memory that other iterations also use",
    "several iterations of one thread may use the same address: two of its waiting tasks would run at the same time,"
    " in two lanes, on the same storage",
    "index the array by the iteration, or keep the scratch in local variables of the path",
)
SCRATCH_BEFORE = Rule(
    "CCC037",
    "the marked path uses per-thread memory that other iterations write to",
    "several iterations of one thread may use the same address: the next iteration writes there while tasks of this"
    " one wait",
    "index the array by the iteration, keep the value in a local variable, or add `independent` to the"
    " path's pragma if the path never touches what other iterations write there",
)
BARRIER = Rule(
    "CCC038",
    "the marked loop runs a barrier, an asynchronous copy, or a wait for one",
    "tasks that still wait would read data that the code after the barrier or the copy has overwritten",
    "move the barrier, copy or wait out of the loop, or leave the loop unmarked",
)
FENCE = Rule(
    "CCC039",
    "the marked loop contains a fence, lock, warp barrier or volatile access",
    "as a task, the path runs later than the code that follows it in the source: a flag would be set, a lock released"
    " or a `__syncwarp` passed before the path's work is done",
    "move the fence, lock, barrier or volatile access out of the loop, or add `independent` to the path's pragma if"
    " nothing in the path depends on it",
)
WAITING = Rule(
    "CCC039",
    "the marked loop contains a warp barrier, or a loop that may wait for another thread or for an atomic to succeed",
    "a task that is itself waiting could hold the lock that such a loop waits for or tries to take",
    "let no atomic or volatile access decide how often an inner loop runs, or move the barrier, or the loop that waits,"
    " out of the marked loop",
)
COLLECTIVE = Rule(
    "CCC040",
    "the marked path contains `{}`",
    "the rewrite changes which lanes run the path together, and this instruction depends on that",
    "move warp-wide operations out of the path",
)
CALL = Rule(
    "CCC041",
    "the marked path calls `{}`, which is not defined in this file",
    "it may write to memory, synchronize, or read the thread's index",
    "define the function in this file, or add `pure(NAME)` to the loop's pragma if it does none of these",
)
_POINTER_HELP = (
    "call the function by name; a call of a virtual function, or through a table of functions, is accepted if all"
    " functions that it can reach are in this file, and the file is compiled without `-rdc=true`"
)
CALL_BY_POINTER = Rule(
    "CCC041",
    "the marked path calls a function through a pointer",
    "it may write to memory, synchronize, or read the thread's index",
    _POINTER_HELP,
)
CALL_IDENTITY = Rule(
    "CCC041",
    "the marked path calls `{}`, which reads `{}`",
    "the task may run in another lane, where that register has a different value",
    "pass the index to the function as an argument, or let it be inlined",
)
CALL_EXIT = Rule(
    "CCC041",
    "the marked loop calls `{}`, which ends the thread",
    "the lanes of a warp vote together, and a task may run in a different lane from the one that made it",
    "have the function return whether to stop, and leave the loop on that result",
)
LOCAL = Rule(
    "CCC042",
    "the marked path uses local memory that other code also uses",
    "local memory belongs to a lane, and the task may run in another one",
    "keep the array inside the path, index it with constants so that it stays in registers, or put it in"
    " memory that all lanes can access",
)
LOCAL_TOKEN = Rule(
    "CCC104",
    "the rest of the iteration uses local memory {}",
    "the rest of the iteration waits as a task, carries the local memory that it loads, and may run in any"
    " lane: that memory must hold nothing else that the lane needs",
    "keep the array inside the path, or index it with constants so that it stays in registers",
)
STACK = Rule(
    "CCC043",
    "the context stacks need {} bytes of shared memory per block, but only {} are left",
    "a block can have 49,152 bytes of static shared memory, including the kernel's own",
    "let tasks wait in global memory (`--ccc-stacks=global`), state the block size (`__launch_bounds__`, or"
    " `block(...)` in the pragma), or mark fewer paths",
)
SLOTS = Rule(
    "CCC043",
    "the slots of the reductions need {} bytes of shared memory per block, but only {} are left",
    "each lane of a block has a slot for each reduction, and a block can have 49,152 bytes of static shared memory,"
    " including the kernel's own",
    "use smaller blocks (`__launch_bounds__(256)`, or `block(256)` in the pragma), or reduce fewer or narrower"
    " variables",
)
STACK_POOL = Rule(
    "CCC043",
    "the context stacks need {} bytes of global memory for all warps that run at once, but may take only {}",
    "each warp that can run at the same time needs its own stacks in global memory",
    "mark fewer paths, read fewer values before a path, or omit `--ccc-stacks=global`, which puts stacks"
    " into global memory even if they would fit into shared memory",
)
UNKNOWN = Rule(
    "CCC044",
    "the marked loop contains the instruction `{}` (line {} of the PTX), which cccopt does not know",
    "it is not known what the instruction reads, writes and synchronizes, so nothing can be proved about the loop",
    "move the instruction out of the loop, update cccopt, or add it to cccopt's table (docs/extending.md)",
)
INNER_LOOP = Rule(
    "CCC045",
    "the marked path is inside a loop that is not marked",
    "lanes would reach the path in different iterations of that loop",
    "mark the inner loop too (`#pragma ccc for variable` or `while`), move `#pragma ccc for` to it, or remove the"
    " path's pragma",
)
NESTED_LOOP = Rule(
    "CCC046",
    "a loop marked `for` is inside another one that has marked paths of its own",
    "the inner loop's votes need the whole warp, which the outer loop's paths split",
    "mark the inner loop with `#pragma ccc for variable`, or remove the pragmas of one of the two loops or of the outer"
    " loop's paths",
)
RECURSION = Rule(
    "CCC047",
    "the marked loop is in a function that can call itself",
    "the inner call would use the stack of the outer one while tasks wait there",
    "mark a loop in a kernel, or in a function that does not recurse",
)
SCOPES = Rule(
    "CCC048",
    "inline assembly next to or inside the marked loop has a scope that contains both branches and variables",
    "the blocks of one `{ }` scope cannot be copied separately",
    "declare the variable before the scope, or write the branches in CUDA C++",
)
CONTEXT_TYPE = Rule(
    "CCC049",
    "`{}` of type `.{}` would have to wait on the stack",
    "contexts hold predicates and values of 16, 32 and 64 bits",
    "keep values of other widths inside the path",
)
PARAMETER = Rule(
    "CCC057",
    "the marked path accesses the parameter `{}` of its function",
    "each lane has parameters of its own, and the task may run in another one",
    "load the parameter before the loop, or let the function be inlined",
)
VANISHED = Rule(
    "CCC053",
    "nothing is left of this annotated loop in the compiled code",
    "the compiler removed it, merged it with other code or took it apart",
    "see what the compiler made of it with `nvcc -ptx`; an empty body or a constant condition is the usual"
    " cause",
)

NOTHING_WAITS = Rule(
    "CCC053",
    "nothing is left of the marked path that could wait in the carried form",
    "the next iteration or the code after the loop needs all of it, or the compiler has moved it elsewhere",
    "before the path, compute what the next iteration depends on",
)

GRID_SYNCHRONISED = Rule(
    "CCC060",
    "the kernel marked `grid` contains `{}`",
    "its first blocks do the work of all, each taking one block index after another: code that waits for other"
    " threads or blocks would wait for something that has not started or has already finished",
    "keep the barrier out of the loop over the tasks: write that loop by hand (a grid-stride loop) and mark it with"
    " `#pragma ccc for`; a loop that contains a barrier cannot be rewritten (CCC038)",
)
GRID_SHARED = Rule(
    "CCC061",
    "the kernel marked `grid` uses shared memory of its own: `{}`",
    "one block does the work of many, and each of them expects memory that no other block uses",
    "keep the values in registers, or write the loop over the tasks by hand and mark it with `#pragma ccc for`",
)
GRID_CALL = Rule(
    "CCC062",
    "the kernel marked `grid` calls a function that cannot be in a loop over blocks: `{}` {}",
    "in that loop, a thread takes one block index after another, and goes on to the next block instead of"
    " ending",
    "pass the block index as an argument, let the function be inlined, or have it return whether to stop, and"
    " return from the kernel if so",
)
GRID_CALL_UNSEEN = Rule(
    "CCC062",
    "the kernel marked `grid` calls a function that cannot be inspected: `{}`",
    "it may read the block index, end the thread or wait for other threads, which is not possible in a loop over"
    " blocks",
    "define the function in this file, or add `pure(NAME)` to the kernel's pragma if it neither stores, nor waits, nor"
    " depends on which thread or block runs it",
)
GRID_CALL_BY_POINTER = Rule(
    "CCC062",
    "the kernel marked `grid` calls a function through a pointer, which cannot be inspected",
    "the function may read the block index or end the thread; in a loop over blocks, a thread takes one block index"
    " after another",
    _POINTER_HELP,
)
GRID_VECTOR = Rule(
    "CCC062",
    "the kernel marked `grid` cannot become a loop over blocks: `{}` reads the block index as a vector (`%ctaid`)",
    "in that loop, a thread takes one block index after another, and only reads of one component can be replaced",
    "read its components separately (`blockIdx.x`)",
)
GRID_STACK = Rule(
    "CCC062",
    "the kernel marked `grid` cannot become a loop over blocks: `{}` allocates memory on the stack (`alloca`)",
    "in that loop, a thread does the work of many blocks before it returns, and their allocations would add up",
    "use an array of constant size",
)
GRID_COLLECTIVE = Rule(
    "CCC063",
    "the kernel marked `grid` contains `{}` at a place that not all lanes of a warp reach",
    "a lane that has returned early no longer counts; in a loop over blocks it is still there, and the others"
    " would wait for it",
    "let all lanes reach the operation: do not return early, keep it outside of every `if`, and give lanes without work"
    " a neutral value",
)
RECURSIVE_FORM = Rule(
    "CCC065",
    "the function marked `recursive` cannot become a loop: it continues after calling itself",
    "a call is a task only if nothing is left to do after it: another lane may run it, and has none of the caller's"
    " values",
    "make the call the last thing that the function does, at most once on each path through it, and pass"
    " results on as arguments",
)
_DIRECT = "only a direct call of the function by itself can become a jump to its beginning"
RECURSION_BY_OTHERS = Rule(
    "CCC065",
    "the function marked `recursive` cannot become a loop: it calls itself through another function",
    _DIRECT,
    "let the function call itself directly, or let the other function be inlined into it (`__forceinline__`)",
)
RECURSION_BY_POINTER = Rule(
    "CCC065",
    "the function marked `recursive` cannot become a loop: it calls a function through a pointer",
    _DIRECT,
    "call the function by its name",
)
INLINING = Rule(
    "CCC066",
    "the function marked `recursive` cannot be inlined at its call: {}",
    "recursive calls can be tasks only if they become part of the marked loop, but the compiler left a call to the"
    " function",
    "pass numbers and pointers, or small structures of them, by value; declare shared memory in the kernel, and keep"
    " local arrays out of the function",
)
UNROLLED = Rule(
    "CCC067",
    "neither a loop nor a call is left of this function marked `recursive`",
    "it does not call itself, or the compiler knew the recursion depth and inlined every call",
    "remove the pragma if the function is not recursive; otherwise declare it `__noinline__`, or make its depth depend"
    " on data that the compiler does not know",
)


def refuse(
    rule: Rule,
    place: Place | None,
    *details: object,
    why: str = "",
    help: str = "",
    notes: tuple[tuple[str, Place], ...] = (),
) -> Refusal:
    """The refusal for ``rule`` at ``place``: ``details`` fill its message. ``why`` and ``help`` fill the ``{}`` of the
    rule's own why and help, or replace those that have none.
    """
    return Refusal(
        error(
            rule.code,
            rule.message.format(*details),
            place,
            why=rule.why.format(why) if "{}" in rule.why else (why or rule.why),
            help=rule.help.format(help) if "{}" in rule.help else (help or rule.help),
            notes=notes,
        )
    )


def remark(
    code: str,
    message: str,
    place: Place | None,
    why: str = "",
    help: str = "",
    notes: tuple[tuple[str, Place], ...] = (),
) -> Diagnostic:
    """A diagnostic that only informs."""
    return Diagnostic(code, Severity.REMARK, message, place, why, help, notes)
