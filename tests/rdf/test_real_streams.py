"""Counts of the shared real streams agree with the table in their README."""

from __future__ import annotations

import pytest

from spaseq.rdf.terms.times import format_time
from tests.rdf.shared import SHARED, needs_data
from tests.rdf.streams import read

TABLE = [
    ("aarhus/traffic-183117.nq", 3998, 19990, "2014-08-01T07:50:00Z", "2014-08-15T23:55:00Z"),
    ("aarhus/traffic-183063.nq", 3594, 17970, "2014-08-01T07:55:00Z", "2014-08-15T23:55:00Z"),
    ("aarhus/traffic-183009.nq", 4045, 20225, "2014-08-01T07:50:00Z", "2014-08-15T23:55:00Z"),
    ("aarhus/traffic-182955.nq", 3533, 17665, "2014-08-01T08:00:00Z", "2014-08-15T23:55:00Z"),
    ("aarhus/traffic-182901.nq", 4004, 20020, "2014-08-01T07:50:00Z", "2014-08-15T23:55:00Z"),
    ("aarhus/traffic-195312.nq", 3223, 16115, "2014-08-01T08:00:00Z", "2014-08-15T23:55:00Z"),
    ("aarhus/weather.nq", 2211, 11051, "2014-08-01T00:00:00Z", "2014-08-31T23:50:00Z"),
    ("aarhus/parking.nq", 3880, 15520, "2014-08-01T00:01:49.478Z", "2014-08-15T23:31:49.614Z"),
    ("cards/transactions.nq", 10000, 20000, "2018-01-04T00:00:00Z", "2018-01-04T02:46:39Z"),
    ("stocks/nasdaq.nq", 1652, 9912, "2008-02-01T09:00:00Z", "2008-02-01T16:59:00Z"),
]


@needs_data
@pytest.mark.parametrize(("name", "count", "triples", "first", "last"), TABLE)
def test_counts_and_spans(name: str, count: int, triples: int, first: str, last: str) -> None:
    events, bad = read(SHARED / "data" / name, batch_events=1000)
    assert bad == []
    assert len(events) == count
    assert sum(len(e.triples) for e in events) == triples
    assert format_time(events[0].time) == first
    assert format_time(events[-1].time) == last


@needs_data
def test_the_eight_garages_share_each_timestamp() -> None:
    events, _ = read(SHARED / "data" / "aarhus" / "parking.nq")
    assert [e.k for e in events] == list(range(8)) * 485
