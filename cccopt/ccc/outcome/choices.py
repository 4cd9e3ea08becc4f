"""What users choose, and what becomes of an annotation."""

from __future__ import annotations

from cccopt.choice import Choice


class Mode(Choice):
    """What to rewrite: ``auto`` what is expected to pay off; ``always`` everything that can be rewritten, except loops
    that nvcc would unroll or that have nothing to collect; ``off`` nothing.
    """

    AUTO = "auto"
    ALWAYS = "always"
    OFF = "off"


class Form(Choice):
    """The form of a rewritten loop (`cccopt.ccc.plan.form`), or of a path whose inner iterations are laid side by side.
    In the `CARRIED` form, a task is the whole rest of an iteration (`cccopt.ccc.legality.carrying`); the `IN_LANE` form
    has no tasks (`cccopt.ccc.plan.in_lane`).

    ``AUTO`` leaves the choice to the plan; ``NONE`` is the form of code that stays as it is.
    """

    NONE = ""
    AUTO = "auto"
    SPLIT = "split"
    IDLE_LANES = "idle lanes"
    EXPANDED = "expanded"
    CARRIED = "carried"
    IN_LANE = "in lane"


def spelled(form: str) -> str:
    """The name of a `Form` as `--ccc-form` spells it: ``in-lane``, ``idle-lanes``."""
    return form.replace(" ", "-")


class StackMemory(Choice):
    """Where stacks are: ``AUTO`` means shared memory, or global memory if they do not fit there."""

    AUTO = "auto"
    SHARED = "shared"
    GLOBAL = "global"


class Outcome(Choice):
    """What became of an annotation."""

    REWRITTEN = "rewritten"
    DECLINED = "declined"
