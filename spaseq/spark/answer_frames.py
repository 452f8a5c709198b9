"""The answers of queries as a DataFrame, batch or streaming."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, reduce
from os import PathLike, path
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import pyarrow as pa

from spaseq.api.prepare import load_knowledge, plan_queries, watch_knowledge
from spaseq.api.queries import QueryInput
from spaseq.api.streams import stream_options, stream_source
from spaseq.connectors import is_source
from spaseq.errors import InputError, SpaseqError, UsageError
from spaseq.lang.spelling import suggested
from spaseq.lift.lift_checks import compiled_lift
from spaseq.lift.lifted import Lifted, text_of
from spaseq.lift.parquet_scan import ParquetScan
from spaseq.options import AnswersKeywords, FileSourceSettings, KbInput, RunOptions
from spaseq.plan.predicates import stream_predicates
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.inputs.stream_options import BadInput, warn_once
from spaseq.records import record
from spaseq.runtime.job.binding import bind_streams, stream_names
from spaseq.runtime.job.job import Job, LateEvent
from spaseq.runtime.spark.bounded import (
    bounded_output,
    bounded_solve,
    file_solutions,
    in_one_task,
    whole_output,
)
from spaseq.runtime.spark.following.checkpoint import Checkpoint
from spaseq.runtime.spark.following.follow import check_topics, following_output, sequenced
from spaseq.runtime.spark.following.kb_refresh import Refresh
from spaseq.runtime.spark.frames import EventFrame, frame_packs, frame_solutions
from spaseq.runtime.spark.lifted_frames import FrameRows, LiftedFrame
from spaseq.runtime.spark.rows.answer_rows import (
    ANSWER_SCHEMA,
    PARTIAL_SCHEMA,
    SIDES_SCHEMA,
    answer_columns,
    partial_columns,
    side_row_of,
)
from spaseq.runtime.spark.rows.stage_rows import PARTIAL, SIDE, Item, items_in, struct_of
from spaseq.runtime.spark.scanned_frames import scan_of
from spaseq.runtime.spark.session.worker_python import worker_python
from spaseq.scratch import ScratchDirectory
from spaseq.sources.base import Source
from spaseq.sources.broker_stream import BrokerStream
from spaseq.spark.typed_variables import TypedVariables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_LOGGER = logging.getLogger("spaseq")

PathInput: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]]


def answers(
    spark: SparkSession,
    query: QueryInput | Sequence[QueryInput],
    streams: Mapping[str, PathInput | DataFrame] | DataFrame,
    kb: Mapping[str, KbInput] | None = None,
    **options: Unpack[AnswersKeywords],
) -> DataFrame:
    """The answers of one or several queries, as a DataFrame.

    Without `checkpoint` the streams are read to their ends when the DataFrame is evaluated. With
    one, it is a streaming DataFrame over files that keep arriving. The checkpoint belongs to the
    `checkpointLocation` of the query that is started from it: keep or remove both. The session's
    state store is set to RocksDB, with changelog checkpointing.

    A worker's failure is raised when the DataFrame is evaluated (see `spaseq.spark.errors`).

    Args:
        spark: the session.
        query: query text, or the `Path` of a query file; several in a list.
        streams: by the query's name for a stream, or its IRI: a path (file, directory, glob) that
            workers can open, or several; with a checkpoint also `kafka://host/topic`; or a
            DataFrame of rows, with a lift in `lifts`. Or a DataFrame of all streams' events.
        kb: by graph IRI: a path, an rdflib.Graph, or the URL of a SPARQL endpoint.
        options: any of `spaseq.options.AnswersKeywords`.

    Returns:
        A DataFrame with a row for each answer: `query` (name), `start` and `end` (timestamps),
        `bindings` (variable to N-Triples text) and `trace` (events). `event` (IRI) and `graph`
        (triples of N-Triples texts) hold what CONSTRUCT made and are null for SELECT. With `sides`
        there are also rows in which only `late` (`stream`, `event`, `time`, `late_ms`: the delay
        behind the watermark) or `bad` (`file`, `line`, `reason`, `text`) is not null. With
        `partial` there are also rows of partial matches; only in these `reached`, `waiting` and
        `closed` are not null (`closed` is, if the streams ended before n events). `foreachBatch`
        can write the rows of a batch to different places. `typed` adds a column for each variable
        (`spaseq.spark.typed_variables`).

    Raises:
        QueryError, InputError: as `spaseq.run`.
        UsageError: as `spaseq.run`; or the session is stopped, or its workers' Python is wrong.
    """
    chosen = RunOptions.of("answers", AnswersKeywords, options)
    plans = plan_queries(query, chosen.planning, changing=chosen.knowledge.kb_changes)
    call = _Call.of(spark, streams, chosen, options)
    call.check()
    typing = TypedVariables.of(plans, options.get("typed", False), call.checkpoint is not None)
    decode = _Decode.of(plans, chosen, options)
    with worker_python(spark):
        output = call.output(call.job(plans, kb or {}))
        with _without_traceback(spark):
            return typing.frame(output, decode.run, struct_of(decode.schema))


def _arrivals(options: AnswersKeywords) -> FileSourceSettings:
    return FileSourceSettings(
        delay_ms=options.get("watermark_ms", 0),
        idle_ms=options.get("idle_ms"),
        max_ahead_ms=options.get("max_ahead_ms", FileSourceSettings().max_ahead_ms),
    )


@contextmanager
def _without_traceback(spark: SparkSession) -> Iterator[None]:
    """Errors that leave this context have one line and no traceback.

    `_Decode` raises errors of other tasks, so its traceback would not help.
    """
    environment = spark.sparkContext.environment
    environment["SPARK_HIDE_TRACEBACK"] = "1"
    try:
        yield
    finally:
        del environment["SPARK_HIDE_TRACEBACK"]


@dataclass(frozen=True)
class _Call:
    """The arguments of one call of `answers`."""

    spark: Any
    streams: Any  # paths by stream, or a DataFrame of events
    options: RunOptions
    checkpoint: str | PathLike[str] | None
    arrivals: FileSourceSettings  # of files, if there is a checkpoint
    rows: LiftedInputs
    direct: bool  # tasks may read the files of DataFrames

    @classmethod
    def of(cls, spark: Any, streams: Any, chosen: RunOptions, options: AnswersKeywords) -> _Call:
        """The call with these keywords; `chosen` are the keywords of all runs."""
        rows = LiftedInputs(options.get("lifts", {}), options.get("order", {}))
        checkpoint, direct = options.get("checkpoint"), options.get("direct", True)
        return cls(spark, streams, chosen, checkpoint, _arrivals(options), rows, direct)

    @property
    def frame(self) -> Any:
        """The DataFrame of events; None if the streams are paths."""
        return None if isinstance(self.streams, Mapping) else self.streams

    def check(self) -> None:
        """Refuse options that do not go together.

        Raises:
            UsageError: some options exclude each other.
        """
        if self.options.knowledge.kb_refresh and self.checkpoint is None:
            raise UsageError("kb_refresh needs checkpoint: a bounded run reads one knowledge base")
        frames = self.frames()
        if self.options.knowledge.kb_refresh and frames:
            raise UsageError(
                "kb_refresh needs streams that are given as paths: the micro-batch of an event in "
                "a DataFrame is not known here"
            )
        if any(frame.isStreaming for frame in frames) and self.checkpoint is None:
            raise UsageError("a streaming DataFrame needs a checkpoint directory")
        if self.frame is not None and self.rows.lifts:
            raise UsageError("lifts are for streams that are given by name")
        if self.frame is not None or not frames or self.checkpoint is None:
            return
        if len(frames) < len(self.streams) or not all(frame.isStreaming for frame in frames):
            raise UsageError(
                "streaming DataFrames of rows stand beside no paths and bounded DataFrames"
            )

    def frames(self) -> list[Any]:
        """The DataFrames among the streams."""
        given = self.streams.values() if self.frame is None else [self.frame]
        return [*filter(is_frame, given)]

    def job(self, plans: tuple[QueryPlan, ...], kb: Mapping[str, KbInput]) -> Job:
        """The job to run; notes of a followed run go to the log."""
        options = self.options
        knowledge = load_knowledge(plans, kb, options.knowledge)
        job = Job(plans, self.sources(plans), knowledge, options.stages)
        if self.checkpoint is None:
            for stream in job.streams:
                if isinstance(stream, BrokerStream):
                    stream.check()  # the run has no end
        job.watch = watch_knowledge(kb, options.knowledge)
        if job.watch is not None:
            job.on_note = lambda text: _LOGGER.warning("%s", text)
            job.on_bad = lambda bad: _LOGGER.warning("%s", bad)
        return job

    def sources(self, plans: Sequence[QueryPlan]) -> tuple[Source, ...]:
        """The sources of streams that are paths; none for a DataFrame."""
        if self.frame is not None:
            return ()
        lifts = self.rows.by_iri(plans)
        paths = {
            iri: _paths(given)
            for iri, given in bind_streams(plans, self.streams).items()
            if not is_frame(given)
        }
        return tuple(
            stream_source(iri, Lifted(given, lifts[iri]) if iri in lifts else given, self.options)
            for iri, given in paths.items()
        )

    def output(self, job: Job) -> DataFrame:
        """The DataFrame of `OUTPUT` rows."""
        return self._bounded(job) if self.checkpoint is None else self._streaming(job)

    def _bounded(self, job: Job) -> DataFrame:
        found = [(frame, self._scan(frame)) for frame in self._frames(job)]
        scans = [scan for _, scan in found if scan is not None]
        frames = [frame for frame, scan in found if scan is None]
        paths, job = job.streams, replace(job, streams=(*job.streams, *scans))
        solve = bounded_solve(self.spark, job, _process_directory())
        rows = float("inf") if paths else sum(scan.rows for scan in scans)
        if scans and not frames and in_one_task(self.spark, rows):
            return whole_output(self.spark, solve)
        first = len(job.streams)
        inputs = [frame_solutions(frame, solve, n) for n, frame in enumerate(frames, first)]
        if job.streams or not inputs:
            inputs.append(file_solutions(self.spark, solve))
        return bounded_output(self.spark, solve, reduce(_both, inputs))

    def _scan(self, frame: EventFrame | LiftedFrame) -> ParquetScan | None:
        """The files of a DataFrame, if tasks may read them themselves."""
        return scan_of(frame) if self.direct and isinstance(frame, LiftedFrame) else None

    def _frames(self, job: Job) -> Sequence[EventFrame | LiftedFrame]:
        """The DataFrame of events, or the DataFrames of rows."""
        if self.frame is not None:
            return [EventFrame.of(self.frame, job.plans, self.options.reading.time_unit)]
        return self.rows.frames(job.plans, self.streams, self.options)

    def _streaming(self, job: Job) -> DataFrame:
        assert self.checkpoint is not None
        check_topics(job, self.arrivals)
        arrivals, delay_ms = self.arrivals, self.arrivals.delay_ms
        frames = self._frames(job)
        lifts = {f.rows.iri: f.identity() for f in frames if isinstance(f, LiftedFrame)}
        state = Checkpoint.open(Path(self.checkpoint).absolute(), job, delay_ms, lifts=lifts)
        if frames:
            packed = frame_packs(self.spark, frames, job, state, arrivals)
            return sequenced(self.spark, job, state, packed)
        output = following_output(self.spark, job, state, arrivals)
        if job.watch is not None:
            Refresh(self.spark, job, state).keep()
        return output


def _both(one: Any, other: Any) -> Any:
    return one.unionAll(other)


def _paths(given: PathInput) -> list[str]:
    """Absolute paths, which mean the same in every process; URLs stay."""
    paths = [given] if isinstance(given, str | PathLike) else given
    return [str(each) if is_source(str(each)) else path.abspath(each) for each in paths]


@cache
def _directory() -> ScratchDirectory:
    return ScratchDirectory("frames")


def _process_directory() -> Path:
    """A directory that lasts as long as the process, because DataFrames are evaluated later."""
    return Path(_directory().name)


@record
class _Decode:
    """Turns rows of `OUTPUT` into rows for the caller."""

    names: Sequence[str]  # names of the queries
    strict: bool
    sides: bool  # give late events and malformed input as rows
    partial: bool  # there are partial matches
    silent: frozenset[int]  # queries that maintain a graph

    @classmethod
    def of(
        cls, plans: Sequence[QueryPlan], chosen: RunOptions, options: AnswersKeywords
    ) -> _Decode:
        """The decoder of the rows of these queries and options."""
        names = tuple(plan.identity.name for plan in plans)
        strict, sides = options.get("strict", False), options.get("sides", False)
        silent = frozenset(n for n, plan in enumerate(plans) if plan.maintained is not None)
        return cls(names, strict, sides, chosen.planning.partial, silent)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        further = [PARTIAL_SCHEMA] * self.partial + [SIDES_SCHEMA] * self.sides
        return pa.schema([field for part in (ANSWER_SCHEMA, *further) for field in part])

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`."""
        schema = self.schema
        for batch in batches:
            queries, payloads = batch.column("query"), batch.column("payload")
            pairs = zip(queries.to_pylist(), payloads.to_pylist(), strict=True)
            for query, payload in pairs:
                if query in self.silent:
                    continue
                rows = self._columns(query, items_in(query, payload))
                if len(rows):
                    known = dict(zip(rows.schema.names, rows.columns, strict=True))
                    arrays = [known.get(f.name, pa.nulls(len(rows), f.type)) for f in schema]
                    yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _columns(self, query: int, items: Sequence[Any]) -> pa.RecordBatch:
        """The rows of a row of `OUTPUT`, without columns that have nulls only."""
        if query == SIDE:
            rows = [row for item in items for row in self._side(item)]
            return pa.RecordBatch.from_pylist(rows, SIDES_SCHEMA)
        if query >= PARTIAL:
            return partial_columns(self.names[query - PARTIAL], items)
        (answers,) = items
        return answer_columns(self.names[query], answers)

    def _side(self, message: Item) -> Iterator[dict[str, Any]]:
        match message:
            case SpaseqError() as error:
                raise error
            case BadInput(lost=(_, rows)) as lost if not (self.strict and rows):
                warn_once(lost)
            case BadInput() | LateEvent() as side if self.strict:
                raise InputError(str(side))
            case BadInput() | LateEvent() as side if self.sides:
                yield side_row_of(side)
            case BadInput() | LateEvent() as side:
                _LOGGER.warning("%s", side)


