"""Queries that read each other's streams, on both runtimes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest
import rdflib

import spaseq
from spaseq.algebra.answers import Answer
from spaseq.runtime.job.job import Stats
from spaseq.runtime.spark import bounded
from tests.language.tables import nquads
from tests.sizes import first_of

E = "http://example/"
RUNTIMES = ["local", pytest.param("spark", marks=pytest.mark.spark)]
Runtime = Literal["local", "spark"]

FALLS = """PREFIX : <http://example/>
REGISTER STREAM <http://example/falls> AS
CONSTRUCT { [] :from ?a ; :to ?b }
WITHIN 1 HOURS FROM STREAM S <http://example/s>
WHERE { SEQ(A, B)
  DEFINE GPM A ON S { ?x :value ?a }
  DEFINE GPM B ON S { ?y :value ?b FILTER(?b < ?a) } }"""
"""A value, and a smaller one right after it."""

DOUBLE_FALLS = """PREFIX : <http://example/>
REGISTER STREAM <http://example/double-falls> AS
CONSTRUCT { ?f1 :then ?f2 . ?f1 :from ?a . ?f2 :to ?c }
WITHIN 1 HOURS FROM STREAM F <http://example/falls>
WHERE { SEQ(A; B)
  DEFINE GPM A ON F { ?f1 :from ?a ; :to ?b }
  DEFINE GPM B ON F { ?f2 :from ?b ; :to ?c } }"""
"""Two falls, the second from where the first ended."""

RISES = """PREFIX : <http://example/>
SELECT ?a ?c ?d
WITHIN 1 HOURS
FROM STREAM D <http://example/double-falls>
FROM STREAM F <http://example/falls>
FROM STREAM S <http://example/s>
WHERE { SEQ((D & F), R)
  DEFINE GPM D ON D { ?f1 :then ?f2 ; :from ?a . ?f2 :to ?c }
  DEFINE GPM F ON F { ?f :to ?c }
  DEFINE GPM R ON S { ?z :value ?d FILTER(?d > ?a) } }"""
"""A double fall, together with its second fall, and right after it a value above its start."""

VALUES = "9 5 3 12 4 6 2 1 7"


@pytest.fixture
def stream(tmp_path: Path) -> dict[str, Path]:
    path = tmp_path / "s.nq"
    path.write_text(nquads(VALUES))
    return {f"{E}s": path}


def numbers(match: spaseq.Match) -> list[int]:
    """The values of a solution, or the numbers in a graph in ascending order."""
    if match.graph is None:
        return [term.to_python() for term in match.bindings.values()]
    return sorted(int(o) for o in match.graph.objects() if str(o).isdigit())


@pytest.mark.parametrize(
    "runtime", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.thorough])]
)
def test_three_queries_in_a_row(stream: dict[str, Path], runtime: Runtime) -> None:
    """The third query reads both others and the raw stream; the order of queries is irrelevant."""
    stats = Stats()
    matches = list(spaseq.run([RISES, DOUBLE_FALLS, FALLS], stream, runtime=runtime, stats=stats))
    names = [f"{E}falls"] * 5 + [f"{E}double-falls"] * 2 + ["query1"] * 2
    assert [m.query for m in matches] == names
    falls = [[5, 9], [3, 5], [4, 12], [2, 6], [1, 2]]
    double_falls, rises = [[3, 9], [1, 6]], [[9, 3, 12], [6, 1, 7]]
    assert [numbers(m) for m in matches] == [*falls, *double_falls, *rises]
    times = [(int(t.time.timestamp()), t.gpm) for t in matches[7].trace]
    assert times == [(2, "D"), (2, "F"), (3, "R")]
    assert (stats.events, stats.triples, stats.matches) == (
        9,
        9,
        9,
    )  # registered streams do not count


@pytest.mark.spark
@pytest.mark.parametrize("files", first_of([True, False], 1))
def test_equal_answers_and_partial_matches_on_both_runtimes(
    stream: dict[str, Path], monkeypatch: pytest.MonkeyPatch, files: bool
) -> None:
    """Spark's rows go between the stages in files of this machine, or as on a cluster."""
    monkeypatch.setattr(bounded, "is_one_machine", lambda spark: files)
    if not files:
        monkeypatch.setattr(bounded, "local_cores", lambda master: None)

    def run(runtime: Runtime) -> tuple[list[tuple[str, Answer]], set[str], Stats]:
        partials, stats = list[str](), Stats()
        matches = spaseq.run(
            [FALLS, RISES, DOUBLE_FALLS],
            stream,
            runtime=runtime,
            stats=stats,
            on_partial=lambda partial: partials.append(str(partial)),
        )
        return [(m.query, m.answer) for m in matches], {*partials}, stats

    (answers, partials, stats), (others, other_partials, counted) = run("local"), run("spark")
    assert answers == others and len(answers) == 9
    assert partials == other_partials and any("double-falls" in partial for partial in partials)
    assert (stats.answers, stats.solutions) == (counted.answers, counted.solutions)
    assert (stats.events, stats.partial) == (counted.events, counted.partial)


