"""Sums and averages do not depend on the order of their operands."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.expr.exact_aggregates import average, greatest, least, rounded_sum, total
from spaseq.expr.values import decode, encode
from spaseq.rdf.terms.term import XSD


def double(text: str) -> str:
    return f'"{text}"^^<{XSD}double>'


def number(text: str) -> str:
    kind = "decimal" if "." in text else "integer"
    return f'"{text}"^^<{XSD}{kind}>'


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1), st.integers(1, 9))
def test_the_sum_of_doubles_is_rounded_once(values: list[float], divisor: int) -> None:
    exact = sum(map(Fraction, values)) / divisor
    try:
        wanted = float(exact)
    except OverflowError:
        wanted = float("inf") if exact > 0 else float("-inf")
    assert rounded_sum(values, divisor, True) == wanted


def test_any_order_gives_the_same() -> None:
    texts = [double("1e16"), double("1"), double("-1e16"), number("0.1"), number("3")]
    assert len({total(order) for order in permutations(texts)}) == 1
    assert len({average(order) for order in permutations(texts)}) == 1
    assert decode(total(texts)) == 4.1


def test_special_values() -> None:
    assert total([double("INF"), double("-INF")]) == encode(float("nan"))
    assert total([double("INF"), double("1")]) == encode(float("inf"))
    assert average([]) == encode(0)
    assert average([number("1"), number("2")]) == number("1.5")


@pytest.mark.parametrize("reverse", [False, True])
def test_of_equal_values_the_least_text_is_taken(reverse: bool) -> None:
    texts = sorted([number("1"), number("1.0"), double("1"), number("01")], reverse=reverse)
    assert least(texts) == greatest(texts) == min(texts)
    assert least([*texts, double("NaN")]) == double("NaN")
