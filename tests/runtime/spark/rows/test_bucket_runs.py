"""Solutions leave in runs; only those of the first run may be left out."""

from __future__ import annotations

from pathlib import Path

from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.runtime.spark.rows.bucket_runs import BucketRuns
from tests.runtime.machines import job_of
from tests.runtime.spark.rows.test_run_files import solutions
from tests.thresholds import Force


def late(rows: SolutionBatch) -> SolutionBatch:
    return rows.take((rows.time > 10).nonzero()[0])


def times(tmp_path: Path, *batches: list[int]) -> list[int]:
    """The times that leave if only late rows are kept at the end."""
    plan = job_of([tmp_path, tmp_path]).plans[0]
    runs = BucketRuns(plan.patterns.columns, None, 1)
    found = [run for batch in batches for run in runs.add(solutions(plan, batch))]
    runs.keep(late)
    return [time for run in [*found, *runs.rest()] for time in run.rows.time.tolist()]


def test_rows_are_left_out_if_all_of_them_are_there(tmp_path: Path) -> None:
    assert times(tmp_path, [1, 12], [5, 20]) == [12, 20]
    assert times(tmp_path, [1, 2]) == []
    assert times(tmp_path) == []


def test_no_row_is_left_out_after_a_run_has_ended(tmp_path: Path, force: Force) -> None:
    force("memory_rows=1")
    assert times(tmp_path, [1, 2], [5, 20]) == [1, 2, 5, 20]
