"""Fresh labels and registers for one function: the output depends only on the input."""

from __future__ import annotations

from collections.abc import Iterable

from cccopt.ptx.ir import Label, Register, RegisterDeclaration, RegisterNames, Statement


class Names:
    """Hands out labels and registers that a function body does not use yet.

    Registers of one type share a numbered declarator (``.reg .b32 %ccc_b32_<7>;``), which `declarations` returns.
    """

    def __init__(self, body: Iterable[Statement], registers: Iterable[str], prefix: str = "ccc") -> None:
        labels = {statement.name for statement in body if isinstance(statement, Label)}
        used = set(registers)
        self._prefix = prefix
        alike = [name for name in used | labels if name.startswith((f"%{prefix}", f"${prefix}"))]
        while any(name.startswith((f"%{self._prefix}_", f"${self._prefix}_")) for name in alike):
            self._prefix += "x"
        self._labels: dict[str, int] = {}
        self._made: set[str] = set()
        self._registers: dict[str, int] = {}

    def label(self, what: str) -> str:
        """A fresh label; ``what`` says what the code after it does: ``$ccc_take``, ``$ccc_take_2``."""
        while True:
            number = self._labels[what] = self._labels.get(what, 0) + 1
            label = f"${self._prefix}_{what}" + (f"_{number}" if number > 1 else "")
            # The second `take` and the first `take_2` would have the same name.
            if label not in self._made:
                self._made.add(label)
                return label

    def made(self, label: str) -> bool:
        """Whether the label was made here."""
        return label.startswith(f"${self._prefix}_")

    def register(self, type: str) -> Register:
        """A fresh register of ``type`` (without dot: ``b32``, ``pred``)."""
        number = self._registers[type] = self._registers.get(type, 0) + 1
        return Register(f"%{self._prefix}_{type}_{number - 1}")

    def declarations(self) -> tuple[RegisterDeclaration, ...]:
        """The declarations of all registers handed out so far."""
        return tuple(
            RegisterDeclaration(f".{type}", (RegisterNames(f"%{self._prefix}_{type}_", count),))
            for type, count in sorted(self._registers.items())
        )
