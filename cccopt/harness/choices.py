"""What commands and plans choose from: platforms, and builds of a sample. Members are strings, as tables show them."""

from __future__ import annotations

from cccopt.choice import Choice

SUB_WARPS = tuple(f"sub_warp<{width}>" for width in (2, 4, 8, 16, 32))
"""The widths of CTE's policy `ALL_SUB_WARPS`, each a policy of its own."""

ALL_SUB_WARPS = "sub_warp"
"""A name for all of `SUB_WARPS`."""


class Platform(Choice):
    """What runs kernels."""

    EMULATOR = "emulator"
    GPU = "gpu"


class BuildName(Choice):
    """The builds of a sample.

    ``PLAIN`` is nvcc on the source without pragmas, ``MARKED`` is annotated with the pass off, ``HANDWRITTEN`` is a
    peer in which the collection is written by hand. ``CCC`` is the build in the requested mode; ``ALWAYS`` and ``AUTO``
    are the builds in these modes.
    """

    PLAIN = "plain"
    MARKED = "marked"
    CCC = "ccc"
    ALWAYS = "always"
    AUTO = "auto"
    HANDWRITTEN = "handwritten"
