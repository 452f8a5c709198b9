"""Rows that can be in no match are left out, and answers stay equal."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from spaseq.compile import CompileOptions, compile_query
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventNames
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import TermColumn
from spaseq.stages.hopeless_rows import HopelessRows, leave_out_hopeless, leave_out_of_part
from spaseq.stages.sorting import RowSorter
from tests.oracle.test_differential import run
from tests.sizes import sizes
from tests.thresholds import Force


def plan_of(sequence: str, window: str = "10 SECONDS", partial: bool = False) -> QueryPlan:
    gpms = "".join(f"DEFINE GPM {g} ON S {{ ?s <http://e/{g}> ?{g} }} " for g in "ABC")
    return compile_query(
        f"SELECT * WITHIN {window} PARTITION BY (?s) FROM STREAM S <http://e/S> "
        f"WHERE {{ SEQ ({sequence}) {gpms} }}",
        options=CompileOptions(partial=partial),
    )


def rows_of(plan: QueryPlan, rows: list[tuple[str, int, str]]) -> SolutionBatch:
    """Rows of (GPM, second, partition)."""
    names = [gpm.name for gpm in plan.patterns.gpms]
    size = len(rows)
    values = {v: TermColumn.unbound(size) for v in plan.patterns.columns.variables}
    values["s"] = TermColumn.of([f"<{key}>" for _, _, key in rows])
    empty = SolutionBatch.empty(plan.patterns.columns)
    return SolutionBatch(
        np.zeros(size, np.int32),
        np.array([1000 * second for _, second, _ in rows], np.int64),
        np.zeros(size, np.int32),
        np.array([names.index(gpm) for gpm, _, _ in rows], np.int32),
        EventNames.of(["e"] * size),
        values,
        {} if not empty.numbers else dict.fromkeys(empty.numbers, empty.numbers["A"]),
    )


def left(
    force: Force,
    plan: QueryPlan,
    *batches: tuple[list[tuple[str, int, str]], int],
) -> list[list[tuple[str, int, str]]]:
    """What is left of batches, each with its watermark in seconds."""
    force("hopeless_rows=1")
    leaving = HopelessRows.of(plan, plan.sequence.window)
    assert leaving is not None
    found = []
    for rows, watermark in batches:
        kept = leaving.without(rows_of(plan, rows), 1000 * watermark)
        found.append([row for row in rows if 1000 * row[1] in kept.time])
    return found


def test_a_row_without_the_others_in_its_window_goes(force: Force) -> None:
    rows = [("A", 0, "x"), ("A", 20, "x"), ("B", 25, "x"), ("A", 40, "x"), ("B", 45, "y")]
    assert left(force, plan_of("A; B"), (rows, 100)) == [[rows[1], rows[2]]]


def test_optional_and_negated_steps_need_the_others(force: Force) -> None:
    near = [("A", 20, "x"), ("B", 21, "x"), ("C", 30, "x")]
    far = [("B", 60, "x"), ("B", 61, "x"), ("A", 62, "x")]
    for sequence in ("A; B?; C", "A; B!; C", "B!; A; C"):
        assert left(force, plan_of(sequence), (near + far, 100)) == [near]


def test_a_row_goes_once_what_it_needs_has_gone(force: Force) -> None:
    rows = [("A", 10, "x"), ("B", 19, "x"), ("C", 40, "x")]  # B and C are too far apart
    assert left(force, plan_of("A; B; C"), (rows, 100)) == [[]]


def test_rows_near_the_ends_of_a_batch_stay(force: Force) -> None:
    first = [("A", 5, "x"), ("A", 91, "x")]
    second = [("A", 105, "x"), ("A", 120, "x"), ("A", 250, "x")]
    found = left(force, plan_of("A; B"), (first, 100), (second, 200))
    assert found == [[first[1]], [second[0], second[2]]]


def test_queries_that_count_events_see_all_of_them() -> None:
    for plan in (plan_of("A, B"), plan_of("A; B", "5 EVENTS"), plan_of("A?; B?")):
        assert HopelessRows.of(plan, plan.sequence.window) is None


HOPELESS: list[tuple[str, list[tuple[str, int, str]], bool]] = [
    ("A; B", [], True),
    ("A; B", [("A", 1, "x"), ("A", 2, "x")], True),
    ("A, B", [("B", 1, "x"), ("B", 2, "x")], True),
    ("A; B", [("A", 1, "x"), ("B", 12, "x")], True),
    ("A; B", [("A", 1, "x"), ("B", 2, "y")], True),
    ("A; B", [("A", 1, "x"), ("B", 11, "x")], False),
    ("A, B", [("A", 1, "x"), ("B", 20, "x")], False),  # a strict sequence is not looked at so far
    ("(A | B)", [("B", 1, "x")], False),
    ("A; B!; C", [("B", 1, "x")], True),
]


@pytest.mark.parametrize(("sequence", "rows", "is_hopeless"), HOPELESS)
def test_rows_of_a_whole_run(
    sequence: str, rows: list[tuple[str, int, str]], is_hopeless: bool
) -> None:
    plan = plan_of(sequence)
    sorter = RowSorter(plan.patterns.columns)
    for row in reversed(rows):
        sorter.add(rows_of(plan, [row]))
    assert leave_out_hopeless(plan, sorter) != is_hopeless
    if not is_hopeless:
        found = [time for batch, _ in sorter.batches() for time in batch.time.tolist()]
        assert found == sorted(1000 * second for _, second, _ in rows)


def test_rows_of_a_whole_run_come_in_any_order() -> None:
    """Others may come batches later, however far apart the times of the batches are."""
    plan = plan_of("A; B")
    sorter = RowSorter(plan.patterns.columns)
    sorter.add(rows_of(plan, [("A", 5, "x"), ("A", 50, "x"), ("A", 90, "y"), ("A", 200, "x")]))
    sorter.add(rows_of(plan, [("B", 70, "x"), ("B", 80, "y"), ("B", 205, "y")]))
    sorter.add(rows_of(plan, [("B", 8, "x"), ("B", 209, "x"), ("A", 300, "x")]))
    assert leave_out_hopeless(plan, sorter)
    assert len(sorter) == 6
    (found,) = (batch for batch, _ in sorter.batches())
    assert found.time.tolist() == [1000 * second for second in (5, 8, 80, 90, 200, 209)]
    assert found.texts("s") == [f"<{key}>" for key in "xxyyxx"]


def has_other(row: tuple[str, int, str], rows: list[tuple[str, int, str]]) -> bool:
    """Whether the other GPM has a solution of the same key within ten seconds."""
    gpm, second, key = row
    return any(g != gpm and abs(s - second) <= 10 and own == key for g, s, own in rows)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("disorder", [0, 200])
def test_rows_of_many_runs(disorder: int, seed: int) -> None:
    """Batches may follow each other in time or overlap."""
    random, plan = Random(seed), plan_of("A; B")
    sorter = RowSorter(plan.patterns.columns, memory_rows=50, kept_bytes=10**6)
    rows = []
    for second in range(0, 600, 100):
        times = sorted(random.randrange(second - disorder, second + 100) for _ in range(30))
        own = [(random.choice("AB"), t, random.choice("uvxy")) for t in times]
        sorter.add(rows_of(plan, own))
        rows += own
    assert leave_out_hopeless(plan, sorter)
    names = [gpm.name for gpm in plan.patterns.gpms]
    found = sorted(
        (names[gpm], time // 1000, str(key)[1:-1])
        for batch, _ in sorter.batches()
        for gpm, time, key in zip(
            batch.gpm.tolist(), batch.time.tolist(), batch.texts("s"), strict=True
        )
    )
    assert found == sorted(row for row in rows if has_other(row, rows))


def test_rows_that_are_not_looked_at() -> None:
    plan = plan_of("A; B")
    many = RowSorter(plan.patterns.columns, memory_rows=2)
    many.add(rows_of(plan, [("A", 1, "x"), ("A", 2, "x")]))
    assert leave_out_hopeless(plan, many)
    partial = plan_of("A; B", partial=True)
    assert leave_out_hopeless(partial, RowSorter(partial.patterns.columns))


PART = [("A", 5, "x"), ("A", 20, "x"), ("B", 30, "x"), ("A", 50, "x"), ("B", 75, "x")]


@pytest.mark.parametrize(
    ("after", "before", "left_out"),
    [
        (None, None, {5, 50, 75}),
        (0, None, {50, 75}),  # a row up to 0 may be near that of 5
        (-6, None, {5, 50, 75}),
        (None, 80, {5, 50}),
        (None, 86, {5, 50, 75}),
        (0, 80, {50}),
    ],
)
def test_rows_from_one_time_to_another(
    after: int | None, before: int | None, left_out: set[int]
) -> None:
    plan = plan_of("A; B")
    edges = (None if time is None else 1000 * time for time in (after, before))
    sorter = RowSorter(plan.patterns.columns)
    sorter.add(rows_of(plan, PART[3:]))
    sorter.add(rows_of(plan, PART[:3]))
    leave_out_of_part(plan, sorter, *edges)
    found = {time // 1000 for rows in sorter.held() for time in rows.time.tolist()}
    assert {second for _, second, _ in PART} - found == left_out


def test_all_rows_are_possible_if_others_count() -> None:
    for plan in (plan_of("A, B"), plan_of("A; B", partial=True), plan_of("A; B?")):
        sorter = RowSorter(plan.patterns.columns)
        sorter.add(rows_of(plan, PART[:1]))
        leave_out_of_part(plan, sorter, None, None)
        assert len(sorter) == 1


@sizes(8, 30, 500)
def test_answers_stay_equal(examples: int, force: Force) -> None:
    """The oracle agrees if all batches are looked at."""
    force("hopeless_rows=1")
    force("longest_rest=0")
    run(examples, f"hopeless{Random(1).random()}")
