"""A first rule that has an answer in a sample, found by a plain loop."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from spaseq.first_steps.samples import SUBJECT, Sample, Seen
from spaseq.rdf.terms.term import RDF
from spaseq.records import record

_KEY = re.compile(
    r"(?i)(^|_)(id|name|key|sensor|device|station|ticker|symbol|customer|user|road)|(id|name)$"
)
_WINDOWS = (
    (60_000, "1 MINUTES"),
    (900_000, "15 MINUTES"),
    (3_600_000, "1 HOURS"),
    (86_400_000, "1 DAYS"),
    (7 * 86_400_000, "7 DAYS"),
    (30 * 86_400_000, "30 DAYS"),
    (365 * 86_400_000, "365 DAYS"),
)
_AHEAD = 500
"""Rows after one in which the loop looks for the other."""


@record
class FirstRule:
    """A rule, and the rows of one answer.

    Attributes:
        key: the field that both rows share; None if there is none.
        value: the field that grows from the first row to the second; None if there is none.
        window: the length of WITHIN.
        rows: the two rows of an answer, or the one.
    """

    key: str | None
    value: str | None
    window: str
    rows: tuple[Seen, ...]

    @property
    def has_labels(self) -> bool:
        """Whether the knowledge base has labels for the keys."""
        return self.key is not None and len(self.rows) > 1


def first_rule(sample: Sample) -> FirstRule:
    """The first of these rules that has an answer: growing values of one key, growing values,
    a key that comes again, and any row."""
    keys, values = keys_of(sample), _values_of(sample)
    ordered = sorted(sample.seen, key=lambda seen: seen.time or 0)
    wanted: list[tuple[str | None, str | None]] = [(k, v) for v in values for k in keys if k != v]
    wanted += [(None, v) for v in values] + [(k, None) for k in keys]
    for key, value in wanted:
        for limit, window in _WINDOWS:
            pair = next(_pairs(ordered, key, value, limit), None)
            if pair is not None:
                return FirstRule(key, value, window, pair)
    field = max(sample.types, key=lambda name: _telling(name, ordered))
    row = next((seen for seen in ordered if field in seen.values), ordered[0])
    return FirstRule(field, None, _WINDOWS[0][1], (row,))


def _telling(name: str, rows: list[Seen]) -> tuple[int, bool, int, bool]:
    """How much a field tells of rows: how many have it, with how many values."""
    values = [row.values[name] for row in rows if name in row.values]
    return len(values), name != f"{RDF}type", len(set(values)), bool(_KEY.search(name))


def keys_of(sample: Sample) -> list[str]:
    """The fields that may tell what a row is about, the likeliest first."""
    ranked: list[tuple[int, bool, int, str]] = []
    for name, kind in sample.types.items():
        if kind.name in ("number", "time", "clock") or name == f"{RDF}type":
            continue
        counts = Counter(seen.values[name] for seen in sample.seen if name in seen.values)
        again = sum(counts.values()) - len(counts)
        if again and len(counts) > (0 if kind.name == "iri" else 1):
            likely = bool(_KEY.search(name)) + (kind.name == "iri" and len(counts) > 1)
            likely += 2 * (name == SUBJECT)
            ranked.append((-likely, kind.name == "integer", len(ranked), name))
    return [name for *_, name in sorted(ranked)]


def _values_of(sample: Sample) -> list[str]:
    numbers = [n for n, kind in sample.types.items() if kind.name == "number"]
    numbers += [n for n, kind in sample.types.items() if kind.name == "integer"]
    return [n for n in numbers if len({s.values.get(n) for s in sample.seen} - {None}) > 1]


def _pairs(
    rows: list[Seen], key: str | None, value: str | None, limit: int
) -> Iterator[tuple[Seen, Seen]]:
    """The pairs of rows that the query answers, at most `limit` ms apart."""
    groups: dict[Any, list[Seen]] = defaultdict(list)
    for row in rows:
        if (key is None or key in row.values) and (value is None or value in row.values):
            groups[None if key is None else row.values[key]].append(row)
    for group in groups.values():
        for number, one in enumerate(group):
            for other in group[number + 1 : number + _AHEAD]:
                apart = (other.time or 0) - (one.time or 0)
                if apart > limit:
                    break
                if apart > 0 and (value is None or other.values[value] > one.values[value]):
                    yield one, other
