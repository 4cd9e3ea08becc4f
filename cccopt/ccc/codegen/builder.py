"""Adds nodes that the program did not have: they count as overhead of one region, and profiles can name some."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cccopt.ccc.function.graph import End, Node, Nodes
from cccopt.ccc.function.names import Names
from cccopt.ptx.ir import Guard, Register, Statement


@dataclass(frozen=True, slots=True)
class Builder:
    """Adds nodes of the region number ``region``, with fresh labels and registers from ``names``."""

    names: Names
    region: int

    def register(self, type: str = "b32") -> Register:
        """A fresh register."""
        return self.names.register(type)

    def flag(self) -> Guard:
        """A fresh predicate, as a guard."""
        return Guard(self.names.register("pred"))

    def label(self, what: str) -> str:
        """A fresh label."""
        return self.names.label(what)

    def node(self, nodes: Nodes, name: str, code: Iterable[Statement], end: End, phase: str = "") -> str:
        """Adds the node ``name`` to ``nodes``; returns its name."""
        nodes[name] = Node(name, tuple(code), end, self.region, phase)
        return name

    def phase(self, nodes: Nodes, phase: str, code: Iterable[Statement], end: End) -> str:
        """Adds a node that profiles can name; returns its name."""
        return self.node(nodes, self.label(phase), code, end, phase)
