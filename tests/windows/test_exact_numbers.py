"""Doubles as terms: the same texts, codes and numbers as one by one."""

from __future__ import annotations

from random import Random

import numpy as np

from spaseq.expr.values import encode
from spaseq.rdf.columns.term_tables import ABSENT
from spaseq.rdf.terms.number_kinds import DOUBLE, OTHER
from spaseq.rdf.terms.term import XSD
from spaseq.windows.exact_numbers import CanonicalDoubles, double_strings

HAND = [0.0, 1.0, -1.0, 60.0, -60.5, 9999999999.0, 1e10, 123456.75, 0.1, 1e-7, 5e-324, 1e300]


def drawn(draw: Random) -> list[float]:
    found = [draw.choice([1, -1]) * draw.random() * 10.0 ** draw.randrange(-20, 20)]
    found += [float(draw.randrange(-(10**6), 10**6)), draw.randrange(-(10**12), 10**12) / 100]
    return found


def test_texts_are_those_of_single_values() -> None:
    draw = Random(7)
    values = HAND + [value for _ in range(2000) for value in drawn(draw)]
    for size in (1, 31, 32, len(values)):
        own = values[:size]
        assert double_strings(np.array(own)).to_pylist() == [*map(encode, own)]


def test_a_table_finds_canonical_texts_only() -> None:
    table = CanonicalDoubles(np.array([-2.5, 0.0, 7.0]))
    given = [f'"{text}"^^<{XSD}double>' for text in ("7.0E0", "7.0", "-0.0E0", "-2.5E0", "8.0E0")]
    found = table.find([*given, f'"7"^^<{XSD}integer>', "<http://e/a>"])
    assert found.tolist() == [2, ABSENT, ABSENT, 0, ABSENT, ABSENT, ABSENT]
    values, kinds = table.numbers(np.array([2, -1, 0], np.int32))
    assert kinds.tolist() == [DOUBLE, OTHER, DOUBLE]
    assert values[[0, 2]].tolist() == [7.0, -2.5]
