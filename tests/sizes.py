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
    numbers = [few, pytest.param(many, marks=THOROUGH)]
    if most is not None:
        numbers.append(pytest.param(most, marks=SLOW))
    return pytest.mark.parametrize("examples", numbers)


def first_of(values: Sequence[Any], few: int) -> list[Any]:
    """Values of a parameter: the first few, and the others for the thorough run only."""
    return [*values[:few], *(pytest.param(value, marks=THOROUGH) for value in values[few:])]


def first_rows_of(rows: Sequence[Sequence[Any]], few: int) -> list[Any]:
    """The same for rows of several parameters."""
    return [*rows[:few], *(pytest.param(*row, marks=THOROUGH) for row in rows[few:])]


def repeated(items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    """Combinations that tests with the mark `each_once` leave to the thorough run.

    Such a test has several parameters. By default it has as many combinations as the parameter with
    the most values, and each value of each parameter stands in one of them.
    """
    tests = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if "each_once" in marks and not marks & {"thorough", "slow"}:
            tests[item.nodeid.partition("[")[0]].append(item)
    for own in tests.values():
        rows = [_values(item) for item in own]
        columns = [[*dict.fromkeys(column)] for column in zip(*rows, strict=True)]
        needed = {_row(columns, number) for number in range(max(map(len, columns)))}
        yield from (item for item, row in zip(own, rows, strict=True) if row not in needed)


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
