"""The figures of windows: how long their range is, and how many there are at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.cost.runs import text_cost
from benchmarks.generators.case import Dice
from benchmarks.plots.figures import Curve, Figure

COST = "ns of CPU time per event"
RANGES = (1, 10, 60, 600, 3600, 21_600, 86_400)
AT_A_TIME = (1, 3, 10, 30, 100, 300, 1000)
EVERY_MS = 2000
"""Milliseconds between events: half a million of them are eleven days."""

_MANY = 100_000
"""Keys of a join: at this rate a key comes once in two days."""

_GROUPS = """{ SELECT ?k (AVG(?v) AS ?mean) { EVENT { ?k :value ?v } } GROUP BY ?k
    HAVING (AVG(?v) > 1000) }"""
_JOIN = "EVENT AT ?t1 { ?k :value ?x } EVENT AT ?t2 { ?k :value ?y } FILTER (?t1 < ?t2)"
_PREFIX = "http://s.example/ns#"
_TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
_XSD = "http://www.w3.org/2001/XMLSchema#"


def query(extent: str, pattern: str) -> str:
    """A GPM on what is new in a window."""
    return f"""PREFIX : <{_PREFIX}> SELECT * FROM STREAM S1 <http://s.example/stream/s1>
    FROM WINDOW W ON S1 {extent} WHERE {{ SEQ(A) DEFINE GPM A ON NEW W {{ {pattern} }} }}"""


def write_levels(path: Path, events: int, keys: int) -> None:
    """Events at a constant rate, each with a value of a key."""
    dice = Dice(1)
    with path.open("w", encoding="utf-8") as file:
        for number in range(events):
            graph, key, value = (
                f"<urn:e:{number}>",
                dice.whole(0, keys - 1),
                dice.whole(0, 10_000) / 100,
            )
            file.write(f'<urn:k:{key}> <{_PREFIX}value> "{value}"^^<{_XSD}double> {graph} .\n')
            file.write(f'{graph} {_TIME} "{number * EVERY_MS}"^^<{_XSD}long> .\n')


def by_range(folder: Path, events: int, rounds: int) -> Figure:
    """Windows of a second to a day, at a constant rate."""
    extents = {
        "average by key, each minute": ("RANGE {} SECONDS SLIDE 1 MINUTES", _GROUPS, 100),
        "average by key, each event": ("RANGE {} SECONDS EACH EVENT", _GROUPS, 100),
        "join of two values of a key, each event": ("RANGE {} SECONDS EACH EVENT", _JOIN, _MANY),
    }
    curves = []
    for label, (extent, pattern, keys) in extents.items():
        texts = [query(extent.format(length), pattern) for length in RANGES]
        curves.append(Curve(label, RANGES, _costs(folder, texts, events, keys, rounds)))
    return Figure("range", "Range of a window", "seconds", COST, curves, log_x=True)


def by_slide(folder: Path, events: int, rounds: int) -> Figure:
    """One to a thousand windows at a time, of a thousand events each."""
    length = 1000 * EVERY_MS
    extents = [f"RANGE {length} MILLISECONDS SLIDE {length // n} MILLISECONDS" for n in AT_A_TIME]
    curves = []
    for keys in (1, 100, 10_000):
        texts = [query(extent, _GROUPS) for extent in extents]
        costs = _costs(folder, texts, events, keys, rounds)
        curves.append(Curve(f"average by key, {keys:,} keys", AT_A_TIME, costs))
    return Figure("slide", "Windows at a time", "range / slide", COST, curves, log_x=True)


def _costs(folder: Path, texts: Sequence[str], events: int, keys: int, rounds: int) -> list[float]:
    path = folder / f"{keys}.nq"
    write_levels(path, events, keys)
    return [text_cost(text, path, events, rounds)[0] for text in texts]
