"""Columns over several tables share one array of texts."""

from __future__ import annotations

from spaseq.rdf.columns.term_columns import TermColumn, UnitedTexts
from tests.thresholds import Force

FIRST = TermColumn.of(["a", "b", "c"])
SECOND = TermColumn.of(["c", None, "d", "a"])
NONE = TermColumn.unbound(2)


def test_rows_stay_and_equal_texts_have_equal_codes() -> None:
    found = UnitedTexts().joined([FIRST, NONE, SECOND])
    assert found.texts() == ["a", "b", "c", None, None, "c", None, "d", "a"]
    assert found.codes[0] == found.codes[-1] != found.codes[1]


def test_later_columns_share_the_texts() -> None:
    united = UnitedTexts()
    first = united.joined([FIRST])
    assert first.terms is FIRST.terms
    both = united.joined([SECOND, FIRST])
    again = united.joined([FIRST.take(slice(1, 2))])
    assert again.terms is both.terms
    assert again.texts() == ["b"]
    assert first.texts() == ["a", "b", "c"]


def test_a_column_without_texts_may_come_first() -> None:
    united = UnitedTexts()
    assert united.joined([NONE]).texts() == [None, None]
    assert united.joined([NONE, SECOND]).texts() == [None, None, "c", None, "d", "a"]


def test_texts_of_arrays_that_have_gone_do_not_stay(force: Force) -> None:
    force("united_arrays=4")
    united = UnitedTexts()
    for i in range(20):
        found = united.joined([FIRST, TermColumn.of([f"{i}"])])
        assert found.texts() == ["a", "b", "c", f"{i}"]
        assert len(found.terms) <= 3 + 4
