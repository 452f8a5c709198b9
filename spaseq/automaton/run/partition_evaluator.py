"""The interface of an evaluator: solutions of one partition in, matches out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from spaseq.algebra.answers import Instant
from spaseq.automaton.run.live_states import StateKey, StatePlaces
from spaseq.automaton.run.runs import Duty, Row

RowsByGpm: TypeAlias = Mapping[int, list[Row]]
"""The solutions of one instant, by GPM index."""

NO_VALUES: Mapping[str, Any] = {}


@dataclass(slots=True)
class PartitionMatch:
    """A complete match as the evaluator of one partition finds it, made of raw rows.

    `singles` and `lists` hold the values of its variables if the evaluator knows them. Otherwise
    they follow from the trace, which decides them unless the steps of one repetition join. If
    negations or greedy loops in last place are still `pending`, the match waits for `close`, the
    close of its window.
    """

    first: Instant
    last: Instant
    origin: int  # measure of its first event
    trace: tuple[tuple[int, Row], ...]  # (GPM index, row)
    singles: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    pending: tuple[Duty, ...] = ()
    close: int | None = None
    pattern: int = 0  # lazy evaluator: the number of the pattern that matched


class PartitionEvaluator(Protocol):
    """All run-time state of one partition. A snapshot pickles it."""

    last_time: int  # ms, of the last instant processed
    suppressed: int  # matches that the limit has suppressed so far

    def step(self, instant: Instant, rows: RowsByGpm, events: int) -> Iterable[PartitionMatch]:
        """Process the solutions of one instant, which is later than all before.

        `events` counts the partition's events at this instant. The matches must be read before the
        next call. Negations in last place are left to `pending`; all others have been checked.
        The limit on partial matches, if there is one, is told how many were made.
        """

    def holds_pending(self, match: PartitionMatch) -> bool:
        """Whether the negations in last place of a match hold, now that its window has closed."""

    def is_idle(self, time: int) -> bool:
        """Whether no state here can affect events at `time` (ms) or later."""

    def consecutive(self, instants: Iterable[Instant]) -> bool:
        """Whether the instants of a match follow each other without a gap in the partition."""

    def live_runs(self, now: Instant) -> int:
        """How many partial matches, or sets of them, wait after an instant in open windows.

        `now` is the last instant of all partitions.
        """

    def live_states(self, places: StatePlaces) -> Counter[StateKey]:
        """How many partial matches wait in each state; see `LiveStates`."""
