"""A bounded run in a session whose workers are on the driver's machine.

The rows between the stages, and the answers, are in files of the run's directory. Each stage is one
Spark job that returns only the positions of the rows: Spark neither shuffles nor sorts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from spaseq import thresholds
from spaseq.runtime.arrivals.input_splits import bounded_splits
from spaseq.runtime.spark.rows.run_files import part_of
from spaseq.runtime.spark.rows.stage_rows import OVERLAP, SIDE, OutputRow, Pack
from spaseq.runtime.spark.session.worker_python import (
    task_variables,
    worker_python,
    worker_variables,
)
from spaseq.runtime.spark.stages.file_tasks import FileTasks
from spaseq.runtime.spark.stages.pattern_stage import BoundedSolve

Given = TypeVar("Given")
T = TypeVar("T")

SHARE = 4
"""With many queries: maximum share of a query in the rows of a task."""


def is_one_machine(spark: Any) -> bool:
    """Whether the workers of a session can read the driver's files."""
    master: str = spark.sparkContext.master
    return master.startswith("local")


def found_in_files(
    spark: Any, solve: BoundedSolve, directory: Path, time_scan: bool, stack: ExitStack
) -> Iterator[tuple[int, str, bytes]] | None:
    """Run both stages, with files in `directory`; return the rows of `OUTPUT` in order.

    Args:
        spark: the session.
        solve: stage 1.
        directory: a directory that lasts until the rows are read.
        time_scan: whether streams that seem to be in order of time are scanned for times first.
        stack: ends when the rows have been read.

    Returns:
        (query, order, payload); None if splits overlap, so the job has no answers without a scan.
    """
    tasks = FileTasks(solve, str(directory))
    solved = _each(spark, tasks.solved, bounded_splits(solve.streams, time_scan=time_scan))
    packs = [pack for found, _ in solved for pack in found]
    rows = [OutputRow(p.query, p.order, p.payload) for p in packs if p.query == SIDE]
    if not any(failed for _, failed in solved):
        sequenced = _each(spark, tasks.sequenced, _parts(packs, solve.parts))
        rows += chain.from_iterable(sequenced)
    rows.sort()
    if rows and rows[0].query == OVERLAP:
        return None
    return ((query, order, stored.read()) for query, order, stored in rows)


def _parts(packs: Sequence[Pack], parts: int) -> list[list[Pack]]:
    """The packs of each task of stage 2: what numbers events, then by group, bucket and time."""
    numbering = [pack for pack in packs if pack.query < SIDE]
    by_part: dict[int, list[Pack]] = {}
    for pack in _undivided([pack for pack in packs if pack.query >= 0], parts):
        by_part.setdefault(pack.part, []).append(pack)
    return [
        sorted([*(pack for pack in numbering if pack.part == part), *by_part[part]])
        for part in sorted(by_part)
    ]


def _undivided(packs: Sequence[Pack], parts: int) -> Iterator[Pack]:
    """The packs, with one bucket for all rows of a small group; the tasks take turns."""
    of_group: dict[int, list[Pack]] = {}
    for pack in packs:
        of_group.setdefault(pack.query, []).append(pack)
    few = max(
        thresholds.current.task_rows,
        min(thresholds.current.divided_rows, _rows(packs) // (SHARE * parts)),
    )
    turn = 0
    for group, group_packs in of_group.items():
        if _rows(group_packs) <= few:
            turn += 1
            bucket = (turn - group) % parts  # which is one of the task `turn % parts`
            part = part_of(group, bucket, parts)
            group_packs = [p._replace(bucket=bucket, part=part) for p in group_packs]
        yield from group_packs


def _rows(packs: Iterable[Pack]) -> int:
    return sum(pack.payload.end - pack.payload.start for pack in packs)


def _each(spark: Any, task: Callable[[Given], T], items: Sequence[Given]) -> list[T]:
    """The results of a task for each item, in parallel."""
    if not items:
        return []
    context = spark.sparkContext
    with worker_python(spark), worker_variables(context, task_variables()):
        numbers = context.parallelize(range(len(items)), len(items))
        results = numbers.map(lambda number: task(items[number]))
        results.id()  # records the workers' Python and variables
    results_in_order: list[T] = results.collect()
    return results_in_order
