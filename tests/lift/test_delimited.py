"""CSV and TSV: each oddity of quotes, blanks and widths has one result (docs/lift.md)."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.errors import InputError
from spaseq.lift.delimited_rows import DelimitedRows
from spaseq.limits import DEFAULT_LIMITS
from spaseq.rdf.inputs.csv_dialect import DEFAULT_DIALECT
from tests.lift.lifting import integer, lift_of, objects, typed
from tests.sizes import sizes

NUMBERED = lift_of(":r :n ?_line . :r :v ?a . :r :w ?b")


def file(tmp_path: Path, text: str | bytes, name: str = "t.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    ("row", "value"),
    [
        ("x,1", ['"x"']),
        (" x ,1", ['" x "']),
        (",1", []),
        ('"",1', ['""']),
        ('"a""b",1', ['"a\\"b"']),
        ('"a,b",1', ['"a,b"']),
        ('"a\nb",1', ['"a\\nb"']),
        ('"a\r\nb",1', ['"a\\r\\nb"']),
        ('a"b",1', ['"a\\"b\\""']),
        ("NA,1", ['"NA"']),
        ("null,1", ['"null"']),
        ("größe,1", ['"größe"']),
        ('"""",1', ['"\\""']),
    ],
)
def test_cell(row: str, value: list[str], tmp_path: Path) -> None:
    for end in ("\n", "\r\n", ""):
        found, bad = objects(file(tmp_path, f"a,b\n{row}{end}"), NUMBERED)
        assert (found, bad) == ([value], [])


@sizes(100, 600, 5000)
def test_blocks_read_as_columns_have_the_rows_that_are_read_one_by_one(examples: int) -> None:
    usual = ("a,b", "x,", ",", "1,2", "a b, c ", "ä,é", "\ufeffa,b")
    lines = st.sampled_from([*usual, "", "a", "a,b,c", '"a",b', '"a,b', "a,b\r"])

    def rows(text: bytes, as_columns: bool, size: int) -> list[Any]:
        found: list[Any] = []
        bad: list[Any] = []
        data = io.BufferedReader(io.BytesIO(text), size)  # type: ignore[arg-type]
        own = DelimitedRows(data, DEFAULT_DIALECT, DEFAULT_LIMITS, "t.csv")
        if not as_columns:
            own._table = lambda *_: None  # type: ignore[assignment]
        wanted = frozenset({"p", "q"})

        def report(line: int, reason: str, text: str) -> None:
            bad.append((line, reason, text))

        for block in own.blocks(wanted, report):
            columns = (block.cells("p"), block.cells("q"))
            found += zip(block.lines, block.numbers, *columns, strict=True)
        return [found, bad]

    @settings(max_examples=examples, deadline=None, database=None)
    @given(st.lists(lines, max_size=8), st.sampled_from(["", "\n"]), st.sampled_from([8, 20, 4096]))
    def check(given_lines: list[str], end: str, size: int) -> None:
        text = ("\n".join(["p,q", *given_lines]) + end).encode()
        assert rows(text, True, size) == rows(text, False, size)

    check()


