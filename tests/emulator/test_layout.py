"""Where local variables of functions lie."""

from __future__ import annotations

from cccopt.emulator.layout import Frames


def test_frames_of_recursive_functions_come_after_all_others() -> None:
    sizes = {"k": 32, "r": 16, "f": 48, "s": 64}
    frames = Frames.of(sizes, ["k", "r", "f", "g", "s"], frozenset({"r", "s"}))
    assert frames.starts == {"k": 0, "f": 32, "g": 80, "r": 80, "s": 96}
    assert (frames.single, frames.per_depth) == (80, 80)


def test_without_recursion_no_depth_needs_memory() -> None:
    frames = Frames.of({"k": 32}, ["k"], frozenset())
    assert (frames.single, frames.per_depth) == (32, 0)


def test_with_locals_in_recursive_functions_alone_frames_begin_at_zero() -> None:
    frames = Frames.of({"r": 16}, ["k", "r"], frozenset({"r"}))
    assert (frames.starts["r"], frames.single, frames.per_depth) == (0, 0, 16)
