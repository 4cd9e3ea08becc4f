"""The region's own nodes, of which all copies are made: without markers, and without what tasks run instead."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from cccopt.ccc.codegen.copies import parting
from cccopt.ccc.function.annotations import is_annotation
from cccopt.ccc.function.code import flag_op, op
from cccopt.ccc.function.graph import Branch, Node, program_order, retarget
from cccopt.ccc.function.view import View
from cccopt.ccc.plan.plan import Plan
from cccopt.ccc.plan.stack import Value, copy_value
from cccopt.ccc.regions.paths import forward
from cccopt.ptx.ir import Guard, Instruction, Label, Register, Statement


class OwnNodes:
    """``nodes`` are those of the region and of its preheader, by name."""

    def __init__(self, view: View, plan: Plan) -> None:
        self.view = view
        self.plan = plan
        hammocks = [h for path in plan.all_paths() for h in path.after.hammocks]
        of_hammocks = {i for h in hammocks for i in (h.branch, *h.statements)}
        self._skip = {
            id(view.body[i]): Guard(r, True) for i, r in plan.skipped.items() if i not in of_hammocks
        }
        self._past = {h.head: (h, plan.skipped[h.branch]) for h in hammocks}
        self._dropped = {id(view.body[i]) for i in plan.dropped}
        self._handed = self._hand_over()
        chosen = plan.region.nodes | plan.region.preheader
        self.nodes = {name: self._stripped(name) for name in program_order(view.graph.nodes, chosen)}

    def without(self, names: Collection[str], statements: Collection[int]) -> dict[str, Node]:
        """The named nodes, without some of their statements."""
        gone = {id(self.view.body[index]) for index in statements}
        return {name: self._stripped(name, gone) for name in program_order(self.nodes, names)}

    def _stripped(self, name: str, gone: Collection[int] = ()) -> Node:
        """A node of the region without markers and without the statements whose identities are ``gone``. Its jumps are
        led past nodes that do nothing, and guards are added to what tasks run instead, including hammocks.
        """
        node = self._past_hammock(self.view.graph.nodes[name])
        code = tuple(
            own
            for s in node.code
            if not (is_annotation(s) or isinstance(s, Label) or id(s) in self._dropped or id(s) in gone)
            for own in (*self._handed.get(id(s), ()), self._kept_back(s))
        )
        return replace(node, code=code, end=retarget(node.end, lambda t: forward(self.view, t)))

    def _past_hammock(self, node: Node) -> Node:
        """A node whose branch also leads past a hammock those lanes whose tasks run it."""
        if node.name not in self._past or not isinstance(node.end, Branch):
            return node
        hammock, pushed = self._past[node.name]
        past = self.view.names.register("pred")
        code = [flag_op(past, hammock.past), op("or.pred", past, past, pushed)]
        inside, beyond = node.end.taken, node.end.otherwise
        if forward(self.view, inside) != hammock.begin:
            inside, beyond = beyond, inside
        return replace(node, code=(*node.code, *code), end=Branch(Guard(past), beyond, inside))

    def _kept_back(self, statement: Statement) -> Statement:
        """A statement under the guard of lanes whose tasks do not run it."""
        if isinstance(statement, Instruction) and id(statement) in self._skip:
            return replace(statement, guard=self._skip[id(statement)])
        return parting(statement)

    def _hand_over(self) -> Mapping[int, Sequence[Instruction]]:
        """For updates of reductions that tasks run instead of their lane: the lane's own value stays what it was."""
        moves: dict[int, Sequence[Instruction]] = {}
        for path in self.plan.all_paths():
            for part in path.results.partials:
                for index in path.after.updates.keys() & part.reduction.updates.keys():
                    written, read = part.reduction.updates[index]
                    value = Value(written, self.view.types[written])
                    moves[id(self.view.body[index])] = copy_value(value, Register(read), Register(written))
        return moves
