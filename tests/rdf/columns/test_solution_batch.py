"""Columns that share a table of terms are joined and made compact together, row by row as alone."""

from random import Random

import numpy as np
import pytest

from spaseq.rdf.columns.solution_batch import compact_columns, concat_columns
from spaseq.rdf.columns.term_columns import NO_VALUE, TermColumn, text_array

COLUMNS = 4


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
