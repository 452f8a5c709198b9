"""Windows at their edges (docs/meaning.md#window)."""

from __future__ import annotations

import pytest

import spaseq
from tests.language.test_original import event

QUERY = """PREFIX : <http://example/>
SELECT {strategy} ?v WITHIN {within}
FROM STREAM S1 <http://example/1> FROM STREAM S2 <http://example/2> FROM STREAM S3 <http://example/3>
WHERE {{ SEQ(A) DEFINE GPM A ON S1, S2, S3 {{ ?x :price ?v }} }}"""


@pytest.mark.parametrize("strategy", ["ALL", "NEXT", "LAST", "MAX", "STRICT"])
@pytest.mark.parametrize(("within", "answers"), [("2 EVENTS", 0), ("3 EVENTS", 3)])
def test_simultaneous_events_all_count(strategy: str, within: str, answers: int) -> None:
    """Three streams have an event at one instant: from first to last there are three events."""
    query = QUERY.format(strategy=strategy, within=within)
    streams = {name: [event(1, 0)] for name in ("S1", "S2", "S3")}
    found = list(spaseq.run(query, streams, runtime="local"))
    best = strategy in ("NEXT", "LAST") and answers
    assert len(found) == (1 if best else answers)
