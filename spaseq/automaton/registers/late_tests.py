"""Late FILTERs of `&` and AND as tests of a run's registers.

A late FILTER must hold for each repetition of its step, in the order of the operands. `?v > ?w`
does if the least ?v is greater than ?w, whatever comes first. So a register that keeps the least or
the greatest number decides it, and Python need not take the run once more.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from itertools import product

from spaseq.automaton.program.alternatives import AlternativeEdge
from spaseq.automaton.program.bound_variables import BoundVariables
from spaseq.automaton.program.nfa import GpmColumns, LateFilter, NoKernel, Program
from spaseq.automaton.registers.compiled.edge_tests import (
    FLIPPED,
    EdgeTests,
    Operator,
    Place,
    Read,
    Running,
    RunningValue,
    RunValue,
    SolutionValue,
)
from spaseq.automaton.registers.filter_tests import tests_of
from spaseq.automaton.registers.read_values import ReadValues
from spaseq.expr.uses import is_of_its_event, timestamp_uses
from spaseq.lang import ast

_EXTREMES: dict[Operator, Running] = {"<": "MAX", "<=": "MAX", ">": "MIN", ">=": "MIN"}


class LateTests:
    """The tests of late FILTERs at the edges of a program.

    `bound` are the variables that runs have bound, by state; `takes` are the edges that take a
    solution, each with its source; `values` gives the places of other values.
    """

    def __init__(
        self,
        program: Program,
        gpms: Sequence[GpmColumns],
        bound: BoundVariables,
        takes: Sequence[tuple[int, AlternativeEdge]],
        values: ReadValues,
    ) -> None:
        self._program, self._gpms, self._bound, self._values = program, gpms, bound, values
        self._takes = [taking for _, taking in takes]

    def of(self, late: LateFilter, source: int, taking: AlternativeEdge) -> EdgeTests | None:
        """The tests that replace a late FILTER at an edge; None if it cannot hold.

        Raises:
            NoKernel: registers do not decide it.
        """
        condition = late.condition
        if is_of_its_event(condition) or timestamp_uses(condition):
            raise NoKernel("a late FILTER looks at more than values")
        steps = [t for t in self._takes if t.take.occurrence == late.occurrence]
        repeated = self._program.owner.keys() & self._gpms[steps[0].take.gpm].variables

        def place(read: Read) -> Place:
            match read:
                case ast.Var(name) if name not in self._program.owner:
                    return self._single(name, steps, source, taking)
                case ast.Aggregate("MIN" | "MAX" as function, ast.Var(name)):
                    return self._extreme(name, function, steps, source, taking)
            raise NoKernel("a late FILTER compares a repetition with more than single values")

        return tests_of(_of_all(condition, repeated), place)

    def _single(
        self, name: str, steps: Sequence[AlternativeEdge], source: int, taking: AlternativeEdge
    ) -> Place:
        """The place of a single variable that the step knows, in the order of the operands."""
        if name not in self._gpms[steps[0].take.gpm].certain:
            binders = {binder.edge.operands for binder in self._binders(name)}
            readers = {step.edge.operands for step in steps}
            if not all(_comes_before(*both) for both in product(binders, readers)):
                raise NoKernel(f"a late FILTER may not know ?{name}")
        gpm = self._gpms[taking.take.gpm]
        if name in gpm.certain:
            return SolutionValue(name)
        if name in gpm.variables or name not in self._bound.certainly[source]:
            raise NoKernel(f"a FILTER uses ?{name}, which may be unbound")
        return RunValue(name)

    def _extreme(
        self,
        name: str,
        function: Running,
        steps: Sequence[AlternativeEdge],
        source: int,
        taking: AlternativeEdge,
    ) -> Place:
        """The place of the least or greatest value of all repetitions of the step."""
        owner, occurrence = self._program.owner[name], steps[0].take.occurrence
        for binder in self._binders(name):
            self._values.repeats(f"?{name}", name, binder.edge, binder.take)
            if binder.take.occurrence != occurrence:
                raise NoKernel(f"several steps bind ?{name}")
        if any(name in v for r, v in self._program.owned_within.items() if r != owner):
            raise NoKernel(f"the register of ?{name} is reset within another repetition")
        if taking.take.occurrence == occurrence:
            again = self._values.repeats(f"?{name}", name, taking.edge, taking.take)
            return RunningValue(name, function, begins=not again)
        if name not in self._bound.certainly[source]:
            raise NoKernel(f"a FILTER uses ?{name}, which may be unbound")
        return RunningValue(name, function, begins=False, ended=True)

    def _binders(self, name: str) -> list[AlternativeEdge]:
        """The edges that may bind a variable."""
        return [t for t in self._takes if name in self._gpms[t.take.gpm].variables]


def _comes_before(one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether a step is in an earlier operand of a bracket than another; both by their operands."""
    for mine, its in zip(one, other, strict=False):
        if mine != its:
            return mine // 2 == its // 2 and mine < its
    return False


def _of_all(condition: ast.Expr, repeated: Set[str]) -> ast.Expr:
    """A FILTER of each repetition as one FILTER of all of them together.

    In comparisons a least or greatest value replaces a repeated variable.
    """
    match condition:
        case ast.And(operands):
            return replace(condition, operands=tuple(_of_all(o, repeated) for o in operands))
        case ast.Compare(op, left, ast.Var(name) as right) if name in repeated:
            return _extremes(FLIPPED[op], right, left)
        case ast.Compare(op, ast.Var(name) as left, right) if name in repeated:
            return _extremes(op, left, right)
    return condition


def _extremes(op: Operator, repeated: ast.Var, other: ast.Expr) -> ast.Expr:
    """The comparison of all values of a variable with one value."""
    if op == "=":
        return ast.And((_extremes("<=", repeated, other), _extremes(">=", repeated, other)))
    if op not in _EXTREMES:
        raise NoKernel("a late FILTER compares a repetition by more than its order")
    return ast.Compare(op, ast.Aggregate(_EXTREMES[op], repeated), other)
