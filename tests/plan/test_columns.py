"""The columns that graph patterns pass to the sequence."""

from __future__ import annotations

import pytest

from spaseq.api.explain import explain
from spaseq.api.push import Engine
from spaseq.compile import compile_query
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.load import load_kb
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.program_events import batch_from_events

HEAD = "PREFIX : <http://e/>"
TAIL = "WITHIN 1 HOURS FROM STREAM S <http://e/s>"
GPMS = """DEFINE GPM A ON S { ?a :key ?k ; :low ?l }
          DEFINE GPM B ON S { ?b :key ?k ; :high ?h . FILTER (?h > ?l) }"""


def query(form: str, sequence: str = "A; B", rest: str = "") -> str:
    return f"{HEAD} {form} {TAIL} WHERE {{ SEQ({sequence}) {GPMS} }} {rest}"


@pytest.mark.parametrize(
    ("text", "private"),
    [
        (query("SELECT *"), [set(), set()]),
        (query("SELECT ?k"), [{"a"}, {"b"}]),
        (query("SELECT ?a"), [set(), {"b"}]),
        (query("SELECT (str(?b) AS ?x)"), [{"a"}, set()]),
        (query("SELECT ?k", rest="HAVING (?a != ?b)"), [set(), set()]),
        (query("CONSTRUCT { ?a :before _:b }"), [set(), {"b"}]),
        (query("SELECT ?k", "A; B; A"), [set(), {"b"}]),
        (query("SELECT (COUNT(?b) AS ?n)", "A; B+"), [{"a"}, set()]),
    ],
)
def test_what_nothing_asks_for_is_private(text: str, private: list[set[str]]) -> None:
    assert [gpm.private for gpm in compile_query(text).patterns.gpms] == private


def test_conditions_between_steps_have_their_variables_as_numbers() -> None:
    assert compile_query(query("SELECT ?k")).patterns.columns.numbers == ("h", "l")


def test_explain_shows_what_is_handed_on() -> None:
    text = str(explain(query("SELECT ?k")))
    expected = "passes on ?k, ?l (?a only where one event has several solutions)"
    assert expected in text


EVENTS = [
    (0, None, [("<e:1>", "<http://e/key>", '"k"'), ("<e:1>", "<http://e/low>", '"3"')]),
    (
        1000,
        None,
        [
            (f"<e:{i}>", f"<http://e/{p}>", o)
            for i in (1, 2)
            for p, o in (("key", '"k"'), ("low", '"3"'))
        ],
    ),
]


def test_private_values_are_there_only_where_they_tell_solutions_apart() -> None:
    plan = compile_query(query("SELECT ?k"))
    batch = batch_from_events("http://e/s", EVENTS, InstantCounter())
    rows = PatternStage(plan, load_kb([])).match(batch)
    assert rows.time.tolist() == [0, 1000, 1000]
    assert rows.texts("k") == ['"k"'] * 3
    first, *others = rows.texts("a")
    assert first is None
    assert sorted(map(str, others)) == ["<e:1>", "<e:2>"]


def test_solutions_that_differ_in_private_values_are_two_answers() -> None:
    engine = Engine(
        f"{HEAD} SELECT ?k {TAIL} WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?a :key ?k }} }}"
    )
    found = [match for time, _, triples in EVENTS for match in engine.push("S", triples, time)]
    assert [m.bindings["k"].n3() for m in found + engine.close()] == ['"k"'] * 3
