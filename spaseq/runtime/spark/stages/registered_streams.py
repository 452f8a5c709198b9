"""Queries that read each other's streams, on Spark: stage 2 of one feeds stage 1 of the next.

The queries run level by level (see `chaining.levels`). Every stream is read once, for all queries.
One task makes all events of a registered stream, because the order of all answers numbers them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import pyarrow as pa

from spaseq.errors import SpaseqError
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.records import record
from spaseq.runtime.job.chaining import RegisteredStream, levels, queries_read
from spaseq.runtime.job.job import ProcessCounts, Stats
from spaseq.runtime.spark.rows.stage_rows import (
    END,
    EXTENT,
    OUTPUT,
    PACKS,
    PACKS_DDL,
    SIDE,
    TIES,
    SideRows,
    ordered_answers,
)
from spaseq.runtime.spark.stages.pattern_stage import BoundedSolve

SOURCE = 2**30
"""The order of side rows: registered streams come after all other streams."""


@record
class RegisteredSolve:
    """Stage 1 over the stream that a query registers: its answers in, rows of solutions out."""

    solve: BoundedSolve
    query: int

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`: all answers of the query, in order, to rows of `PACKS`."""
        iri = self.solve.units.queries[self.query].identity.register
        assert iri is not None
        side, stats = SideRows(PACKS, SOURCE + self.query), Stats()
        bad, process = list[BadInput](), ProcessCounts()
        try:
            events = _events(iri, batches)
            yield from self.solve.solved(iri, events, stats, bad.append)
        except SpaseqError as error:
            yield side.batch([error])
            for _ in batches:  # read to the end, as Spark expects
                pass
        # These events are not input of the run, so they are not counted.
        counts = Stats(bad=len(bad), stages=stats.stages)
        process.add_to(counts)
        counts.solutions = stats.solutions
        yield side.batch([*bad, counts])


def _events(iri: str, batches: Iterator[pa.RecordBatch]) -> Iterator[EventBatch]:
    stream = RegisteredStream(iri)
    columns = (
        (batch.column(name).to_pylist() for name in ("order", "payload")) for batch in batches
    )
    rows = (row for order, payload in columns for row in zip(order, payload, strict=True))
    for answers in ordered_answers(rows):
        if answers:
            yield stream.events(answers)


def chained_output(
    solve: BoundedSolve,
    solutions: Any,
    sequence: Callable[[Any], Any],
    keep: Callable[[Any], Any],
) -> Any:
    """The DataFrame of `OUTPUT` rows of queries that read each other's streams.

    Args:
        solve: stage 1; its queries are in reading order.
        solutions: its DataFrame, over the streams that are given.
        sequence: stage 2, from such a DataFrame to one of `OUTPUT` rows.
        keep: called for each DataFrame that is used more than once; may persist it.
    """
    plans = solve.units.queries
    reads = queries_read(plans)
    inputs, outputs = [keep(solutions)], []
    for level in levels(plans):
        fed = _union(
            [frame.where(frame["query"].isin([END, TIES, EXTENT, *level])) for frame in inputs]
        )
        output = keep(sequence(fed))
        outputs.append(output)
        read = [number for number in level if any(number in others for others in reads)]
        inputs += [keep(_registered(solve, output, number)) for number in read]
    sides = [frame.where(frame["query"] == SIDE).select(*OUTPUT.names) for frame in inputs]
    return _union([*outputs, *sides])


def _registered(solve: BoundedSolve, output: Any, query: int) -> Any:
    """Stage 1 over the stream that a query registers."""
    answers = output.where(output["query"] == query).repartition(1)
    task = RegisteredSolve(solve, query)
    return (
        answers.sortWithinPartitions("order")
        .select("order", "payload")
        .mapInArrow(lambda batches: task.run(batches), PACKS_DDL)
    )


def _union(frames: list[Any]) -> Any:
    return reduce(lambda one, other: one.unionAll(other), frames)
