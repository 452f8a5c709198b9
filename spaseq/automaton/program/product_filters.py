"""The FILTERs of a product: when each is tested, and what it reads of the other operand."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set

from spaseq.automaton.program.bound_variables import last_time
from spaseq.automaton.program.nfa import (
    Edge,
    GpmColumns,
    LateFilter,
    TakeLabel,
)
from spaseq.automaton.program.operand_places import (
    NotOrdered,
    OperandPlace,
    OperandPlaces,
)
from spaseq.expr.uses import is_of_its_event, is_volatile, timestamp_uses
from spaseq.lang import ast
from spaseq.lang.variables import variables_of
from spaseq.records import record


@record
class PendingFilter:
    """A FILTER of the second operand, and the variables it reads that the first one may still
    change.

    With the occurrence of its step it sees whole operands in order (`LateFilter`).
    """

    condition: ast.Expr
    reads: frozenset[str]
    occurrence: int | None


@record
class TakenEdge:
    """An edge of an operand (0 or 1) that is followed, and the state that it leaves."""

    edge: Edge
    take: TakeLabel
    operand: int
    source: int


class Sight:
    """The variables of each operand that the steps of the other one see.

    `owned` are the group variables; `before` is certainly bound before the bracket. `late`: the
    evaluator tests late FILTERs.
    """

    def __init__(
        self,
        owned: Collection[str],
        gpms: Sequence[GpmColumns],
        before: frozenset[str],
        left: OperandPlaces,
        right: OperandPlaces,
        late: bool,
    ) -> None:
        self._owned, self._gpms, self._before = frozenset(owned), gpms, before
        self.operands, self._may_be_late = (left, right), late
        self.has_late = False  # whether some FILTER is late, if the evaluator tests these
        self._uses = dict[int, tuple[frozenset[str], frozenset[str]]]()  # by id of a FILTER

    def _used(self, condition: ast.Expr) -> tuple[frozenset[str], frozenset[str]]:
        """The variables of a FILTER of a step, and the GPMs whose times it reads."""
        uses = self._uses.get(id(condition))
        if uses is None:
            found = variables_of(condition), timestamp_uses(condition)
            uses = self._uses[id(condition)] = found
        return uses

    def conditions(self, take: TakeLabel) -> tuple[ast.Expr, ...]:
        """The FILTERs of a step."""
        own = take.conditions
        return self._gpms[take.gpm].conditions if own is None else own

    def tests(self, take: TakeLabel) -> bool:
        """Whether FILTERs are tested at a step: its FILTERs, or FILTERs of others."""
        return bool(self.conditions(take) or take.late or take.moved)

    def variables(self, take: TakeLabel) -> frozenset[str]:
        """The variables that a step may bind."""
        return frozenset(self._gpms[take.gpm].variables)

    def changed(self, takes: Iterable[TakeLabel]) -> frozenset[str]:
        """The variables that steps may bind, and the times of their GPMs."""
        bound = frozenset[str]().union(*map(self.variables, takes))
        return bound | {last_time(take.name) for take in takes}

    def foreign(self, variables: Set[str], operand: int, source: int) -> frozenset[str]:
        """Those variables that the other operand may bind, and that are not known at a state."""
        own, other = self.operands[operand], self.operands[1 - operand]
        return frozenset(variables & other.variables) - self._before - own.certain[source]

    def _shared(self, condition: ast.Expr, step: TakenEdge) -> frozenset[str]:
        """The variables, and times of GPMs, of a FILTER that the other operand may bind."""
        other = self.operands[1 - step.operand]
        variables, times = self._used(condition)
        reads = variables & other.variables - self._before
        return reads | {*map(last_time, times & other.names)}

    def _read_of_other(self, condition: ast.Expr, step: TakenEdge) -> frozenset[str]:
        """The variables, and times of GPMs, of the other operand that a FILTER of a step reads."""
        known = self._gpms[step.take.gpm].certain | self.operands[step.operand].certain[step.source]
        return self._shared(condition, step) - known

    def _is_same_later(self, condition: ast.Expr, step: TakenEdge) -> bool:
        """Whether the value of a FILTER is final after its awaited events."""
        own, (names, times) = self.operands[step.operand], self._used(condition)
        reads = names - self._gpms[step.take.gpm].certain - own.certain[step.source]
        if names & self._owned or reads & own.variables - self._before:
            return False
        return not times and not is_of_its_event(condition)

    def _late(self, condition: ast.Expr, step: TakenEdge) -> LateFilter:
        may_be = not is_volatile(condition)
        self.has_late |= may_be
        if not (may_be and self._may_be_late):
            raise NotOrdered("a FILTER in {} must see the operands in order")
        return LateFilter(step.take.occurrence, condition)

    def filters(
        self, step: TakenEdge, unknown: Set[str], begun: bool
    ) -> tuple[tuple[ast.Expr, ...], tuple[LateFilter, ...], list[PendingFilter]]:
        """The FILTERs of a step: immediate, late and waiting ones.

        `unknown` are variables that the first operand may still change; `begun`: the second one has
        begun.

        Raises:
            NotOrdered: the evaluator cannot test one of them in time.
        """
        tested, late, waiting = list[ast.Expr](), list[LateFilter](), list[PendingFilter]()
        for condition in self.conditions(step.take):
            reads = self._unsure(self._read_of_other(condition, step), step, unknown, begun)
            if not reads:
                tested.append(condition)
            elif step.operand == 0:
                late.append(self._late(condition, step))
            elif self._is_same_later(condition, step):
                waiting.append(PendingFilter(condition, reads, None))
            else:
                occurrence = self._late(condition, step).occurrence
                waiting.append(PendingFilter(condition, reads, occurrence))
        for each in step.take.late:
            reads = self._unsure(self._shared(each.condition, step), step, unknown, begun)
            if reads and step.operand == 1:
                waiting.append(PendingFilter(each.condition, reads, each.occurrence))
            else:
                late.append(each)
        for condition in step.take.moved:
            if self._unsure(self._shared(condition, step), step, unknown, begun):
                raise NotOrdered("a FILTER in {} must see the operands in order")
        return tuple(tested), tuple(late), waiting

    def _unsure(
        self, reads: frozenset[str], step: TakenEdge, unknown: Set[str], begun: bool
    ) -> frozenset[str]:
        """The variables of the other operand that a step reads and the run may lack."""
        return reads & unknown if step.operand else reads if begun else frozenset()

    def check_times(self, checked: Collection[int]) -> None:
        """Check that negated steps and loops use no time of an event of the other operand.

        `checked` are the GPMs of negated steps and greedy loops.

        Raises:
            NotOrdered: they may do so.
        """
        times = {t for g in checked for c in self._gpms[g].conditions for t in timestamp_uses(c)}
        for one, other in (self.operands, self.operands[::-1]):
            if one.is_checked and times & other.names:
                raise NotOrdered("a negated step or a loop in {} uses the time of another event")

    def check_competing(self, step: TakenEdge, left: OperandPlace) -> None:
        """Check that the run knows which solution of a step comes next, behind `;`."""
        uses = [*map(self._used, self.conditions(step.take))]
        reads = self.variables(step.take).union(*(variables for variables, _ in uses))
        unknown = self.foreign(reads, step.operand, step.source)
        if step.operand == 1:
            unknown &= self.operands[0].future(left)
        times = frozenset[str]().union(*(times for _, times in uses))
        if unknown or times & self.operands[1 - step.operand].names:
            raise NotOrdered("what comes next in an operand of {} depends on the other one")

    def key(self, take: TakeLabel, known: Set[str]) -> tuple[str, ...]:
        """The variables that a step certainly shares with the run."""
        grouped = {v for v, view in take.views.items() if view.kind == "current"}
        certain = self._gpms[take.gpm].certain & (known | self._before)
        return tuple(sorted(certain - grouped))
