"""Joins by comparison give every pair that passes the comparisons."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from spaseq.budget import Budget, spending
from spaseq.expr.columns import TermRows, filter_rows
from spaseq.gpm.solutions.joins import join
from spaseq.gpm.solutions.lazy_columns import Lexicon
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.gpm.solutions.thresholds import (
    Comparison,
    Order,
    joined_by_key_and_value,
    joined_by_value,
)
from spaseq.lang import ast
from spaseq.rdf.columns.term_tables import ListedTerms

XSD = "http://www.w3.org/2001/XMLSchema#"
NUMBERS = [f'"{n}"^^<{XSD}integer>' for n in (-1, 0, 1, 2, 3, 16777217, 2**53, 2**53 + 1)]
OTHERS = [
    f'"1.0"^^<{XSD}decimal>',
    f'"0.1"^^<{XSD}decimal>',
    f'"0.1"^^<{XSD}float>',
    f'"16777216"^^<{XSD}float>',
    f'"1e0"^^<{XSD}double>',
    f'"NaN"^^<{XSD}double>',
    f'"INF"^^<{XSD}double>',
    f'"true"^^<{XSD}boolean>',
    f'"1"^^<{XSD}boolean>',
    f'"2020-01-01T00:00:00Z"^^<{XSD}dateTime>',
    f'"2020-01-01T01:00:00+01:00"^^<{XSD}dateTime>',
    f'"2020-01-01"^^<{XSD}date>',
    '"text"',
    '"text"@en',
    "<http://e/a>",
    "<http://e/b>",
    "_:b",
]
TERMS = [*NUMBERS, *OTHERS]


def solutions(random: Random, rows: int, names: str, events: bool) -> Solutions:
    terms = TERMS if random.random() < 0.5 else NUMBERS
    columns = {v: [random.choice(terms) for _ in range(rows)] for v in names}
    lexicon = Lexicon(ListedTerms([]))
    codes = {v: lexicon.encode(texts) for v, texts in columns.items()}
    event = np.sort(np.array([random.randrange(9) for _ in range(rows)])) if events else None
    return Solutions(rows, event, codes, lexicon)


def texts(found: Solutions) -> list[tuple[str, ...]]:
    assert found.event is not None
    columns = [found.lexicon.take(found.columns[v]) for v in "abcd"]
    return sorted(zip(map(str, found.event.tolist()), *columns, strict=True))


@pytest.mark.parametrize("seed", range(60))
def test_no_pair_is_missing(seed: int) -> None:
    random = Random(seed)
    left, right = solutions(random, 40, "ab", True), solutions(random, 30, "cd", False)
    operators: list[Order] = ["=", "<", "<=", ">", ">="]
    tests = [
        Comparison(random.choice("ab"), random.choice(operators), random.choice("cd"))
        for _ in range(random.choice([1, 2, 2, 3]))
    ]
    with spending(Budget()):
        every, found = join(left, right), joined_by_value(left, right, tests)
    assert found.event is not None and (np.diff(found.event) >= 0).all()
    for test in tests:
        expr = ast.Compare(test.op, ast.Var(test.left), ast.Var(test.right))
        every = every.take(filter_rows(expr, TermRows(every.columns, every.lexicon, every.size)))
        found = found.take(filter_rows(expr, TermRows(found.columns, found.lexicon, found.size)))
    assert texts(found) == texts(every)


def test_only_pairs_within_both_bounds_are_made() -> None:
    lexicon = Lexicon(ListedTerms([]))
    values = lexicon.encode([f'"{n}"^^<{XSD}integer>' for n in range(1000)])
    low = lexicon.encode([f'"{n}"^^<{XSD}integer>' for n in range(0, 1000, 10)])
    high = lexicon.encode([f'"{n + 1}"^^<{XSD}integer>' for n in range(0, 1000, 10)])
    left = Solutions(1000, np.arange(1000), {"a": values}, lexicon)
    right = Solutions(100, None, {"c": low, "d": high}, lexicon)
    with spending(Budget()):
        tests = [Comparison("a", ">=", "c"), Comparison("a", "<=", "d")]
        assert joined_by_value(left, right, tests).size == 200


def filtered(found: Solutions, tests: list[Comparison]) -> Solutions:
    for test in tests:
        expr = ast.Compare(test.op, ast.Var(test.left), ast.Var(test.right))
        found = found.take(filter_rows(expr, TermRows(found.columns, found.lexicon, found.size)))
    return found


@pytest.mark.parametrize("rows", [4, 60], ids=["fewer solutions than keys", "more"])
@pytest.mark.parametrize("seed", range(80))
def test_pairs_of_equal_keys_are_those_that_pass_the_comparison(seed: int, rows: int) -> None:
    random = Random(seed)
    left, right = solutions(random, rows, "abk", True), solutions(random, 40, "cdk", False)
    if seed % 2:
        left, right = (some.with_column("l", some.columns["k"]) for some in (left, right))
    operators: list[Order] = ["<", "<=", ">", ">="]
    test = Comparison("a", random.choice(operators), "c")
    with spending(Budget()):
        every, pairs = join(left, right), joined_by_key_and_value(left, right, [test])
        wanted = filtered(every, [test])
        if pairs is None:
            return
        found = pairs.solutions
        if not pairs.is_decided:
            found = filtered(found, [test])
        assert found.event is not None and (np.diff(found.event) >= 0).all()
        assert texts(found) == texts(wanted)


def test_integers_by_key_need_no_further_test() -> None:
    lexicon = Lexicon(ListedTerms([]))
    numbers = lexicon.encode([f'"{n}"^^<{XSD}integer>' for n in range(100)])
    key = lexicon.encode([f"<http://e/{n % 2}>" for n in range(100)])
    left = Solutions(100, np.arange(100), {"a": numbers, "k": key}, lexicon)
    right = Solutions(100, None, {"c": numbers, "k": key}, lexicon)
    with spending(Budget()):
        pairs = joined_by_key_and_value(left, right, [Comparison("a", "<", "c")])
    assert pairs is not None and pairs.is_decided
    assert pairs.solutions.size == 2 * 50 * 49 // 2
