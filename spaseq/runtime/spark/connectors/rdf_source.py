"""The Spark data source `rdf`: RDF files as rows, one per event, bounded or as they arrive.

Its partitions are splits of files, which any worker can open. A followed run of this package reads
the same partitions, but gets each split as one unread row: the task that matches its events parses
them.

Spark gets the schema and the readers from separate processes, one after the other. So this module
imports readers and planners only where it uses them.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)

from spaseq.compiled.arrays import Int64s
from spaseq.errors import InputError, UsageError
from spaseq.limits import Limits
from spaseq.options import FileSourceSettings
from spaseq.rdf.inputs.contexts import JsonLdContexts
from spaseq.rdf.inputs.csv_dialect import CsvDialect
from spaseq.rdf.inputs.stream_options import BadInput, MessageOptions, StreamOptions
from spaseq.rdf.terms.term import GENERATED_AT_TIME
from spaseq.rdf.terms.times import milliseconds
from spaseq.records import record
from spaseq.runtime.arrivals.input_splits import BatchSizer, Repetition

if TYPE_CHECKING:
    from spaseq.rdf.columns.event_batch import EventBatch
    from spaseq.runtime.arrivals.arrived_batch import ArrivedSplit, StreamProgress
    from spaseq.runtime.arrivals.file_source_log import FileSourceLog, Sizes
    from spaseq.runtime.arrivals.input_splits import InputSplit
    from spaseq.runtime.arrivals.log_depth import Depth
    from spaseq.sources.files import GrowingFiles

EVENT_DDL = "stream string, time timestamp, k int, event string, graph string, late_ms bigint"
SPLIT_DDL = "stream int, split binary"

SMALL_BATCH_BYTES = 2**20
"""Maximum input of a batch that is one task."""

_EVENTS = pa.schema(
    [
        ("stream", pa.string()),
        ("time", pa.timestamp("us", "UTC")),
        ("k", pa.int32()),
        ("event", pa.string()),
        ("graph", pa.string()),
        ("late_ms", pa.int64()),
    ]
)
_EVENTS_PER_ROW_BATCH = 4096

AnySplit: TypeAlias = "InputSplit | ArrivedSplit | StreamProgress"


def source_options(
    streams: Sequence[GrowingFiles],
    directory: str,
    log: Path | None = None,
    settings: FileSourceSettings | None = None,
    depths: Sequence[Depth] = (),
    repetition: Repetition | None = None,
) -> dict[str, str]:
    """The source's options for a followed run: rows are splits of several streams, unread.

    Args:
        streams: the followed streams.
        directory: relative paths start from here.
        log: the directory of the file source log; None for bounded streams.
        settings: the settings of the log.
        depths: how far back the state of the queries depends on events.
        repetition: the batches that rebuild the state of an earlier run.
    """
    given = {"streams": json.dumps([asdict(s.options) for s in streams]), "directory": directory}
    if log is not None:
        given |= {"log": str(log), "settings": json.dumps(asdict(settings or FileSourceSettings()))}
        given["depths"] = json.dumps([depth.as_json() for depth in depths])
        given["repetition"] = json.dumps(repetition or Repetition())
    return given


class RdfDataSource(DataSource):  # type: ignore[misc]
    """`spark.read.format("rdf")` and `spark.readStream.format("rdf")`.

    A row is an event: `stream` (IRI), `time`, `k` (the number of earlier events of the stream with
    this time), `event` (the graph's IRI, or null), `graph` (N-Triples text), and `late_ms` (its
    delay behind the stream's watermark; null if it is not late, and in a bounded read).

    Options (case-insensitive): `path` (file, directory or glob; required), `stream` (its IRI),
    `timePredicate` (IRI), `format` (if file names do not tell it), `base` (IRI, for relative ones),
    `triplesPerEvent` (of N-Triples and Turtle), `maxPartitionBytes`, `mode` (PERMISSIVE: malformed
    input is logged and left out; FAILFAST: it is an error). For `readStream` also: `log` (the
    directory of the file source log; required; belongs to the checkpoint), `watermark` (a
    duration), `maxBytesPerBatch`, `growing` (files may be appended to), `settle` (a duration: a
    growing file without a change for this long ends with a whole event).

    >>> spark.dataSource.register(RdfDataSource)  # doctest: +SKIP
    >>> spark.read.format("rdf").load("events.nq").show()  # doctest: +SKIP
    """

    @classmethod
    def name(cls) -> str:
        return "rdf"

    def schema(self) -> str:
        return SPLIT_DDL if "streams" in self.options else EVENT_DDL

    def reader(self, schema: Any) -> DataSourceReader:
        return RdfReader(_Options.of(self.options))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return RdfStreamReader(_Options.of(self.options))


@record
class _Options:
    """The options of the data source, parsed."""

    streams: tuple[StreamOptions, ...]
    has_events: bool  # rows are events; if not, splits
    log: Path | None
    settings: FileSourceSettings
    strict: bool = False
    directory: str | None = None  # directory of relative paths
    range_bytes: int | None = None  # of a bounded read, if given
    depths: tuple[Any, ...] = ()  # as JSON values
    repetition: Repetition = Repetition()

    @classmethod
    def of(cls, options: Any) -> _Options:
        given = {name.lower(): str(value) for name, value in dict(options).items()}
        log = Path(given["log"]) if "log" in given else None
        if "streams" in given:
            streams = tuple(_stream(s) for s in json.loads(given["streams"]))
            settings = FileSourceSettings(**json.loads(given.get("settings", "{}")))
            return cls(
                streams,
                False,
                log,
                settings,
                directory=given.get("directory"),
                depths=tuple(json.loads(given.get("depths", "[]"))),
                repetition=Repetition(*json.loads(given.get("repetition", "[]"))),
            )
        settings = _public_settings(given)
        said = settings.range_bytes if "maxpartitionbytes" in given else None
        stream = _public_stream(given)
        return cls((stream,), True, log, settings, _is_strict(given), range_bytes=said)


def _stream(given: dict[str, Any]) -> StreamOptions:
    """The inverse of `asdict`, through JSON."""
    parts = {
        "limits": Limits,
        "contexts": JsonLdContexts,
        "messages": MessageOptions,
        "csv": CsvDialect,
    }
    known = _as_tuples(given)
    return StreamOptions(**known | {name: kind(**known[name]) for name, kind in parts.items()})


def _as_tuples(value: Any) -> Any:
    """A JSON value with tuples instead of lists."""
    if isinstance(value, list):
        return tuple(_as_tuples(item) for item in value)
    if isinstance(value, dict):
        return {name: _as_tuples(item) for name, item in value.items()}
    return value


_KNOWN = [
    "path",
    "stream",
    "timepredicate",
    "timeunit",
    "format",
    "base",
    "triplesperevent",
    "maxpartitionbytes",
    "mode",
    "log",
    "watermark",
    "maxbytesperbatch",
    "growing",
    "settle",
    "maxahead",
]


def _public_stream(given: Mapping[str, str]) -> StreamOptions:
    unknown = sorted(set(given) - set(_KNOWN))
    if unknown:
        raise UsageError(f"the data source rdf has no option {unknown[0]}: {', '.join(_KNOWN)}")
    if "path" not in given:
        raise UsageError("the data source rdf needs a path")
    path = os.path.abspath(given["path"].removeprefix("file:"))
    per_event = given.get("triplesperevent")
    return StreamOptions(
        given.get("stream", f"file:{path}"),
        (path,),
        time_predicate=given.get("timepredicate", GENERATED_AT_TIME),
        time_unit=given.get("timeunit", "ms"),
        triples_per_event=None if per_event is None else _integer("triplesPerEvent", per_event),
        format=given.get("format"),
        base=given.get("base"),
    )


def _public_settings(given: Mapping[str, str]) -> FileSourceSettings:
    default = FileSourceSettings()
    return FileSourceSettings(
        max_bytes=_integer("maxBytesPerBatch", given.get("maxbytesperbatch", default.max_bytes)),
        range_bytes=_integer(
            "maxPartitionBytes", given.get("maxpartitionbytes", default.range_bytes)
        ),
        delay_ms=milliseconds(given.get("watermark", "0 SECONDS")),
        growing=given.get("growing", "false").lower() == "true",
        settle_ms=milliseconds(given.get("settle", "10 SECONDS")),
        max_ahead_ms=milliseconds(given.get("maxahead", "1 DAYS")),
    )


def _is_strict(given: Mapping[str, str]) -> bool:
    mode = given.get("mode", "PERMISSIVE").upper()
    if mode not in ("PERMISSIVE", "FAILFAST"):
        raise UsageError(f"mode {mode}: expected PERMISSIVE or FAILFAST")
    return mode == "FAILFAST"


def _integer(name: str, text: object) -> int:
    try:
        number = int(str(text))
    except ValueError:
        number = 0
    if number < 1:
        raise UsageError(f"{name} {text}: expected a number from 1 on")
    return number


@dataclass(frozen=True)
class _SplitPartition(InputPartition):  # type: ignore[misc]
    splits: tuple[AnySplit, ...]


def split_row(split: Any) -> pa.RecordBatch:
    """A split as a row of `SPLIT_DDL`."""
    data = pickle.dumps(split, pickle.HIGHEST_PROTOCOL)
    columns = [pa.array([split.stream], pa.int32()), pa.array([data], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, ["stream", "split"])


class _Reading:
    """The task side of both readers: reads a partition."""

    def __init__(self, options: _Options) -> None:
        self._options = options

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _SplitPartition)
        for split in partition.splits:
            if self._options.has_events:
                yield from self._events(split)
            else:
                yield split_row(split)

    def _events(self, split: AnySplit) -> Iterator[pa.RecordBatch]:
        from spaseq.runtime.arrivals.arrived_batch import ArrivedSplit, read_slice
        from spaseq.runtime.arrivals.input_splits import InputSplit
        from spaseq.sources.files import FileSource

        options = self._options.streams[split.stream]
        match split:
            case InputSplit():
                for batch in FileSource(options).open(self._on_bad, split.split):
                    yield from _event_rows(batch, None)
            case ArrivedSplit():
                for piece in split.slices:
                    for batch, lateness in read_slice(piece, options, split.at, self._on_bad):
                        yield from _event_rows(batch, lateness)

    def _on_bad(self, bad: BadInput) -> None:
        where = bad.file if bad.line is None else f"{bad.file}:{bad.line}"
        if self._options.strict:
            raise InputError(f"{where}: {bad.reason}")
        logging.getLogger("spaseq").warning("%s: %s", where, bad.reason)


class RdfReader(_Reading, DataSourceReader):  # type: ignore[misc]
    """Reads all present files."""

    def partitions(self) -> Sequence[InputPartition]:
        from spaseq.runtime.arrivals.input_splits import bounded_splits, paths_from
        from spaseq.sources.files import FileSource

        options = self._options
        with paths_from(options.directory):
            sources = [FileSource(stream) for stream in options.streams]
            splits = bounded_splits(sources, options.range_bytes)
        return [_SplitPartition((split,)) for split in splits]


class RdfStreamReader(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Plans batches with a `FileSourceLog`; an offset is the number of the last batch.

    During a backlog, a batch is planned while Spark processes the one before.
    """

    def __init__(self, options: _Options) -> None:
        super().__init__(options)
        if options.log is None:
            raise UsageError("readStream of rdf needs the option log, a directory to keep state in")
        self._upto: Sizes | None = None  # how far files may be read, if that is fixed
        self._sizer = BatchSizer(options.settings.max_bytes)
        self._thread = ThreadPoolExecutor(1)
        self._ahead: tuple[Future[int], float] | None = None  # a batch being planned, and its limit

    def __reduce__(self) -> tuple[Any, ...]:
        """The copy for a task, which plans nothing."""
        return RdfStreamReader, (self._options,)

    @cached_property
    def _log(self) -> FileSourceLog:
        from spaseq.runtime.arrivals.file_source_log import FileSourceLog
        from spaseq.runtime.arrivals.log_depth import Depth
        from spaseq.sources.files import GrowingFiles

        options = self._options
        assert options.log is not None
        streams = [GrowingFiles.at(stream) for stream in options.streams]
        depths = [Depth.of_json(each) for each in options.depths]
        return FileSourceLog(options.log, streams, options.settings, depths=depths)

    def initialOffset(self) -> dict[str, int]:
        return {"batch": self._options.repetition.begin}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxBytes(self._options.settings.max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:
        self._upto = self._log.sizes()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        most, last = self._most(limit), self._options.repetition.end
        if start["batch"] < last:
            self._sizer.begin(most)
            return {"batch": self._log.repeated(start["batch"], last, most)}
        if self._ahead is not None:
            planning, most = self._ahead
            planning.exception()  # waits; an error comes again below
        number = self._log.plan_batch(start["batch"], self._upto, most)
        if number > start["batch"] and self._log.has_backlog:
            self._sizer.begin(most)
            following = self._most(limit)
            planning = self._thread.submit(self._log.plan_batch, number, self._upto, following)
            self._ahead = planning, following
        else:
            self._sizer.begin(None)
            self._ahead = None
        return {"batch": number}

    def _most(self, limit: ReadLimit) -> float:
        """Maximum bytes of each stream in a batch."""
        if isinstance(limit, ReadAllAvailable):
            return float("inf")
        most = self._sizer.bytes
        return min(most, limit.max_bytes) if isinstance(limit, ReadMaxBytes) else most

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """A task per split, or one task if there is little to read."""
        from spaseq.runtime.arrivals.arrived_batch import StreamProgress, arrived_splits, bytes_of

        batches = [self._log.batch(n) for n in range(start["batch"] + 1, end["batch"] + 1)]
        splits = arrived_splits(batches)
        parts: list[tuple[AnySplit, ...]]
        if bytes_of(splits) <= SMALL_BATCH_BYTES:
            parts = [tuple(splits)] if splits else []
        else:
            parts = [(split,) for split in splits]
        if self._options.has_events or not batches:
            return [_SplitPartition(p) for p in parts]
        last = batches[-1]
        marks = tuple(
            StreamProgress(i, s.clock.watermark, last.knowledge) for i, s in enumerate(last.streams)
        )
        if len(parts) == 1:
            return [_SplitPartition((*parts[0], *marks))]
        return [*(_SplitPartition(p) for p in parts), _SplitPartition(marks)]

    def commit(self, end: dict[str, int]) -> None:
        self._log.forget(end["batch"] - 1)

    def stop(self) -> None:
        self._thread.shutdown()


def _event_rows(batch: EventBatch, lateness: Int64s | None) -> Iterator[pa.RecordBatch]:
    """Rows of `EVENT_DDL`."""
    for first in range(0, len(batch), _EVENTS_PER_ROW_BATCH):
        end = min(first + _EVENTS_PER_ROW_BATCH, len(batch))
        part = batch.part(first, end)
        late = np.zeros(end - first, np.int64) if lateness is None else lateness[first:end]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([batch.stream] * len(part), pa.string()),
                pa.array(part.time * 1000, pa.int64()).cast(_EVENTS.field("time").type),
                pa.array(part.k, pa.int32(), mask=late > 0),
                pa.array(part.names(np.arange(len(part))).texts(), pa.string()),
                pa.array(_graph_texts(part), pa.string()),
                pa.array(late, pa.int64(), mask=late == 0),
            ],
            schema=_EVENTS,
        )


def _graph_texts(batch: EventBatch) -> list[str]:
    """Each event's triples as N-Triples, a line each."""
    columns = ([batch.terms[c] for c in column.tolist()] for column in (batch.s, batch.p, batch.o))
    lines = [f"{s} {p} {o} .\n" for s, p, o in zip(*columns, strict=True)]
    edges = (batch.start - batch.start[0]).tolist()
    return ["".join(lines[a:b]) for a, b in pairwise(edges)]
