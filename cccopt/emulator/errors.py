"""What the machine says when a kernel does wrong: one exception, codes CCC070 to CCC079."""

from __future__ import annotations

from cccopt.diagnostic import CccError

UNSUPPORTED = "CCC070"  # an opcode, modifier or operand that the machine does not know
OUT_OF_BOUNDS = "CCC071"  # an access outside every allocation
MISALIGNED = "CCC072"  # an address that is not a multiple of the access's size
HAZARD = "CCC073"  # two lanes touch the same shared bytes with no barrier between
DEADLOCK = "CCC074"  # all that is left waits
STEP_LIMIT = "CCC075"  # max_steps reached
LAUNCH = "CCC076"  # a bad launch: kernel name, sizes, arguments
UNWRITTEN = "CCC077"  # a read of shared memory that was never written
TRAPPED = "CCC078"  # the kernel ran `trap`
MALFORMED = "CCC079"  # PTX that does not hold together: unknown names, wrong widths, call depth


class EmulatorError(CccError):
    """An error of the emulated program or of its launch."""
