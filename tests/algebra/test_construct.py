"""CONSTRUCT templates and the events they make (SPARQL 1.1 section 16.2)."""

from __future__ import annotations

import re

import pytest

from spaseq.algebra.answers import AFTER_ALL, Answer
from spaseq.algebra.construct import Template, constructed, template_of
from spaseq.lang import ast
from spaseq.lang.parser import parse

STREAM = "http://e/alerts"


def template(triples: str, stream: str | None = None) -> Template:
    query = parse(
        f"PREFIX : <http://e/> CONSTRUCT {{ {triples} }} WITHIN 1 SECONDS "
        "FROM STREAM S <http://e/s> { SEQ(A) DEFINE GPM A ON S { ?a ?b ?c } }"
    )
    assert isinstance(query.form, ast.Construct)
    return template_of(query.form, stream)


def answer(
    time: int = 0, lists: dict[str, tuple[str, ...]] | None = None, **singles: str
) -> Answer:
    """An answer with these bindings."""
    first = (time, 0)
    bound = tuple(sorted(singles.items()))
    return Answer(first, first, (), (), bound, tuple(sorted((lists or {}).items())))


def graph(triples: str, given: Answer) -> list[str]:
    made = constructed(template(triples), "q", given)
    assert made is not None
    assert made.graph is not None
    return [" ".join(triple) for triple in made.graph]


def test_variables_and_constants() -> None:
    given = answer(s="<http://e/x>", p="<http://e/y>", o='"z"@en')
    assert graph("?s ?p ?o ; a :Thing ; :n 7, 07, true", given) == [
        '<http://e/x> <http://e/y> "z"@en',
        "<http://e/x> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/Thing>",
        '<http://e/x> <http://e/n> "7"^^<http://www.w3.org/2001/XMLSchema#integer>',
        '<http://e/x> <http://e/n> "07"^^<http://www.w3.org/2001/XMLSchema#integer>',
        '<http://e/x> <http://e/n> "true"^^<http://www.w3.org/2001/XMLSchema#boolean>',
    ]


def test_a_group_variable_is_its_last_value() -> None:
    assert graph(":a :p ?x", answer(lists={"x": ('"1"', '"2"')})) == [
        '<http://e/a> <http://e/p> "2"'
    ]


def test_a_graph_is_a_set() -> None:
    assert graph("?x :p ?y . ?y :p ?x", answer(x="<http://e/a>", y="<http://e/a>")) == [
        "<http://e/a> <http://e/p> <http://e/a>"
    ]


def test_triple_terms_and_reifiers() -> None:
    given = answer(x="<http://e/a>", y='"1"', t="<<( <http://e/a> <http://e/p> _:b )>>")
    reifies = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies>"
    assert graph("?x :p ?y ~ :r {| :sure <<( ?x :q ?t )>> |}", given) == [
        '<http://e/a> <http://e/p> "1"',
        f'<http://e/r> {reifies} <<( <http://e/a> <http://e/p> "1" )>>',
        "<http://e/r> <http://e/sure> "
        "<<( <http://e/a> <http://e/q> <<( <http://e/a> <http://e/p> _:b )>> )>>",
    ]
    left_out = "<<( ?y :p 1 )>> <<( ?x ?y 1 )>> <<( ?t :p 1 )>> <<( :a :p <<( ?x :p ?no )>> )>>"
    assert graph(f":a :p 1 . :b :p {left_out.replace('>> <<', '>>, <<')}", given) == [
        '<http://e/a> <http://e/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    ]


@pytest.mark.parametrize(
    "triple",
    [
        ":a :p ?unbound",
        "?literal :p :a",
        ":a ?literal :b",
        ":a ?blank :b",
        "?relative :p :a",
        ":a :p ?relative",
        ":a :p ?typed",
    ],
)
def test_what_rdf_does_not_allow_is_left_out(triple: str) -> None:
    given = answer(
        literal='"x"', blank="_:b1", relative="<path/x>", typed='"1"^^<path/x>', s="<http://e/s>"
    )
    assert graph(f"{triple} . ?s :p ?blank", given) == ["<http://e/s> <http://e/p> _:b1"]
    assert constructed(template(triple), "q", given) is None  # no triples remain: no event


def test_blank_nodes_are_one_within_an_answer_and_fresh_in_another() -> None:
    labels = []
    for given in (answer(1), answer(2), answer(1, x='"1"'), answer(1, lists={"x": ('"1"',)})):
        one, two = graph("_:n :p [] . _:n :q :a", given)
        subject, _, other = one.split()
        assert two.startswith(subject)
        labels += [subject, other]
    assert len(set(labels)) == 8
    assert all(re.fullmatch(r"_:[A-Za-z0-9]+", label) for label in labels)


def test_equal_runs_make_equal_events() -> None:
    made = [constructed(template("[] :p :a"), "q", answer(1)) for _ in range(2)]
    assert made[0] == made[1]


def test_events_of_different_queries_differ() -> None:
    one, two = (constructed(template("[] :p :a"), name, answer(1)) for name in ("q", "r"))
    assert one is not None
    assert two is not None
    assert one.event != two.event
    assert one.graph != two.graph


@pytest.mark.parametrize(
    ("stream", "pattern"),
    [
        (None, "urn:spaseq:[0-9a-f]{32}"),
        ("http://e/alerts", "http://e/alerts/[0-9a-f]{32}"),
        ("http://e/alerts/", "http://e/alerts/[0-9a-f]{32}"),
        ("http://e/ns#", "http://e/ns#[0-9a-f]{32}"),
    ],
)
def test_the_name_of_an_event(stream: str | None, pattern: str) -> None:
    made = constructed(template("[] :p :a", stream), "q", answer(1))
    assert made is not None
    assert made.event is not None
    assert re.fullmatch(pattern, made.event)


def test_nothing_else_of_an_answer_changes() -> None:
    given = Answer((1, 0), (5, AFTER_ALL), (), (), (("x", '"1"'),))
    made = constructed(template("[] :p ?x"), "q", given)
    assert made is not None
    assert (made.first, made.end, made.singles) == (given.first, given.end, given.singles)
    assert made.order_key() == given.order_key()
