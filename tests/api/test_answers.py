"""`Answers`: iteration, tables of several libraries, and what notebooks show."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from html.parser import HTMLParser

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import rdflib

import spaseq
from spaseq import Answers, Event
from spaseq.errors import RunError, UsageError

EX = "http://example/"
XSD = "http://www.w3.org/2001/XMLSchema#"
QUERY = f"""PREFIX : <{EX}>
SELECT ?x ?v WITHIN 1 MINUTES FROM STREAM S <{EX}s>
WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x :is :known OPTIONAL {{ ?x :v ?v }} }} }}"""
MADE = QUERY.replace("SELECT ?x ?v", "CONSTRUCT { ?x :v ?v }")
UTC = dt.UTC


def event(number: int, term: str | None) -> Event:
    known = f"<{EX}x{number}> <{EX}is> <{EX}known> .\n"
    value = "" if term is None else f"<{EX}x{number}> <{EX}v> {term} .\n"
    return Event(known + value, 1000 * number, f"{EX}e{number}")


def answers(*terms: str | None, query: str = QUERY) -> Answers:
    events = [event(number, term) for number, term in enumerate(terms)]
    return spaseq.run(query, {"S": events}, runtime="local")


def typed(lexical: str, datatype: str) -> str:
    return f'"{lexical}"^^<{XSD}{datatype}>'


NOON = dt.datetime(2014, 8, 1, 12, tzinfo=UTC)
COLUMNS = [
    (["18", "-3"], "integer", "int64", [18, -3]),
    (["18", "255"], "unsignedByte", "int64", [18, 255]),
    ([str(2**63), "1"], "integer", "decimal128(38, 0)", [Decimal(2**63), Decimal(1)]),
    (["1" * 50, "1"], "integer", "decimal256(76, 0)", [Decimal("1" * 50), Decimal(1)]),
    (["1" * 90, "1"], "integer", "string", ["1" * 90, "1"]),
    (["1.50", "-2"], "decimal", "decimal128(38, 2)", [Decimal("1.50"), Decimal("-2.00")]),
    (["1.5", "INF"], "double", "double", [1.5, float("inf")]),
    (["1.5", "-0"], "float", "float", [1.5, 0.0]),
    (["true", "0"], "boolean", "bool", [True, False]),
    (
        ["2014-08-01T12:00:00Z", "2014-08-01T12:00:00", "2014-08-01T14:00:00+02:00"],
        "dateTime",
        "timestamp[us, tz=UTC]",
        [NOON, NOON, NOON],
    ),
    (
        ["2014-08-01T12:00:00.123456Z"],
        "dateTimeStamp",
        "timestamp[us, tz=UTC]",
        [NOON.replace(microsecond=123456)],
    ),
    (["-0044-03-15T00:00:00Z"], "dateTime", "string", ["-0044-03-15T00:00:00Z"]),
    (["2014-08-01"], "date", "date32[day]", [dt.date(2014, 8, 1)]),
    (["2014-08-01Z"], "date", "string", ["2014-08-01Z"]),
    (["a", "b"], "string", "string", ["a", "b"]),
    (["P1D"], "duration", "string", ["P1D"]),
    (["18", "eighteen"], "integer", "string", ["18", "eighteen"]),  # one is ill-typed
]


@pytest.mark.parametrize(("lexicals", "datatype", "kind", "values"), COLUMNS)
def test_a_column_has_the_type_of_its_datatype(
    lexicals: list[str], datatype: str, kind: str, values: list[object]
) -> None:
    table = answers(*(typed(lexical, datatype) for lexical in lexicals), None).to_arrow()
    column = table.column("v")
    assert str(column.type) == kind
    assert column.to_pylist() == [*values, None]


MIXED = [
    (
        [typed("18", "integer"), typed("1.25", "decimal")],
        "decimal128(38, 2)",
        [18, Decimal("1.25")],
    ),
    ([typed("18", "integer"), typed("1.5", "double")], "double", [18.0, 1.5]),
    ([typed("1.5", "float"), typed("2.5", "double")], "double", [1.5, 2.5]),
    ([typed(str(2**53 + 1), "integer"), typed("1", "double")], "string", [str(2**53 + 1), "1"]),
    ([typed("18", "integer"), '"18"'], "string", ["18", "18"]),
    ([typed("18", "integer"), f"<{EX}a>"], "string", ["18", f"{EX}a"]),
    ([typed("true", "boolean"), typed("1", "integer")], "string", ["true", "1"]),
    ([f"<{EX}a>", f"<{EX}b>"], "string", [f"{EX}a", f"{EX}b"]),
    (['"chat"@fr', '"cat"'], "string", ["chat", "cat"]),
    ([None, None], "string", [None, None]),
]


@pytest.mark.parametrize(("terms", "kind", "values"), MIXED)
def test_mixed_columns(terms: list[str | None], kind: str, values: list[object]) -> None:
    column = answers(*terms).to_arrow().column("v")
    assert (str(column.type), column.to_pylist()) == (kind, values)


def test_times_and_the_trace() -> None:
    table = answers(typed("1", "integer"), typed("2", "integer")).to_arrow()
    assert table.column_names == ["x", "v", "start", "end", "trace"]
    assert str(table.schema.field("start").type) == "timestamp[us, tz=UTC]"
    assert str(table.schema.field("trace").type) == (
        "list<item: struct<gpm: string, stream: string, event: string, "
        "time: timestamp[us, tz=UTC], k: int32, from: timestamp[us, tz=UTC], events: int32>>"
    )
    row = table.to_pylist()[1]
    at = dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    traced = {"gpm": "A", "stream": f"{EX}s", "event": f"{EX}e1", "time": at, "k": 0}
    traced |= {"from": None, "events": None}
    assert row == {"x": f"{EX}x1", "v": 2, "start": at, "end": at, "trace": [traced]}


def test_without_answers() -> None:
    table = answers().to_arrow()
    assert (table.num_rows, table.column_names) == (0, ["x", "v", "start", "end", "trace"])
    assert answers().to_pandas().empty
    assert answers().to_polars().is_empty()
    assert len(answers().to_rdflib()) == 0


def test_several_queries_and_names_that_meet() -> None:
    other = QUERY.replace("SELECT ?x ?v", "SELECT (?v AS ?start) ?x")
    found = spaseq.run([QUERY, other], {"S": [event(1, '"a"')]}, runtime="local")
    names = ["query", "x", "v", "start", "match_start", "end", "trace"]
    assert found.columns == ["x", "v", "start"]
    table = found.to_arrow()
    assert table.column_names == names
    assert table.select(["query", "v", "start"]).to_pylist() == [
        {"query": "query1", "v": "a", "start": None},
        {"query": "query2", "v": None, "start": "a"},
    ]


def test_constructed_graphs() -> None:
    table = answers(typed("1", "integer"), query=MADE).to_arrow()
    assert table.column_names == ["start", "end", "event", "graph", "trace"]
    (row,) = table.to_pylist()
    triple = {"subject": f"<{EX}x0>", "predicate": f"<{EX}v>", "object": typed("1", "integer")}
    assert row["graph"] == [triple]
    result = answers(typed("1", "integer"), query=MADE).to_rdflib()
    assert result.type == "CONSTRUCT"
    assert isinstance(result.graph, rdflib.Dataset)
    assert set(result.graph.graph(rdflib.URIRef(row["event"]))) == {
        (rdflib.URIRef(f"{EX}x0"), rdflib.URIRef(f"{EX}v"), rdflib.Literal(1))
    }


def test_pandas() -> None:
    frame = answers(typed("1", "integer"), None, typed("3", "integer")).to_pandas()
    assert list(frame.columns) == ["x", "v", "start", "end", "trace"]
    assert str(frame["v"].dtype) == "Int64"  # not float64
    assert frame["v"].sum() == 4
    assert isinstance(frame["start"].dtype, pd.DatetimeTZDtype)
    assert frame["end"].max() == pd.Timestamp(2, unit="s", tz="UTC")
    assert frame["trace"][2][0]["event"] == f"{EX}e2"


def test_polars() -> None:
    frame = answers(typed("1", "integer"), None).to_polars()
    assert frame.schema["v"] == pl.Int64
    assert frame.schema["start"] == pl.Datetime("us", "UTC")
    assert frame["trace"].list.first().struct.field("event").to_list() == [f"{EX}e0", f"{EX}e1"]


def test_the_arrow_interface() -> None:
    """Other libraries read answers without knowing them."""
    assert pa.table(answers('"a"')).column("v").to_pylist() == ["a"]
    assert pl.DataFrame(answers('"a"'))["v"].to_list() == ["a"]
    reader = pa.RecordBatchReader.from_stream(answers('"a"'))
    assert reader.read_all().num_rows == 1


def test_rdflib() -> None:
    result = answers(typed("1", "integer"), None).to_rdflib()
    assert [str(v) for v in result.vars or ()] == ["x", "v"]
    first, second = result
    assert first.v == rdflib.Literal(1)
    assert second.v is None
    with pytest.raises(UsageError, match="together"):
        spaseq.run([QUERY, MADE], {"S": []}, runtime="local").to_rdflib()


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(UsageError, match="pip install polars"):
        answers('"a"').to_polars()


# --- iteration --------------------------------------------------------------------------------


def test_it_is_an_iterator_as_before() -> None:
    found = answers('"a"', '"b"')
    assert isinstance(found, Iterator)
    assert next(found).bindings["v"].to_python() == "a"
    assert [m.bindings["v"].to_python() for m in found] == ["b"]
    assert list(found) == []
    (one,) = answers('"a"')
    assert one.bindings["v"].to_python() == "a"


def test_after_a_conversion_the_matches_are_kept() -> None:
    found = answers('"a"', '"b"')
    table = found.to_arrow()
    assert found.to_arrow() is table
    assert len(list(found)) == len(list(found)) == len(found.to_pandas()) == 2
    assert found.stats.matches == 2


def test_matches_that_were_taken_are_no_part_of_a_table() -> None:
    found = answers('"a"', '"b"')
    next(found)
    with pytest.raises(UsageError, match="1 matches have been taken"):
        found.to_pandas()
    assert len(list(found)) == 1


def test_closing() -> None:
    found = answers('"a"', '"b"')
    next(found)
    found.close()
    assert list(found) == []


# --- display ----------------------------------------------------------------------------------


def test_a_short_repr() -> None:
    found = answers('"a"', '"b"')
    assert repr(found) == "<Answers of query: not begun, 0 taken>"
    next(found)
    assert repr(found) == "<Answers of query: running, 1 taken>"
    list(found)
    assert repr(found) == "<Answers of query: all taken, 2 taken>"
    found = answers('"a"', '"b"')
    found.to_arrow()
    assert repr(found) == "<Answers of query: 2>"


def test_a_match_has_a_short_repr() -> None:
    (match,) = answers(f'"{"long " * 100}\u202e"')
    assert len(repr(match)) < 250
    assert repr(match).startswith(
        "<Match of query: 1970-01-01T00:00:00Z; x=<http://example/x0>, v="
    )


class _Cells(HTMLParser):
    """The texts of cells, and all tags and attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.cells: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data


