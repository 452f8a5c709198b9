"""Rows far from every solution of a rare GPM leave a run early, and no others do."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest

from spaseq.compile import compile_query
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventNames
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import TermColumn
from spaseq.stages.hopeless_rows import leave_out_hopeless, leave_out_of_part, rows_near
from spaseq.stages.sorting import RowSorter
from tests.thresholds import Force

Row = tuple[int, int, tuple[str | None, ...]]
"""GPM, ms, and the terms of the partition."""

LENGTH = 2000
ALL = (-(2**62), 2**62)


def plan_of(partition: str) -> QueryPlan:
    gpms = "".join(f"DEFINE GPM {g} ON S {{ ?x <http://e/{g}> ?y }} " for g in "ABC")
    return compile_query(
        f"SELECT * WITHIN 2 SECONDS {partition} FROM STREAM S <http://e/S> "
        f"WHERE {{ SEQ (A; B; C) {gpms} }}"
    )


def rows_of(plan: QueryPlan, rows: list[Row]) -> SolutionBatch:
    size, variables = len(rows), plan.sequence.partition
    values = {v: TermColumn.unbound(size) for v in plan.patterns.columns.variables}
    for place, variable in enumerate(variables):
        values[variable] = TermColumn.of([key[place] for _, _, key in rows])
    return SolutionBatch(
        np.zeros(size, np.int32),
        np.array([ms for _, ms, _ in rows], np.int64),
        np.zeros(size, np.int32),
        np.array([gpm for gpm, _, _ in rows], np.int32),
        EventNames.of(["e"] * size),
        values,
    )


def drawn(random: Random, size: int, keys: int) -> list[Row]:
    """Rows in no order, of which one in thirty is of the third GPM."""

    def term() -> str | None:
        return random.choice([None, *(f"<http://e/{n}>" for n in range(8))])

    return [
        (
            2 if random.random() < 1 / 30 else random.randrange(2),
            random.randrange(-50_000, 50_000),
            tuple(term() for _ in range(keys)),
        )
        for _ in range(size)
    ]


@pytest.mark.parametrize("partition", ["", "PARTITION BY (?x)", "PARTITION BY (?x ?y)"])
@pytest.mark.parametrize("seed", range(5))
def test_rows_near_a_rare_one_stay(partition: str, seed: int) -> None:
    random, plan = Random(seed), plan_of(partition)
    variables = plan.sequence.partition
    batches = [drawn(random, size, len(variables)) for size in (40, 300, 1, 90)]
    columns = [rows_of(plan, batch) for batch in batches]
    kept = rows_near(columns, variables, 2, LENGTH, ALL).tolist()
    rows = [row for batch in batches for row in batch]
    rare = [(ms, key) for gpm, ms, key in rows if gpm == 2]
    near = {
        i
        for i, (_, ms, key) in enumerate(rows)
        if any(abs(ms - other) <= LENGTH and key == own for other, own in rare)
    }
    assert near <= set(kept)
    within = {  # the slices are as wide as the window, and marks rarely coincide
        i
        for i, (_, ms, key) in enumerate(rows)
        if any(abs(ms - other) <= 2 * LENGTH and key == own for other, own in rare)
    }
    assert len(set(kept) - within) < len(rows) / 5


def in_matches(rows: list[Row]) -> set[Row]:
    """The rows of matches of A; B; C in a window, by a plain loop."""
    by_key = dict[tuple[str | None, ...], list[Row]]()
    for row in rows:
        by_key.setdefault(row[2], []).append(row)
    found = set[Row]()
    for own in by_key.values():
        for a, b, c in product(*([r for r in own if r[0] == gpm] for gpm in range(3))):
            if a[1] < b[1] < c[1] <= a[1] + LENGTH:
                found |= {a, b, c}
    return found


def held(sorter: RowSorter) -> set[Row]:
    """The rows in a sorter's memory."""
    return {
        (gpm, ms, (key,))
        for batch in sorter.held()
        for ms, gpm, key in zip(
            batch.time.tolist(), batch.gpm.tolist(), batch.texts("x"), strict=True
        )
    }


