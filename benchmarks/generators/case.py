"""A generated use case, and the seeded random choices that all cases use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Dice:
    """Seeded random choices that are the same on every machine.

    All of them come from `Random.random`, the one method whose sequence Python keeps across
    versions.
    """

    def __init__(self, seed: int) -> None:
        self.fraction = Random(seed).random
        """A float in [0, 1)."""

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.fraction() < probability

    def whole(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return low + int(self.fraction() * (high - low + 1))

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[int(self.fraction() * len(options))]


class Planted(NamedTuple):
    """Marks an event that was generated as part of an episode."""

    episode: int
    kind: str  # "hit", or the reason why the episode is a near miss
    query: str  # file stem of the query that the episode is for
    last: bool = False  # the episode's last event


class Generated(NamedTuple):
    """One event: its stream, its IRI, its text, and its episode, if any."""

    stream: int
    graph: str  # IRI without brackets
    text: str  # N-Quads lines
    planted: Planted | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """A use case that can be generated at any size.

    `events(dice, keys)` yields the events of all streams in order of time, without end.
    `knowledge(keys)` is the knowledge base as Turtle, or None if the case has none. `keys` is the
    number of entities: homes, vessels, cards, tickers.
    """

    name: str
    streams: tuple[str, ...]  # file stems; the stream's IRI is in the case's queries
    events: Callable[[Dice, int], Iterator[Generated]]
    knowledge: Callable[[int], str] | None
    default_events: int  # events of all streams together in the checked-in files
    default_keys: int
    max_keys: int | None = None
