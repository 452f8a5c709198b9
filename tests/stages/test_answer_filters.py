"""AFTER MATCH knows few partitions, however many there have been."""

from __future__ import annotations

from functools import partial

import pytest

from spaseq.compile import compile_query
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.program_events import batch_from_events
from spaseq.stages.answer_filters import AnswerFilters
from spaseq.stages.sequence import SequenceStage
from tests.thresholds import Force

QUERY = """SELECT ?k WITHIN 1 SECONDS PARTITION BY (?k) AFTER MATCH {} FROM STREAM S <http://e/s>
    WHERE {{ SEQ(A: B) DEFINE GPM A ON S {{ ?k <http://e/a> ?a }}
    DEFINE GPM B ON S {{ ?k <http://e/b> ?b }} }}"""
KEYS = 300


@pytest.mark.each_once
@pytest.mark.parametrize("forgets", ["least", "never"])
@pytest.mark.parametrize(
    ("rule", "each"),
    [
        ("SKIP PAST LAST EVENT", 1),  # the first match forbids all that begin before its end
        ("SKIP TO NEXT EVENT", 2),  # one for each A
        ("SKIP TO LAST A", 3),  # the second A forbids the first one to the second B
        ("MUTE 90 MILLISECONDS", 2),  # the two that end with a B are told as one
        ("SKIP TO NEXT EVENT MUTE 1 SECONDS", 1),
    ],
)
def test_partitions_that_are_idle_are_forgotten(
    rule: str, each: int, forgets: str, force: Force
) -> None:
    """Each key has two A, then two B, two seconds after the key before."""
    force(f"forgotten_keys={forgets}")
    plan = compile_query(QUERY.format(rule))
    filters = list[AnswerFilters]()

    def kept(make: partial[AnswerFilters], limit: int | None) -> AnswerFilters:
        filters.append(make(limit))
        return filters[-1]

    stage = SequenceStage(plan, filters=partial(kept, partial(AnswerFilters, plan)))
    patterns, counter, found = PatternStage(plan, KnowledgeBase.empty()), InstantCounter(), 0
    for key in range(KEYS):
        events = [
            (2000 * key + 100 * n, None, [(f"<http://e/k{key}>", f"<http://e/{step}>", '"1"')])
            for n, step in enumerate("aabb")
        ]
        stage.push(patterns.match(batch_from_events("http://e/s", events, counter)))
        answers = stage.advance(2000 * key + 300)
        assert len(answers) == each
        found += len(answers)
    assert found == each * KEYS and not stage.close()
    known = len(filters[0].skips)
    assert known < 10 if forgets == "least" else known == KEYS
