"""The mutants of `bench.mutation` that no test can tell from the package, by name, and why that is so."""

from __future__ import annotations

OUT_OF_TIME = "no test in the time given (--seconds)"

_TYPES = "for the type checker: the condition before it says the same"
_THREAD = "condition ccc/legality/thread_memory.py ThreadMemory."

EQUIVALENT: dict[str, str] = {
    'guard ccc/codegen/partial_results.py _deposit: op(f"red.shared.{operator.atomic}", place, mine, guard=some)': (
        "without the guard lanes put in the operator's identity, which changes nothing; it saves accesses"
    ),
    "clear ccc/codegen/rewrite.py _Rewrite.first_value: clear(Value(name, view.types[name])) (2)": (
        "only lanes without iterations hold that value, and no result is made of it; it is there for ptxas"
    ),
    "condition ccc/legality/growth.py values_of: type is not None (2)": _TYPES,
    f"{_THREAD}_literal: isinstance(statement, Instruction) (2)": _TYPES,
    f"{_THREAD}_of_register: name in carried": (
        "what reaches a use just as it reaches the header is alive at the header, so it is among the carried ones"
    ),
    f"{_THREAD}_counter_span: loop is None": "an access of the marked loop is in a loop",
    f"{_THREAD}_counter_span: not loop.blocks < self._blocks": (
        "outside of inner loops a register that is not known yet has no single definition in the loop"
    ),
    f"{_THREAD}_literal: ENTRY not in definitions": "for ENTRY the statement looked at is the last one, no `mov`",
    f"{_THREAD}_literal: statement.guard is None": (
        "a write under a guard leaves the older definitions alone, so it is never the only one"
    ),
    f"{_THREAD}_run: isinstance(statement, Instruction)": _TYPES,
    f"{_THREAD}_run: index in self._slice": "the numbers of other statements are never asked for: it saves time",
    f"{_THREAD}_of_statement: not facts.known": "a loop with an unknown instruction is refused before (CCC044)",
    f"{_THREAD}_of_statement: found": "each load has an address",
    "condition ccc/legality/rules.py _collective: not facts.known": (
        "a loop with an unknown instruction is refused before (CCC044)"
    ),
}
