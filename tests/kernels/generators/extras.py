"""Pieces that need something outside of the loop: a device function, local memory, shared memory."""

from __future__ import annotations

from tests.kernels.generators.build import COUNTERS, ROW, WORDS, Build, element, pointer
from tests.kernels.generators.code import Writer
from tests.kernels.generators.values import Scope, as_word, digest, source

TILE = 32  # words of the shared table, all written ahead of the loops
BINS = 8  # words of the shared counters

FUNCTION = """
.func  (.param .b32 func_retval0) mix(
	.param .b32 mix_param_0,
	.param .b32 mix_param_1
)
{
	.reg .pred 	%p<2>;
	.reg .b32 	%r<8>;
	ld.param.u32 	%r1, [mix_param_0];
	ld.param.u32 	%r2, [mix_param_1];
	and.b32 	%r3, %r1, 3;
	setp.eq.s32 	%p1, %r3, 0;
	mad.lo.s32 	%r4, %r1, 31, %r2;
	@%p1 bra 	$L__BB1_2;

	xor.b32 	%r4, %r4, %r3;

$L__BB1_2:
	st.param.b32 	[func_retval0+0], %r4;
	ret;
}

"""


def call(b: Build, scope: Scope) -> None:
    """Calls a device function, whose branch may part the lanes."""
    w = b.w
    # Nothing proves that a call does not touch what the path touches.
    if scope.quiet:
        return
    b.uses.add("function")
    first, second = (source(b.ch, scope, w, "r") for _ in range(2))
    result = w.new("b32")
    number = w.labels = w.labels + 1
    w.lines += [
        f"\t{{ // callseq {number}, 0",
        "\t.reg .b32 temp_param_reg;",
        "\t.param .b32 param0;",
        f"\tst.param.b32 \t[param0+0], {first};",
        "\t.param .b32 param1;",
        f"\tst.param.b32 \t[param1+0], {second};",
        "\t.param .b32 retval0;",
        "\tcall.uni (retval0), mix, (param0, param1);",
        f"\tld.param.b32 \t{result}, [retval0+0];",
        f"\t}} // callseq {number}",
    ]
    scope.add("b32", result, spare=True)


def scratch(b: Build, scope: Scope) -> None:
    """An array of the path's own in local memory, written before it is read; one path of the kernel may have one."""
    ch, w = b.ch, b.w
    if not scope.scratch or b.local not in (None, (len(b.sites), scope.place)):
        return
    # For all that can be proved, a call in an inner path might touch it.
    if scope.quiet and "function" in b.uses:
        return
    b.local = (len(b.sites), scope.place)
    scope.scratch = "" if scope.scratch == "trip" else scope.scratch
    base = w.do("add.u64", "b64", "%SPL", 0)
    for word in range(4):
        value = ch.pick(scope.values["b32"])
        w.emit(f"st.local.u32 \t[{base}+{4 * word}], {value}")
    index = w.do("and.b32", "b32", source(ch, scope, w, "r"), 3)
    address = w.do("add.s64", "b64", base, w.do("mul.wide.u32", "b64", index, 4))
    scope.add("b32", w.do("ld.local.u32", "b32", f"[{address}]"), spare=True)


def table(b: Build, scope: Scope) -> None:
    """Reads the shared table, which nobody writes from the first loop on."""
    w = b.w
    # A call in the path might write it, for all that can be proved.
    if b.blockwise or (scope.quiet and "function" in b.uses):
        return
    b.uses.add("tile")
    index = w.do("and.b32", "b32", source(b.ch, scope, w, "r"), TILE - 1)
    offset = w.do("shl.b32", "b32", index, 2)
    address = w.do("add.s32", "b32", w.do("mov.u32", "b32", "tile"), offset)
    scope.add("b32", w.do("ld.shared.u32", "b32", f"[{address}]"), spare=True)


def count(b: Build, scope: Scope) -> None:
    """Counts in shared memory, which the block adds to the counters behind a barrier."""
    ch, w = b.ch, b.w
    if b.blockwise or scope.quiet:
        return
    b.uses.add("bins")
    index = w.do("and.b32", "b32", source(ch, scope, w, "r"), BINS - 1)
    address = w.do("mad.lo.s32", "b32", index, 4, w.do("mov.u32", "b32", "bins"))
    type, name = ch.pick(scope.names())
    w.emit(f"red.shared.add.u32 \t[{address}], {as_word(w, type, name)}")


