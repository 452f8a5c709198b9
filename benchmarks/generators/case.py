"""What a generated case is, and the seeded dice that all cases throw."""

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
    """Says that an event was put there on purpose, as part of one episode."""

    episode: int
    kind: str  # "hit", or what makes the episode a near-miss
    query: str  # file stem of the query that the episode is for
    last: bool = False  # the episode's last event


class Generated(NamedTuple):
    """One event: which of the case's streams, its IRI, its text, and why it is there."""

    stream: int
    graph: str  # IRI without brackets
    text: str  # N-Quads lines
    planted: Planted | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """A use case that can be generated at any size.

    `events(dice, keys)` never ends and yields the events of all streams in order of time;
    `knowledge(keys)` is the knowledge base as Turtle, or None if the case has none. `keys` counts
    what the events are about: homes, vessels, cards, tickers.
    """

    name: str
    streams: tuple[str, ...]  # file stems; the stream's IRI is in the case's queries
    events: Callable[[Dice, int], Iterator[Generated]]
    knowledge: Callable[[int], str] | None
    default_events: int  # events of all streams together in the checked-in files
    default_keys: int
    max_keys: int | None = None