def is_frame(given: object) -> bool:
    """Whether the input of a stream is a DataFrame of Spark."""
    return hasattr(given, "mapInArrow")


@dataclass(frozen=True, slots=True)
class LiftedInputs:
    """The lifts of a call, and the columns that order rows of equal time, by stream."""

    lifts: Mapping[str, str | Path]
    order: Mapping[str, str]

    def by_iri(self, plans: Sequence[QueryPlan]) -> dict[str, str | Path]:
        """The lifts by IRI.

        Raises:
            UsageError: a name is no stream's.
        """
        return {_iri(plans, name, "lifts"): lift for name, lift in self.lifts.items()}

    def frames(
        self, plans: Sequence[QueryPlan], streams: Mapping[str, Any], options: RunOptions
    ) -> list[LiftedFrame]:
        """The DataFrames of rows among the streams.

        Raises:
            QueryError, InputError: a lift has errors, or cannot be read.
            UsageError: a DataFrame has no lift, or an order is for something else.
        """
        lifts = self.by_iri(plans)
        order = {_iri(plans, name, "order"): column for name, column in self.order.items()}
        lifted = []
        for iri, frame in bind_streams(plans, streams).items():
            if not is_frame(frame):
                if iri in order:
                    raise UsageError(f"order is for DataFrames, and <{iri}> is none")
                continue
            if iri not in lifts:
                raise UsageError(
                    f"stream <{iri}> is a DataFrame of rows and needs a lift in lifts=; "
                    "a DataFrame of events is given alone"
                )
            how = replace(stream_options(iri, options), predicates=stream_predicates(plans, iri))
            text, name = text_of(lifts[iri])
            plan = compiled_lift(text, name, how.time_predicate, how.time_unit)
            lifted.append(LiftedFrame(frame, FrameRows(how, plan, order.get(iri)), text))
        return lifted


def _iri(plans: Sequence[QueryPlan], name: str, what: str) -> str:
    names = stream_names(plans)
    if name not in names:
        near = suggested(name, names)
        hint = f"; did you mean {near}?" if near else ""
        raise UsageError(f"{what} names {name}, which is no stream of the query{hint}")
    return names[name]
