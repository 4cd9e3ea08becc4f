"""What the code of a watched program calls. Code generation knows no more about `record` than this."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from cccopt.emulator.access import MemoryAccess
from cccopt.emulator.groups import LaneGroup
from cccopt.emulator.iterations import Event
from cccopt.emulator.semantics import Array


class Executable(Protocol):
    """A memory instruction that code calls: a `MemoryAccess` or its replacement."""

    def load(self, address: Array, group: LaneGroup) -> Array:
        """See `MemoryAccess.load`."""

    def store(self, address: Array, values: Array, group: LaneGroup) -> None:
        """See `MemoryAccess.store`."""

    def atomic(
        self,
        operation: str,
        want_old: bool,
        address: Array,
        group: LaneGroup,
        b: Array,
        c: Array | None = None,
    ) -> Any:
        """See `MemoryAccess.atomic`."""


class Watcher(Protocol):
    """Watches the memory instructions and events of a kernel."""

    def watched(self, access: MemoryAccess) -> Executable:
        """The object that code calls in place of ``access``."""

    def happening(self, event: Event) -> Callable[[LaneGroup], None]:
        """The function that code calls where ``event`` happens."""
