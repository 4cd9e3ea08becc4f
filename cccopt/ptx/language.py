"""The PTX version and target that a module is written for, and the instructions they have (PTX ISA 9.0, 11.1)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from cccopt.ptx.ir import Directive, Instruction, Module
from cccopt.ptx.isa_rows import introduced

_VERSION = re.compile(r"\d{1,3}\.\d{1,3}")
_TARGET = re.compile(r"(?:sm|compute)_(\d{1,4})")


@dataclass(frozen=True, slots=True)
class Language:
    """The PTX version and target that a module names."""

    version: tuple[int, ...]
    target: int

    @classmethod
    def of(cls, module: Module) -> Language:
        return cls(_version(_first(module, ".version")), _target(target_of(module)))

    def has(self, instruction: Instruction) -> bool:
        """Whether this version and target have the family of ``instruction``; True if it is unknown."""
        since = introduced(instruction)
        if since is None:
            return True
        version, target = since
        return self.version >= _version(version) and (target == "" or self.target >= _target(target))


def target_of(module: Module) -> str:
    """The target as spelled (``sm_90a``); empty if the module names none."""
    return _first(module, ".target")


def _first(module: Module, name: str) -> str:
    """The first argument of the first directive ``name``."""
    found = (d for d in module.items if isinstance(d, Directive) and d.name == name and d.arguments)
    return next((directive.arguments[0] for directive in found), "")


@cache
def _version(spelled: str) -> tuple[int, ...]:
    """``(9, 0)`` for ``9.0``; any other form counts as a version that has everything."""
    return tuple(map(int, spelled.split("."))) if _VERSION.fullmatch(spelled) else (999,)


@cache
def _target(spelled: str) -> int:
    """90 for ``sm_90`` and ``sm_90a``: only ptxas knows how targets with the same number differ."""
    found = _TARGET.match(spelled)
    return 999 if found is None else int(found[1])
