"""Columns that are made when they are read let go of what they are made of."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest

from spaseq.gpm.solutions.lazy_columns import ComputedColumn, LazyColumn, Lexicon
from spaseq.gpm.solutions.solutions import DecimalColumn, IntegerColumn, Solutions, TableColumn
from spaseq.rdf.columns.term_tables import ListedTerms


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def column(name: str, batch: Lexicon) -> LazyColumn:
    if name == "integers":
        return IntegerColumn(np.array([5, 6]), batch)
    if name == "decimals":
        return DecimalColumn(np.array([5, 6]), batch)
    lexicon = Lexicon(ListedTerms(["<http://e/a>"]))
    table = Solutions(1, None, {"x": np.zeros(1, np.int32)}, lexicon)
    return TableColumn(table, "x", np.array([0, 0]), batch)


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("is_read", [False, True])
@pytest.mark.parametrize("name", ["integers", "decimals", "table"])
def test_a_batch_goes_with_the_columns_of_its_codes(name: str, is_read: bool) -> None:
    batch = Lexicon(ListedTerms([]))
    known, made = weakref.ref(batch), column(name, batch)
    if is_read:
        assert len(made.codes) == 2
    del batch, made
    assert known() is None


@pytest.mark.usefixtures("no_collector")
def test_a_column_that_was_made_forgets_the_one_before() -> None:
    batch = Lexicon(ListedTerms([]))
    known = weakref.ref(batch)
    part = IntegerColumn(np.array([5, 6]), batch)
    some = ComputedColumn(partial(getattr, part, "codes")).take(np.array([1]))
    del batch, part
    assert len(some.codes) == 1
    assert known() is None
