"""Synthetic streams of events with up to five triples, for measurements.

The streams take turns; the events of one turn share a timestamp. An event has a type, a key, a
value, a weight and a batch number. Each of the types T1 to Tn has the given probability. All other
events have type T0. Keys and values are uniformly distributed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count

from .case import Case, Dice, Generated
from .nquads import GENERATED_AT, RDF_TYPE, date_time, double, integer, milliseconds, tenths

BASE = "http://s.example/"
NS = f"{BASE}ns#"
START = milliseconds("2025-01-01T00:00:00")
VALUES = 1000


@dataclass(frozen=True)
class Settings:
    """What a synthetic stream is like."""

    types: int = 3
    """Types besides T0."""
    selectivity: float = 0.1
    """Share of events of each of the types T1 to Tn."""
    streams: int = 1
    step_ms: int = 1
    """Time between two events of a stream."""
    values: int = VALUES
    """Number of different values from 0 to 1000: up to 1000 are integers, more are doubles."""
    triples: int = 5
    """Triples of an event, from the type to the batch number."""

    def __post_init__(self) -> None:
        if self.types < 1 or self.streams < 1 or self.step_ms < 0:
            raise ValueError("types and streams must be positive, step-ms not negative")
        if not 0 <= self.selectivity * self.types <= 1:
            raise ValueError("types * selectivity must lie between 0 and 1")
        if self.values < 1 or not 1 <= self.triples <= 5:
            raise ValueError("values must be positive, triples 1 to 5")


def case(settings: Settings) -> Case:
    """A case with these settings: every stream has an event every `step_ms`."""
    return Case(
        "synthetic",
        tuple(f"s{i + 1}" for i in range(settings.streams)),
        partial(_events, settings=settings),
        knowledge=None,
        default_events=1000,
        default_keys=100,
    )


def _value(drawn: int, values: int) -> str:
    if values <= VALUES:
        return integer(drawn * VALUES // values)
    return double(f"{drawn * VALUES / values:.4f}")


def _events(dice: Dice, keys: int, settings: Settings) -> Iterator[Generated]:
    fraction, values, streams = dice.fraction, settings.values, settings.streams
    types, selectivity, triples = settings.types, settings.selectivity, settings.triples
    for i in count():
        graph = f"{BASE}e/{i}"
        e = f"<{graph}>"
        drawn = int(fraction() / selectivity) + 1 if selectivity else 0
        key, value = int(fraction() * keys), int(fraction() * values)
        quads = (
            f"{e} {RDF_TYPE} <{NS}T{drawn if drawn <= types else 0}> {e} .\n",
            f"{e} <{NS}key> <{BASE}k/{key}> {e} .\n",
            f"{e} <{NS}value> {_value(value, values)} {e} .\n",
            f"{e} <{NS}weight> {double(tenths(int(fraction() * VALUES)))} {e} .\n",
            f"{e} <{NS}batch> {integer(i // 1000)} {e} .\n",
        )[:triples]
        time = date_time(START + i // streams * settings.step_ms)
        yield Generated(i % streams, graph, f"{''.join(quads)}{e} {GENERATED_AT} {time} .\n")
