"""What users choose, and what becomes of an annotation."""

from __future__ import annotations

from cccopt.choice import Choice


class Mode(Choice):
    """Whether to rewrite what is expected to pay; everything that can be rewritten, except loops that nvcc would
    unroll; or nothing.
    """

    AUTO = "auto"
    ALWAYS = "always"
    OFF = "off"


class Form(Choice):
    """The form of a rewritten loop (`cccopt.ccc.plan.form`), or of a path whose inner iterations are laid side by side.
    In the `CARRIED` form tasks are whole rests of iterations (`cccopt.ccc.legality.carrying`), in the `IN_LANE` form
    there are none (`cccopt.ccc.plan.in_lane`).

    ``AUTO`` leaves the choice to the plan; ``NONE`` is that of code which stays as it is.
    """

    NONE = ""
    AUTO = "auto"
    SPLIT = "split"
    IDLE_LANES = "idle lanes"
    EXPANDED = "expanded"
    CARRIED = "carried"
    IN_LANE = "in lane"


class StackMemory(Choice):
    """Where stacks are: ``AUTO`` is shared memory, or global memory where they do not fit."""

    AUTO = "auto"
    SHARED = "shared"
    GLOBAL = "global"


class Outcome(Choice):
    """What became of an annotation."""

    REWRITTEN = "rewritten"
    DECLINED = "declined"
