"""Kernels for Triton, compiled ahead of time: ``kernels()`` gives what each is compiled with.

Not imported by the tests: the module needs Triton (extra ``corpus``).
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, inside) + tl.load(y + i, inside, other=1.0), inside)


@triton.jit
def softmax(x, out, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + at, at < columns, other=-float("inf"))
    v = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * stride + at, v / tl.sum(v, 0), at < columns)


@triton.jit
def product(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    total = tl.zeros((M, N), dtype=tl.float32)
    for at in range(0, k, K):
        left = tl.load(a + rows[:, None] * k + (at + inner)[None, :])
        right = tl.load(b + (at + inner)[:, None] * n + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(c.dtype.element_ty), (rows < m)[:, None])


@triton.jit
def described(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
    result = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    total = tl.zeros((M, N), dtype=tl.float32)
    for at in range(0, k, K):
        total = tl.dot(left.load([row, at]), right.load([at, column]), total)
    result.store([row, column], total.to(tl.float16))


@triton.jit
def attention(q, k, v, out, length, scale, ROWS: tl.constexpr, STEP: tl.constexpr, WIDTH: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    width = tl.arange(0, WIDTH)
    query = tl.load(q + rows[:, None] * WIDTH + width[None, :])
    most = tl.full((ROWS,), -float("inf"), tl.float32)
    norm = tl.zeros((ROWS,), tl.float32)
    total = tl.zeros((ROWS, WIDTH), tl.float32)
    for start in range(0, length, STEP):
        at = start + tl.arange(0, STEP)
        key = tl.load(k + at[None, :] * WIDTH + width[:, None])
        score = tl.dot(query, key) * scale
        score = tl.where(at[None, :] < length, score, -float("inf"))
        new = tl.maximum(most, tl.max(score, 1))
        part = tl.exp2(score - new[:, None])
        shrink = tl.exp2(most - new)
        norm = norm * shrink + tl.sum(part, 1)
        value = tl.load(v + at[:, None] * WIDTH + width[None, :])
        total = tl.dot(part.to(value.dtype), value, total * shrink[:, None])
        most = new
    tl.store(out + rows[:, None] * WIDTH + width[None, :], (total / norm[:, None]).to(out.dtype.element_ty))


@triton.jit
def normalized(x, weight, out, mean, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * n + at, at < n, other=0.0).to(tl.float32)
        total += v
        squares += v * v
    average = tl.sum(total, 0) / n
    scale = tl.rsqrt(tl.sum(squares, 0) / n - average * average + eps)
    tl.store(mean + row, average)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = (tl.load(x + row * n + at, at < n) - average) * scale * tl.load(weight + at, at < n)
        tl.store(out + row * n + at, v.to(out.dtype.element_ty), at < n)


@triton.jit
def counted(x, bins, n, lock, best, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, at < n, other=0)
    tl.atomic_add(bins + v % 16, 1, at < n)
    tl.atomic_max(best, tl.max(v, 0))
    tl.atomic_add(bins + 16, tl.sum(v, 0), sem="relaxed", scope="cta")
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(best + 1, tl.load(best + 1, volatile=True) + 1)
    tl.atomic_xchg(lock, 0)
    tl.store(bins + 32 + tl.arange(0, 32), tl.histogram(v, 32))


@triton.jit
def plus(a, b):
    return a + b


@triton.jit
def scanned(x, out, where, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(out + at, tl.associative_scan(v, 0, plus) + tl.cumsum(v, 0, reverse=True) + tl.sort(v))
    tl.store(where, tl.argmax(v, 0) + tl.argmin(v, 0))
    square = tl.reshape(v, (BLOCK // 16, 16))
    tl.store(out + BLOCK + at, tl.reshape(tl.trans(square), (BLOCK,)) + tl.flip(v) + tl.xor_sum(at, 0))


@triton.jit
def random(out, seed, p, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    kept = tl.rand(seed, at) > p
    tl.store(out + at, tl.where(kept, tl.randn(seed, at), 0.0))


@triton.jit
def mathematics(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    v = tl.sin(v) + tl.cos(v) + tl.erf(v) + tl.log2(v) + tl.sqrt_rn(v) + tl.div_rn(v, 3.0) + tl.floor(v)
    v += libdevice.tanh(v) + libdevice.pow(v, 1.5) + libdevice.atan2(v, v + 1) + tl.fma(v, v, v) + tl.abs(v)
    v = tl.clamp(v, -1.0, 1.0) + tl.inline_asm_elementwise(
        "ex2.approx.ftz.f32 $0, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(out + at, v)


@triton.jit
def converted(x, small, whole, half, wide, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at, eviction_policy="evict_first") + tl.load(x + at, cache_modifier=".cg")
    tl.store(small + at, v.to(tl.float8e5))
    tl.store(whole + at, v.to(tl.int8), cache_modifier=".wt")
    tl.store(
        half + at, v.to(tl.bfloat16) * 3 + tl.load(small + at).to(tl.bfloat16), eviction_policy="evict_last"
    )
    number = tl.load(wide + at)
    tl.store(wide + at, tl.umulhi(number, 12345) + number // 7 + number % 5 + (number << 3) + (number >> 2))


@triton.jit
def walked(starts, values, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    first, last = tl.load(starts + row), tl.load(starts + row + 1)
    total = 0.0
    i = first
    while i < last:
        at = i + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(values + at, at < last, other=0.0), 0)
        i += BLOCK
    tl.device_assert(last >= first, "rows are sorted")
    if total > 3.0:
        tl.device_print("large: ", total)
        tl.store(out + row, total)
    elif n == 7:
        tl.store(out + row, -total)
    else:
        for j in tl.static_range(3):
            tl.store(out + row + j * n, total)


POINTERS = {"x": "*fp32", "y": "*fp32", "out": "*fp32"}


def kernels():
    """Name, function, signature, constants, options and the targets (compute capability times ten)."""
    half = {"a": "*fp16", "b": "*fp16", "c": "*fp16", "m": "i32", "n": "i32", "k": "i32"}
    tile = {"M": 64, "N": 64, "K": 32}
    large = {"M": 128, "N": 128, "K": 64}
    everywhere = (75, 80, 90, 100, 120)
    new = (90, 100)
    flash = {"q": "*fp16", "k": "*fp16", "v": "*fp16", "out": "*fp16", "length": "i32", "scale": "fp32"}
    blocks = {"ROWS": 64, "STEP": 32, "WIDTH": 64}
    yield "add", add, {**POINTERS, "n": "i32"}, {"BLOCK": 1024}, {}, everywhere
    yield (
        "add64",
        add,
        {"x": "*fp64", "y": "*fp64", "out": "*fp64", "n": "i64"},
        {"BLOCK": 256},
        {"num_warps": 8},
        (80, 90),
    )
    signature = {"x": "*fp32", "out": "*fp32", "stride": "i32", "columns": "i32"}
    yield "softmax", softmax, signature, {"BLOCK": 2048}, {"num_warps": 8}, everywhere
    yield "product", product, half, tile, {"num_stages": 3}, everywhere
    yield "product_tf32", product, {**half, "a": "*fp32", "b": "*fp32", "c": "*fp32"}, tile, {}, (80, 90)
    yield (
        "product_large",
        product,
        {**half, "a": "*bf16", "b": "*bf16"},
        large,
        {"num_warps": 8, "num_stages": 4},
        (80, *new),
    )
    yield "product_fp8", product, {**half, "a": "*fp8e4nv", "b": "*fp8e4nv"}, large, {"num_warps": 8}, new
    yield "described", described, half, large, {"num_warps": 8, "num_stages": 3}, new
    yield "attention", attention, flash, blocks, {"num_stages": 2}, (80, *new)
    rows = {"x": "*fp16", "weight": "*fp16", "out": "*fp16", "mean": "*fp32", "n": "i32", "eps": "fp32"}
    yield "normalized", normalized, rows, {"BLOCK": 512}, {}, everywhere
    bins = {"x": "*i32", "bins": "*i32", "n": "i32", "lock": "*i32", "best": "*i32"}
    yield "counted", counted, bins, {"BLOCK": 512}, {}, everywhere
    yield "scanned", scanned, {"x": "*i32", "out": "*i32", "where": "*i32"}, {"BLOCK": 256}, {}, (80, *new)
    yield "random", random, {"out": "*fp32", "seed": "i32", "p": "fp32"}, {"BLOCK": 512}, {}, (75, 90)
    yield "mathematics", mathematics, {"x": "*fp32", "out": "*fp32"}, {"BLOCK": 256}, {}, everywhere
    mixed = {"x": "*fp32", "small": "*fp8e5", "whole": "*i8", "half": "*bf16", "wide": "*i64"}
    yield "converted", converted, mixed, {"BLOCK": 512}, {}, (80, 90, 100)
    ragged = {"starts": "*i32", "values": "*fp32", "out": "*fp32", "n": "i32"}
    yield "walked", walked, ragged, {"BLOCK": 128}, {"debug": True}, (75, 80, 90)
