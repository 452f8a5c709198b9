"""Rows of a family in less memory are the same rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spaseq.stages.repeated_rows import RepeatedRows, in_less_memory, keys, terms, whole

from spaseq.lang.shapes import QUERY
from spaseq.rdf.columns.event_batch import EventNames
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.rdf.columns.term_columns import NO_VALUE, NumberColumn, TermColumn
from spaseq.rdf.terms.number_kinds import EXACT, OTHER
from spaseq.stages.sorting import RowSorter

Row = tuple[int, int, int, str, str, int | None]
"""Time, k, GPM, member, term of ?x and sum of a row."""

ROWS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(0, 1),
        st.integers(0, 1),
        st.sampled_from("abc"),
        st.sampled_from("xy"),
        st.sampled_from([None, 3, 4]),
    ),
    max_size=20,
)


def batch(rows: list[Row], member: str = QUERY) -> SolutionBatch:
    """These rows. The name of an event is its instant; ?x is a number for `x` only."""
    time, k, gpm, members, texts, sums = zip(*rows, strict=True) if rows else ((),) * 6
    whole = np.array([NO_VALUE if s is None else s for s in sums], np.int64)
    sum_terms = TermColumn.of_integers(whole)
    kind = np.array([EXACT if text == "x" else OTHER for text in texts], np.int8)
    return SolutionBatch(
        np.zeros(len(rows), np.int32),
        np.array(time, np.int64),
        np.array(k, np.int32),
        np.array(gpm, np.int32),
        EventNames.of([f"{t}-{i}" for t, i in zip(time, k, strict=True)]),
        {member: TermColumn.of(members), "x": TermColumn.of(texts), "#1": sum_terms},
        {
            "x": NumberColumn(np.where(kind == EXACT, 7.0, np.nan), kind),
            "#1": NumberColumn.of_integers(whole),
        },
    )


def shown(rows: SolutionBatch) -> list[object]:
    """All that a batch says of each row."""
    texts = [rows.texts(v) for v in sorted(rows.values)]
    numbers = [rows.numbers[v] for v in sorted(rows.numbers)]
    columns = [c.tolist() for c in (rows.stream, rows.time, rows.k, rows.gpm)]
    columns += [rows.event.texts(), *texts, *([*map(str, c.value)] for c in numbers)]
    columns += [c.kind.tolist() for c in numbers]
    return [*zip(*columns, strict=True)]


@settings(max_examples=200, deadline=None)
@given(ROWS, st.data())
def test_the_rows_are_the_same(rows: list[Row], data: st.DataObject) -> None:
    plain = batch(rows)
    held = in_less_memory(batch(rows))
    assert len(held) == len(rows)
    assert shown(whole(held)) == shown(plain)
    assert held.time.tolist() == plain.time.tolist()
    assert held.gpm.tolist() == plain.gpm.tolist()
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1)) if rows else st.just([]))
    places = np.array(chosen, np.int64)
    assert shown(held.take(places)) == shown(plain.take(places))
    for variable in plain.values:
        assert terms(held, variable).texts() == plain.texts(variable)
        own = keys(held, (variable,))
        assert own.texts(variable) == plain.texts(variable)
        assert (own.k.tolist(), len(own.numbers)) == (plain.k.tolist(), 0)


SAME = [
    (1, 0, 0, member, "x", value)
    for member, value in zip("abcabc", (3, 4, 3, 4, 3, 4), strict=True)
]


def test_what_rows_of_an_event_have_in_common_is_kept_once() -> None:
    held = in_less_memory(batch([*SAME, *((2, 0, *own[2:]) for own in SAME)]))
    assert isinstance(held, RepeatedRows)
    assert held.starts.tolist() == [0, 6]
    assert held.common.texts("x") == ["x", "x"]
    assert held.common.event.texts() == ["1-0", "2-0"]
    assert held.values.keys() == {QUERY, "#1"}


@pytest.mark.parametrize(
    "rows",
    [
        batch([]),
        batch(SAME, member="other"),  # of no family
        batch([(i, 0, 0, "a", "x", 3) for i in range(6)]),  # of different events
    ],
)
def test_rows_that_repeat_little_stay_as_they_are(rows: SolutionBatch) -> None:
    assert in_less_memory(rows) is rows


def test_a_sorter_gives_the_rows_of_a_family_in_order() -> None:
    columns = SolutionColumns((QUERY, "x", "#1"), ("x", "#1"))
    parts = [[(time, 0, gpm, *own[3:]) for gpm in (0, 1) for own in SAME] for time in (3, 1, 2)]
    for memory_rows, kept in ((5, 0), (5, 10**6), (10**6, 10**6)):
        sorter = RowSorter(columns, memory_rows, kept)
        for rows in parts:
            sorter.add(batch(rows))
        found = [row for rows, _ in sorter.batches() for row in shown(rows)]
        given = [row for rows in parts for row in shown(batch(rows))]
        assert sorted(map(str, found)) == sorted(map(str, given))
        assert [row[1] for row in found] == sorted(row[1] for row in found)


def test_a_column_that_differs_in_late_rows_only_is_kept_whole() -> None:
    many = [*SAME] * 400
    held = in_less_memory(batch([*many, (1, 0, 0, "a", "y", 3)]))
    assert isinstance(held, RepeatedRows)
    assert held.values["x"].texts() == ["x"] * len(many) + ["y"]
