"""Graphs of the knowledge base that change (LANGUAGE section 9)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
import rdflib
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import spaseq
from spaseq.algebra.answers import Answer
from spaseq.api.prepare import load_knowledge, plan_queries
from spaseq.cli.main import cli
from spaseq.errors import QueryError, UsageError
from spaseq.options import KnowledgeOptions, PlanningOptions, StageOptions
from spaseq.rdf.inputs.stream_options import BadInput, warn
from spaseq.runtime.pushed import PushedQueries
from spaseq.stages.unit_stages import StageFactory
from tests.knowledge.cases import (
    MAINTAINERS,
    Case,
    cases,
    graph_of,
    knowledge,
    nt,
    queries,
    shown,
    streams_of,
)
from tests.knowledge.reference import GRAPH, ONTOLOGY, E, Given
from tests.sizes import sizes
from tests.thresholds import forced


def changes(case: Case) -> dict[str, list[tuple[int, object]]]:
    """What replaces the graph, for `kb_changes`."""
    if not case.replaced:
        return {}
    return {GRAPH: [(time * 1000, graph_of(triples)) for time, triples in case.replaced]}


def entailing(case: Case) -> dict[str, Any]:
    """The options for entailment."""
    if not case.with_ontology:
        return {}
    ontology = rdflib.Graph().parse(data=ONTOLOGY, format="turtle")
    return {"entailment": "rdfs", "ontology": ontology}


def of_local(case: Case) -> Counter[object]:
    """The answers of a bounded run."""
    given = queries(case), streams_of(case), knowledge(case)
    options = {"kb_changes": changes(case), **entailing(case)}
    return shown([*spaseq.run(*given, runtime="local", **options)])


def of_pushes(case: Case) -> Counter[object]:
    """The answers when events are pushed one by one."""
    found = []
    options = {"kb_changes": changes(case), **entailing(case)}
    with spaseq.Engine(queries(case), knowledge(case), **options) as engine:
        given = streams_of(case)
        places = [(iri, event) for iri, events in given.items() for event in events]
        for iri, event in sorted(places, key=lambda each: each[1].time):
            found += engine.push(iri, event.graph, event.time)
        found += engine.close()
    return shown(found)


def agrees(case: Case) -> None:
    expected = case.expected()
    assert of_local(case) == expected, case.query()
    assert of_pushes(case) == expected, case.query()


@sizes(5, 16, 5000)
def test_runs_agree_with_an_evaluation_event_by_event(examples: int) -> None:
    settings(max_examples=examples, deadline=None)(given(cases())(agrees))()


@sizes(5, 16, 5000)
def test_changes_in_columns_agree(examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(cases(), st.sampled_from([0, 1, 2, 8]))
    def check(case: Case, values: int) -> None:
        with forced(f"columnar_matches=1 graph_values={values}"):
            assert of_local(case) == case.expected(), case.query()

    check()


@sizes(5, 16, 40)
def test_terms_of_values_that_have_gone_are_forgotten(examples: int) -> None:
    with forced("unused_terms=0"):
        settings(max_examples=examples, deadline=None)(given(cases())(agrees))()


ENTAILED = (
    "?d :alarm ?x GRAPH <{g}> {{ ?d :near ?o{n} }}",
    "?d :alarm ?x GRAPH <{g}> {{ ?d a :Agent . ?d :owner ?o{n} }}",
    "?d :alarm ?x GRAPH <{g}> {{ ?o{n} :near ?d . ?o{n} a :Owner }}",
    "?d :alarm ?x FILTER NOT EXISTS {{ GRAPH <{g}> {{ ?d a :Agent }} }}",
    "?d :alarm ?x OPTIONAL {{ GRAPH <{g}> {{ ?d :near ?o{n} }} }}",
)


@sizes(5, 16, 40)
def test_entailment_follows_changes(examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(cases(), st.lists(st.sampled_from(ENTAILED), min_size=1, max_size=2))
    def check(case: Case, texts: list[str]) -> None:
        patterns = tuple(text.format(g=GRAPH, n=n) for n, text in enumerate(texts))
        agrees(replace(case, patterns=patterns, with_ontology=True))

    check()


def of_restarts(case: Case) -> Counter[object]:
    """The answers when the run goes on from a snapshot after each event."""
    plans = plan_queries(queries(case), PlanningOptions(), True, changing=changes(case))
    base = load_knowledge(plans, knowledge(case), KnowledgeOptions(kb_changes=changes(case)))
    how = StageFactory(base, StageOptions(), warn)
    run, found = PushedQueries(plans, how), list[spaseq.Match]()

    def take(answers: list[tuple[int, Answer]]) -> None:
        found.extend(spaseq.Match(plans[n].identity.name, answer) for n, answer in answers)

    counts: Counter[tuple[str, int]] = Counter()
    for event in case.events:
        iri, at = f"{E}{event.stream}", event.time * 1000
        triples = [tuple(f"<{E}{t}>" for t in triple) for triple in event.triples]
        run.push(run.match_event(iri, (at, counts[iri, at]), None, triples))
        counts[iri, at] += 1
        take(run.advance(at - 1))
        state, run = run.snapshot(), PushedQueries(plans, how)
        run.restore(state)
    take(run.close())
    return shown(found)


@sizes(5, 10, 20)
def test_restarts_change_nothing(examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(cases())
    def check(case: Case) -> None:
        assert of_restarts(case) == case.expected(), case.query()

    check()


ALARMS = (5, 15, 20, 25)
OWNERS = f"""PREFIX : <{E}>
MAINTAIN GRAPH :owners AS DELETE {{ ?device :owner ?any }} INSERT {{ ?device :owner ?owner }}
WITHIN 1 HOURS FROM STREAM Moves :moves
WHERE {{ SEQ(A) DEFINE GPM A ON Moves {{ ?device :handedTo ?owner }} }}"""


def reader(sequence: str) -> str:
    """A query on alarms; each step asks for the owner."""
    gpms = "\n".join(
        f"DEFINE GPM {name} ON S {{ ?d :alarm ?x{name} GRAPH :owners {{ ?d :owner ?{name} }} }}"
        for name in "AB"
        if name in sequence
    )
    head = f"PREFIX : <{E}>\nSELECT * WITHIN 1 HOURS FROM STREAM S :s FROM NAMED :owners"
    return f"{head} WHERE {{ SEQ({sequence}) {gpms} }}"


@pytest.mark.parametrize("runtime", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_each_step_sees_the_owner_of_its_time(runtime: Literal["local", "spark"]) -> None:
    given = {
        f"{E}moves": [
            spaseq.Event(nt([("d", "handedTo", who)]), time * 1000)
            for time, who in [(10, "ann"), (20, "bob")]
        ],
        f"{E}s": [spaseq.Event(nt([("d", "alarm", '"x"')]), time * 1000) for time in ALARMS],
    }
    kb = {f"{E}owners": graph_of([("d", "owner", "eve")])}
    asked = [reader("A"), reader("A; B"), OWNERS]
    found: dict[str, list[str]] = {}
    for match in spaseq.run(asked, given, kb, runtime=runtime):
        owners = [match.bindings[v].n3()[len(E) + 1 : -1] for v in "AB" if v in match.bindings]
        found.setdefault(match.query, []).append(f"{match.end:%S} {' '.join(owners)}")
    assert found == {
        "query1": ["05 eve", "15 ann", "20 bob", "25 bob"],
        "query2": ["15 eve ann", "20 ann bob", "25 bob bob"],
    }


def test_queries_that_need_each_other_are_refused() -> None:
    other = OWNERS.replace("FROM STREAM", "FROM NAMED :people FROM STREAM").replace(
        "?device :handedTo ?owner", "?device :handedTo ?owner GRAPH :people { ?owner :in ?z }"
    )
    people = OWNERS.replace(":owners", ":people").replace(
        "FROM STREAM", "FROM NAMED :owners FROM STREAM"
    )
    with pytest.raises(UsageError, match="in a circle"):
        spaseq.run([other, people], {f"{E}moves": []}, {}, runtime="local")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (OWNERS.replace("GRAPH :owners", "GRAPH <owners>"), "takes an absolute IRI"),
        (OWNERS.replace("FROM STREAM", "FROM NAMED :owners FROM STREAM"), "cannot read the graph"),
        (OWNERS.replace("MAINTAIN", "REGISTER STREAM :out AS MAINTAIN"), "registers no stream"),
        (OWNERS.split("DELETE")[0] + "WITHIN" + OWNERS.split("WITHIN")[1], "DELETE|INSERT"),
    ],
)
def test_what_is_wrong_with_a_query_is_said(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        spaseq.run(text, {}, {}, runtime="local")


def test_a_version_from_outside_holds_from_its_time_on() -> None:
    given = {f"{E}s": [spaseq.Event(nt([("d", "alarm", '"x"')]), t * 1000) for t in ALARMS]}
    kb = {f"{E}owners": graph_of([("d", "owner", "eve")])}
    versions = [(20_000, graph_of([("d", "owner", "bob")])), ("15000", graph_of([]))]
    changes = {f"{E}owners": versions}
    found = spaseq.run(reader("A"), given, kb, runtime="local", kb_changes=changes)
    assert [f"{m.end:%S} {m.bindings['A'].n3()[-4:-1]}" for m in found] == [
        "05 eve",
        "20 bob",
        "25 bob",
    ]


@pytest.mark.parametrize("values", [1, 8])
def test_an_event_with_too_many_solutions_has_none(values: int) -> None:
    """The owners of a device come one by one; the fourth is one too many, until all go."""
    keeper = OWNERS.split("DELETE")[0] + "INSERT { ?device :owner ?owner }\nWITHIN 1 HOURS"
    keeper += OWNERS.split("WITHIN 1 HOURS")[1]
    leaver = OWNERS.split("INSERT")[0] + "\nWITHIN 1 HOURS" + OWNERS.split("WITHIN 1 HOURS")[1]
    leaver = leaver.replace(":moves", ":leaves").replace(":handedTo", ":left")
    moves = [("d", "handedTo", f"p{n}") for n in range(5)]
    given = {
        f"{E}moves": [spaseq.Event(nt([t]), 1_000 + n * 1_000) for n, t in enumerate(moves)],
        f"{E}leaves": [spaseq.Event(nt([("d", "left", "p0")]), 6_000)],
        f"{E}s": [spaseq.Event(nt([("d", "alarm", '"x"')]), n * 1_000 + 500) for n in range(8)],
    }
    bad: list[BadInput] = []
    with forced(f"columnar_matches=1 graph_values={values}"):
        found = spaseq.run(
            [reader("A"), keeper, leaver],
            given,
            {},
            runtime="local",
            limits=spaseq.Limits(solutions=3),
            on_bad=bad.append,
        )
        ends = Counter(f"{m.end:%S}" for m in found)
    assert ends == {"01": 1, "02": 2, "03": 3}
    assert [own.text.split(".")[0][-2:] for own in bad] == ["04", "05"]
    assert all(own.over_limit for own in bad)


def test_a_time_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot change at 'soon'"):
        spaseq.run(
            reader("A"),
            {f"{E}s": []},
            {},
            runtime="local",
            kb_changes={f"{E}owners": [("soon", graph_of([]))]},
        )


def test_explain_says_which_graph_changes_and_how(tmp_path: Path) -> None:
    files = [tmp_path / "owners.rq", tmp_path / "reads.rq"]
    for file, text in zip(files, (OWNERS, reader("A")), strict=True):
        file.write_text(text, "utf-8")
    out = CliRunner().invoke(cli, ["explain", *map(str, files)]).output
    assert f"maintains  <{E}owners>, and has no answers" in out
    assert "  delete   ?device :owner ?any\n  insert   ?device :owner ?owner\n" in out
    assert f"knowledge  <{E}owners>, as it is at each event's time" in out


def dumped(case: Case, path: Path, runtime: Literal["local", "spark"]) -> set[str]:
    """The lines of the graph at the end of a run."""
    given, files = (queries(case), streams_of(case), knowledge(case)), {GRAPH: path}
    list(spaseq.run(*given, runtime=runtime, kb_changes=changes(case), dump_graphs=files))
    return set(path.read_text().splitlines())


@sizes(4, 10, 20)
def test_a_dump_has_the_last_state(examples: int, tmp_path: Path) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(cases().filter(lambda case: case.maintainers))
    def check(case: Case) -> None:
        path = tmp_path / "graph.nt"
        path.unlink(missing_ok=True)
        assert dumped(case, path, "local") == set(nt(case.last()).splitlines())

    check()


@pytest.mark.spark
def test_a_dump_on_spark(tmp_path: Path) -> None:
    event = Given("M", 1, (("d1", "to", "d2"),)), Given("S", 2, (("d1", "alarm", "d1"),))
    case = Case(event, frozenset(), (), MAINTAINERS[:1], ("?d :alarm ?x",), False)
    assert dumped(case, tmp_path / "graph.nt", "spark") == set(nt(case.last()).splitlines())


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({f"{E}other": "x.nt"}, "no query maintains"),
        ({GRAPH: "x.csv"}, "the ending says the format"),
    ],
)
def test_dumps_that_cannot_be(files: dict[str, str], says: str) -> None:
    event = (Given("M", 1, (("d1", "to", "d2"),)),)
    case = Case(event, frozenset(), (), MAINTAINERS[:1], ("?d :alarm ?x",), False)
    with pytest.raises(UsageError, match=says):
        list(
            spaseq.run(
                queries(case), streams_of(case), knowledge(case), runtime="local", dump_graphs=files
            )
        )


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("GRAPH <{g}> {{ ?d :owner ?o }}", "joined with many events at once"),
        ("OPTIONAL {{ GRAPH <{g}> {{ ?d :owner ?o }} }}", "joined with many events at once"),
        ("GRAPH <{g}> {{ ?d :owner+ ?o }}", "evaluated anew after each change"),
    ],
)
def test_explain_says_what_a_change_costs(pattern: str, words: str, tmp_path: Path) -> None:
    reader, keeper = tmp_path / "reader.rq", tmp_path / "keeper.rq"
    case = Case((), frozenset(), (), MAINTAINERS[:1], (f"?d :alarm ?x {pattern}",), False)
    case = replace(case, patterns=tuple(text.format(g=GRAPH) for text in case.patterns))
    for path, text in zip((reader, keeper), queries(case), strict=True):
        path.write_text(text)
    done = CliRunner().invoke(cli, ["explain", str(reader), str(keeper)])
    assert done.exit_code == 0, done.output
    own = done.output.partition("# query keeper")[0]
    assert words in own
    assert "urn:spaseq" not in own
    assert "pushed one by one: in columns, as graphs change" in own
