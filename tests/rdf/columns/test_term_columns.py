"""Columns of terms and batches of solutions keep their values in every conversion."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.rdf.columns.event_batch import EventNames
from spaseq.rdf.columns.solution_batch import SolutionBatch, SolutionCodec
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.rdf.columns.term_columns import NumberColumn, TermColumn, distinct

TEXTS = st.one_of(st.none(), st.sampled_from(["<a:x>", "<a:y>", '"z"', '"ü"@de', "_:b"]))
LISTS = st.lists(TEXTS, max_size=12)
COLUMNS = SolutionColumns(("x", "y"), ("y",))


@given(LISTS)
def test_a_column_gives_its_texts_back(texts: list[str | None]) -> None:
    column = TermColumn.of(texts)
    assert column.texts() == column.strings().to_pylist() == texts
    assert TermColumn.from_arrow(column.to_arrow()).texts() == texts
    assert TermColumn.from_arrow(pa.array(texts, pa.string())).texts() == texts


@given(LISTS)
def test_codes_are_equal_where_terms_are(texts: list[str | None]) -> None:
    codes = TermColumn.of(texts).codes.tolist()
    for i, a in enumerate(texts):
        assert [a == b for b in texts] == [codes[i] == c for c in codes]


@given(st.lists(LISTS, min_size=1, max_size=4), st.data())
def test_columns_one_after_the_other(parts: list[list[str | None]], data: st.DataObject) -> None:
    joined = TermColumn.concat([TermColumn.of(part) for part in parts])
    texts = [text for part in parts for text in part]
    assert joined.texts() == texts
    distinct = joined.terms.to_pylist()
    assert len(set(distinct)) == len(distinct)
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=5)) if texts else []
    part = joined.take(np.array(rows, np.intp))
    assert part.texts() == part.compact().texts() == [texts[i] for i in rows]


def test_parts_of_a_column_are_joined_under_the_same_terms() -> None:
    column = TermColumn.of(["<a:x>", None, "<a:y>"])
    again = TermColumn.concat([column.take(slice(2, 3)), column.take(slice(0, 2))])
    assert again.texts() == ["<a:y>", "<a:x>", None]
    assert again.terms is column.terms
    assert TermColumn.concat([TermColumn.unbound(2), column]).texts() == [
        None,
        None,
        *column.texts(),
    ]


def test_few_rows_do_not_keep_many_terms() -> None:
    column = TermColumn.of([f"<a:{i}>" for i in range(100)])
    few = column.take(np.array([7, 99, 7])).compact()
    assert few.texts() == ["<a:7>", "<a:99>", "<a:7>"]
    assert sorted(few.terms.to_pylist()) == ["<a:7>", "<a:99>"]


def solutions(x: list[str | None], time: int = 0) -> SolutionBatch:
    """A batch of solutions; solution i belongs to the event `<x:i>` at `time` + i."""
    n = len(x)
    return SolutionBatch(
        np.zeros(n, np.int32),
        np.arange(time, time + n),
        np.arange(n, dtype=np.int32),
        np.zeros(n, np.int32),
        EventNames.of([f"x:{i}" if i % 2 else None for i in range(n)]),
        {"x": TermColumn.of(x), "y": TermColumn.unbound(n)},
        {"y": NumberColumn(np.arange(n) / 4, np.ones(n, np.int8))},
    )


def rows_of(batch: SolutionBatch) -> list[tuple[object, ...]]:
    """Its rows as tuples of Python values."""
    ints = (batch.stream, batch.time, batch.k, batch.gpm)
    numbers = batch.numbers["y"].value.tolist(), batch.numbers["y"].kind.tolist()
    terms = batch.texts("x"), batch.texts("y")
    columns = *(c.tolist() for c in ints), batch.event.texts(), *terms, *numbers
    return list(zip(*columns, strict=True))


@given(LISTS)
def test_a_batch_through_arrow(x: list[str | None]) -> None:
    batch = solutions(x)
    table = SolutionCodec(COLUMNS).batch(batch)
    assert table.schema.equals(SolutionCodec(COLUMNS).schema)
    assert rows_of(SolutionCodec(COLUMNS).rows(table)) == rows_of(batch)
    assert rows_of(pickle.loads(pickle.dumps(batch.compact()))) == rows_of(batch)


@given(LISTS, LISTS, st.data())
def test_batches_joined_and_cut(
    x: list[str | None], y: list[str | None], data: st.DataObject
) -> None:
    both = SolutionBatch.concat([solutions(x), solutions(y, 100)], COLUMNS)
    rows = rows_of(solutions(x)) + rows_of(solutions(y, 100))
    assert rows_of(both) == rows
    end = data.draw(st.integers(0, len(rows)))
    assert rows_of(both.take(slice(0, end))) == rows[:end]
    assert rows_of(both.take(slice(end, None))) == rows[end:]
    assert rows_of(both.take(np.arange(len(rows))[::-1])) == rows[::-1]


@pytest.mark.parametrize("batches", [[], [SolutionBatch.empty(COLUMNS)] * 2])
def test_no_rows(batches: list[SolutionBatch]) -> None:
    none = SolutionBatch.concat(batches, COLUMNS)
    assert len(none) == 0
    assert rows_of(SolutionCodec(COLUMNS).decode(SolutionCodec(COLUMNS).encode(none))) == []


@given(st.lists(st.integers(-5, 40)), st.sampled_from([np.int32, np.int64]))
def test_distinct_integers(numbers: list[int], kind: type[np.int64]) -> None:
    found = distinct(np.array(numbers, kind))
    assert found.dtype == kind
    assert found.tolist() == sorted(set(numbers))
