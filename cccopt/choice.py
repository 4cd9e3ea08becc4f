"""Choices that are text to users, and members of an `Enum` to code."""

from __future__ import annotations

from enum import Enum


class Choice(str, Enum):
    """A choice that becomes its value when it is converted to text: Python 3.10 has no `enum.StrEnum`."""

    def __str__(self) -> str:
        return str(self.value)
