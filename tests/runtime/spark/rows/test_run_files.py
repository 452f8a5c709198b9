"""Solutions leave in runs; only those that wait may be left out. Runs of solutions and blocks of
answers come back from files as they were written.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from spaseq.errors import RunError
from spaseq.plan.families import QueryUnits
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventNames
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import NumberColumn, TermColumn
from spaseq.runtime.job.unit_graph import QueryGroups
from spaseq.runtime.spark.rows.run_files import (
    BlockFile,
    BucketRuns,
    RowFile,
    RowRun,
    RunFile,
    RunReader,
    StoredPiece,
)
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


def stored(path: Path, plan: QueryPlan, batches: Sequence[Sequence[int]]) -> list[StoredPiece]:
    runs, file = BucketRuns(plan.patterns.columns, plan.sequence.key.variables, 3), RunFile(path)
    made = [run for times in batches for run in runs.add(solutions(plan, times))]
    groups = QueryGroups.of(QueryUnits.of([plan]))
    pieces = [p for run in [*made, *runs.rest()] for p in file.write(groups, 0, 2, run)]
    file.close()
    return pieces


def test_pieces_have_the_rows_of_their_buckets_in_order(tmp_path: Path, plan: QueryPlan) -> None:
    batches = [[5, 1, 2], [3, 9], [20, 21]]
    pieces = stored(tmp_path / "runs", plan, batches)
    reader = RunReader(plan)
    found = [(piece, texts(reader.rows(piece))) for piece in sorted(pieces)]
    assert all(piece.time == rows[0][0] and rows == sorted(rows) for piece, rows in found)
    assert {(p.group, p.unit, p.split) for p in pieces} == {(0, 0, 2)}
    expected = [row for times in batches for row in texts(solutions(plan, times))]
    assert sorted(row for _, rows in found for row in rows) == sorted(expected)
    homes = {(piece.bucket, row[2]) for piece, rows in found for row in rows}
    assert len(homes) == len({key for _, key in homes}), "a key is in one bucket"


def test_a_directory_that_is_gone_is_an_error_that_names_it(
    tmp_path: Path, plan: QueryPlan
) -> None:
    gone = tmp_path / "gone"
    with pytest.raises(RunError, match=rf"cannot keep rows on disk in {gone}: No such file"):
        stored(gone / "runs", plan, [[1]])
    with pytest.raises(RunError, match=rf"cannot keep rows on disk in {gone}: No such file"):
        BlockFile(gone / "answers").append(1)
    piece = StoredPiece(0, 0, 0, 0, 0, str(gone / "runs"), 0, 1, 0, 1)
    with pytest.raises(RunError, match=rf"cannot keep rows on disk in {gone}: No such file"):
        RunReader(plan).rows(piece)


def test_rows_are_in_runs_as_long_as_they_are_in_order(tmp_path: Path) -> None:
    file = RowFile(BlockFile(tmp_path / "answers"))
    many = [f"{n:06}" for n in range(2 * 500 + 1)]
    file.append(0, many, [order.encode() for order in many])
    file.append(0, ["2"], [b"x"])
    file.append(0, ["1"], [b"y"])
    file.append(1, ["3"], [b"z"])
    file.close()

    def read(run: RowRun) -> tuple[int, list[str]]:
        return run.query, [order for order, _ in run.read()]

    assert [*map(read, file.runs)] == [(0, [*many, "2"]), (0, ["1"]), (1, ["3"])]
