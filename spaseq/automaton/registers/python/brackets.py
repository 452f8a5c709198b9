"""Brackets matched as a whole: which candidates an operator pairs with the run before it.

A *candidate* is a run that has matched an operand of a bracket (the second one, for `&` and AND).
"""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.algebra.answers import Instant
from spaseq.automaton.program.nfa import Edge, State
from spaseq.automaton.run.arena import NIL
from spaseq.automaton.run.runs import BracketFrame, ChoicePoint, Duty, Groups, Run
from spaseq.automaton.run.scoping import TraceNodes


class CandidateQueue:
    """Candidates of the current instant by choice point, innermost bracket first.

    A second operand that is replayed has a queue for the brackets inside it, from depth `floor` on.
    Candidates for brackets further out go to `parent`, the queue of the current instant.
    """

    __slots__ = ("_floor", "_levels", "_parent", "complete")

    def __init__(self, floor: int = 0, parent: CandidateQueue | None = None) -> None:
        self._floor, self._parent = floor, parent
        self._levels: dict[int, dict[int, tuple[ChoicePoint, list[Run]]]] = {}
        self.complete: list[Run] = []
        """Runs that have accepted in an outermost automaton."""

    def add(self, point: ChoicePoint, run: Run) -> None:
        """Add a candidate for the bracket at a choice point."""
        if point.depth < self._floor:
            assert self._parent is not None
            self._parent.add(point, run)
            return
        level = self._levels.setdefault(point.depth, {})
        level.setdefault(id(point), (point, []))[1].append(run)

    def pop(self) -> tuple[ChoicePoint, list[Run]] | None:
        """A choice point of the innermost depth with its candidates; None if there is none."""
        if not self._levels:
            return None
        depth = max(self._levels)
        level = self._levels[depth]
        entry = level.pop(next(iter(level)))
        if not level:
            del self._levels[depth]
        return entry


def choice_point(
    run: Run, edge: Edge, groups: Groups | None, obligations: tuple[Duty, ...]
) -> ChoicePoint:
    """The point at which a run meets a bracket.

    `groups` are the run's after the edge's actions, `obligations` its negated
    steps and greedy loops.
    """
    outer, after = run.frame, run.last
    if after is None:
        after = outer.point.after if outer else run.outside.after if run.outside else None
    return ChoicePoint(run, edge, groups, obligations, outer.point.depth + 1 if outer else 0, after)


def accepted(point: ChoicePoint, candidates: list[Run], target: dict[int, State]) -> Iterator[Run]:
    """The runs that continue after a bracket, one for each candidate that the operator accepts.

    `target` has the state behind each edge, by the edge's number.
    """
    spans = [(_span(run), run) for run in candidates]
    join, before = point.edge.join, point.run.last
    if join is not None and before is not None:
        if join.gap_ms is not None:
            spans = [s for s in spans if s[0][0][0] - before[0] <= join.gap_ms]
        if join.kind == ",":
            spans = [s for s in spans if s[0][0] == point.next]
        elif join.kind == ";" and spans:
            earliest = min(first for (first, _), _ in spans)
            if point.earliest is None or earliest < point.earliest:
                point.earliest = earliest
            spans = [s for s in spans if s[0][0] == point.earliest]
    for (first, last), run in spans:
        yield _joined(point, run, first, last, target)


def _span(run: Run) -> tuple[Instant, Instant]:
    """First and last instant of a candidate, over both operands of a conjunction."""
    assert run.first is not None and run.last is not None and run.frame is not None
    first, last, left = run.first, run.last, run.frame.left
    if left is not None:
        assert left.first is not None and left.last is not None
        return min(first, left.first), max(last, left.last)
    return first, last


def _joined(
    point: ChoicePoint, run: Run, first: Instant, last: Instant, target: dict[int, State]
) -> Run:
    """The run before a bracket, once it has taken a match of the bracket."""
    before = point.run
    passed = tuple(o.passed(first) for o in point.obligations)
    conjunction = before.frame is not None and before.frame.conjunction
    return Run(
        target[point.edge.id],
        before.frame,
        before.first or first,
        last,
        run.origin,
        last[0] if conjunction else None,
        run.singles,
        run.groups,
        run.trace,
        run.obligations + passed,
        run.outside,
        run.lasts,
        run.path,
        before.candidate and before.candidate.begun(first),
    )


def may_be_accepted(run: Run, instant: Instant) -> bool:
    """Whether the operators before all brackets around a run can still accept it.

    `instant` is the first instant that the run may take.
    """
    frame = run.frame
    first = run.first or instant
    while frame is not None and not frame.awaits_left:
        if frame.left is not None and frame.left.first is not None:
            first = min(first, frame.left.first)
        point = frame.point
        join = point.edge.join
        if join is not None and join.kind != ":":
            limit = point.earliest if join.kind == ";" else point.next
            if limit is not None and first > limit:
                return False
        if point.run.first is not None:
            first = point.run.first
        frame = point.run.frame
    return True


def are_disjoint(frame: BracketFrame, trace: TraceNodes, run: Run) -> bool:
    """Whether a run of a second operand shares no event with the first operand of an AND."""
    return frame.left is None or frame.taken.isdisjoint(events_since(trace, run, frame.left))


def events_since(trace: TraceNodes, run: Run, before: Run) -> frozenset[tuple[int, Instant]]:
    """The events that a run has taken since one of its predecessors."""
    events = set()
    node = run.trace
    while node not in (before.trace, NIL):
        _, row, node = trace[node]
        events.add((row[0], (row[1], row[2])))
    return frozenset(events)
