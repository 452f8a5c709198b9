"""A bounded run in a session whose workers are on the driver's machine.

The rows between the stages, and the answers, are in files of the run's directory. Each stage is one
Spark job that returns only the positions of the rows: Spark neither shuffles nor sorts.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from spaseq import thresholds
from spaseq.runtime.arrivals.input_splits import InputSplit, bounded_splits
from spaseq.runtime.arrivals.tie_numbering import TimeExtent, earlier
from spaseq.runtime.spark.rows.run_files import Blocks, RowRun, StoredPiece, StoredRow, part_of
from spaseq.runtime.spark.rows.stage_rows import SIDE, Item, items_of
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


class FoundRows(NamedTuple):
    """Answers, partial matches and messages of a run, in files."""

    messages: list[Blocks]
    answers: list[StoredRow]
    partials: list[RowRun]

    def items(self) -> Iterator[tuple[int, Item]]:
        """All messages; then (query, item) of all answers and partial matches in order."""
        for blocks in self.messages:
            for message in chain.from_iterable(blocks.read()):
                yield SIDE, message
        yield from items_of(row.read() for row in sorted(self.answers))
        yield from items_of(self._partials())

    def _partials(self) -> Iterator[tuple[int, str, bytes]]:
        of_query: dict[int, list[RowRun]] = {}
        for run in self.partials:
            of_query.setdefault(run.query, []).append(run)
        for query in sorted(of_query):
            rows = heapq.merge(*(run.read() for run in of_query[query]))
            yield from ((query, *row) for row in rows)


def is_one_machine(spark: Any) -> bool:
    """Whether the workers of a session can read the driver's files."""
    master: str = spark.sparkContext.master
    return master.startswith("local")


def found_in_files(spark: Any, solve: BoundedSolve, directory: Path, time_scan: bool) -> FoundRows:
    """Run both stages; the files are in `directory`.

    Args:
        spark: the session.
        solve: stage 1.
        directory: a directory that lasts until the answers are read.
        time_scan: whether streams that seem to be in order of time are scanned for times first.

    Raises:
        Overlap: splits overlap, so the job has no answers without a scan.
    """
    splits = bounded_splits(solve.streams, time_scan=time_scan)
    tasks = FileTasks(solve, str(directory), _ends(splits))
    solved = _each(spark, tasks.solved, splits)
    ties = earlier(s.extent for s in solved if s.numbers)
    messages = [block for s in solved for block in s.messages]
    if any(s.failed for s in solved):
        return FoundRows(messages, [], [])
    parts = _parts(chain.from_iterable(s.pieces for s in solved), solve.parts)
    sequenced = _each(spark, _with_ties(tasks, ties, [s.extent for s in solved]), parts)
    messages += [block for s in sequenced for block in s.messages]
    return FoundRows(
        messages,
        [row for s in sequenced for row in s.answers],
        [run for s in sequenced for run in s.partials],
    )


def _ends(splits: Iterable[InputSplit]) -> dict[int, tuple[int, int]]:
    """The first and the last split of each stream."""
    by_stream: dict[int, tuple[int, int]] = {}
    for split in splits:
        first, _ = by_stream.get(split.stream, (split.number, split.number))
        by_stream[split.stream] = first, split.number
    return by_stream


def _with_ties(
    tasks: FileTasks, ties: Mapping[int, Any], extents: Sequence[TimeExtent]
) -> Callable[[list[StoredPiece]], Any]:
    return lambda pieces: tasks.sequenced(pieces, ties, extents)


def _parts(pieces: Iterable[StoredPiece], parts: int) -> list[list[StoredPiece]]:
    """The pieces of each task of stage 2, by group and bucket, then by time."""
    by_part = [list[StoredPiece]() for _ in range(parts)]
    for piece in _undivided([*pieces], parts):
        by_part[part_of(piece.group, piece.bucket, parts)].append(piece)
    return [sorted(each) for each in by_part if each]


def _undivided(pieces: Sequence[StoredPiece], parts: int) -> Iterator[StoredPiece]:
    """The pieces, with one bucket for all rows of a small group; the tasks take turns."""
    of_group: dict[int, list[StoredPiece]] = {}
    for piece in pieces:
        of_group.setdefault(piece.group, []).append(piece)
    few = max(
        thresholds.current.task_rows,
        min(thresholds.current.divided_rows, _rows(pieces) // (SHARE * parts)),
    )
    turn = 0
    for group, group_pieces in of_group.items():
        if _rows(group_pieces) <= few:
            turn += 1
            bucket = (turn - group) % parts  # which is one of the task `turn % parts`
            group_pieces = [piece._replace(bucket=bucket) for piece in group_pieces]
        yield from group_pieces


def _rows(pieces: Iterable[StoredPiece]) -> int:
    return sum(piece.end - piece.start for piece in pieces)


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
