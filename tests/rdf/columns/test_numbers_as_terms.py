"""Columns of integers and of decimals as values are the same columns of terms."""

from __future__ import annotations

import pickle
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.rdf.columns.term_columns import (
    DECIMAL_PLACES,
    NO_VALUE,
    NumberColumn,
    TermColumn,
)
from spaseq.rdf.terms.number_kinds import EXACT, OTHER, SHORT
from spaseq.rdf.terms.term import XSD

VALUES = st.lists(st.one_of(st.none(), st.integers(-3, 3), st.integers(1 - 10**15, 10**15 - 1)))
KINDS = ("integer", "decimal")


def column(values: list[int | None], kind: str) -> TermColumn:
    made = TermColumn.of_integers if kind == "integer" else TermColumn.of_decimals
    return made(np.array([NO_VALUE if v is None else v for v in values], np.int64))


def texts(values: list[int | None], kind: str) -> list[str | None]:
    places = DECIMAL_PLACES if kind == "decimal" else 0

    def text(value: int) -> str:
        digits = f"{Decimal(value).scaleb(-places):f}"
        return digits.rstrip("0").rstrip(".") if "." in digits else digits

    return [None if v is None else f'"{text(v)}"^^<{XSD}{kind}>' for v in values]


@pytest.mark.parametrize("kind", KINDS)
@given(values=VALUES, data=st.data())
def test_it_is_the_column_of_its_texts(
    kind: str, values: list[int | None], data: st.DataObject
) -> None:
    own, plain = column(values, kind), TermColumn.of(texts(values, kind))
    assert own.bound.tolist() == column(values, kind).bound.tolist() == plain.bound.tolist()
    assert own.texts() == plain.texts() == texts(values, kind)
    for some in (own, column(values, kind)):  # whose codes have been made, and have not
        same = some.identities[:, None] == some.identities[None, :]
        assert (same == (plain.codes[:, None] == plain.codes[None, :])).all()
    rows = data.draw(st.lists(st.integers(0, max(0, len(values) - 1)), max_size=len(values)))
    taken = np.array(rows, np.intp)
    for other in (own, column(values, kind)):
        assert other.take(taken).texts() == plain.take(taken).texts()
    pickled = pickle.loads(pickle.dumps(column(values, kind)))
    assert pickled.texts() == texts(values, kind)


@given(st.lists(st.tuples(VALUES, st.sampled_from([*KINDS, "terms", "unbound"])), min_size=1))
def test_columns_one_after_the_other(parts: list[tuple[list[int | None], str]]) -> None:
    columns, whole = list[TermColumn](), list[str | None]()
    for values, kind in parts:
        own = "decimal" if kind == "decimal" else "integer"
        given_texts = [None] * len(values) if kind == "unbound" else texts(values, own)
        whole += given_texts
        columns.append(column(values, kind) if kind in KINDS else TermColumn.of(given_texts))
    joined = TermColumn.concat(columns)
    assert joined.texts() == whole
    if len({kind for _, kind in parts}) == 1 and parts[0][1] in KINDS:
        assert joined.numbers is not None


def test_its_numbers_are_exact() -> None:
    numbers = NumberColumn.of_integers(np.array([10**15, NO_VALUE, -1]))
    assert numbers.kind.tolist() == [EXACT, OTHER, EXACT]
    assert numbers.value[[0, 2]].tolist() == [1e15, -1.0]
    assert np.isnan(numbers.value[1])


def test_its_numbers_are_the_nearest_ones() -> None:
    numbers = NumberColumn.of_decimals(np.array([100_000, -2_500_000, NO_VALUE, 10**15 - 1]))
    assert numbers.kind.tolist() == [SHORT, EXACT, OTHER, SHORT]
    assert numbers.value[[0, 1, 3]].tolist() == [0.1, -2.5, 999999999.999999]
    assert np.isnan(numbers.value[2])
