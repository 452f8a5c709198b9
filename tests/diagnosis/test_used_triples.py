"""What an answer used of the knowledge base, worked out by hand for small ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spaseq.api.prepare import load_knowledge
from spaseq.api.run import answers_of
from spaseq.compile import check_query
from spaseq.diagnosis.used_triples import UsedTriples, used_triples
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import KnowledgeOptions, RuntimeOptions
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.job.job import Job
from spaseq.sources.files import FileSource

KB = """@prefix : <http://e/> .
:s1 :on :r1 . :s2 :on :r1 , :r2 .
:r1 :name "Mill" ; :limit 50 ; :near :r2 . :r2 :name "Mill" ; :limit 30 .
:s1 :madeBy [ :country "CH" ] .
"""

EVENTS = """@prefix : <http://e/> . @prefix prov: <http://www.w3.org/ns/prov#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:e1 { :s1 :speed 40 } :e1 prov:generatedAtTime "2026-01-01T00:00:01Z"^^xsd:dateTime .
:e2 { :s2 :speed 45 } :e2 prov:generatedAtTime "2026-01-01T00:00:02Z"^^xsd:dateTime .
:e3 { :s1 :speed 60 } :e3 prov:generatedAtTime "2026-01-01T00:00:03Z"^^xsd:dateTime .
"""

HEAD = """PREFIX : <http://e/>
SELECT {} WITHIN 1 MINUTES FROM STREAM S <http://e/stream> FROM NAMED <http://e/kb>
WHERE {{ SEQ ({}) """


def prefixed(text: str) -> str:
    return text.replace("<http://e/", ":").replace(">", "")


class Case:
    """A query over the events and the knowledge base, with its answers."""

    def __init__(self, directory: Path, select: str, sequence: str, *gpms: str) -> None:
        for name, text in (("kb.ttl", KB), ("events.trig", EVENTS)):
            (directory / name).write_text(text)
        defined = "".join(f" DEFINE GPM {gpm}" for gpm in gpms)
        text = f"{HEAD.format(select, sequence)}{defined} }}"
        checked = check_query(text, "q")
        assert checked.plan is not None, checked.diagnostics
        assert checked.query is not None
        self._query = checked.query
        kb = {"http://e/kb": str(directory / "kb.ttl")}
        self.knowledge: KnowledgeBase = load_knowledge((), kb, KnowledgeOptions(kb_cache="none"))
        options = StreamOptions("http://e/stream", (str(directory / "events.trig"),))
        job = Job((checked.plan,), (FileSource(options),), self.knowledge)
        self.answers = [answer for _, answer in answers_of(job, RuntimeOptions("local"))]
        (batch,) = FileSource(options).open(lambda bad: pytest.fail(str(bad)))
        self._events: dict[str, EventBatch] = {
            str(name): batch.take(np.array([at]))
            for at, name in enumerate(batch.names(np.arange(len(batch))).texts())
        }

    def used(self, answer: int = 0, logged: bool = True) -> list[UsedTriples]:
        given = self.answers[answer]
        events = {item: self._events[str(item.event)] for item in given.trace} if logged else {}
        return used_triples(self._query, given, events, lambda time: self.knowledge)

    def triples(self, answer: int = 0, logged: bool = True) -> list[set[str]]:
        """The triples that each event used, as Turtle."""
        return [
            {prefixed(" ".join(triple)) for own in used.graphs.values() for triple in own}
            for used in self.used(answer, logged)
        ]


def test_variables_that_the_answer_has_not_come_from_the_event(tmp_path: Path) -> None:
    case = Case(
        tmp_path,
        "?name",
        "A",
        "A ON S { ?s :speed ?v . GRAPH <http://e/kb> { ?s :on/:name ?name } FILTER(?v > 50) }",
    )
    (answer,) = case.answers
    assert dict(answer.singles).keys() <= {"name", "v"}
    assert case.triples() == [{":s1 :on :r1", ':r1 :name "Mill"'}]
    (used,) = case.used()
    assert (used.item.event, used.is_exact, used.more) == ("http://e/e3", True, 0)
    every = {":s1 :on :r1", ":s2 :on :r1", ":s2 :on :r2", ':r1 :name "Mill"', ':r2 :name "Mill"'}
    assert case.triples(logged=False) == [every]  # all that fit the name
    assert not case.used(logged=False)[0].is_exact


def test_filters_between_both_decide(tmp_path: Path) -> None:
    pattern = "{ ?s :on ?r . ?r :limit ?limit } FILTER(?v > ?limit)"
    case = Case(tmp_path, "?v", "A", f"A ON S {{ ?s :speed ?v . GRAPH <http://e/kb> {pattern} }}")
    used = {str(a.trace[0].event)[-2:]: case.triples(i) for i, a in enumerate(case.answers)}
    integer = '"{}"^^:http://www.w3.org/2001/XMLSchema#integer'.replace(":http", "<http")
    assert used == {
        "e2": [{":s2 :on :r2", f":r2 :limit {integer.format(30)}"}],
        "e3": [{":s1 :on :r1", f":r1 :limit {integer.format(50)}"}],
    }


def test_optional_union_minus_and_blank_nodes(tmp_path: Path) -> None:
    case = Case(
        tmp_path,
        "?s ?c",
        "A",
        """A ON S { ?s :speed 40 . GRAPH <http://e/kb> {
          { ?s :on ?r } UNION { ?s :under ?r } ?s :madeBy [ :country ?c ]
          OPTIONAL { ?r :near ?next } OPTIONAL { ?r :far ?away }
          MINUS { ?s :broken ?how } } }""",
    )
    (found,) = case.triples()
    (blank,) = {text.split()[-1] for text in found if ":madeBy" in text}
    assert found == {
        ":s1 :on :r1", ":r1 :near :r2", f":s1 :madeBy {blank}", f'{blank} :country "CH"'
    }  # fmt: skip
    assert blank.startswith("_:")


def test_each_event_has_its_own(tmp_path: Path) -> None:
    case = Case(
        tmp_path,
        "?x",
        "A; B; C",
        "A ON S { ?x :speed 40 . GRAPH <http://e/kb> { ?x :on ?road } }",
        "B ON S { ?y :speed 45 }",
        "C ON S { ?x :speed 60 . GRAPH <http://e/kb> { ?road :near ?other } }",
    )
    assert case.triples() == [{":s1 :on :r1"}, {":r1 :near :r2"}]
    assert [used.item.gpm for used in case.used()] == ["A", "C"]


def test_repeated_steps(tmp_path: Path) -> None:
    case = Case(
        tmp_path,
        "?x",
        "A+",
        "A ON S { ?s :speed ?v . GRAPH <http://e/kb> { ?s :on ?r . ?r :near ?x } }",
    )
    longest = max(range(len(case.answers)), key=lambda n: len(case.answers[n].trace))
    own = {"e1": ":s1 :on :r1", "e2": ":s2 :on :r1", "e3": ":s1 :on :r1"}
    events = [str(item.event)[-2:] for item in case.answers[longest].trace]
    assert len(events) > 1
    assert case.triples(longest) == [{own[name], ":r1 :near :r2"} for name in events]


def test_there_are_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spaseq.diagnosis.used_triples.MOST", 2)
    pattern = "{ ?s :speed ?v . GRAPH <http://e/kb> { ?s :on/:name ?name } FILTER(?v > 50) }"
    (used,) = Case(tmp_path, "?name", "A", f"A ON S {pattern}").used(logged=False)
    assert (sum(map(len, used.graphs.values())), used.more) == (2, 3)
