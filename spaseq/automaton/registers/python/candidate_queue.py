"""The queue of candidates: the runs that have matched a bracket at the current instant."""

from __future__ import annotations

from spaseq.automaton.run.runs import ChoicePoint, Run


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