@pytest.mark.spark
@pytest.mark.thorough
def test_a_frame_of_queries_that_read_each_other(spark: Any, stream: dict[str, Path]) -> None:
    from spaseq.spark import answers

    expected = list(spaseq.run([FALLS, DOUBLE_FALLS], stream, runtime="local"))
    rows = answers(spark, [FALLS, DOUBLE_FALLS], stream).collect()
    found = {r.event: [(t.subject, t.predicate, t.object) for t in r.graph] for r in rows}
    assert found == {m.event: list(m.answer.graph or ()) for m in expected}
    assert {r.query for r in rows} == {f"{E}falls", f"{E}double-falls"}
    assert all(r.bindings == {} for r in rows)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_no_answers_make_an_empty_stream(tmp_path: Path, runtime: Runtime) -> None:
    (tmp_path / "s.nq").write_text(nquads("1 2 3"))
    inputs = {f"{E}s": tmp_path / "s.nq"}
    assert list(spaseq.run([DOUBLE_FALLS, FALLS], inputs, runtime=runtime)) == []


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_an_absence_makes_its_event_when_the_window_closes(
    tmp_path: Path, runtime: Runtime
) -> None:
    (tmp_path / "s.nq").write_text(nquads("14 88 16"))
    quiet = """PREFIX : <http://example/>
    REGISTER STREAM <http://example/quiet> AS CONSTRUCT { ?x :quiet ?a }
    WITHIN 5 SECONDS FROM STREAM S <http://example/s>
    WHERE { SEQ(A; B!) DEFINE GPM A ON S { ?x :value ?a }
      DEFINE GPM B ON S { ?y :value ?b FILTER(?b > ?a) } }"""
    reader = """PREFIX : <http://example/> SELECT ?a (TIMESTAMP(A) AS ?t)
    WITHIN 1 HOURS FROM STREAM Q <http://example/quiet>
    WHERE { SEQ(A) DEFINE GPM A ON Q { ?x :quiet ?a } }"""
    matches = spaseq.run([quiet, reader], {"S": tmp_path / "s.nq"}, runtime=runtime)
    found = [[t.to_python() for t in m.bindings.values()] for m in matches if m.graph is None]
    closes = [datetime(1970, 1, 1, 0, 0, second, tzinfo=UTC) for second in (6, 7)]
    assert found == [[88, closes[0]], [16, closes[1]]]


def test_the_graph_of_a_match(stream: dict[str, Path]) -> None:
    first, *_ = spaseq.run(FALLS, stream, runtime="local")
    graph = first.graph
    assert graph is not None
    assert str(graph.identifier) == first.event
    expected = rdflib.Graph().parse(data=f"[] <{E}from> 9 ; <{E}to> 5 .", format="turtle")
    assert graph.isomorphic(expected)
    assert dict(first.bindings) == {}


def test_a_select_match_has_no_graph(stream: dict[str, Path]) -> None:
    query = FALLS.replace("CONSTRUCT { [] :from ?a ; :to ?b }", "SELECT ?a ?b")
    match, *_ = spaseq.run(query, stream, runtime="local")
    assert (match.graph, match.event) == (None, None)
    assert match.query == f"{E}falls"


def test_the_engine_in_process_constructs() -> None:
    engine = spaseq.Engine(FALLS)
    for time, value in enumerate((9, 5), 1):
        number = f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        engine.push("S", f"<{E}e> <{E}value> {number} .", time)
    (match,) = engine.close()
    assert numbers(match) == [5, 9]


def test_having_and_after_match_come_before_the_template(stream: dict[str, Path]) -> None:
    query = FALLS.replace("WITHIN 1 HOURS", "WITHIN 1 HOURS AFTER MATCH SKIP PAST LAST EVENT")
    matches = list(spaseq.run(f"{query} HAVING(?a != 12)", stream, runtime="local"))
    assert [numbers(m) for m in matches] == [
        [5, 9],
        [2, 6],
    ]  # skipped: 5 3 and 2 1, which begin where a kept match ends


def test_an_answer_without_triples_is_no_event(tmp_path: Path) -> None:
    (tmp_path / "s.nq").write_text(nquads("1 2"))
    maker = """PREFIX : <http://example/>
    REGISTER STREAM <http://example/some> AS CONSTRUCT { ?x :big ?a }
    WITHIN 1 HOURS FROM STREAM S <http://example/s>
    WHERE { SEQ(A) DEFINE GPM A ON S {
      { ?x :value ?a FILTER(?a > 1) } UNION { ?x :value ?small FILTER(?small <= 1) } } }"""
    reader = """PREFIX : <http://example/> SELECT * WITHIN 1 HOURS
    FROM STREAM E <http://example/some> WHERE { SEQ(A) DEFINE GPM A ON E { ?s ?p ?o } }"""
    stats = Stats()
    inputs = {f"{E}s": tmp_path / "s.nq"}
    made, read = spaseq.run([maker, reader], inputs, runtime="local", stats=stats)
    assert [s for s, _, _ in made.answer.graph or ()] == [f"<{E}e1>"]
    assert read.trace[0].event == made.event
    assert stats.matches == 2
