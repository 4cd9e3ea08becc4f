"""Large kernels: what the passes ask of chains of statements must not grow exponentially, nor overflow the stack."""

from __future__ import annotations

import pytest

import cccopt

KERNEL = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n) .maxntid 128, 1, 1
{{
	.reg .pred %p<4>;
	.reg .b32 %r<{registers}>;
	.reg .b64 %rd<5>;
	ld.param.u64 %rd1, [p];
	ld.param.u32 %r1, [n];
	mov.u32 %r2, %tid.x;
	// ccc for.begin 1
	setp.ge.u32 %p1, %r2, %r1;
	@%p1 bra DONE;
LOOP:
	// ccc body.begin 1
	and.b32 %r3, %r2, 5;
	setp.eq.s32 %p2, %r3, 1;
	mov.u32 %r9, {seed};
	@%p2 bra PATH;
	bra JOIN;
PATH:
	// ccc if.begin 2 independent
{chain}
	mul.wide.u32 %rd2, {inside}, 4;
	add.s64 %rd2, %rd1, %rd2;
	st.global.u32 [%rd2], %r3;
	// ccc if.end 2
JOIN:
	mul.wide.u32 %rd3, %r2, 4;
	add.s64 %rd4, %rd1, %rd3;
	st.global.u32 [%rd4], {behind};
	// ccc body.end 1
	add.s32 %r2, %r2, 128;
	setp.lt.u32 %p3, %r2, %r1;
	@%p3 bra LOOP;
DONE:
	// ccc for.end 1
	ret;
}}
"""


def kernel(rounds: int, seed: str, behind: bool) -> str:
    """A path that hashes ``seed``, each round reading the one before twice; behind it the hash is read, or not."""
    chain = [
        f"\tshr.u32 %r{11 + 2 * i}, %r{(10 if i else 9) + 2 * i}, 3;\n"
        f"\txor.b32 %r{12 + 2 * i}, %r{(10 if i else 9) + 2 * i}, %r{11 + 2 * i};"
        for i in range(rounds)
    ]
    last = f"%r{10 + 2 * rounds}"
    return KERNEL.format(
        registers=12 + 2 * rounds,
        seed=seed,
        chain="\n".join(chain),
        inside="%r2" if behind else last,
        behind=last if behind else "%r3",
    )


@pytest.mark.parametrize("rounds", [40, 1000])
def test_an_address_that_is_a_hash(rounds: int) -> None:
    with pytest.raises(cccopt.CccError, match="per-thread memory"):
        cccopt.transform(kernel(rounds, "%tid.x", behind=False), ccc="always", form="carried")
    assert cccopt.transform(kernel(rounds, "%r2", behind=False), ccc="always").report["units"][0]["regions"]


@pytest.mark.parametrize("rounds", [2, 40, 1000])
def test_a_hash_that_is_read_behind_the_path(rounds: int) -> None:
    text = cccopt.transform(kernel(rounds, "%r3", behind=True), ccc="always").ptx
    assert f"%r{10 + 2 * rounds};" in text
