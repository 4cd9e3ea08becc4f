"""Kernels for numba-cuda, compiled without a GPU: ``kernels()`` gives what each is compiled with.

Not imported by the tests: the module needs numba-cuda (extra ``corpus``).
"""

from __future__ import annotations

import math

from numba import complex64, cuda, float32, float64, int8, int32, int64, types, uint8, uint32, uint64


def doubled(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] * 2


def product(a, b, c):
    left = cuda.shared.array((16, 16), float32)
    right = cuda.shared.array((16, 16), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0.0)
    for step in range((a.shape[1] + 15) // 16):
        left[tx, ty] = a[x, ty + step * 16]
        right[tx, ty] = b[tx + step * 16, y]
        cuda.syncthreads()
        for k in range(16):
            total += left[tx, k] * right[k, ty]
        cuda.syncthreads()
    c[x, y] = total


def counted(x, bins, best):
    room = cuda.local.array(32, int32)
    for k in range(32):
        room[k] = 0
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        room[x[i] % 32] += 1
    for k in range(32):
        cuda.atomic.add(bins, k, room[k])
    cuda.atomic.max(best, 0, room[0])
    cuda.atomic.min(best, 1, room[1])
    cuda.atomic.cas(best, 2, 0, 1)
    cuda.atomic.exch(best, 3, 7)
    cuda.threadfence()


def voted(x, out):
    i = cuda.grid(1)
    lane = cuda.laneid
    v = x[i]
    mask = cuda.ballot_sync(0xFFFFFFFF, v > 3)
    v += cuda.shfl_down_sync(0xFFFFFFFF, v, 1) + cuda.shfl_xor_sync(0xFFFFFFFF, v, 2)
    if cuda.any_sync(mask, v > 7) and cuda.all_sync(mask, v < 99):
        v += cuda.popc(mask) + cuda.clz(mask) + cuda.ffs(mask) + cuda.brev(mask)
    cuda.syncwarp()
    out[i] = v + lane + cuda.match_any_sync(0xFFFFFFFF, v)


def mathematics(x, out):
    i = cuda.grid(1)
    v = x[i]
    v = math.sin(v) + math.cos(v) + math.exp(v) + math.log(v) + math.sqrt(v) + math.pow(v, 1.5) + math.erf(v)
    v += math.floor(v) + math.ceil(v) + math.fabs(v) + math.atan2(v, 2.0) + math.tanh(v) + math.gamma(v)
    if not (math.isnan(v) or math.isinf(v)):
        out[i] = cuda.fma(v, v, v) + cuda.cbrt(v)


def integers(a, b, out):
    i = cuda.grid(1)
    x, y = a[i], b[i]
    out[i] = (x // y) ^ (x % y) | (x << 3) & (y >> 2) + x * y - min(x, y) + max(x, y) + abs(x)


def spun(z, steps):
    i = cuda.grid(1)
    c = z[i]
    w = c
    n = 0
    while n < 200 and abs(w) < 2.0:
        w = w * w + c
        n += 1
    steps[i] = n


def walked(starts, edges, front, level, depth):
    i = cuda.grid(1)
    if i >= front.size:
        return
    node = front[i]
    for e in range(starts[node], starts[node + 1]):
        to = edges[e]
        if level[to] >= 0:
            continue
        if to == node:
            break
        level[to] = depth


def checked(x, out):
    i = cuda.grid(1)
    if x[i] < 0:
        raise ValueError("negative")
    assert x[i] != 7
    print("value", i, x[i])
    out[i] = 100 // x[i]


def dynamic(x, out):
    room = cuda.shared.array(0, float64)
    i = cuda.threadIdx.x
    room[i] = x[i]
    cuda.syncthreads()
    step = cuda.blockDim.x // 2
    while step > 0:
        if i < step:
            room[i] += room[i + step]
        cuda.syncthreads()
        step //= 2
    if i == 0:
        out[cuda.blockIdx.x] = room[0]


def chosen(x, kind):
    return x + 1 if kind == 0 else x * 2.5 if kind == 1 else -x


def kernels():
    """Name, function, signature, options and the targets (compute capability times ten)."""
    few = (80, 100)
    all_ = (75, 80, 90, 100, 120)
    for name, type_ in (("f32", float32), ("f64", float64), ("i8", int8), ("u64", uint64)):
        yield f"doubled_{name}", doubled, (type_[:], type_[:]), {}, few
    matrix = float32[:, ::1]
    yield "product", product, (matrix, matrix, matrix), {}, all_
    yield "product_G", product, (matrix, matrix, matrix), {"debug": True, "opt": False}, (80, 90)
    yield "product_lineinfo", product, (matrix, matrix, matrix), {"lineinfo": True}, (90,)
    yield "counted", counted, (int32[:], int32[:], int32[:]), {}, all_
    yield "voted", voted, (int32[::1], int64[::1]), {}, (75, 90)
    yield "mathematics_f32", mathematics, (float32[::1], float32[::1]), {}, few
    yield "mathematics_fast", mathematics, (float32[::1], float32[::1]), {"fastmath": True}, few
    yield "mathematics_f64", mathematics, (float64[::1], float64[::1]), {}, (90,)
    for name, type_ in (("i32", int32), ("i64", int64), ("u32", uint32), ("u8", uint8)):
        yield f"integers_{name}", integers, (type_[::1], type_[::1], type_[::1]), {}, few
    yield "spun", spun, (complex64[::1], int32[::1]), {}, (75, 90, 120)
    yield "walked", walked, (int32[::1], int32[::1], int32[::1], int32[::1], int32), {}, all_
    yield "walked_O0", walked, (int32[:], int32[:], int32[:], int32[:], int32), {"opt": False}, (75, 100)
    yield "checked", checked, (int32[::1], int32[::1]), {"debug": True, "opt": False}, (80, 90)
    yield "printed", checked, (int32[::1], int32[::1]), {}, few
    yield "dynamic", dynamic, (float64[::1], float64[::1]), {}, all_
    yield "chosen", chosen, types.float64(types.float64, types.int32), {"device": True}, few