def check_matches(seed: int) -> None:
    """No row of a match leaves a sorter, whatever the thresholds."""
    random, plan = Random(seed), plan_of("PARTITION BY (?x)")
    batches = [drawn(random, 200, 1) for _ in range(5)]
    sorter = RowSorter(plan.patterns.columns, memory_rows=300, kept_bytes=10**7)
    for batch in batches:
        sorter.add(rows_of(plan, batch))
    assert leave_out_hopeless(plan, sorter)
    left = held(sorter)
    rows = [row for batch in batches for row in batch]
    assert in_matches(rows)
    assert in_matches(rows) <= left <= set(rows)


FORCED = [
    ("hopeless_query=1000000", True),
    ("hopeless_query=1 rare_solutions=1", True),
    ("hopeless_query=1 rare_solutions=1000", False),
]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("words", [words for words, _ in FORCED])
def test_rows_of_matches_stay(force: Force, words: str, seed: int) -> None:
    force(words)
    check_matches(seed)


@pytest.mark.parametrize(("words", "leave"), FORCED)
def test_most_others_leave(force: Force, words: str, leave: bool) -> None:
    force(words)
    plan = plan_of("PARTITION BY (?x)")
    sorter = RowSorter(plan.patterns.columns)
    sorter.add(rows_of(plan, drawn(Random(1), 5000, 1)))
    assert leave_out_hopeless(plan, sorter)
    assert (len(sorter) < 4000) == leave


def test_times_at_the_ends_of_a_run() -> None:
    plan = plan_of("PARTITION BY (?x)")
    rows: list[Row] = [(2, 0, ("<x>",)), (0, LENGTH, ("<x>",)), (1, -LENGTH, ("<x>",))]
    assert rows_near([rows_of(plan, rows)], ("x",), 2, LENGTH, ALL).tolist() == [0, 1, 2]
    assert rows_near([rows_of(plan, rows)], ("x",), 2, 0, ALL).tolist() == [0]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("words", [words for words, _ in FORCED])
def test_rows_near_the_ends_of_a_part_stay(force: Force, words: str, seed: int) -> None:
    """What they may match is before or after the part."""
    force(words)
    plan, rows = plan_of("PARTITION BY (?x)"), drawn(Random(seed), 1000, 1)
    part = [row for row in rows if -30_000 <= row[1] <= 30_000]
    sorter = RowSorter(plan.patterns.columns)
    for start in range(0, len(part), 100):
        sorter.add(rows_of(plan, part[start : start + 100]))
    leave_out_of_part(plan, sorter, -30_000, 30_000)
    ends = {row for row in part if abs(row[1]) >= 30_000 - LENGTH}
    found = held(sorter)
    assert found <= set(part)
    assert found >= ends | (in_matches(rows) & set(part))
    if words == FORCED[0][0]:
        assert len(found) < len(part) / 2


@pytest.mark.parametrize("edges", [(None, None), (0, None), (None, 50), (0, 50)])
def test_a_part_without_a_solution_of_a_gpm_keeps_its_ends(
    force: Force, edges: tuple[int | None, int | None]
) -> None:
    force("hopeless_query=1")
    plan = plan_of("PARTITION BY (?x)")
    rows: list[Row] = [(n % 2, 1000 * n, ("<x>",)) for n in range(1, 50)]
    sorter = RowSorter(plan.patterns.columns)
    sorter.add(rows_of(plan, rows))
    after, before = (None if second is None else 1000 * second for second in edges)
    leave_out_of_part(plan, sorter, after, before)
    expected = {
        row
        for row in rows
        if (after is not None and row[1] <= after + LENGTH)
        or (before is not None and row[1] >= before - LENGTH)
    }
    assert held(sorter) == expected
