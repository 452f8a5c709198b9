"""Queries whose windows close later are not asked when time passes; those that are due are."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from spaseq.compile import compile_query
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import StageOptions
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.stream_options import warn
from spaseq.rdf.program_events import batch_from_events
from spaseq.runtime.pushed import PushedQueries
from spaseq.stages.unit_sequence import UnitSequence
from spaseq.stages.unit_stages import StageFactory

SILENT = """PREFIX : <http://e/>
{head} WITHIN {seconds} SECONDS FROM STREAM S <http://e/s>
WHERE {{ SEQ(H; N!) DEFINE GPM H ON S {{ ?d :beat ?x }} DEFINE GPM N ON S {{ ?d :beat ?y }} }}"""

READER = """PREFIX : <http://e/>
SELECT ?d WITHIN 1 HOURS FROM STREAM Q <http://e/quiet>
WHERE { SEQ(A) DEFINE GPM A ON Q { ?d :is :quiet } }"""


def queries(*texts: str) -> PushedQueries:
    how = StageFactory(KnowledgeBase.empty(), StageOptions(), warn)
    return PushedQueries([compile_query(text) for text in texts], how)


def silent(seconds: int, head: str = "SELECT ?d") -> str:
    return SILENT.format(head=head, seconds=seconds)


def beat(run: PushedQueries, ms: int) -> None:
    """Push an event of the stream."""
    triple = ("<http://e/d>", "<http://e/beat>", '"1"')
    batch = batch_from_events("http://e/s", [(ms, None, [triple])], InstantCounter())
    run.push([(unit, rows.compact()) for unit, rows in run.match_batch(batch)])


def test_a_query_is_not_asked_while_its_window_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    run, asked = queries(silent(10), silent(3600)), Counter[str]()
    advance = UnitSequence.advance

    def counted(self: UnitSequence, watermark: int, *rest: Any) -> Any:
        asked[names[self]] += 1
        return advance(self, watermark, *rest)

    names = {run.unit(q).sequence: f"{n}" for n, q in enumerate(run.queries)}
    monkeypatch.setattr(UnitSequence, "advance", counted)
    beat(run, 1000)
    found = [run.advance_streams({"http://e/s": ms}) for ms in range(1000, 3_601_001, 1000)]
    ends = [(ms, n) for ms, own in enumerate(found, 1) for n, _ in own]
    assert ends == [(11, 0), (3601, 1)]
    assert max(asked.values()) < 10


def test_an_answer_wakes_the_queries_that_read_it() -> None:
    made = "REGISTER STREAM <http://e/quiet> AS CONSTRUCT { ?d :is :quiet }"
    run = queries(silent(10, made), READER)
    beat(run, 1000)
    found = {ms: run.advance_streams({"http://e/s": ms}) for ms in range(1000, 20_000, 1000)}
    assert {ms: [n for n, _ in own] for ms, own in found.items() if own} == {11_000: [0, 1]}
