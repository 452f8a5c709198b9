"""What a lift may say, and how its mistakes are reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from spaseq.lift.lift_checks import check_lift
from tests.lift.lifting import PREFIXES, integer, lift_of, lifted, objects, typed


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("?s ?p ?o", "lift-pattern"),
        ("OPTIONAL { ?s ?p ?o }", "lift-pattern"),
        ("{ BIND (1 AS ?x) } UNION { BIND (2 AS ?x) }", "lift-pattern"),
        ("BIND (NOW() AS ?n)", "lift-function"),
        ("BIND (BNODE() AS ?n)", "lift-function"),
        ("FILTER (EXISTS { ?s ?p ?o })", "lift-function"),
        ("BIND (COUNT(?a) AS ?n)", "lift-function"),
        ("BIND (:unknown(?a) AS ?n)", "expression"),
        ("BIND (STR(?a, 1) AS ?n)", "syntax"),
        ("BIND (STR(?a) AS ?a)", "lift-field"),
        ("BIND (1 AS ?n) BIND (2 AS ?n)", "syntax"),
        ("UNNEST ?a AS ?a", "lift-field"),
        ("BIND (1 AS ?n) UNNEST ?n AS ?m", "lift-field"),
        ("FILTR (?a > 1)", "syntax"),
        ("BIND (unknown:x AS ?n)", "undeclared-prefix"),
    ],
)
def test_mistake(where: str, code: str) -> None:
    checked = check_lift(lift_of(":r :v ?a", where))
    errors = [d for d in checked.diagnostics if d.severity == "error"]
    assert checked.plan is None
    assert code in [d.code for d in errors]
    assert all(d.span.end > d.span.start for d in errors)


@pytest.mark.parametrize(
    ("template", "code"),
    [
        ("GRAPH ?e { :r :v 1 } :r :v 2", "lift-outside-graph"),
    ],
)
def test_mistake_in_the_template(template: str, code: str) -> None:
    checked = check_lift(f"{PREFIXES}CONSTRUCT {{ {template} }} WHERE {{ }}")
    assert code in [d.code for d in checked.diagnostics]


def test_every_mistake_is_reported() -> None:
    where = "OPTIONAL { ?s ?p ?o } BIND (NOW() AS ?n) BIND (x:y AS ?m)"
    codes = {d.code for d in check_lift(lift_of(":r :v ?a", where)).diagnostics}
    assert {"lift-pattern", "lift-function", "undeclared-prefix"} <= codes


def test_a_missing_time_is_a_warning() -> None:
    checked = check_lift("CONSTRUCT { <http://e/r> <http://e/v> ?a } WHERE { }")
    assert [d.code for d in checked.diagnostics] == ["lift-time"]
    assert checked.plan is not None


def rows(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("where", "values"),
    [
        ("BIND (?a + 1 AS ?x)", [integer(3)]),
        ("BIND (?none + 1 AS ?x)", []),
        ("FILTER (?x > 2) BIND (?a + 1 AS ?x)", [integer(3)]),
        ("VALUES (?a ?x) { (2 5) (3 6) }", [integer(5)]),
        ("VALUES ?x { 1 2 }", [integer(1), integer(2)]),
        ("VALUES (?a ?x) { (UNDEF 7) (2 8) (9 9) }", [integer(7), integer(8)]),
        ("BIND (xsd:decimal(?d) AS ?x)", [typed("0.1", "decimal")]),
        ("BIND (xsd:integer(?big) AS ?x)", [integer(2)]),
        ('BIND (xsd:decimal("10.500") AS ?x)', [typed("10.5", "decimal")]),
        ('BIND (STRDT("07", xsd:integer) AS ?x)', [typed("07", "integer")]),
        (
            'BIND (xsd:dateTime("2020-01-01T00:00:00.1000000+02:00") AS ?x)',
            [typed("2020-01-01T00:00:00.1+02:00", "dateTime")],
        ),
        ('BIND (IRI("http://e/a b") AS ?x)', []),
        ('BIND (IRI(CONCAT("http://e/", STR(?a))) AS ?x)', ["<http://e/2>"]),
    ],
)
def test_where(where: str, values: list[str], tmp_path: Path) -> None:
    path = rows(tmp_path, '{"a": 2, "d": 0.1, "big": 2.9}')
    assert objects(path, lift_of(":r :v ?x ; :n 1", where)) == ([values], [])


def test_row_without_a_solution_is_no_event(tmp_path: Path) -> None:
    found, bad = objects(
        rows(tmp_path, '{"a": 1}', '{"a": 3}'), lift_of(":r :v ?a", "FILTER (?a > 2)")
    )
    assert (found, bad) == ([[integer(3)]], [])


NAMED = f"""{PREFIXES}CONSTRUCT {{ GRAPH ?e {{ :r :v ?x }} ?e prov:generatedAtTime ?t }} WHERE {{
  UNNEST ?l AS ?i BIND (IRI(CONCAT("http://e/", ?i_n)) AS ?e)
  BIND (?i_t AS ?t) BIND (?i_x AS ?x) }}"""


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ('{"n": "a", "t": 1, "x": 1}', None),
        ('{"n": "a", "t": 1, "x": 1}, {"n": "b", "t": 1, "x": 1}', "two names of one event"),
        ('{"n": "a", "t": 1, "x": 1}, {"n": "a", "t": 2, "x": 1}', "two times of one event"),
        ('{"n": "a", "t": 1, "x": 1}, {"n": "a", "t": "x", "x": 1}', "unreadable time"),
        ('{"n": "a", "x": 1}', "the event has no time"),
        ('{"n": "a", "t": 1}', "the event has no triple besides its time"),
        ('{"t": 1, "x": 1}', "the event's name is unbound"),
    ],
)
def test_name_and_time(items: str, reason: str | None, tmp_path: Path) -> None:
    events, bad = lifted(rows(tmp_path, f'{{"l": [{items}]}}'), NAMED)
    if reason is None:
        triple = ("<http://e/r>", "<http://e/v>", integer(1))
        assert events == [("http://e/a", integer(1), frozenset({triple}))]
    assert [b.reason.startswith(reason or "?") for b in bad] == [True] * (reason is not None)
