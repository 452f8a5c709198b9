"""Tests of several sizes: a few examples by default, many if thorough, most if slow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

THOROUGH = pytest.mark.thorough
SLOW = pytest.mark.slow


def sizes(few: int, many: int, most: int | None = None) -> pytest.MarkDecorator:
    """Parametrise a test with `examples`, the number of examples it tries."""
    numbers = [
        pytest.param(few, marks=pytest.mark.few),
        pytest.param(many, marks=[pytest.mark.many, THOROUGH]),
    ]
    if most is not None:
        numbers.append(pytest.param(most, marks=SLOW))
    return pytest.mark.parametrize("examples", numbers)


def first_of(values: Sequence[Any], few: int) -> list[Any]:
    """Values of a parameter: the first few, and the others for the thorough run only."""
    return [*values[:few], *(pytest.param(value, marks=THOROUGH) for value in values[few:])]


def first_rows_of(rows: Sequence[Sequence[Any]], few: int) -> list[Any]:
    """The same for rows of several parameters."""
    return [*rows[:few], *(pytest.param(*row, marks=THOROUGH) for row in rows[few:])]


def left_to_larger_runs(items: Sequence[pytest.Item]) -> Iterator[tuple[pytest.Item, Any]]:
    """Items that a larger run tries, with the mark of that run.

    A test with the mark `each_once` has several parameters. By default it has as many combinations
    as the parameter with the most values, and each value of each parameter stands in one of them.
    If thorough, it has all combinations with few examples, and those with many examples. Another
    test has few examples only by default: many examples have the few among them.
    """
    tests = defaultdict[tuple[str, bool], list[pytest.Item]](list)
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if "slow" in marks:
            continue
        if "each_once" not in marks:
            if {"few", "thorough"} <= marks:
                yield item, SLOW
        elif "many" in marks or "thorough" not in marks:
            tests[item.nodeid.partition("[")[0], "many" in marks].append(item)
    for (_, many), own in tests.items():
        rows = [_values(item) for item in own]
        columns = [[*dict.fromkeys(column)] for column in zip(*rows, strict=True)]
        needed = {_row(columns, number) for number in range(max(map(len, columns)))}
        left = (item for item, row in zip(own, rows, strict=True) if row not in needed)
        yield from ((item, SLOW if many else THOROUGH) for item in left)


def _values(item: pytest.Item) -> tuple[Any, ...]:
    """What tells the value of each parameter; those that are given together are one parameter."""
    given: dict[str, Any] = item.callspec.params  # type: ignore[attr-defined]
    names = [mark.args[0] for mark in item.iter_markers("parametrize")]
    return tuple(
        tuple(id(given[name.strip()]) for name in (own.split(",") if isinstance(own, str) else own))
        for own in names
    )


def _row(columns: Sequence[Sequence[Any]], number: int) -> tuple[Any, ...]:
    """A combination; parameters with equally many values do not always take them together."""
    return tuple(
        own[(number + place * (number // len(own))) % len(own)] for place, own in enumerate(columns)
    )
