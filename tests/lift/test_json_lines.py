"""JSON lines: the type of a value is its token's (docs/lift.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lift.lifting import integer, lift_of, lifted, objects, typed

READS_A = lift_of(":r :n ?_line . :r :v ?a")


def file(tmp_path: Path, *rows: str) -> Path:
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("token", "term"),
    [
        ("7", integer(7)),
        ("-0", integer(0)),
        ("1" * 5000, integer("1" * 5000)),
        ("1.0", typed("1.0E0", "double")),
        ("1e2", typed("1.0E2", "double")),
        ("1.5", typed("1.5E0", "double")),
        ("-0.0", typed("-0.0E0", "double")),
        ("true", typed("true", "boolean")),
        ('"2020-01-01"', '"2020-01-01"'),
        ('""', '""'),
        ('"\\u00e4\\ud83d\\ude00"', '"ä😀"'),
        ("null", None),
    ],
)
def test_token(token: str, term: str | None, tmp_path: Path) -> None:
    found, bad = objects(file(tmp_path, f'{{"a": {token}}}'), READS_A)
    assert (found, bad) == ([[] if term is None else [term]], [])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ('{"a": 1, "a": 2}', "field a: two fields have this name"),
        ('{"a": {"b": 1}}', "field a: an object is no term: use its fields, such as ?a_b"),
        ('{"a": [1]}', "field a: a list is no term"),
        ('{"a": "\\ud800"}', "field a: a lone surrogate is no character"),
        ('{"a": NaN}', "NaN is no JSON"),
        ("[1]", "a row is an object, and this is none"),
        ("{", "not JSON"),
        ('{"a": ' + "[" * 300 + "]" * 300 + "}", "nested more than 200 deep"),
        ('{"b": ' + "[" * 100_000, "nested more than 200 deep"),
    ],
)
def test_bad_row_among_good_ones(row: str, reason: str, tmp_path: Path) -> None:
    found, bad = objects(file(tmp_path, '{"a": 1}', row, "", '{"a": 2}'), READS_A)
    assert found == [[integer(1)], [integer(2)]]
    assert [line for line, _ in bad] == [2]
    assert bad[0][1].startswith(reason)


def test_wrong_values_of_fields_that_the_lift_does_not_read(tmp_path: Path) -> None:
    row = '{"b": 1, "b": 2, "c": {"a": 3}, "d": "\\ud800", "a": 5}'
    assert objects(file(tmp_path, row), READS_A) == ([[integer(5)]], [])


def test_fields_of_objects(tmp_path: Path) -> None:
    lift = lift_of(":r :v ?a_b, ?a_c_d, ?x_y . :r :n 1")
    row = '{"a": {"b": 1, "c": {"d": 2}}, "x y": 3}'
    assert objects(file(tmp_path, row), lift) == ([[integer(1), integer(2), integer(3)]], [])


def test_missing_field_is_unbound(tmp_path: Path) -> None:
    assert objects(file(tmp_path, '{"b": 1}'), READS_A) == ([[]], [])


def test_row_with_a_field_that_the_lift_binds_is_bad(tmp_path: Path) -> None:
    lift = lift_of(":r :v ?b", "BIND (STR(?a) AS ?b)")
    found, bad = objects(file(tmp_path, '{"a": 1}', '{"a": 1, "b": null}'), lift)
    assert found == [['"1"']]
    assert "the row has such a field" in bad[0][1]


def test_unnest(tmp_path: Path) -> None:
    lift = lift_of("[] :v ?item_f ; :whole ?n", "UNNEST ?items AS ?item BIND (?_line AS ?n)")
    rows = [
        '{"items": [{"f": 1}, {"f": 2}]}',
        '{"items": []}',
        '{"items": null}',
        "{}",
        '{"items": 3}',
        '{"items": [null, {"f": 1}]}',
    ]
    events, bad = lifted(file(tmp_path, *rows), lift)
    values = [sorted(o for _, p, o in graph if p == "<http://e/v>") for _, _, graph in events]
    assert values == [[integer(1), integer(2)], [integer(1)]]
    assert [(b.line, b.reason) for b in bad] == [(5, "field items: UNNEST takes a list")]
    # Blank nodes are fresh in each solution, also where the element is null.
    assert [len({s for s, p, _ in graph if p == "<http://e/whole>"}) for _, _, graph in events] == [
        2,
        2,
    ]


def test_lists_in_lists(tmp_path: Path) -> None:
    lift = lift_of(":r :v ?y", "UNNEST ?a AS ?x UNNEST ?x AS ?y")
    found, bad = objects(file(tmp_path, '{"a": [[1, 2], [3], []]}'), lift)
    assert (found, bad) == ([[integer(1), integer(2), integer(3)]], [])


def test_repeated_triples_are_one(tmp_path: Path) -> None:
    lift = lift_of(":r :v ?x", "UNNEST ?a AS ?x")
    events, _ = lifted(file(tmp_path, '{"a": [1, 1, 1]}'), lift)
    assert len(events[0][2]) == 2  # and the time
