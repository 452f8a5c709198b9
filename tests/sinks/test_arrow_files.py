"""Parquet and Arrow files, and the columns of tables of text."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from spaseq.algebra.answers import Answer, TraceItem
from spaseq.errors import RunError, UsageError
from spaseq.rdf.terms.term import XSD
from spaseq.sinks import arrow_files, open_sink
from spaseq.sinks.base import open_lines

READERS: dict[str, Callable[[object], pa.Table]] = {
    "parquet": parquet.read_table,
    "arrow": feather.read_table,
}


def answer(number: int, term: str | None) -> Answer:
    trace = (TraceItem(number, 0, "A", "http://e/s", None),)
    bindings = () if term is None else (("v", term),)
    return Answer((number, 0), (number, 0), trace, bindings)


def integer(number: int) -> str:
    return f'"{number}"^^<{XSD}integer>'


@pytest.mark.parametrize("form", READERS)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7])
def test_types_are_known_at_the_end(
    form: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answers wait in batches of two; the last value decides the type."""
    monkeypatch.setattr(arrow_files, "_ROWS", 2)
    terms = [integer(n) for n in range(count)]
    for last, kind in (
        (integer(5), "int64"),
        (f'"1.5"^^<{XSD}double>', "double"),
        ('"x"', "string"),
    ):
        path = tmp_path / f"answers.{form}"
        with open_lines(str(path)) as out, open_sink(form, out, ["v"]) as sink:
            for number, term in enumerate([*terms, None, last]):
                sink.write("q", answer(number, term))
        table = READERS[form](path)
        assert table.column_names == ["v", "start", "end", "trace"]
        assert (str(table.schema.field("v").type), table.num_rows) == (kind, count + 2)
        assert table.column("v").null_count == 1
        assert table.column("start").cast(pa.int64()).to_pylist() == [
            1000 * n for n in range(count + 2)
        ]


@pytest.mark.parametrize("form", READERS)
def test_no_answers_and_graphs(form: str) -> None:
    nothing, made = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
    with open_sink(form, nothing, ["v"]):
        pass
    assert READERS[form](nothing.buffer).num_rows == 0
    graph = Answer((0, 0), (0, 0), (), (), (), (), (("<a:s>", "<a:p>", '"o"'),), "a:e")
    with open_sink(form, made, []) as sink:
        sink.write("q", graph)
    (row,) = READERS[form](made.buffer).to_pylist()
    assert row["event"] == "a:e"
    assert row["graph"] == [{"subject": "<a:s>", "predicate": "<a:p>", "object": '"o"'}]


@pytest.mark.parametrize("form", READERS)
def test_one_query_and_a_binary_file(form: str) -> None:
    with (
        pytest.raises(UsageError, match="one query"),
        open_sink(form, io.StringIO(), ["v"]) as sink,
    ):
        sink.write("q", answer(0, None))
        sink.write("r", answer(0, None))
    with pytest.raises(UsageError, match="binary"), open_sink(form, io.StringIO(), ["v"]):
        pass


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("form", READERS)
def test_a_full_disk_is_named(form: str) -> None:
    with (
        pytest.raises(RunError, match=r"/dev/full: No space"),
        open_lines("/dev/full") as out,
        open_sink(form, out, ["v"]) as sink,
    ):
        sink.write("q", answer(0, None))


def test_times_in_tables_of_text() -> None:
    found = {}
    for form in ("csv", "tsv", "json"):
        out = io.StringIO()
        with open_sink(form, out, ["+end", "v"]) as sink:
            sink.write("q", answer(1500, integer(1)))
        found[form] = out.getvalue()
    time = "1970-01-01T00:00:01.500Z"
    assert found["csv"] == f"end,v\r\n{time},1\r\n"
    assert found["tsv"] == f'?end\t?v\n"{time}"^^<{XSD}dateTime>\t{integer(1)}\n'
    assert '"vars": ["end", "v"]' in found["json"] and time in found["json"]
