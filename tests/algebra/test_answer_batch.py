"""Answers that queries share as one batch read like the answers of each query by itself."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import spaseq
from spaseq.algebra.answer_batch import SharedPart
from spaseq.rdf.terms.term import XSD, plain_text
from spaseq.sinks import open_sink
from spaseq.sinks.answer_json import answer_json
from spaseq.sinks.base import open_lines
from tests.thresholds import Force

QUERY = """PREFIX : <http://e/>
SELECT ?x ?v ?n WITHIN 1 HOURS FROM STREAM S <http://e/s>
WHERE { SEQ(A; B)
  DEFINE GPM A ON S { ?x :v ?v OPTIONAL { ?x :n ?n } FILTER (?v > LIMIT) }
  DEFINE GPM B ON S { ?x :w ?w } }"""
LIMITS = (5, 1, 3, 1, 9, 0)  # two queries are equal, and one has no answers


def events() -> list[spaseq.Event]:
    draw, made = Random(3), []
    for time in range(120):
        x, v = f"<http://e/x{draw.randrange(5)}>", f'"{draw.randrange(9)}"^^<{XSD}integer>'
        line = f"{x} <http://e/{draw.choice('vw')}> {v} ."
        if draw.random() < 0.5:
            line += f'\n{x} <http://e/n> "{draw.choice(["a", "b, c", "é"])}"@en .'
        made.append(spaseq.Event(line, time * 1000))
    return made


def found(query: str = QUERY) -> spaseq.Answers:
    texts = [query.replace("LIMIT", str(limit)) for limit in LIMITS]
    return spaseq.run(texts, {"S": events()}, runtime="local")


@pytest.mark.parametrize("most", [1, 10**9])
def test_each_query_makes_graphs_of_its_own(most: int, force: Force) -> None:
    made = QUERY.replace("SELECT ?x ?v ?n", "CONSTRUCT { [] :of ?x ; :was ?v ; :called ?n }")
    force(f"family_queries={10**9}")
    wanted = [*found(made)]
    force(f"family_queries=2 member_answers={most} columnar_matches=1")
    assert [*found(made)] == wanted != []
    assert all(match.answer.graph for match in wanted)
    assert len({match.answer.event for match in wanted}) == len(wanted)


@pytest.mark.parametrize("most", [1, 10**9])
def test_every_reader(most: int, force: Force, tmp_path: Path) -> None:
    force(f"family_queries={10**9}")
    wanted = [*found()]
    force(f"family_queries=2 member_answers={most} columnar_matches=1")
    assert [*found()] == wanted
    kinds = {type(answers) is SharedPart for _, answers in found()._all()}
    assert kinds == {most > 1}

    table = found().to_arrow()
    assert table.column("query").to_pylist() == [match.query for match in wanted]
    assert table.schema.field("v").type == pa.int64()
    for name in "xvn":
        terms = (dict(match.answer.bindings).get(name) for match in wanted)
        texts = [None if term is None else plain_text(term) for term in terms]
        assert table.column(name).cast(pa.string()).to_pylist() == texts
    traces = [[item["k"] for item in trace] for trace in table.column("trace").to_pylist()]
    assert traces == [[item.k for item in match.answer.trace] for match in wanted]

    path = tmp_path / "answers.jsonl"
    with open_lines(str(path)) as out, open_sink("jsonl", out, []) as sink:
        for name, answers in found()._all():
            sink.write_all(name, answers)
    lines = [answer_json(match.query, match.answer) for match in wanted]
    assert path.read_text().splitlines() == lines != []
