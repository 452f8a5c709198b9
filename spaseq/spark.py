"""SPAseq for Spark users: the answers of queries as a DataFrame, batch or streaming.

>>> from spaseq.spark import answers
>>> found = answers(spark, Path("congestion.rq"), {"S1": "s1.nq", "S2": "s2.nq"})  # doctest: +SKIP
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from os import PathLike, fspath, path
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from spaseq.algebra.answers import Answer
from spaseq.algebra.schema import Schema
from spaseq.api.push import check_limit
from spaseq.compile import compile_query
from spaseq.errors import InputError, SpaseqError, UsageError
from spaseq.kb.cache import KbCache, cache_at
from spaseq.kb.endpoint import ServiceOptions
from spaseq.kb.load import load_kb
from spaseq.kb.ontology import OntologyInput, entailing_schema
from spaseq.kb.refresh import KbWatch
from spaseq.kb.sources import KbInput
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.inputs.bad_input import BadInput
from spaseq.rdf.readers import StreamOptions
from spaseq.rdf.terms.vocabulary import GENERATED_AT_TIME
from spaseq.runtime.arrivals.file_source_log import FileSourceSettings
from spaseq.runtime.job.binding import bind_streams, check_kbs
from spaseq.runtime.job.chaining import reading_order
from spaseq.runtime.job.job import Job, LateEvent
from spaseq.runtime.spark.bounded import bounded_output, bounded_solve
from spaseq.runtime.spark.connectors.answer_sink import AnswerDataSink
from spaseq.runtime.spark.connectors.rdf_source import RdfDataSource
from spaseq.runtime.spark.following.checkpoint import Checkpoint
from spaseq.runtime.spark.following.follow import following_output, sequenced
from spaseq.runtime.spark.following.kb_refresh import Refresh
from spaseq.runtime.spark.frames import frame_packs, frame_solutions
from spaseq.runtime.spark.rows.answer_rows import (
    ANSWER_DDL,
    ANSWER_SCHEMA,
    SIDES_DDL,
    SIDES_SCHEMA,
    row_of,
    side_row_of,
)
from spaseq.runtime.spark.rows.stage_rows import payload_of

__all__ = ["AnswerDataSink", "RdfDataSource", "answers"]

_LOGGER = logging.getLogger("spaseq")

QueryInput: TypeAlias = str | Path
DataFrame: TypeAlias = Any


def answers(
    spark: Any,
    query: QueryInput | Sequence[QueryInput],
    streams: Mapping[str, str | PathLike[str] | Sequence[str | PathLike[str]]] | DataFrame,
    kb: Mapping[str, KbInput] | None = None,
    *,
    checkpoint: str | PathLike[str] | None = None,
    watermark_ms: int = 0,
    idle_ms: int | None = None,
    time_predicate: str = GENERATED_AT_TIME,
    triples_per_event: int | None = None,
    base: str | None = None,
    strict: bool = False,
    limit_per_event: int | None = None,
    services: ServiceOptions = ServiceOptions(),  # noqa: B008 - frozen
    ontology: OntologyInput | None = None,
    entailment: str | None = None,
    kb_cache: str | PathLike[str] | None = None,
    kb_refresh: bool = False,
    disable: Iterable[str] = (),
    sides: bool = False,
) -> Any:
    """The answers of one or several queries.

    Without `checkpoint` the streams are read to their ends when the DataFrame is evaluated. With
    one the DataFrame is a streaming one over files that keep arriving; `checkpoint` then holds what
    this package keeps (a path that every worker can write), beside the `checkpointLocation` of the
    query that is started from the DataFrame. Both belong together: keep or remove both. The
    session's state store is set to RocksDB, with changelog checkpointing.

    Args:
        query: query text, or the path of a query file; several in a list. A stream that one of
            them registers can be read by the others.
        streams: by the query's name for a stream, or its IRI: a path (file, directory, glob), or
            several. Workers open these paths themselves. Or any DataFrame of events, a row each,
            with columns `stream` (name or IRI; rows of other streams are passed over), `time`
            (timestamp, or integer milliseconds) and `graph` (N-Triples text); `event` (the graph's
            IRI) and `k` (the event's number among those of its stream and time) may be there. If
            not, events of equal time are numbered in the order of their texts. A streaming
            DataFrame needs `checkpoint`; its streams all have to go on, for time to pass.
        kb: by graph IRI: a path, an rdflib.Graph, or the URL of a SPARQL endpoint.
        watermark_ms: how late an event may be, if streaming.
        idle_ms: a stream without new events for so long (ms) no longer holds the others back. All
            streams of a DataFrame are then read by one task, and its query does not end by itself
            (`availableNow`), as Spark keeps an eye on the clock.
        strict: fail at malformed input and late events, which are otherwise left out with a warning
            in the worker's log (logger `spaseq`).
        limit_per_event: at most so many answers of one query that end at the same instant (and lie
            in the same partition); the others are left out.
        sides: give malformed input and late events as rows, too, instead of a warning.
        services: how SPARQL endpoints are asked.
        time_predicate, triples_per_event, base, ontology, entailment, disable: as `spaseq.run`.
        kb_cache: the directory in which compiled knowledge bases are kept for the next run; the
            user's cache if None, none if "none".
        kb_refresh: take up changes of the knowledge base's files between micro-batches, if
            streaming from paths. If they do not load, the last ones stay. Either is said by the
            driver's logger `spaseq`.

    Returns:
        A DataFrame with a row per answer: `query` (name), `start` and `end` (timestamps),
        `bindings` (variable to N-Triples text), `trace` (its events); of a CONSTRUCT query `event`
        (IRI) and `graph` (triples of N-Triples texts), which are null otherwise. With `sides` also
        rows in which only `late` (`stream`, `event`, `time`, `late_ms`: how far behind the
        watermark) or `bad` (`file`, `line`, `reason`, `text`) is not null; as the rows of a batch
        come together, `foreachBatch` can write them apart.

    Raises:
        QueryError, InputError, UsageError: as `spaseq.run`.
    """
    check_limit(limit_per_event)
    schema = entailing_schema(ontology, entailment)
    paths, frame = (streams, None) if isinstance(streams, Mapping) else (None, streams)
    queries = [query] if isinstance(query, str | Path) else list(query)
    plans = [_plan(q, i, len(queries), schema, disable) for i, q in enumerate(queries, 1)]
    if kb_refresh and checkpoint is None:
        raise UsageError("kb_refresh goes with checkpoint: a bounded run reads one knowledge base")
    if kb_refresh and frame is not None:
        raise UsageError(
            "kb_refresh needs streams that are given as paths: which micro-batch the events of a "
            "DataFrame belong to is not known here"
        )
    cache = cache_at(kb_cache)
    job = _job(plans, paths, kb, time_predicate, triples_per_event, base, services, cache)
    job = replace(job, limit_per_event=limit_per_event)
    if kb_refresh:
        job = replace(
            job,
            watch=KbWatch(list((kb or {}).items()), services, cache),
            on_note=lambda text: _LOGGER.warning("%s", text),
            on_bad=lambda bad: _LOGGER.warning("%s", bad),
        )
    if frame is not None and frame.isStreaming and checkpoint is None:
        raise UsageError("a streaming DataFrame of events needs a checkpoint directory")
    if checkpoint is None:
        solve = bounded_solve(spark, job, _process_directory())
        given = None if frame is None else frame_solutions(frame, solve)
        output = bounded_output(spark, solve, solutions=given)
    else:
        state = Checkpoint.open(Path(checkpoint).absolute(), job, watermark_ms)
        if frame is not None:
            packed = frame_packs(spark, frame, job, state, watermark_ms, idle_ms)
            output = sequenced(spark, job, state, packed)
        else:
            settings = FileSourceSettings(delay_ms=watermark_ms, idle_ms=idle_ms)
            output = following_output(spark, job, state, settings)
            if kb_refresh:
                Refresh(spark, job, state).keep()
    names = tuple(plan.name for plan in job.plans)
    decode = _Decode(names, strict, sides)
    ddl = f"{ANSWER_DDL}, {SIDES_DDL}" if sides else ANSWER_DDL
    return output.mapInArrow(lambda batches: decode.run(batches), ddl)


def _job(
    plans: Sequence[QueryPlan],
    streams: Mapping[str, Any] | None,
    kb: Mapping[str, KbInput] | None,
    time_predicate: str,
    triples_per_event: int | None,
    base: str | None,
    services: ServiceOptions,
    cache: KbCache,
) -> Job:
    plans = reading_order(plans)
    knowledge = load_kb(list((kb or {}).items()), services, cache)
    check_kbs(plans, knowledge)
    if streams is None:
        return Job(plans, (), knowledge)  # they come in a DataFrame
    options = [
        StreamOptions(
            iri,
            tuple(path.abspath(p) for p in _paths(given)),
            time_predicate=time_predicate,
            triples_per_event=triples_per_event,
            base=base,
        )
        for iri, given in bind_streams(plans, streams).items()
    ]
    return Job(plans, tuple(options), knowledge)


def _plan(
    query: QueryInput, number: int, count: int, schema: Schema | None, disable: Iterable[str]
) -> QueryPlan:
    if isinstance(query, Path):
        try:
            text = query.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read the query {query}: {error}") from None
        return compile_query(text, query.stem, str(query), schema=schema, disable=disable)
    name = "query" if count == 1 else f"query{number}"
    return compile_query(query, name, schema=schema, disable=disable)


def _paths(given: str | PathLike[str] | Sequence[str | PathLike[str]]) -> list[str]:
    return [fspath(given)] if isinstance(given, str | PathLike) else [fspath(p) for p in given]


@cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="spaseq-")


def _process_directory() -> Path:
    """A directory that lasts as long as the process, because DataFrames are evaluated later."""
    return Path(_directory().name)


@dataclass(frozen=True, slots=True)
class _Decode:
    """Rows of `OUTPUT` to rows for the caller; `names` are the queries'."""

    names: Sequence[str]
    strict: bool
    sides: bool  # late events and malformed input as rows

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`."""
        schema = SIDES_SCHEMA if self.sides else ANSWER_SCHEMA
        for batch in batches:
            queries, payloads = batch.column("query"), batch.column("payload")
            pairs = zip(queries.to_pylist(), payloads.to_pylist(), strict=True)
            rows = [row for pair in pairs if (row := self._row(*pair)) is not None]
            if rows:
                yield pa.RecordBatch.from_pylist(rows, schema)

    def _row(self, query: int, payload: bytes) -> dict[str, Any] | None:
        match payload_of(query, payload):
            case Answer() as answer:
                return row_of(self.names[query], answer)
            case SpaseqError() as error:
                raise error
            case BadInput() | LateEvent() as side if self.strict:
                raise InputError(str(side))
            case BadInput() | LateEvent() as side if self.sides:
                return side_row_of(side)
            case BadInput() | LateEvent() as side:
                _LOGGER.warning("%s", side)
        return None
