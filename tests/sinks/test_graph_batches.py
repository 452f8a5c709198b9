"""Graphs of CONSTRUCT that are made as columns are those that are made one by one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyarrow import feather

from spaseq.algebra.answer_blocks import answers_of, blocks
from spaseq.algebra.answers import Answer
from spaseq.algebra.graph_batch import GraphBatch
from spaseq.compile import CompileOptions, compile_query
from spaseq.errors import RunError
from spaseq.plan.query_plan import EvaluatorName, QueryPlan
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.program_events import batch_from_events
from spaseq.sinks import FORMATS, SINKS, arrow_files, open_sink
from spaseq.sinks.base import open_lines
from tests.automaton.cases import query
from tests.sinks.test_answer_batches import FREE, GPMS, found_by, stream
from tests.sizes import first_of

TEMPLATES = [
    "?a :is ?x",
    "?x :before ?y . ?n :says ?v . ?a :may ?n",  # ?n and ?y are any terms, or unbound
    "?a ?x ?v . ?a ?n ?y",  # any term as a predicate
    "[] a :Alert ; :of ?a, [ :by ?b ] . _:b :and ?y . _:b :and ?n",
    "?a :p ?x . ?a :p ?x . :it :was :so . ?a :p ?y . ?a ?x ?y",  # some triples may be equal
    "?n :p ?n",  # most answers have no graph
    "?a :p 5, 'é \\\\ \"quoted\"\\n'@de, <http://e/é>",
]
QUERIES: list[tuple[EvaluatorName, str]] = [
    ("compiled-chain", query("A: B", GPMS)),
    ("compiled-compact", query("A; B+", FREE, "3 SECONDS")),
]


def planned(template: str, evaluator: EvaluatorName, text: str, head: str = "") -> QueryPlan:
    made = text.replace("SELECT *", f"CONSTRUCT {{ {template} }}")
    return compile_query(head + made, options=CompileOptions(evaluator=evaluator))


def written(form: str, batches: Sequence[Sequence[Answer]], path: Path) -> object:
    try:
        with open_lines(str(path)) as out, open_sink(form, out, []) as sink:
            for answers in batches:
                sink.write_all('a "query"', answers)
    except RunError as error:
        assert form == "jsonld" and "RDF 1.2" in str(error)  # it has no triple terms
        return str(error)
    return feather.read_table(path).to_pylist() if form == "arrow" else path.read_bytes()


@pytest.mark.each_once
@pytest.mark.parametrize("template", first_of(TEMPLATES, 3))
@pytest.mark.parametrize(("evaluator", "text"), QUERIES, ids=[name for name, _ in QUERIES])
def test_all_formats(
    evaluator: EvaluatorName,
    text: str,
    template: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arrow_files, "_ROWS", 7)
    monkeypatch.setattr("spaseq.algebra.answer_batch.PIECE", 5)
    plan = planned(template, evaluator, text)
    for number in range(3):
        events = stream(number)
        singly, columns = found_by(plan, events, 10**9), found_by(plan, events, 1)
        batches = [answers for answers in columns if isinstance(answers, GraphBatch)]
        assert batches
        assert [[*answers] for answers in columns] == singly
        for answers in batches:
            one_by_one = [*answers]
            assert [answers[i] for i in range(len(answers))] == one_by_one
            for part in (slice(1, 4), slice(4, 1), slice(None, None, -2), slice(-3, None)):
                assert answers[part] == one_by_one[part]
            sent = [answer for _, block in blocks(answers) for answer in answers_of(block)]
            assert sent == one_by_one
            check_events(answers, one_by_one)
        for form in FORMATS:
            if SINKS[form].holds != "solutions" and (form != "parquet"):
                both = [written(form, found, tmp_path / form) for found in (singly, columns)]
                assert both[0] == both[1], form


def check_events(answers: GraphBatch, one_by_one: Sequence[Answer]) -> None:
    """A registered stream has the same events, made from columns and from single answers."""
    made = answers.batch("http://e/stream", InstantCounter())
    given = [(a.end[0], a.event, a.graph or ()) for a in one_by_one]
    wanted = batch_from_events("http://e/stream", given, InstantCounter())
    for own in (made, wanted):
        assert len(set(own.terms)) == len(own.terms)
    seen = [
        [
            own.time.tolist(),
            own.k.tolist(),
            own.start.tolist(),
            own.names(slice(None)).texts(),
            [[own.terms[code] for code in column.tolist()] for column in (own.s, own.p, own.o)],
        ]
        for own in (made, wanted)
    ]
    assert seen[0] == seen[1]


def test_graphs_of_a_registered_stream_have_its_iri() -> None:
    head = "REGISTER STREAM <http://e/made> AS "
    plan = planned("?a :is ?x", *QUERIES[0], head)
    found = [answer for answers in found_by(plan, stream(1), 1) for answer in answers]
    assert found and all(str(answer.event).startswith("http://e/made/") for answer in found)
