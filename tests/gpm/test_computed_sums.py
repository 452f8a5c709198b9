"""BIND of a sum gives the terms that the expression gives for each solution."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.expr.compile import Options, compile_term
from spaseq.expr.doubles import doubles_of
from spaseq.expr.env import DictEnv
from spaseq.gpm.solutions.lazy_columns import Lexicon
from spaseq.gpm.solutions.modifiers import extended
from spaseq.gpm.solutions.solutions import (
    DecimalColumn,
    IntegerColumn,
    Solutions,
    lazily_merged,
    lazy_column,
)
from spaseq.rdf.columns.term_tables import ListedTerms
from spaseq.rdf.terms.term import XSD
from tests.expr.test_columns import NUMBERS, expression
from tests.thresholds import forced

SHORT = [f'"{text}"^^<{XSD}decimal>' for text in ("1.5", "-0.25", "7", "100.000001", "0.3")]
SHORT += [f'"{text}"^^<{XSD}integer>' for text in ("7", "-12")]
LONG = [f'"{sign}99999999{digit}.999999"^^<{XSD}decimal>' for sign in ("", "-") for digit in "19"]


def texts_of(found: Solutions, variable: str) -> list[str | None]:
    codes = found.columns[variable].tolist()
    return [None if code < 0 else found.lexicon[code] for code in codes]


@pytest.mark.each_once
@pytest.mark.parametrize("terms", [SHORT, LONG, NUMBERS], ids=["short", "long", "any"])
@pytest.mark.parametrize("order", ["?a - ?b", "?b + ?a"])
@given(data=st.data())
def test_sums_with_a_table(terms: list[str], order: str, data: st.DataObject) -> None:
    """?a is of the events, ?b of a table; then the sum, and the sum with the sum."""
    places = st.integers(0, len(terms) - 1)
    left = data.draw(st.lists(places, min_size=1, max_size=8))
    right = data.draw(st.lists(places, min_size=1, max_size=4))
    batch, table = Lexicon(ListedTerms(terms)), Lexicon(ListedTerms(terms))
    events = np.arange(len(left), dtype=np.int64)
    of_events = Solutions(len(left), events, {"a": np.array(left, np.int32)}, batch)
    of_table = Solutions(len(right), None, {"b": np.array(right, np.int32)}, table)
    rows, others = np.divmod(np.arange(len(left) * len(right)), len(right))
    pairs = lazily_merged(of_events, of_table, rows, others)
    with forced("summed_rows=1"):
        one = extended(pairs, "c", expression(order), Options())
        both = extended(one, "d", expression("?c - ?b"), Options())
    column = lazy_column(both.columns, "d")
    if terms is SHORT:
        assert isinstance(column, DecimalColumn | IntegerColumn) or not is_one_kind(left, right)
    if isinstance(column, DecimalColumn | IntegerColumn):
        numbers = column.terms.numbers
        assert numbers is not None
        wanted = doubles_of(column.terms.codes, column.terms.terms.to_pylist())
        assert numbers.value.tolist() == wanted.value.tolist()
        assert numbers.kind.tolist() == wanted.kind.tolist()
    first, second = compile_term(expression(order)), compile_term(expression("?c - ?b"))
    for i, found in enumerate(zip(texts_of(both, "c"), texts_of(both, "d"), strict=True)):
        known = {"a": terms[left[rows[i]]], "b": terms[right[others[i]]]}
        total = first(DictEnv(known))
        rest = second(DictEnv(known | ({} if total is None else {"c": total})))
        assert found == (total, rest)


def is_one_kind(left: list[int], right: list[int]) -> bool:
    """Whether no sum is of integers while another one is of decimals."""
    integers = [place >= 5 for place in (*left, *right)]
    return all(integers) or not (any(integers[: len(left)]) and any(integers[len(left) :]))
