"""What nvcc writes, from no optimization with debug information to -O3, for old and new targets: one answer."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cccopt.emulator import Program
from cccopt.toolchain.discovery import find_nvcc

pytestmark = pytest.mark.nvcc
SOURCE = Path(__file__).parent / "cuda" / "mixed.cu"
BUILDS = {
    "O3": ("-O3", "-arch=sm_90"),
    "debug": ("-G", "-arch=sm_90"),
    "old": ("-O3", "-arch=sm_75", "-lineinfo"),
    "new": ("-O3", "-arch=sm_100"),
}
N, BLOCK = 150, 64
GRID = -(-N // BLOCK)


@pytest.fixture(scope="module", params=BUILDS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Program:
    ptx = tmp_path_factory.mktemp("ptx") / f"{request.param}.ptx"
    command = [str(find_nvcc().path), *BUILDS[request.param], "-w", "-ptx", str(SOURCE), "-o", str(ptx)]
    subprocess.run(command, check=True, capture_output=True)
    return Program(ptx.read_text(), ptx.name)


def drawn() -> Any:
    return np.random.default_rng(11).integers(-(2**31), 2**31, N).astype(np.int32)


def ackermann(m: int, n: int) -> int:
    return n + 1 if m == 0 else ackermann(m - 1, 1) if n == 0 else ackermann(m - 1, ackermann(m, n - 1))


def wrapped(x: int, bits: int) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def mix(x: int) -> int:
    mask = (1 << 64) - 1
    x &= mask
    x ^= x >> 33
    x = x * 0xFF51AFD7ED558CCD & mask
    x ^= x >> 29
    return (x << 17 | x >> 47) & mask


def expected_integer(v: int, w: int) -> int:
    """`integers` of mixed.cu in Python."""

    def i32(x: int) -> int:
        return wrapped(x, 32)

    scratch = [i32(i32(v * (k + 1)) ^ w >> k) for k in range(8)]
    total = scratch[v & 7] + scratch[w & 7] * 3
    quotient = abs(v) // abs(w) * (1 if (v < 0) == (w < 0) else -1) if w else 0
    total += i32(quotient + v - quotient * w) if w else -1
    u = v & 0xFFFFFFFF
    leading = 32 - (w & 0xFFFFFFFF).bit_length()
    first = (u & -u).bit_length()
    # Unsigned terms make the sum of the line unsigned.
    total += (u // 7 + bin(u).count("1") + leading + first + int(f"{u:032b}"[::-1], 2) % 1000) & 0xFFFFFFFF
    high = wrapped(mix(w) * mix(v) >> 64, 64)
    total += mix(v) % 1000003 + (v * w >> 32) + abs(high) % 97 * (1 if high >= 0 else -1)
    total += i32(i32(min(v, w) * 5) - max(v, w) + i32(abs(w)) + (i32(v << 3) if v > w else w >> 2))
    case = v & 7
    if case == 0:
        total += 11
    elif case in (1, 2):
        total = (total - 5 if case == 1 else total) * 3
    elif case == 5:
        total = wrapped(total, 64) ^ 0xFF
    else:
        total += w
    return wrapped(total + ackermann(v & 1, w & 3), 64)


def test_integers(program: Program) -> None:
    a, out = drawn(), np.zeros(N, np.int64)
    program.launch("integers", GRID, BLOCK, [N, a, out])
    values = [int(x) for x in a]
    assert out.tolist() == [expected_integer(v, values[(i + 1) % N]) for i, v in enumerate(values)]


def test_floats(program: Program) -> None:
    rng = np.random.default_rng(12)
    x, y = rng.normal(0, 5, N).astype(np.float32), rng.normal(0, 5, N)
    out, wide = np.zeros(N, np.float32), np.zeros(N)
    program.launch("floats", GRID, BLOCK, [N, x, y, out, wide])
    a = x.astype(np.float64)
    f = np.sin(a) + np.cos(np.float32(3) * x) + np.exp(a * 0.1) + np.log(abs(a) + 1) + np.sqrt(abs(a))
    f += (abs(a) + 0.5) ** 1.3 + np.floor(a) + np.rint(x * np.float32(2.5)) + np.fmod(x, np.float32(0.7))
    f += np.tanh(a) + np.arctan2(a, 2) + np.trunc(a) + a / 3
    np.testing.assert_allclose(out, f, rtol=3e-6, atol=3e-5)
    d = np.sin(y) + np.exp(y * 0.1) + np.log(abs(y) + 1) + np.sqrt(abs(y)) + (abs(y) + 0.5) ** 1.3 + y / 3
    d += y * y - 1 + np.floor(y) + np.trunc(y * 1e6) + np.cbrt(y) + np.vectorize(math.erf)(y)
    np.testing.assert_allclose(wide, d, rtol=1e-13)


@pytest.mark.parametrize("shuffle", [None, 5])
def test_shared_memory_shuffles_and_atomics(program: Program, shuffle: int | None) -> None:
    layout = np.dtype([("key", "i4"), ("weight", "i2"), ("flags", "u1"), ("value", "f8")], align=True)
    a, items = drawn(), np.zeros(N, layout)
    items["key"], items["weight"], items["value"] = a, a % 1000, a / 7
    items["flags"] = a & 255
    sums, histogram = np.zeros(GRID, np.int32), np.zeros(17, np.int32)
    before = items.copy()
    options: dict[str, Any] = {
        "shared_bytes": 4 * BLOCK,
        "shuffle": shuffle,
        "check_uninitialized_shared": True,
    }
    program.launch("block_sums", GRID, BLOCK, [N, a, sums, histogram, items], **options)
    padded = np.zeros(GRID * BLOCK, np.int32)
    padded[:N] = a
    blocks = padded.reshape(GRID, BLOCK)
    assert sums.tolist() == (blocks & 1023).sum(axis=1).tolist()
    cells = (blocks & 15).reshape(-1)
    mirrored = (blocks & 15)[:, ::-1].reshape(-1)[:N]
    assert histogram[:16].tolist() == np.bincount(mirrored, minlength=16).tolist()
    assert (items["key"] == before["key"] + cells[np.arange(N) ^ 1]).all()
    assert (items["weight"] == (before["weight"].astype(int) * 3).astype(np.int16)).all()
    assert (items["flags"] == before["flags"] ^ 0x5A).all()
    assert (items["value"] == before["value"] * 1.5).all()
    if shuffle is None:
        warps = [cells[:N][w : w + 32] for w in range(0, N, 32)]
        largest = max(int(n) for warp in warps for n in np.bincount(warp[warp > 7], minlength=1))
        assert histogram[16] == largest
