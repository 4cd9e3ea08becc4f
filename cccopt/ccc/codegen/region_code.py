"""The inputs for all code of one rewritten loop: the function, the plan, the region's own nodes, and a builder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cccopt.ccc.codegen.builder import Builder
from cccopt.ccc.codegen.own_nodes import OwnNodes
from cccopt.ccc.function.graph import Node
from cccopt.ccc.function.view import View
from cccopt.ccc.plan.plan import Plan
from cccopt.ccc.plan.stack import Value, clear
from cccopt.ptx.ir import Instruction


@dataclass(frozen=True, slots=True)
class RegionCode:
    """The inputs of code generation for one region."""

    view: View
    plan: Plan
    own: OwnNodes
    builder: Builder

    @classmethod
    def of(cls, view: View, plan: Plan) -> RegionCode:
        """The inputs for the region of ``plan``."""
        return cls(view, plan, OwnNodes(view, plan), Builder(view.names, plan.region.annotation.region))

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes of the region and of its preheader that copies are made of, by name."""
        return self.own.nodes

    def live_at(self, name: str) -> frozenset[str]:
        """The registers that are live where the node begins."""
        return self.view.liveness.live_in[self.view.block_of_name[name]]

    def cleared(self, names: Iterable[str]) -> tuple[Instruction, ...]:
        """Code that gives registers of the program (special ones aside) a value."""
        types = self.view.types
        known = types.keys() - self.view.scoped
        return tuple(clear(Value(name, types[name])) for name in sorted(names) if name in known)

    def instruction(self, index: int) -> Instruction:
        """The instruction at a place of the function's body."""
        statement = self.view.body[index]
        assert isinstance(statement, Instruction)
        return statement