def test_a_damaged_gzip_file_gives_the_rows_before_the_damage(tmp_path: Path) -> None:
    whole = gzip.compress(("a,b\n" + "".join(f"{i},x\n" for i in range(10_000))).encode(), 1)
    path = file(tmp_path, whole[: len(whole) // 2], "t.csv.gz")
    found, bad = objects(path, NUMBERED)
    assert len(found) > 2500
    assert "the rest of the file is not read" in bad[-1][1]


def test_wrong_rows_lose_no_other_row(tmp_path: Path) -> None:
    text = 'a,b\n1,x\n2\n3,x,y\n"4"z,x\n\n5,x\n"6,x\n7,y\n'
    found, bad = objects(file(tmp_path, text), NUMBERED)
    assert found == [['"1"'], ['"5"'], ['"7"']]
    assert bad == [
        (3, "1 cell, but the header has 2"),
        (4, "3 cells, but the header has 2"),
        (5, "text after a closing quote"),
        (8, "a quoted cell has no closing quote"),
    ]


@pytest.mark.parametrize(
    ("text", "found", "bad"),
    [
        ("a,b", [], []),  # a header without rows
        ("a,b\n\n\n", [], []),
        ("\n\na,b\nx,1\n", [['"x"']], []),  # the header is the first line that is not blank
        ('"a","b"\nx,1\n', [['"x"']], []),
        ("a,,b\nx,y,1\n", [['"x"']], []),  # a column without a name
        ("a,c d,c_d,b\nx,1,2,3\n", [['"x"']], []),  # two columns of one name that nobody reads
        ("b,a\n1,x\n", [['"x"']], []),
        ("a,b\n# a comment\nx,1\n", [['"x"']], [(2, "1 cell, but the header has 2")]),
        ("a,b\n#,1\n", [['"#"']], []),
        ("a,b\nx,1,\ny,1\n", [['"y"']], [(2, "3 cells, but the header has 2")]),
        ("a,b\n \nx,1\n", [['"x"']], [(2, "1 cell, but the header has 2")]),  # not blank
        ("a,b\n,\nx,1\n", [[], ['"x"']], []),  # a row of empty cells
        ('a,b\n "x",1\n', [['" \\"x\\""']], []),  # a quote behind a space is text
        ('a,b\n"x" ,1\ny,1\n', [['"y"']], [(2, "text after a closing quote")]),
        ("a,b\nx\ry,1\n", [['"x\\ry"']], []),  # a lone carriage return is text
        ("a,b\nx\0,1\n", [['"x\\u0000"']], []),
        ("a,b\n\u00a0x\u2028,1\n", [['"\u00a0x\u2028"']], []),
        ("a,b\n'x,1\n", [['"\'x"']], []),  # an apostrophe is no quote
        ("a,b\nx\\,1\n", [['"x\\\\"']], []),  # a backslash escapes nothing
        ("a,b\n1 000,1\n", [['"1 000"']], []),
    ],
)
def test_odd_files(
    text: str, found: list[list[str]], bad: list[tuple[int, str]], tmp_path: Path
) -> None:
    for newline in ("\n", "\r\n"):
        odd = file(tmp_path, text.replace("\n", newline))
        assert objects(odd, lift_of(":r :n 1 . :r :v ?a")) == (found, bad)


@pytest.mark.parametrize("header", [" a,b", "a ,b", "'a',b", "# a,b", "A,b"])
def test_headers_without_the_field(header: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no field for \?a of the lift"):
        objects(file(tmp_path, f"{header}\nx,1\n"), lift_of(":r :v ?a"))


def test_number_of_a_row_counts_bad_rows_but_no_blank_lines(tmp_path: Path) -> None:
    lift = lift_of(":r :v ?_line . :r :w ?a")
    found, _ = objects(file(tmp_path, "a,b\nx,1\n\nx\nx,2\n"), lift)
    assert found == [[integer(1)], [integer(3)]]


def test_text_that_is_not_utf8_is_a_bad_row(tmp_path: Path) -> None:
    found, bad = objects(file(tmp_path, b"a,b\n\xff,1\nx,2\n"), NUMBERED)
    assert found == [['"x"']]
    assert bad == [(2, "not UTF-8; --csv encoding=cp1252 may be right")]


@pytest.mark.parametrize(
    ("name", "text"),
    [("t.tsv", "a\tb\nx\t1\n"), ("t.csv", "\ufeffa,b\nx,1\n"), ("t.csv", '\ufeff"a","b"\nx,1\n')],
)
def test_tabs_and_byte_order_marks(name: str, text: str, tmp_path: Path) -> None:
    assert objects(file(tmp_path, text, name), NUMBERED) == ([['"x"']], [])


def test_packed_file(tmp_path: Path) -> None:
    path = file(tmp_path, gzip.compress(b"a,b\nx,1\n"), "t.csv.gz")
    assert objects(path, NUMBERED) == ([['"x"']], [])


def test_damaged_packed_file_gives_the_rows_before_the_damage(tmp_path: Path) -> None:
    whole = gzip.compress(
        "".join(f"x{i},1\n" for i in range(-1, 5_000)).encode().replace(b"x-1,1", b"a,b")
    )
    found, bad = objects(file(tmp_path, whole[:-200], "t.csv.gz"), NUMBERED)
    assert found[:2] == [['"x0"'], ['"x1"']]
    assert bad[-1][1].startswith("the rest of the file is not read")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("a,a", "two fields for ?a"),
        ("A,b", "no field for ?a of the lift; did you mean ?A?"),
        ("", "there is no header"),
        ("zz;x;b", "no field for ?a of the lift; it has zz, x, b"),
        (
            '"at|a"',
            "no field for ?a of the lift; its header is one field with '|' in it, and the "
            "delimiter is ',': write --csv delimiter=|",
        ),
        ("x;y,b", "it has "),  # two fields: the delimiter is right
    ],
)
def test_fields_that_are_missing_or_stand_twice(header: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        objects(file(tmp_path, f"{header}\nx,1\n" if header else ""), lift_of(":r :v ?a"))
    assert message in str(raised.value)


def test_commas_in_a_file_that_is_named_for_tabs(tmp_path: Path) -> None:
    path = file(tmp_path, "at,a\n1,x\n", "t.tsv")
    with pytest.raises(InputError, match=r"one field with ',' in it.*--csv delimiter=,"):
        objects(path, lift_of(":r :v ?a"))


def test_a_field_whose_name_holds_another_delimiter_is_read(tmp_path: Path) -> None:
    assert objects(file(tmp_path, "a;,b\nx,1\n"), lift_of(":r :v ?a_")) == ([['"x"']], [])


def test_fields_that_the_lift_does_not_use_may_stand_twice(tmp_path: Path) -> None:
    assert objects(file(tmp_path, "b,b,a\n1,2,x\n"), lift_of(":r :v ?a")) == ([['"x"']], [])


def test_bind_to_a_field_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gives \\?c another value"):
        objects(file(tmp_path, "a,c\n1,2\n"), lift_of(":r :v ?c", "BIND (STR(?a) AS ?c)"))


def test_types(tmp_path: Path) -> None:
    text = "a,b\n 7 ,1\nx,2\n,3\n2020-01-01,4\n"
    found, bad = objects(file(tmp_path, text), NUMBERED, "a=integer,b=decimal")
    assert found == [[integer(7)], []]
    assert [line for line, _ in bad] == [3, 5]
    assert "field a" in bad[0][1]
    text = "a,b\n2020-01-01T00:00:00.1234567+01:00,1\n"
    found, bad = objects(file(tmp_path, text), NUMBERED, "a=dateTime")
    assert found == [[typed("2020-01-01T00:00:00.123456+01:00", "dateTime")]]


def test_files_come_in_byte_order(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "B.csv"):
        file(tmp_path, f"a\n{name}\n", name)
    file(tmp_path, "no table", "notes.txt")
    found, _ = objects(tmp_path, lift_of(":r :v ?a"))
    assert found == [['"B.csv"'], ['"a.csv"'], ['"b.csv"']]


def test_many_lines_in_one_cell_take_linear_time(tmp_path: Path) -> None:
    cell = '""\n' * 200_000
    found, bad = objects(file(tmp_path, f'a\n"{cell}"\n'), lift_of(":r :v ?a"))
    assert len(found[0][0]) > 200_000 and not bad


def test_a_cell_that_cannot_be_cast_among_others(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("v\n" + "".join(f"{'x' if i == 7 else i}\n" for i in range(40)))
    found, bad = objects(path, lift_of(":s :v ?v"), "v=integer")
    assert bad == [(9, 'field v: "x" is no xsd:integer')]
    assert found == [[integer(i)] for i in range(40) if i != 7]
