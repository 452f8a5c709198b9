"""What every evaluator of a sequence gives: matches out of one partition's solutions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from spaseq.algebra.answers import Instant
from spaseq.automaton.run.runs import Obligation, Row

Rows: TypeAlias = Mapping[int, list[Row]]
"""Solutions of one instant by GPM."""

NO_VALUES: Mapping[str, Any] = {}


@dataclass(slots=True)
class FoundMatch:
    """A complete match; `close` is the close of its window if a negation in last place waits for
    it, and `pending` those negations. `singles` and `lists`, the values of its variables, are here
    where the evaluator has them: the trace determines them, unless steps of one repetition join."""

    first: Instant
    last: Instant
    origin: int
    trace: tuple[tuple[int, Row], ...]  # (GPM index, row)
    singles: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    pending: tuple[Obligation, ...] = ()
    close: int | None = None
    pattern: int = 0  # for lazy: which of its patterns this is a match of


class PartitionEvaluator(Protocol):
    """All run-time state of one partition; it can be pickled for a snapshot."""

    last_time: int  # ms, of the last instant worked off
    suppressed: int  # matches kept back by the limit, so far

    def step(self, instant: Instant, rows: Rows, events: int) -> Iterable[FoundMatch]:
        """Work off the solutions of one instant, later than all before; its matches, to be read
        before the next.

        `events` is how many of the partition's events have this instant. Negations in last place
        are left to `pending`; all others have been checked.
        """

    def holds_pending(self, found: FoundMatch) -> bool:
        """Whether the negations in last place of a match hold, its window having closed."""

    def is_idle(self, time: int) -> bool:
        """Whether nothing here can matter to events at `time` (ms) or later."""

    def consecutive(self, instants: Iterable[Instant]) -> bool:
        """Whether instants of a match follow each other without another one between."""

    def live_runs(self) -> int:
        """How many partial matches, or sets of them, wait."""
