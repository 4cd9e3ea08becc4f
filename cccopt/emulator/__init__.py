"""A CPU warp machine that runs PTX and counts what warps do (DESIGN 7)."""

from cccopt.emulator.errors import EmulatorError
from cccopt.emulator.launch_counters import Profile
from cccopt.emulator.run import Program, emulate
from cccopt.emulator.trace import Trace

__all__ = ["EmulatorError", "Profile", "Program", "Trace", "emulate"]
