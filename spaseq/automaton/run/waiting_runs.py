"""Waiting runs, indexed by edge (hence by stream and GPM) and by join key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from spaseq.algebra.answers import Instant
from spaseq.automaton.run.runs import ChoicePoint, Row, WaitingRun

Key: TypeAlias = tuple[str | None, ...]


class WaitingRuns:
    """Waiting runs by edge and key; `strict` runs wait for the next instant only."""

    __slots__ = ("added", "points", "strict", "tables")

    def __init__(self) -> None:
        self.tables: dict[int, dict[Key, list[WaitingRun]]] = {}
        self.strict: list[WaitingRun] = []
        self.points: list[ChoicePoint] = []  # of brackets that must begin at the next instant
        self.added = 0

    def add(self, wait: WaitingRun, key: Key) -> None:
        """Let a run wait at its edge for rows with a key."""
        self.tables.setdefault(wait.edge.id, {}).setdefault(key, []).append(wait)
        self.added += 1

    def take_strict(self, instant: Instant) -> list[WaitingRun]:
        """Remove and return the runs that wait for this instant; let brackets begin now."""
        for point in self.points:
            point.next = instant
        self.points = []
        strict, self.strict = self.strict, []
        return strict

    def merge(self, other: WaitingRuns) -> None:
        """Add all waiting runs of another set."""
        for edge, table in other.tables.items():
            mine = self.tables.setdefault(edge, {})
            for key, waits in table.items():
                mine.setdefault(key, []).extend(waits)
                self.added += len(waits)
        self.strict.extend(other.strict)
        self.points.extend(other.points)

    def __iter__(self) -> Iterator[WaitingRun]:
        for table in self.tables.values():
            for waits in table.values():
                yield from waits
        yield from self.strict


def by_key(rows: list[Row], columns: tuple[int, ...]) -> dict[Key, list[Row]]:
    """Rows grouped by the values of the key's columns."""
    if not columns:
        return {(): rows}
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        values = row[4]
        groups.setdefault(tuple([values[c] for c in columns]), []).append(row)
    return groups
