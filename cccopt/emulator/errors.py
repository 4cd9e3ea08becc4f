"""The errors of emulated kernels: one exception, with the codes CCC070 to CCC079."""

from __future__ import annotations

from cccopt.diagnostic import CccError

UNSUPPORTED = "CCC070"  # an opcode, modifier or operand that the machine does not know
OUT_OF_BOUNDS = "CCC071"  # an access outside every allocation
MISALIGNED = "CCC072"  # an address that is not a multiple of the access's size
HAZARD = "CCC073"  # two lanes touch the same shared bytes with no barrier between them
DEADLOCK = "CCC074"  # all lanes that have not exited wait
STEP_LIMIT = "CCC075"  # max_steps reached
LAUNCH = "CCC076"  # a bad launch: kernel name, sizes, arguments
UNWRITTEN = "CCC077"  # a read of shared memory that was never written
TRAPPED = "CCC078"  # the kernel ran `trap`
MALFORMED = "CCC079"  # inconsistent PTX: unknown names, wrong widths, call depth


class EmulatorError(CccError):
    """An error of the emulated program or of its launch."""
