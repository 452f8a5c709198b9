"""JSON lines read as columns give what the same lines give one by one."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spaseq.lift.cells import Cell
from spaseq.lift.json_columns import JsonScanner
from spaseq.lift.json_rows import JsonRows
from spaseq.lift.lift_plan import Fields
from spaseq.lift.row_blocks import table_block
from spaseq.limits import DEFAULT_LIMITS, Limits
from tests.lift.lifting import integer, typed
from tests.sizes import sizes

WANTED = frozenset({"a", "b", "a_b", "größe", "a_c_d", ""})
FIELDS = Fields(WANTED, frozenset(), frozenset({"bound", "b_x"}), WANTED, frozenset())
Read = tuple[list[tuple[int, int, dict[str, Cell]]], list[tuple[int, str, str]]]


def read(text: bytes, scanner: JsonScanner | None, limits: Limits = DEFAULT_LIMITS) -> Read:
    """((line, number, cells) of each row, what is reported) of a text."""
    reports: list[tuple[int, str, str]] = []
    rows = []
    lines = JsonRows(io.BufferedReader(io.BytesIO(text)), FIELDS, limits, scanner)  # type: ignore[arg-type]
    for block in lines.blocks(lambda *report: reports.append(report)):
        columns = {name: block.cells(name) for name in block.columns}
        places = zip(block.lines.tolist(), block.numbers.tolist(), strict=True)
        for place, (line, number) in enumerate(places):
            cells = {name: column[place] for name, column in columns.items()}
            rows.append((line, number, {k: v for k, v in cells.items() if v is not None}))
    return rows, reports


def agree(text: bytes, limits: Limits = DEFAULT_LIMITS) -> None:
    scanner = JsonScanner(WANTED, FIELDS.taken, limits)
    expected = read(text, None, limits)
    for _ in range(2):  # the second time all keys are known
        assert read(text, scanner, limits) == expected


CHARACTERS = st.one_of(
    st.characters(exclude_categories=["Cs"], exclude_characters='"\\').map(
        lambda c: c if ord(c) >= 0x20 else json.dumps(c)[1:-1]
    ),
    st.sampled_from(["\\n", '\\"', "\\\\", "\\/", "\\b", "\\f", "\\r", "\\t", " "]),
    st.sampled_from(["\\u0041", "\\u00e4", "\\u20AC"]),
    st.sampled_from(["\\ud83d\\ude00", "\\u0000", "\\ud800", "\\udc00x", "\\ud83d\\u0041", "\\x"]),
)
STRINGS = st.lists(CHARACTERS, max_size=4).map(lambda cs: f'"{"".join(cs)}"')
NUMBERS = st.one_of(
    st.from_regex(r"-?[0-9]{1,3}([.][0-9]{0,3})?([eE][+-]?[0-9]{0,3})?", fullmatch=True),
    st.from_regex(r"-?[1-9][0-9]{12,24}([.][0-9]{1,9})?(e-?[0-9]{1,2})?", fullmatch=True),
    st.floats().map(json.dumps),
    st.integers(-(10**19), 10**19).map(str),
)
SCALARS = st.one_of(STRINGS, NUMBERS, st.sampled_from(["true", "false", "null", "nul", "tru", "N"]))
GOOD = st.sampled_from(["1", "2", "-7", "1.5", '"x"', "true", "null"])
KEYS = st.one_of(
    st.sampled_from(
        ['"a"', '"b"', '"a"', '"b"', '"c"', '"a b"', '"gr\\u00f6\\u00dfe"', '"größe"', '""', '"d"']
    ),
    st.sampled_from(['"\\u0061"', '"a_b"', '"bound"', '"x"', '"ß"', "a", '"\\q"']),
)
SPACE = st.sampled_from(["", "", "", " ", "\t ", "\r"])


def objects(values: Any) -> Any:
    member = st.tuples(SPACE, KEYS, SPACE, st.just(":"), SPACE, values, SPACE).map("".join)
    return st.tuples(st.just("{"), st.lists(member, max_size=4).map(",".join), st.just("}")).map(
        "".join
    )


VALUES = st.recursive(
    st.one_of(SCALARS, GOOD, GOOD),
    lambda inner: st.one_of(
        objects(inner), st.lists(inner, max_size=3).map(lambda v: f"[{' , '.join(v)}]")
    ),
    max_leaves=5,
)
USUAL = st.builds(
    "{{{} {}, {}: {} }}".format, st.just('"a":'), GOOD, st.sampled_from(['"b"', '"c"']), GOOD
)
LINES = st.one_of(
    USUAL,
    USUAL,
    objects(VALUES),
    objects(GOOD),
    VALUES,
    st.sampled_from(["", " ", "{", "{}", "}", "{} {}", '{"a" 1}', '{"a":1,}', "\ufeff{}", "\x0b"]),
)


@sizes(50, 150, 5_000)
def test_columns_give_what_rows_give(examples: int) -> None:
    @settings(max_examples=examples, deadline=None, database=None)
    @given(st.lists(LINES, max_size=6), st.booleans(), st.sampled_from([1, 2, 200]))
    @example(['{"a": 1e400}', '{"a": 2.5e-320}', '{"a": 0.1e22}', '{"a": -0.0e5}'], True, 200)
    def check(lines: list[str], ends: bool, nesting: int) -> None:
        text = "\n".join(lines) + "\n" * ends
        agree(text.encode(), replace(DEFAULT_LIMITS, nesting=nesting))

    check()


@sizes(50, 150, 5_000)
def test_damaged_bytes(examples: int) -> None:
    @settings(max_examples=examples, deadline=None, database=None)
    @given(st.lists(USUAL, min_size=1, max_size=4), st.data())
    def check(lines: list[str], data: Any) -> None:
        text = bytearray("\n".join(lines).encode())
        for _ in range(data.draw(st.integers(1, 3))):
            text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
        agree(bytes(text))

    check()


@sizes(40, 150, 3_000)
def test_doubles_are_rounded_as_python_rounds_them(examples: int) -> None:
    @settings(max_examples=examples, deadline=None, database=None)
    @given(st.lists(NUMBERS, min_size=1, max_size=50))
    def check(numbers: list[str]) -> None:
        agree("\n".join(f'{{"a": {number}}}' for number in numbers).encode())

    check()


def rows_of(*lines: str, wanted: frozenset[str] = WANTED) -> list[dict[str, Cell]]:
    scanner = JsonScanner(wanted, FIELDS.taken, DEFAULT_LIMITS)
    found = scanner.columns("\n".join(lines).encode())
    assert not found.unsure.any()
    block = table_block(found.batch, wanted, 1)
    columns = {name: block.cells(name) for name in block.columns}
    return [
        {name: column[row] for name, column in columns.items() if column[row] is not None}
        for row in range(len(block))
    ]


def test_usual_lines_are_columns() -> None:
    assert rows_of(
        '{"a": 1, "b": "x"}', '{"a": -0, "b": "\\u00e4\\ud83d\\ude00\\n"}', '{"z": [{}, []]}'
    ) == [{"a": integer(1), "b": '"x"'}, {"a": integer(0), "b": '"ä😀\\n"'}, {}]


def test_values_of_several_types_in_one_field() -> None:
    lines = ['{"a": 1}', '{"a": 1.5}', '{"a": "1"}', '{"a": true}', '{"a": null}', '{"a": 0.1e1}']
    double = typed("1.5E0", "double")
    found = [row.get("a") for row in rows_of(*lines)]
    true, one = typed("true", "boolean"), typed("1.0E0", "double")
    assert found == [integer(1), double, '"1"', true, None, one]


def test_fields_of_objects() -> None:
    line = '{"a": {"b": 1, "c": {"d": 2, "e": {"b": 3}}}, "b": 4, "c": {"d": 5}}'
    found = rows_of(line, line, wanted=WANTED - {"a"})
    assert found == [{"a_b": integer(1), "a_c_d": integer(2), "b": integer(4)}] * 2


def test_more_keys_than_are_remembered() -> None:
    lines = [json.dumps({f"k{n}": n, "a": n, "k" * 300: 0, "b": "x"}) for n in range(700)]
    agree("\n".join(lines).encode())


@pytest.mark.parametrize("every", [7, 1000])
def test_few_lines_that_are_not_usual(every: int) -> None:
    odd = ["", "[", '{"a": 1, "a": 2}', '{"a": [1]}', '{"a": 123456789012345678901234567890}']
    lines = [
        odd[n // every % 5] if n % every == 3 else f'{{"a": {n}, "b": "n{n}"}}'
        for n in range(20_000)
    ]
    agree("\n".join(lines).encode())


def test_lines_that_are_too_long_and_chunks() -> None:
    limits = replace(DEFAULT_LIMITS, line_bytes=5000)
    long = '{"b": "' + "x" * 5000 + '", "a": 1}'
    lines = [long if n % 1000 == 999 else f'{{"a": {n}, "b": "{"y" * 90}"}}' for n in range(50_000)]
    agree(("\ufeff" + "\n".join([*lines, long])).encode(), limits)
