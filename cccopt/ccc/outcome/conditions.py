"""What must hold for a rewrite: the table of docs/how-it-works.md, with the codes of the rules (`refusal`)."""

from __future__ import annotations

HOLDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "the path is in a marked loop; any loop between the two is a loop of tasks; a marked `for` that contains"
        " another one has no marked path outside the inner one",
        ("CCC030", "CCC045", "CCC046"),
    ),
    (
        "it is entered at its beginning and left at its end (a path that is itself a loop may contain a `break` out of"
        " that loop); the marked loop is entered at its beginning and has one header",
        ("CCC031", "CCC032", "CCC033"),
    ),
    (
        "some code of its loop (in the carried form, of the path, too) is left in the compiled code",
        ("CCC053",),
    ),
    (
        "what it writes is not read after it, or can be recomputed, or the code that reads it can move together with"
        " the path",
        ("CCC034",),
    ),
    ("no run of the path reads what an earlier run left in a register, reductions aside", ("CCC035",)),
    (
        "no chain of additions with carry (`add.cc`, `addc`) leads into the path, out of it or across it",
        ("CCC122",),
    ),
    (
        "neither the path nor what follows it in its iteration writes memory that the other accesses; other inner"
        " iterations of a `while` around it count, and those of a `for variable` where their order matters; integer"
        " atomics of one operation whose results are not read may access the same location",
        ("CCC036",),
    ),
    (
        "the path and other iterations do not use the same per-thread scratch memory (`scratch[threadIdx.x]`,"
        " `bins[slot * 64 + threadIdx.x]`) if one of them writes there",
        ("CCC037",),
    ),
    (
        "the loop has no barrier; outside the path, there is no fence, no volatile access and no loop that waits for"
        " another thread or retries an atomic; no lock that decides whether the path runs is released after it; no"
        " fence or volatile access is in a path that other accesses follow",
        ("CCC038", "CCC039"),
    ),
    ("nothing in the path depends on which lanes run it together", ("CCC040",)),
    (
        "functions called in the path can be inspected and do not read the thread's index; no call in the"
        " loop ends the thread; the function that contains the loop cannot call"
        " itself",
        ("CCC041", "CCC047"),
    ),
    (
        "a kernel marked `grid` does not wait for other threads or blocks and has no shared memory of its own; the"
        " functions that it calls can be in a loop over blocks; all lanes reach its warp-wide operations",
        ("CCC060", "CCC061", "CCC062", "CCC063"),
    ),
    (
        "a function marked `recursive` calls itself as the last thing that it does, or has become a loop",
        ("CCC065", "CCC066", "CCC067"),
    ),
    (
        "local memory of the path is used nowhere else, or each piece of code that uses it provably stores what it"
        " loads before loading it; the path does not access a parameter of a called function",
        ("CCC042", "CCC057"),
    ),
    (
        "where the rest of the iteration is the task, the local memory that it carries is small and not used"
        " outside the iteration",
        ("CCC104",),
    ),
    (
        "the stacks fit into shared memory, or into 1 GiB of global memory for all warps that run at once;"
        " contexts hold values of 16, 32 and 64 bits and predicates",
        ("CCC043", "CCC049"),
    ),
    (
        "every instruction of the loop is known; no scope of inline assembly has both branches and variables",
        ("CCC044", "CCC048"),
    ),
)
"""What must hold for a rewrite, and the codes of the rules that refuse it otherwise."""


def table() -> str:
    """The table of docs/how-it-works.md."""
    rows = (f"| {holds} | {', '.join(codes)} |" for holds, codes in HOLDS)
    return "\n".join(("| what must hold | refused with |", "|---|---|", *rows))
