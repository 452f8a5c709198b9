"""Solutions leave in runs; only those that wait may be left out. Runs come back from files as they
were written, and partial matches of tasks in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest

from spaseq import thresholds
from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.errors import RunError
from spaseq.plan.families import QueryUnits
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventNames
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import NumberColumn, TermColumn
from spaseq.runtime.job.unit_graph import QueryGroups
from spaseq.runtime.spark.rows.run_files import (
    BucketRuns,
    PackReader,
    Stored,
    StoredSolutions,
    TaskFile,
    packs_of,
)
from spaseq.runtime.spark.rows.stage_rows import PARTIAL, Pack, items_of, partial_rows
from spaseq.stages.sorting import RowSorter
from tests.runtime.machines import job_of
from tests.thresholds import Force


def leave_out_early(waiting: RowSorter) -> None:
    waiting.keep((waiting.keys(()).time > 10).nonzero()[0])


def times(tmp_path: Path, *batches: list[int], kept_bytes: int = 10**6) -> list[int]:
    """The times that leave if early rows are left out at the end."""
    plan = job_of([tmp_path, tmp_path]).plans[0]
    runs = BucketRuns(plan.patterns.columns, None, 1, kept_bytes)
    found = [run for batch in batches for run in runs.add(solutions(plan, batch))]
    runs.leave_out(leave_out_early)
    return [time for run in [*found, *runs.rest()] for time in run.rows.time.tolist()]


def test_rows_are_left_out_if_all_of_them_are_there(tmp_path: Path) -> None:
    assert times(tmp_path, [1, 12], [5, 20]) == [12, 20]
    assert times(tmp_path, [1, 2]) == []
    assert times(tmp_path) == []


@pytest.mark.parametrize("kept_bytes", [0, 1, 5000])
def test_no_row_is_left_out_if_some_have_left(
    tmp_path: Path, force: Force, kept_bytes: int
) -> None:
    force("memory_rows=1")
    batches = [1, 2], [5, 20]
    assert times(tmp_path, *batches, kept_bytes=kept_bytes) == [1, 2, 5, 20]


@pytest.fixture
def plan(tmp_path: Path) -> QueryPlan:
    return job_of([tmp_path, tmp_path]).plans[0]


def solutions(plan: QueryPlan, times: Sequence[int]) -> SolutionBatch:
    n, columns = len(times), plan.patterns.columns
    zeros = np.zeros(n, np.int32)
    keys = TermColumn.of([None if t == 3 else f"<http://m.example/m{t % 5}>" for t in times])
    return SolutionBatch(
        zeros,
        np.array(times, np.int64),
        zeros,
        zeros,
        EventNames.of([f"e{t}" for t in times]),
        dict.fromkeys(columns.variables, keys),
        dict.fromkeys(columns.numbers, NumberColumn(np.arange(n) / 2, np.zeros(n, np.int8))),
    )


def texts(rows: SolutionBatch) -> list[tuple[int, object, object]]:
    values = [rows.texts(variable) for variable in sorted(rows.values)]
    keys = zip(*values, strict=True)
    return list(zip(rows.time.tolist(), rows.event.texts(), keys, strict=True))


def stored(path: Path, plan: QueryPlan, batches: Sequence[Sequence[int]]) -> list[Pack]:
    runs, file = BucketRuns(plan.patterns.columns, plan.sequence.key.variables, 3), TaskFile(path)
    made = [run for times in batches for run in runs.add(solutions(plan, times))]
    groups = QueryGroups.of(QueryUnits.of([plan]))
    packs = [p for run in [*made, *runs.rest()] for p in packs_of(run, 0, groups, 1, 2, file)]
    file.close()
    return packs


def test_pieces_have_the_rows_of_their_buckets_in_order(tmp_path: Path, plan: QueryPlan) -> None:
    batches = [[5, 1, 2], [3, 9], [20, 21]]
    packs = stored(tmp_path / "runs", plan, batches)
    reader = PackReader({0: plan})
    found = [(pack, texts(reader.rows(pack))) for pack in sorted(packs)]
    assert all(pack.time == rows[0][0] and rows == sorted(rows) for pack, rows in found)
    assert {(p.query, p.unit, p.split) for p in packs} == {(0, 0, 2)}
    expected = [row for times in batches for row in texts(solutions(plan, times))]
    assert sorted(row for _, rows in found for row in rows) == sorted(expected)
    homes = {(pack.bucket, row[2]) for pack, rows in found for row in rows}
    assert len(homes) == len({key for _, key in homes}), "a key is in one bucket"


def test_a_directory_that_is_gone_is_an_error_that_names_it(
    tmp_path: Path, plan: QueryPlan
) -> None:
    gone = tmp_path / "gone"
    with pytest.raises(RunError, match=rf"cannot keep rows on disk in {gone}: No such file"):
        stored(gone / "runs", plan, [[1]])
    with pytest.raises(RunError, match=rf"cannot keep rows on disk in {gone}: No such file"):
        TaskFile(gone / "answers").payload(b"")
    lost = Stored(str(gone / "runs"), 0, 1)
    with pytest.raises(RunError, match=rf"cannot keep rows on disk in {gone}: No such file"):
        PackReader({0: plan}).rows(Pack(payload=StoredSolutions(lost, 0, 1)))
    with pytest.raises(RunError, match=rf"cannot keep rows on disk in {gone}: No such file"):
        lost.read()


def test_partial_matches_of_several_tasks_come_in_order() -> None:
    """Each task gives blocks of 500, which overlap with the blocks of others."""

    def partial(n: int) -> PartialAnswer:
        answer = Answer((0, 0), (n, 0), (), (("v", f'"{n}"'),))
        return PartialAnswer(answer, "A", ("B",), (n // 7, 0))

    every = [partial(n) for n in range(3 * 1001)]
    drawn = Random(1).sample(every, len(every))
    rows = [row for task in range(3) for row in partial_rows(4, drawn[task::3])]
    assert len(rows) == 3 * -(-1001 // thresholds.current.partial_rows)
    expected = sorted(every, key=PartialAnswer.order_key)
    assert [*items_of(sorted(rows))] == [(PARTIAL + 4, partial) for partial in expected]
