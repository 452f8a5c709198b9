"""Planting episodes: which entity is in the middle of one, and what it does next."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import count
from typing import Generic, NamedTuple, TypeVar

from .case import Planted

Reading = TypeVar("Reading")


class Part(NamedTuple, Generic[Reading]):
    """A reading that an entity is going to report; does the episode's match hold it?"""

    reading: Reading
    counts: bool = True


class Script(Generic[Reading]):
    """What an entity will report next; empty when it is not in an episode."""

    def __init__(self) -> None:
        self._rest: deque[tuple[Reading, Planted | None]] = deque()

    def __bool__(self) -> bool:
        return bool(self._rest)

    def plan(self, number: int, kind: str, query: str, parts: Sequence[Part[Reading]]) -> None:
        """Append an episode's readings."""
        final = max(i for i, part in enumerate(parts) if part.counts)
        for i, (reading, counts) in enumerate(parts):
            mark = Planted(number, kind, query, i == final) if counts else None
            self._rest.append((reading, mark))

    def next(self) -> tuple[Reading, Planted | None]:
        """The next reading and the episode it belongs to."""
        return self._rest.popleft()


class Schedule:
    """Numbers episodes and deals their kinds in turn, so that a short stream has every kind."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self._kinds = tuple(kinds)
        self._numbers = count()

    def next(self) -> tuple[int, str]:
        """The number and the kind of the next episode."""
        number = next(self._numbers)
        return number, self._kinds[number % len(self._kinds)]
