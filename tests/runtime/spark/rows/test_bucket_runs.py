"""Solutions leave in runs; only those that wait may be left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from spaseq.runtime.spark.rows.bucket_runs import BucketRuns
from spaseq.stages.sorting import RowSorter
from tests.runtime.machines import job_of
from tests.runtime.spark.rows.test_run_files import solutions
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
