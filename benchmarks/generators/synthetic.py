"""Synthetic streams of five-triple events, for measurements.

The streams take turns; the events of one turn share a timestamp. An event has a type, a key, a
value, a weight and a batch number. Each of the types T1 to Tn has the given probability. All other
events have type T0. Keys and values are uniformly distributed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count

from .case import Case, Dice, Generated
from .nquads import RDF_TYPE, Stamp, double, event, integer, milliseconds, tenths

BASE = "http://s.example/"
NS = f"{BASE}ns#"
START = milliseconds("2025-01-01T00:00:00")
VALUES = 1000


def case(types: int, selectivity: float, streams: int, step_ms: int) -> Case:
    """A case with these settings: every stream has an event every `step_ms`.

    `selectivity` is the share of events of each of the types T1 to Tn.
    """
    if types < 1 or streams < 1 or step_ms < 0 or not 0 <= selectivity * types <= 1:
        raise ValueError("types * selectivity must lie between 0 and 1, the others be positive")
    return Case(
        "synthetic",
        tuple(f"s{i + 1}" for i in range(streams)),
        partial(_events, types=types, selectivity=selectivity, streams=streams, step_ms=step_ms),
        knowledge=None,
        default_events=1000,
        default_keys=100,
    )


def _events(
    dice: Dice, keys: int, types: int, selectivity: float, streams: int, step_ms: int
) -> Iterator[Generated]:
    type_p, key_p = RDF_TYPE, f"<{NS}key>"
    value_p, weight_p, part_p = f"<{NS}value>", f"<{NS}weight>", f"<{NS}batch>"
    fraction, after = dice.fraction, Stamp.AFTER
    for i in count():
        graph = f"{BASE}e/{i}"
        e = f"<{graph}>"
        drawn = int(fraction() / selectivity) + 1 if selectivity else 0
        triples = (
            (e, type_p, f"<{NS}T{drawn if drawn <= types else 0}>"),
            (e, key_p, f"<{BASE}k/{int(fraction() * keys)}>"),
            (e, value_p, integer(int(fraction() * VALUES))),
            (e, weight_p, double(tenths(int(fraction() * VALUES)))),
            (e, part_p, integer(i // 1000)),
        )
        yield Generated(
            i % streams, graph, event(e, START + i // streams * step_ms, triples, after)
        )
