"""Families that differ in their windows leave out hopeless rows together, as each does alone."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from spaseq.lang.shapes import QUERY
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.stages.hopeless_families import leave_out_together
from spaseq.stages.sorting import RowSorter
from tests.sizes import sizes
from tests.stages.test_hopeless_rows import member_rows, plan_of

Row = tuple[int, int, str, int]
"""GPM, second, key and member."""

PLAN = plan_of("A; B")
COLUMNS = SolutionColumns((*PLAN.patterns.columns.variables, QUERY), ())


def family(seconds: int) -> QueryPlan:
    """A family with another window; all have one program."""
    window = plan_of("A; B", f"{seconds} SECONDS").sequence.window
    partition = (*PLAN.sequence.partition, QUERY)
    return replace(PLAN, sequence=replace(PLAN.sequence, partition=partition, window=window))


def sorted_rows(plan: QueryPlan, batches: list[list[Row]]) -> RowSorter:
    sorter = RowSorter(COLUMNS)
    for rows in batches:
        sorter.add(member_rows(plan, rows))
    return sorter


def left(sorter: RowSorter) -> list[tuple[int, int, str | None]]:
    return sorted(
        (gpm, time // 1000, key)
        for batch in sorter.held()
        for gpm, time, key in zip(
            batch.gpm.tolist(), batch.time.tolist(), batch.texts("s"), strict=True
        )
    )


def has_other(row: Row, rows: list[Row], seconds: int) -> bool:
    """Whether the other GPM has a solution of the same member and key, of B after that of A."""
    gpm, second, *key = row
    return any(
        g != gpm and 0 < (s - second) * (1 if gpm == 0 else -1) <= seconds and own == key
        for g, s, *own in rows
    )


@sizes(20, 200, 2000)
def test_each_family_keeps_the_rows_with_partners_in_its_window(examples: int) -> None:
    kept = 0
    for seed in range(examples):
        random, given = Random(seed), []
        for _ in range(4):
            seconds = random.randint(1, 30)
            batches = []
            for start in range(0, 300, 100):
                times = sorted(random.randrange(start, start + 100) for _ in range(10))
                batches.append(
                    [
                        (random.randrange(2), t, random.choice("xy"), random.randrange(3))
                        for t in times
                    ]
                )
            given.append((seconds, family(seconds), batches))
        sorters = [sorted_rows(plan, batches) for _, plan, batches in given]
        plans = [plan for _, plan, _ in given]
        assert leave_out_together([*zip(plans, sorters, strict=True)]) == sorters
        for (seconds, _, batches), sorter in zip(given, sorters, strict=True):
            rows = [row for batch in batches for row in batch]
            near = [row for row in rows if has_other(row, rows, seconds)]
            assert left(sorter) == sorted((g, t, f"<{key}>") for g, t, key, _ in near)
            kept += len(near)
    assert kept > 0


def test_an_equal_member_number_of_another_family_is_no_partner() -> None:
    plans = [family(10), family(20)]
    batches: list[list[Row]] = [[(0, 1, "x", 0)], [(1, 2, "x", 0)]]
    sorters = [sorted_rows(plan, [rows]) for plan, rows in zip(plans, batches, strict=True)]
    leave_out_together([*zip(plans, sorters, strict=True)])
    assert [len(sorter) for sorter in sorters] == [0, 0]


@pytest.mark.parametrize("is_written", [False, True])
def test_sorters_that_are_not_looked_at(is_written: bool) -> None:
    """Rows out of order, or on disk; and a family whose program no other one has."""
    rows: list[Row] = [(0, 9, "x", 0), (0, 5, "x", 0)]
    disorder = sorted_rows(family(10), [rows])
    alone = RowSorter(COLUMNS, memory_rows=1) if is_written else RowSorter(COLUMNS)
    alone.add(member_rows(PLAN, sorted(rows)))
    assert leave_out_together([(family(10), disorder), (family(20), alone)]) == []
    assert len(disorder) == 2 and alone.has_written == is_written
