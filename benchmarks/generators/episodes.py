"""Planning of episodes: which entity is in one, and its next readings."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import count
from typing import Generic, NamedTuple, TypeVar

from .case import Planted

Reading = TypeVar("Reading")


class Part(NamedTuple, Generic[Reading]):
    """A planned reading, with a flag: is it part of the episode's match?"""

    reading: Reading
    counts: bool = True


class Script(Generic[Reading]):
    """The planned readings of an entity; empty when it is not in an episode."""

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
    """Numbers episodes and repeats their kinds in turn, so that short streams have every kind."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self._kinds = tuple(kinds)
        self._numbers = count()

    def next(self) -> tuple[int, str]:
        """The number and the kind of the next episode."""
        number = next(self._numbers)
        return number, self._kinds[number % len(self._kinds)]