HOSTILE = [
    '"<script>alert(1)</script>"',
    '"</td></table><img src=x onerror=alert(1)>"',
    '"\'\\" onmouseover=\'alert(1)"',
    '"&lt;b&gt;"',
    f"<{EX}a&b'c>",
    '"a\\u202Eb\\u0000c\\nd"',
    f'"{"x" * 100_000}"',
]


def test_hostile_terms_are_no_markup() -> None:
    html = answers(*HOSTILE)._repr_html_()
    parsed = _Cells(html)
    assert parsed.tags <= {"div", "p", "table", "thead", "tbody", "tr", "th", "td"}
    assert parsed.attributes <= {"class"}
    assert "<script>alert(1)</script>" in parsed.cells
    assert "&lt;b&gt;" in parsed.cells
    assert "\u202e" not in html and "\x00" not in html
    assert len(html) < 10_000


def test_a_notebook_shows_the_first_rows_and_takes_none() -> None:
    found = answers(*(f'"{n}"' for n in range(50)))
    html = found._repr_html_()
    assert html.count("<tr>") == 21
    assert "... and more" in html
    assert found._repr_html_() == html
    assert len(list(found)) == 50
    assert "<table" not in found._repr_html_()


def test_a_run_over_generators_is_not_begun_by_a_display() -> None:
    taken = []

    def events() -> Iterator[Event]:
        for number in range(3):
            taken.append(number)
            yield event(number, '"a"')

    found = spaseq.run(QUERY, {"S": events()})
    assert "not begun" in found._repr_html_()
    assert taken == []


def test_graphs_in_a_notebook() -> None:
    parsed = _Cells(answers('"a"', query=MADE)._repr_html_())
    assert parsed.cells[:5] == ["event", "triples", "start", "end", "events"]
    assert parsed.cells[6] == "1"


# --- the package ------------------------------------------------------------------------------


def test_dir_and_help_show_the_public_names() -> None:
    shown = {name for name in dir(spaseq) if not name.startswith("_")}
    assert shown == {*spaseq.__all__, "spark"}
    code = "import spaseq, pydoc; print(pydoc.render_doc(spaseq, renderer=pydoc.plaintext))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for name in spaseq.__all__:
        assert name in run.stdout, name
    assert "import_module" not in shown
    assert [getattr(spaseq, name) for name in spaseq.__all__]


def test_a_time_beyond_the_range_of_tables_is_named() -> None:
    found = spaseq.run(QUERY, {"S": [Event(event(1, '"a"').graph, 2**61)]}, runtime="local")
    with pytest.raises(RunError, match="too far from the epoch for a table"):
        found.to_arrow()
    assert len(list(found)) == 1  # they are kept
    assert "<table" in found._repr_html_()
