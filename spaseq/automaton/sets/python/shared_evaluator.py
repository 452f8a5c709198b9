"""A partition whose partial matches are kept as a set that shares their parts.

What the chain and the compact evaluator have in common: the window, the split of the partition by
the variables that all its events join on, snapshots, and giving the matches that end now. They
differ in how an instant changes the set (`KeyState`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from spaseq.algebra.answers import Instant
from spaseq.automaton.program.window import Counted
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.partition_evaluator import PartitionMatch, RowsByGpm
from spaseq.automaton.run.runs import Row
from spaseq.automaton.run.waiting_runs import Key
from spaseq.automaton.sets.python.compact_set import CompactSet
from spaseq.automaton.sets.python.counting import count
from spaseq.automaton.sets.python.enumeration import MatchEnumerator


class KeyState(Protocol):
    """Where the partial matches of one key stand."""

    def advance(self, matches: CompactSet, start: int, rows: RowsByGpm, gpms: int) -> list[int]:
        """Work off an instant; the roots of the matches that end there.

        `start` is the measure of a match that begins here; `gpms` those with solutions, as bits.
        """

    def lives(self, matches: CompactSet) -> bool:
        """Whether some partial match may still become part of a match."""

    def waiting(self) -> list[int]:
        """The nodes that stand for the partial matches that wait."""

    def snapshot(self) -> object:
        """What a snapshot keeps."""

    def restore(self, state: object) -> None:
        """Go on from what `snapshot` gave."""


@dataclass(slots=True, eq=False)
class Static:
    """What all partitions of a query share; a snapshot refers to it by number."""

    machine: Machine
    emission: MatchEnumerator
    begin: Callable[[], KeyState]
    strict: bool  # an instant without solutions makes a difference
    key: tuple[tuple[int, ...], ...] = field(init=False)  # by GPM: columns of the key
    limited_by: tuple[int, ...] = field(init=False)  # places in the key of `machine.limit_key`

    def __post_init__(self) -> None:
        machine = self.machine
        self.key = tuple(
            tuple(g.variables.index(v) for v in machine.key if v in g.variables)
            for g in machine.gpms
        )
        self.limited_by = tuple(machine.key.index(v) for v in machine.limit_key)


class SharedEvaluator:
    """All run-time state of one partition."""

    __slots__ = (
        "_matches",
        "_number",
        "_position",
        "_progress",
        "_static",
        "_swept",
        "_window",
        "last_time",
        "suppressed",
    )

    def __init__(self, static: Static) -> None:
        self._static = static
        self._matches = CompactSet()
        self._progress: dict[Key, tuple[KeyState, int]] = {}  # with the last instant's number
        self._number = 0  # instants so far
        self._position = 0  # events so far
        self._window: deque[tuple[int, RowsByGpm]] = (
            deque()
        )  # the window's instants, for SELECT MAX
        self._swept = 0
        self.last_time = -(2**63)
        self.suppressed = 0

    # --- one instant --------------------------------------------------------------------------

    def step(self, instant: Instant, rows: RowsByGpm, events: int) -> Iterator[PartitionMatch]:
        """Work off the solutions of one instant; `events` of the partition have it."""
        machine = self._static.machine
        self._number += 1
        self.last_time = instant[0]
        start = reach = instant[0]
        if isinstance(machine.window, Counted):
            start = self._position
            self._position = reach = start + events
        self._matches.advance(start, machine.window.earliest(reach))
        rows = _distinct(rows)
        if machine.strategy == "MAX":
            self._remember(start, rows)
        if not machine.key:
            return self._found(self._advanced((), start, rows))
        groups: dict[Key, list[int]] = {}
        for key, own in self._by_key(rows).items():
            group = tuple([key[i] for i in self._static.limited_by])
            groups.setdefault(group, []).extend(self._advanced(key, start, own))
        self._sweep()
        return (found for roots in groups.values() for found in self._found(roots))

    def _advanced(self, key: Key, start: int, rows: RowsByGpm) -> list[int]:
        """The roots of the matches of a key that end now."""
        progress, number = self._progress.get(key) or (self._static.begin(), self._number - 1)
        if number < self._number - 1 and self._static.strict:
            progress.advance(self._matches, start, {}, 0)
        self._progress[key] = progress, self._number
        gpms = 0
        for gpm in rows:
            gpms |= 1 << gpm
        return progress.advance(self._matches, start, rows, gpms)

    def _found(self, roots: list[int]) -> Iterator[PartitionMatch]:
        if roots:
            emission = self._static.emission
            suppressed = yield from emission.found(self._matches, roots, self._window)
            self.suppressed += suppressed

    def _by_key(self, rows: RowsByGpm) -> Mapping[Key, dict[int, list[Row]]]:
        parts: dict[Key, dict[int, list[Row]]] = {}
        for gpm, solutions in rows.items():
            columns = self._static.key[gpm]
            for row in solutions:
                values = row[4]
                part = parts.setdefault(tuple([values[c] for c in columns]), {})
                part.setdefault(gpm, []).append(row)
        return parts

    def _remember(self, start: int, rows: RowsByGpm) -> None:
        window = self._window
        window.append((start, rows))
        while window and window[0][0] < self._matches.floor:
            window.popleft()

    def _sweep(self) -> None:
        """Drop keys without partial matches; amortised, as it waits until half may be such."""
        if len(self._progress) > 2 * self._swept + 64:
            matches = self._matches
            self._progress = {k: p for k, p in self._progress.items() if p[0].lives(matches)}
            self._swept = len(self._progress)

    # --- what others ask ------------------------------------------------------------------------

    def holds_pending(self, found: PartitionMatch) -> bool:
        """No match found here waits for the close of its window."""
        return True

    def is_idle(self, time: int) -> bool:
        """Whether nothing here can matter to events at `time` or later (time windows only)."""
        window = self._static.machine.window
        return not isinstance(window, Counted) and time - self.last_time > window.horizon

    def consecutive(self, instants: Iterable[Instant]) -> bool:
        """True: SELECT STRICT is part of the automaton, so nothing else is found."""
        return True

    def live_runs(self) -> int:
        """How many sets of partial matches wait."""
        return sum(len(progress.waiting()) for progress, _ in self._progress.values())

    def partial_matches(self) -> int:
        """How many partial matches the sets hold, exactly; takes time linear in the window."""
        roots = [n for progress, _ in self._progress.values() for n in progress.waiting()]
        return count(self._matches, roots)

    def __getstate__(self) -> tuple[dict[str, Any], list[tuple[Key, object, int]]]:
        kept = {name: getattr(self, name) for name in self.__slots__ if name != "_progress"}
        return kept, [(key, p.snapshot(), number) for key, (p, number) in self._progress.items()]

    def __setstate__(self, state: tuple[dict[str, Any], list[tuple[Key, object, int]]]) -> None:
        kept, keys = state
        for name, value in kept.items():
            setattr(self, name, value)
        self._progress = {}
        for key, waiting, number in keys:
            progress = self._static.begin()
            progress.restore(waiting)
            self._progress[key] = progress, number


def _distinct(rows: RowsByGpm) -> RowsByGpm:
    """Solutions without duplicates, in an order that does not depend on how they came."""
    if all(len(solutions) == 1 for solutions in rows.values()):
        return rows
    return {gpm: sorted(set(solutions), key=_order) for gpm, solutions in sorted(rows.items())}


def _order(row: Row) -> tuple[int, list[tuple[bool, str]]]:
    return row[0], [(value is not None, value or "") for value in row[4]]
