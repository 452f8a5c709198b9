"""The candidates of brackets at one instant."""

from __future__ import annotations

from spaseq.automaton.run.runs import ChoicePoint, Run


class CandidateQueue:
    """Candidates of the current instant by bracket, innermost bracket first.

    Brackets outside of `floor` belong to the instant of `parent`: a second operand that is being
    replayed hands its matches to the bracket that waits for them now.
    """

    __slots__ = ("_floor", "_levels", "_parent", "complete")

    def __init__(self, floor: int = 0, parent: CandidateQueue | None = None) -> None:
        self._floor, self._parent = floor, parent
        self._levels: dict[int, dict[int, tuple[ChoicePoint, list[Run]]]] = {}
        self.complete: list[Run] = []  # runs that accepted in an outermost automaton

    def add(self, point: ChoicePoint, run: Run) -> None:
        if point.depth < self._floor:
            assert self._parent is not None
            self._parent.add(point, run)
            return
        level = self._levels.setdefault(point.depth, {})
        level.setdefault(id(point), (point, []))[1].append(run)

    def pop(self) -> tuple[ChoicePoint, list[Run]] | None:
        if not self._levels:
            return None
        depth = max(self._levels)
        level = self._levels[depth]
        entry = level.pop(next(iter(level)))
        if not level:
            del self._levels[depth]
        return entry
