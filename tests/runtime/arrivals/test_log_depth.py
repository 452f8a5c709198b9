"""How far back in the logs of its streams the state of a query reaches."""

from __future__ import annotations

import json

import pytest

from spaseq.compile import compile_query
from spaseq.runtime.arrivals.log_depth import Depth, depths
from tests.runtime.live.live_jobs import IRI, QUERY

COUNT = '{ SELECT (COUNT(*) AS ?%s) { EVENT { ?x <http://example/is> "hot" } } }'
WINDOW = f"""SELECT ?n WITHIN 2 SECONDS FROM STREAM S <{IRI}> FROM WINDOW W ON S %s
WHERE {{ SEQ(A; B)
  DEFINE GPM A ON W {{ {COUNT % "n"} }} DEFINE GPM B ON W {{ {COUNT % "m"} }} }}"""
CONSUME = "AFTER MATCH CONSUME"
SKIPPING = QUERY.replace("FROM", f"{CONSUME} FROM", 1)
MUTING = QUERY.replace("FROM", "AFTER MATCH MUTE 3 SECONDS FROM", 1)
COUNTED = QUERY.replace("5 SECONDS", "7 EVENTS")
ALL = {"is_endless": True}


@pytest.mark.parametrize(
    ("query", "depth"),
    [
        (QUERY, Depth((IRI,), 5000)),
        (SKIPPING, Depth((IRI,), 10_000, is_chained=True)),
        (MUTING, Depth((IRI,), 8000, is_chained=True)),
        (COUNTED, Depth((IRI,), 0, 7)),
        (COUNTED.replace("FROM", f"{CONSUME} FROM", 1), Depth((IRI,), 0, 14, is_chained=True)),
        (COUNTED.replace("FROM", "PARTITION BY (?x) FROM", 1), Depth((IRI,), 0, 7, **ALL)),
        # A match lasts two seconds, and its first window event has events of a range before it.
        (WINDOW % "RANGE 10 SECONDS SLIDE 4 SECONDS", Depth((IRI,), 16_000)),
        (WINDOW % "RANGE 10 SECONDS EACH EVENT", Depth((IRI,), 12_000)),
        (WINDOW % "RANGE 3 EVENTS EACH EVENT", Depth((IRI,), 2000, **ALL)),
        (WINDOW % "SESSION 1 SECONDS", Depth((IRI,), 3000, **ALL)),
    ],
)
def test_the_depth_of_a_query(query: str, depth: Depth) -> None:
    (found,) = depths([compile_query(query, "q")], [IRI])
    assert found == depth
    assert Depth.of_json(json.loads(json.dumps(found.as_json()))) == found


def test_a_reader_of_another_query_needs_the_events_of_both() -> None:
    maker = QUERY.replace("SELECT ?x", "REGISTER STREAM <http://made> AS CONSTRUCT { ?x ?x ?x }")
    reader = QUERY.replace(IRI, "http://made")
    plans = [compile_query(text, name) for name, text in (("m", maker), ("r", reader))]
    assert depths(plans, [IRI]) == [Depth((IRI,), 10_000)]


def test_a_window_of_events_may_also_reach_back_in_time() -> None:
    """Of nine events the last three are needed, and those of ten seconds before the watermark."""
    reach = Depth((IRI,), 10_000, 3).reach({IRI: 20_001}, {IRI: 9})
    assert reach.is_after({IRI: 9999}, {IRI: 6})
    assert not reach.is_after({IRI: 9999}, {IRI: 7})
    assert not reach.is_after({IRI: 10_000}, {IRI: 6})
    assert not Depth((IRI,), 0, 3).reach({IRI: None}, {IRI: 9}).is_after({IRI: 0}, {IRI: 1})
