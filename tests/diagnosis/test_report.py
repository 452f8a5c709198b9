"""The report in its two forms."""

from __future__ import annotations

from spaseq.diagnosis.report import Cause, GpmCount, Report, StepCount, StreamCount

CAUSE = Cause(
    "predicate-never-occurs",
    "B",
    2,
    7,
    24,
    0,
    ":avgSped",
    ":avgSpeed",
    text="predicate :avgSped is in no event; did you mean :avgSpeed (3,998)?",
    shown="?o2 :avgSped ?v2",
)
REPORT = Report(
    0,
    (CAUSE,),
    (StreamCount("S1", "http://e/s", 3998, 19_990, 1406879400000, 1408146900000),),
    (GpmCount("A", ("S1",), 358, 358), GpmCount("B", ("S1",), 0, 0)),
    (StepCount(1, "A", 358), StepCount(2, "B", 0)),
)


def test_text() -> None:
    assert REPORT.as_text().splitlines() == [
        "stream S1    3,998 events, 19,990 triples, 2014-08-01T07:50 to 08-15T23:55",
        "  A            358 solutions in 358 events",
        "  B              0 solutions",
        "    ?o2 :avgSped ?v2        predicate :avgSped is in no event; "
        "did you mean :avgSpeed (3,998)? (7:24)",
        "sequence       358 begun, 0 reached B",
        "answers          0",
    ]


def test_json() -> None:
    found = REPORT.as_json()
    assert [*found] == ["answers", "causes", "streams", "gpms", "steps"]
    assert found["causes"] == [
        {
            "kind": "predicate-never-occurs",
            "gpm": "B",
            "step": 2,
            "line": 7,
            "column": 24,
            "count": 0,
            "term": ":avgSped",
            "suggestion": ":avgSpeed",
            "example": None,
        }
    ]
    assert found["steps"] == [
        {"step": 1, "name": "A", "reached": 358},
        {"step": 2, "name": "B", "reached": 0},
    ]
