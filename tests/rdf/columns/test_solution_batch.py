"""Columns that share a table of terms are joined and made compact together, row by row as alone.
Rows of columns are ordered and made distinct like tuples of their values. Repeated triples in an
event.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.rdf.columns.solution_batch import (
    compact_columns,
    concat_columns,
    first_rows,
    grouped_rows,
    repeated_rows,
    row_order,
)
from spaseq.rdf.columns.term_columns import NO_VALUE, TermColumn, text_array

COLUMNS = 4

VALUE = st.one_of(st.integers(-2, 2), st.sampled_from([-(2**63), 2**63 - 1, 2**40, -(2**40)]))

TRIPLE = st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 2))


def part(random: Random, size: int) -> list[TermColumn]:
    """Columns of some rows: two share a table, one has its own, one is of numbers or unbound."""
    texts = [f'"{number}"' for number in random.sample(range(40), random.randrange(1, 30))]
    shared = text_array(texts)

    def drawn() -> TermColumn:
        codes = [random.randrange(-1, len(texts)) for _ in range(size)]
        return TermColumn(np.array(codes, np.int32), shared)

    numbers = np.array([random.choice([NO_VALUE, 3, 5]) for _ in range(size)], np.int64)
    last = random.choice([TermColumn.of_integers(numbers), TermColumn.unbound(size)])
    own = TermColumn.of([random.choice([None, *texts]) for _ in range(size)])
    return [drawn(), own, drawn(), last]


@pytest.mark.parametrize("seed", range(30))
def test_rows_are_those_of_all_parts(seed: int) -> None:
    random = Random(seed)
    parts = [part(random, random.choice([0, 1, 5, 60])) for _ in range(random.randrange(2, 6))]
    found = concat_columns(parts)
    wanted = [[text for own in parts for text in own[i].texts()] for i in range(COLUMNS)]
    assert [column.texts() for column in found] == wanted
    assert found[0].terms is found[2].terms


@pytest.mark.parametrize("seed", range(30))
def test_compact_columns_have_the_same_rows_and_few_terms(seed: int) -> None:
    random = Random(seed)
    columns = part(random, random.choice([0, 1, 5, 60]))
    found = compact_columns(columns)
    assert [column.texts() for column in found] == [column.texts() for column in columns]
    assert found[0].terms is found[2].terms
    assert len(found[0].terms) <= 2 * (len(found[0]) + len(found[2]))


@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.tuples(*[VALUE] * n), max_size=30)))
def test_they_are_in_the_order_of_their_values(rows: list[tuple[int, ...]]) -> None:
    width = len(rows[0]) if rows else 2
    columns = [np.array([row[i] for row in rows], np.int64) for i in range(width)]
    distinct = sorted(set(rows))
    first, which = grouped_rows(columns)
    assert first.tolist() == first_rows(columns).tolist() == [rows.index(row) for row in distinct]
    assert row_order(columns).tolist() == sorted(range(len(rows)), key=rows.__getitem__)
    assert which.tolist() == [distinct.index(row) for row in rows]


@given(st.lists(st.lists(TRIPLE, max_size=6), max_size=5))
def test_rows_whose_triple_came_before_in_the_event(events: list[list[tuple[int, ...]]]) -> None:
    start = np.cumsum([0, *map(len, events)])
    flat = np.array([t for event in events for t in event], np.int32).reshape(-1, 3)
    expected = [
        int(start[i]) + j
        for i, event in enumerate(events)
        for j, triple in enumerate(event)
        if triple in event[:j]
    ]
    assert repeated_rows(start, *flat.T).tolist() == expected
