"""Damaged PTX: it is read, printed and read again as the same, or told with a place in the text; nothing else happens.

``python -m tests.ptx.test_fuzz SECONDS [SEED]`` hunts for longer.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Callable, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cccopt
from cccopt.analysis import cfg
from cccopt.analysis.liveness import liveness
from cccopt.diagnostic import CccError, render
from cccopt.ptx.errors import PtxError
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from cccopt.ptx.verifier import verify
from tests.kernels.generators.kernels import from_seed
from tests.ptx.conftest import HERE
from tests.slow import drawn

_TOKEN = re.compile(r"//[^\n]*|\s+|[.%$]?[\w.:]+|.", re.S)
ODD = [
    *"{}()[]<>,;:@!|+-~=.\"'/\\ \t\r\n\0\x01\ufeff\udcff\u00e9_%",
    *(
        "//",
        "/*",
        "*/",
        "0",
        "08",
        "0x",
        "1e",
        "-1",
        "99999999999999999999",
        "<3>",
        "WARP_SZ",
        "%p1",
        "%r1",
        "%rd1",
    ),
    *(
        ".reg",
        ".param",
        ".entry",
        ".func",
        ".b32",
        ".v4",
        ".pred",
        "ret;",
        "bra",
        "call",
        "generic(",
        "// ccc ",
    ),
    *("// ccc for.begin 1 line=1:2\n", "// ccc if.begin 2 line=9 file=\0\n", " line=", " block=", " file=/"),
]


def originals() -> list[str]:
    """Valid texts: hand-written ones, and a kernel with marked loops."""
    names = ("features", "forms", "declarations")
    return [*((HERE / f"{name}.ptx").read_text() for name in names), *(from_seed(n).ptx for n in range(4))]


def pieces_of(text: str, kind: str) -> list[str]:
    """``text`` in characters, tokens or lines."""
    if kind == "lines":
        return text.splitlines(keepends=True)
    return list(text) if kind == "characters" else _TOKEN.findall(text)


def damaged(text: str, kind: str, number: Callable[[int], int]) -> str:
    """``text`` with a few pieces deleted, put in, replaced, doubled, swapped or cut off; ``number(n)`` is below n."""
    pieces = pieces_of(text, kind)
    for _ in range(1 + number(3)):
        at, other, change = number(len(pieces)), number(len(pieces)), number(7)
        if change == 0:
            del pieces[at : at + 1 + number(4)]
        elif change == 1:
            pieces.insert(at, ODD[number(len(ODD))])
        elif change == 2:
            pieces[at] = ODD[number(len(ODD))]
        elif change == 3:
            pieces[at] = pieces[other]
        elif change == 4:
            pieces[at], pieces[other] = pieces[other], pieces[at]
        elif change == 5:
            pieces[at:at] = pieces[other : other + 1 + number(30)]
        else:
            del pieces[at:]
        pieces = pieces or [""]
    return "".join(pieces)


def check(text: str) -> None:
    """What must hold of any text at all."""
    try:
        module = parse(text, "x.ptx")
    except PtxError as problem:
        (diagnostic,) = problem.diagnostics
        assert diagnostic.code in {"CCC001", "CCC002", "CCC003", "CCC004", "CCC005"}
        assert diagnostic.place is not None
        lines = text.split("\n")
        line, column = diagnostic.place.position.line, diagnostic.place.position.column
        assert 1 <= line <= len(lines)
        assert 1 <= column <= len(lines[line - 1]) + 1
        assert len(render(diagnostic)) < 2000
        return
    printed = print_module(module)
    assert parse(printed) == module
    assert print_module(parse(printed)) == printed
    try:
        verify(module)
        for function in module.functions():
            if function.body is not None:
                liveness(cfg.build(function.body), function.body)
        cccopt.transform(text, ccc="always", name="x.ptx")
    except CccError:
        pass  # refused in our own words


TEXTS = originals()


@settings(max_examples=drawn(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(TEXTS),
    st.sampled_from(["characters", "tokens", "lines"]),
    st.randoms(use_true_random=False),
)
def test_damaged_texts(text: str, kind: str, choices: random.Random) -> None:
    check(damaged(text, kind, lambda n: choices.randrange(max(n, 1))))


@pytest.mark.parametrize(
    "text",
    [
        ".func f () { .reg .pred .f32 %f<2>; mov.f32 %f1, %f0; }",
        ".func f () { .reg .v4 .v4 .f32 %f<2>; mov.f32 %f1, %f0; }",
        ".func f (.reg a) { mov.u32 a, a; }",
    ],
)
def test_types_of_registers_that_are_none(text: str) -> None:
    with pytest.raises(PtxError, match="is not a register type"):
        verify(parse(text))


def test_every_truncation_of_a_small_text() -> None:
    text = TEXTS[0][:600]
    for end in range(len(text)):
        check(text[:end])


def main(seconds: float, seed: int) -> int:
    """Damage texts at random; print what fails. Returns how many failed."""
    choices = random.Random(seed)
    end, tried, failures = time.monotonic() + seconds, 0, set[str]()
    while time.monotonic() < end:
        kind = choices.choice(["characters", "tokens", "tokens", "lines"])
        text = damaged(choices.choice(TEXTS), kind, lambda n: choices.randrange(max(n, 1)))
        tried += 1
        start = time.monotonic()
        try:
            check(text)
        except Exception as problem:
            frames = []
            trace = problem.__traceback__
            while trace is not None:
                frames.append(f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}")
                trace = trace.tb_next
            name = f"{type(problem).__name__} at {' '.join(frames[-4:])}"
            if name not in failures:
                failures.add(name)
                print(name, str(problem)[:300], repr(text[:200]), sep="\n  ", flush=True)
                with open(f"fuzz-{len(failures)}.ptx", "w", errors="surrogateescape", newline="") as file:
                    file.write(text)
        if time.monotonic() - start > 5:
            print(f"slow: {time.monotonic() - start:.1f} s", repr(text[:100]), flush=True)
    print(f"{tried} texts, {len(failures)} kinds of failures")
    return len(failures)


def _arguments(argv: Sequence[str]) -> tuple[float, int]:
    return float(argv[1]), int(argv[2]) if len(argv) > 2 else 0


if __name__ == "__main__":
    sys.exit(bool(main(*_arguments(sys.argv))))
