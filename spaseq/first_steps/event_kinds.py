"""Which events the rows of a user's file are: mostly one each, with the likeliest time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spaseq.first_steps.field_type import FieldType
from spaseq.first_steps.flat_rows import FlatRows
from spaseq.first_steps.samples import EventKind

_TIME = re.compile(r"(?i)(time|date|when|created|observed|(^|_)(at|ts)(_ms|_us|_s)?$)")


def event_kinds(
    types: Mapping[str, FieldType], columns: Mapping[str, Sequence[Any]], flat: FlatRows
) -> tuple[EventKind, ...]:
    """The events of a row: several, if it has no time itself, and several of its objects have one.

    So it is in NGSI-LD, whose entities have an `observedAt` in each attribute. `columns` are the
    values by field.
    """
    times = [name for name, kind in types.items() if kind.name == "time"]
    complete = [name for name in times if len(columns[name]) == len(flat.rows)]
    if all(name in flat.objects for name in complete):
        several = [*_several(types, [name for name in times if name in flat.inner], flat)]
        if len(several) > 1:
            return tuple(several)
    best = min(
        complete or times,
        key=lambda name: (name in flat.objects, _TIME.search(name) is None),
        default=None,
    )
    clock = None
    if best is not None and types[best].day:
        clocks = [name for name, kind in types.items() if kind.name == "clock"]
        clock = next((n for n in clocks if len(columns[n]) == len(flat.rows)), None)
    fields = tuple(name for name in types if name not in (best, clock))
    return (EventKind("", best, fields, clock),)


def _several(
    types: Mapping[str, FieldType], times: Sequence[str], flat: FlatRows
) -> Iterator[EventKind]:
    """An event for each object with a time and other fields, with the fields at the row's top."""
    of = {flat.objects[time]: time for time in reversed(times)}
    common = [name for name in types if name not in flat.objects]
    for parent, time in reversed(of.items()):
        own = [n for n in types if flat.objects.get(n) == parent and types[n].name != "time"]
        if own:
            yield EventKind(parent, time, (*common, *own))
