"""A match as the evaluator of one partition finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from spaseq.algebra.answers import Instant
from spaseq.automaton.run.runs import Duty, Row

RowsByGpm: TypeAlias = Mapping[int, list[Row]]
"""The solutions of one instant, by GPM index."""

NO_VALUES: Mapping[str, Any] = {}


@dataclass(slots=True)
class PartitionMatch:
    """A complete match as the evaluator of one partition finds it, made of raw rows.

    `singles` and `lists` hold the values of its variables if the evaluator knows them. Otherwise
    the trace determines them, as the steps of one repetition do not join. If negations or greedy
    loops in last place are still `pending`, the match waits for `close`, the close of its window.
    """

    first: Instant
    last: Instant
    origin: int  # measure of its first event
    trace: tuple[tuple[int, Row], ...]  # (GPM index, row)
    singles: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    pending: tuple[Duty, ...] = ()
    close: int | None = None
