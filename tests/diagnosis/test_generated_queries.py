"""Generated queries: the report counts the answers of a run, and has no cause if there are any."""

from __future__ import annotations

import spaseq
from spaseq.errors import QueryError
from tests.oracle.choices import seeded
from tests.oracle.patterns import nt
from tests.oracle.strategies import Case, case
from tests.sizes import sizes


def events(example: Case) -> dict[str, list[spaseq.Event]]:
    return {
        iri: [
            spaseq.Event([(nt(s), nt(p), nt(o)) for s, p, o in triples], time, name)
            for time, name, triples in arrivals
        ]
        for iri, arrivals in example.streams.items()
    }


def check(seed: int) -> bool:
    """Whether the query of a seed is checked and has answers."""
    example = case(seeded(seed))
    try:
        report = spaseq.why(example.query, events(example), example.kb)
    except QueryError:
        return False
    found = spaseq.run(example.query, events(example), example.kb, "local")
    assert report.answers == len(list(found)), example.query
    assert not (report.answers and report.causes), example.query
    for cause in report.causes:
        assert cause.suggestion is None or cause.suggestion != cause.term
        assert cause.line is None or cause.line <= example.query.count("\n") + 1
    assert report.as_text() and report.as_json()
    return report.answers > 0


@sizes(30, 80, 500)
def test_queries(examples: int) -> None:
    assert sum(map(check, range(1000, 1000 + examples))) > 0.3 * examples
