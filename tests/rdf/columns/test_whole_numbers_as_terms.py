"""Columns of values are the same columns of terms."""

from __future__ import annotations

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spaseq.rdf.columns.term_columns import NO_VALUE, NumberColumn, TermColumn, integer_texts
from spaseq.rdf.terms.number_kinds import EXACT, OTHER

VALUES = st.lists(st.one_of(st.none(), st.integers(-3, 3), st.integers(-(10**15), 10**15)))


def column(values: list[int | None]) -> TermColumn:
    return TermColumn.of_integers(
        np.array([NO_VALUE if v is None else v for v in values], np.int64)
    )


def texts(values: list[int | None]) -> list[str | None]:
    return [None if v is None else integer_texts(np.array([v]))[0] for v in values]


@given(VALUES, st.data())
def test_it_is_the_column_of_its_texts(values: list[int | None], data: st.DataObject) -> None:
    own, plain = column(values), TermColumn.of(texts(values))
    assert own.texts() == plain.texts() == texts(values)
    same = own.codes[:, None] == own.codes[None, :]
    assert (same == (plain.codes[:, None] == plain.codes[None, :])).all()
    rows = data.draw(st.lists(st.integers(0, max(0, len(values) - 1)), max_size=len(values)))
    taken = np.array(rows, np.intp)
    for other in (own, column(values)):  # whose codes have been made, and have not
        assert other.take(taken).texts() == plain.take(taken).texts()
    pickled = pickle.loads(pickle.dumps(column(values)))
    assert pickled.texts() == texts(values)


@given(st.lists(st.tuples(VALUES, st.sampled_from(["values", "terms", "unbound"])), min_size=1))
def test_columns_one_after_the_other(parts: list[tuple[list[int | None], str]]) -> None:
    columns, whole = list[TermColumn](), list[str | None]()
    for values, kind in parts:
        given_texts = [None] * len(values) if kind == "unbound" else texts(values)
        whole += given_texts
        columns.append(column(values) if kind == "values" else TermColumn.of(given_texts))
    assert TermColumn.concat(columns).texts() == whole


def test_its_numbers_are_exact() -> None:
    numbers = NumberColumn.of_integers(np.array([10**15, NO_VALUE, -1]))
    assert numbers.kind.tolist() == [EXACT, OTHER, EXACT]
    assert numbers.value[[0, 2]].tolist() == [1e15, -1.0]
    assert np.isnan(numbers.value[1])