def pair(b: Build, scope: Scope) -> None:
    """Loads two words at once."""
    w = b.w
    index = w.do("and.b32", "b32", source(b.ch, scope, w, "r"), WORDS // 2 - 1)
    address = element(b, scope, "data", index, 8)
    first, second = w.new("b32"), w.new("b32")
    w.emit(f"ld.global.nc.v2.u32 \t{{{first}, {second}}}, [{address}]")
    scope.add("b32", first, spare=True)
    scope.add("b32", second, spare=True)


def pair_store(b: Build, scope: Scope) -> None:
    """Stores two words at once."""
    w = b.w
    buffer, first, _ = scope.place
    if scope.quiet:
        return
    address = element(b, scope, buffer, scope.slot, ROW[buffer])
    value = digest(b.ch, scope, w)
    w.emit(f"st.global.v2.u32 \t[{address}+{8 * first}], {{{value}, {scope.slot}}}")


def collective(b: Build, scope: Scope) -> None:
    """Exchanges values between the lanes of whole warps, ahead of the path."""
    ch, w = b.ch, b.w
    value = ch.pick(scope.values["b32"])
    shuffled = w.new("b32")
    lane = w.do("mov.u32", "b32", "%laneid")
    odd = w.do("setp.eq.s32", "pred", w.do("and.b32", "b32", lane, 1), 1)
    w.emit(
        f"shfl.sync.{ch.pick(['idx', 'bfly', 'down'])}.b32 \t{shuffled}|{odd}, {value}, {ch.number(32)}, 31, -1"
    )
    scope.add("b32", shuffled, spare=True)
    scope.add("b32", w.do("vote.sync.ballot.b32", "b32", odd, -1), spare=True)


def declarations(b: Build) -> list[str]:
    """Variables that the kernel's pieces use."""
    lines = []
    if b.local is not None:
        lines += ["\t.local .align 16 .b8 \t__local_depot0[16];", "\t.reg .b64 \t%SP;", "\t.reg .b64 \t%SPL;"]
    if "tile" in b.uses:
        lines.append(f"\t.shared .align 4 .b8 \ttile[{4 * TILE}];")
    if "bins" in b.uses:
        lines.append(f"\t.shared .align 4 .b8 \tbins[{4 * BINS}];")
    return lines


def beginning(b: Build) -> list[str]:
    """Code ahead of everything: the local frame, the shared table and counters, a barrier."""
    lines = ["\tmov.u64 \t%SPL, __local_depot0;"] if b.local is not None else []
    if not b.uses & {"tile", "bins"}:
        return lines
    w = Writer(registers=b.w.registers, labels=b.w.labels)
    # Every thread writes what is its share; blocks of few threads write more than one word a thread.
    linear = w.do("mad.lo.s32", "b32", _special(w, "%tid.z"), _special(w, "%ntid.y"), _special(w, "%tid.y"))
    linear = w.do("mad.lo.s32", "b32", linear, _special(w, "%ntid.x"), _special(w, "%tid.x"))
    for name, words in (("tile", TILE), ("bins", BINS)):
        if name not in b.uses:
            continue
        head, done = w.label(), w.label()
        at = w.do("mov.u32", "b32", linear)
        test = w.do("setp.ge.u32", "pred", at, words)
        w.emit(f"@{test} bra \t{done}")
        w.place(head)
        value = w.do("mul.lo.s32", "b32", at, 2654435 if name == "tile" else 0)
        address = w.do("mad.lo.s32", "b32", at, 4, w.do("mov.u32", "b32", name))
        w.emit(f"st.shared.u32 \t[{address}], {value}")
        w.emit(f"add.s32 \t{at}, {at}, {b.threads}")
        w.emit(f"setp.lt.u32 \t{test}, {at}, {words}")
        w.emit(f"@{test} bra \t{head}")
        w.place(done)
    w.emit("bar.sync \t0")
    b.w.labels = w.labels
    return [*lines, *w.lines]


def ending(b: Build, scope: Scope, thread: str) -> None:
    """Code behind everything: each thread that is still there adds its share of the shared counters."""
    w = b.w
    if "bins" not in b.uses:
        return
    w.emit("bar.sync \t0")
    index = w.do("and.b32", "b32", thread, BINS - 1)
    address = w.do("mad.lo.s32", "b32", index, 4, w.do("mov.u32", "b32", "bins"))
    value = w.do("ld.shared.u32", "b32", f"[{address}]")
    target = w.do("add.s64", "b64", pointer(b, scope, "counters"), w.do("mul.wide.u32", "b64", index, 4))
    assert BINS <= COUNTERS
    w.emit(f"red.global.add.u32 \t[{target}], {value}")


def _special(w: Writer, name: str) -> str:
    return w.do("mov.u32", "b32", name)
