"""The options that a user may give to the pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from cccopt.ccc.outcome.choices import Form, Mode, StackMemory
from cccopt.ccc.plan.stack_room import StackOptions
from cccopt.ccc.profitability.decisions import Build
from cccopt.ccc.profitability.profile import RunProfile


@dataclass(frozen=True, slots=True)
class Options:
    """``mode`` is ``auto``, ``always`` or ``off``; with ``keep_going`` a refused function is left as it was.

    ``file`` names the input in messages. ``form`` forces the form of rewritten loops (``split``, ``idle lanes``,
    ``carried``, ``in lane``); with ``auto``, the plan chooses. Without ``expand`` all loops of tasks have stacks.
    ``profile`` says how often lanes reached each region in a run, for `auto`; without one that is assumed. ``resident``
    is how many blocks of a kernel run at once, and share the work of one marked ``grid``; None for as many as the
    largest device of the target holds. ``only`` names the regions to rewrite (`cccopt.passes.selection`); empty for
    all. ``stacks`` is the memory that holds stacks. ``builds`` are functions with a mode and a form of their own, by
    name. With ``relocatable``, other code may be linked to the module.
    """

    mode: Mode = Mode.AUTO
    keep_going: bool = False
    file: str = "<ptx>"
    form: Form = Form.AUTO
    expand: bool = True
    profile: RunProfile | None = None
    resident: int | None = None
    only: tuple[str, ...] = ()
    stacks: StackMemory = StackMemory.AUTO
    builds: Mapping[str, Build] = field(default_factory=dict)
    relocatable: bool = False

    def of(self, function: str) -> Options:
        """The options that hold for a function. One with a build is left as it was rather than refused: other options,
        which no decision covers, may be the cause.
        """
        build = self.builds.get(function)
        if build is None:
            return self
        return replace(self, mode=build.mode, form=build.form, expand=build.expand, keep_going=True)

    @property
    def stack_options(self) -> StackOptions:
        """What plans need to know about these."""
        return StackOptions(self.stacks, self.resident)
