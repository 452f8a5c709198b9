"""The Spark data source `rdf`: RDF files as rows, one per event, bounded or as they arrive.

Its partitions are splits of files, which any worker can open. A followed run of this package reads
the same partitions, but its rows are splits (`followed_source`).

Spark gets the schema and the readers from separate processes, one after the other. So this module
imports readers and planners only where it uses them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit

from spaseq.compiled.arrays import Int64s
from spaseq.errors import InputError, UsageError
from spaseq.options import FileSourceSettings
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from spaseq.rdf.terms.term import GENERATED_AT_TIME
from spaseq.rdf.terms.times import milliseconds
from spaseq.records import record
from spaseq.runtime.arrivals.input_splits import Repetition
from spaseq.runtime.spark.connectors.followed_source import (
    PlannedReader,
    SplitPartition,
    in_tasks,
)

if TYPE_CHECKING:
    from spaseq.rdf.columns.event_batch import EventBatch
    from spaseq.runtime.arrivals.file_source_log import FileSourceLog, Sizes
    from spaseq.runtime.arrivals.log_depth import Depth
    from spaseq.sources.files import GrowingFiles

EVENT_DDL = "stream string, time timestamp, k int, event string, graph string, late_ms bigint"

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
        return EVENT_DDL

    def reader(self, schema: Any) -> DataSourceReader:
        return RdfReader(_Options.of(self.options))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        from spaseq.sources.files import GrowingFiles

        options = _Options.of(self.options)
        if options.log is None:
            raise UsageError("readStream of rdf needs the option log, a directory to keep state in")
        streams = (GrowingFiles.at(options.stream),)
        return RdfStreamReader(FollowedFiles(streams, options.log, options.settings, rows=options))


@record
class _Options:
    """The options of the data source, parsed."""

    stream: StreamOptions
    log: Path | None
    settings: FileSourceSettings
    strict: bool
    range_bytes: int | None  # of a bounded read, if given

    @classmethod
    def of(cls, options: Any) -> _Options:
        given = {name.lower(): str(value) for name, value in dict(options).items()}
        settings = _settings(given)
        range_bytes = settings.range_bytes if "maxpartitionbytes" in given else None
        log = Path(given["log"]) if "log" in given else None
        return cls(_stream(given), log, settings, _is_strict(given), range_bytes)

    def events(self, split: Any) -> Iterator[pa.RecordBatch]:
        """Rows of `EVENT_DDL` of a split."""
        from spaseq.runtime.arrivals.arrived_batch import read_slice
        from spaseq.runtime.arrivals.input_splits import InputSplit
        from spaseq.sources.files import FileSource

        if isinstance(split, InputSplit):
            for batch in FileSource(self.stream).open(self._on_bad, split.split):
                yield from _event_rows(batch, None)
            return
        for piece in split.slices:
            for batch, lateness in read_slice(piece, self.stream, split.at, self._on_bad):
                yield from _event_rows(batch, lateness)

    def _on_bad(self, bad: BadInput) -> None:
        where = bad.file if bad.line is None else f"{bad.file}:{bad.line}"
        if self.strict:
            raise InputError(f"{where}: {bad.reason}")
        logging.getLogger("spaseq").warning("%s: %s", where, bad.reason)


@record
class FollowedFiles:
    """The followed files of a run.

    Attributes:
        streams: the streams.
        log: the directory of the file source log.
        settings: the settings of the log.
        depths: how far back the state of the queries depends on events.
        repetition: the batches that rebuild the state of an earlier run.
        rows: makes a row of each event; without it, rows are splits.
    """

    streams: tuple[GrowingFiles, ...]
    log: Path
    settings: FileSourceSettings = FileSourceSettings()
    depths: tuple[Depth, ...] = ()
    repetition: Repetition = Repetition()
    rows: _Options | None = None

    kind: ClassVar[str] = "spaseq_files"

    def reader(self) -> RdfStreamReader:
        """The reader of the streams."""
        return RdfStreamReader(self)


_KNOWN = [
    "path", "stream", "timepredicate", "timeunit", "format", "base", "triplesperevent",
    "maxpartitionbytes", "mode", "log", "watermark", "maxbytesperbatch", "growing", "settle",
    "maxahead",
]  # fmt: skip


def _stream(given: Mapping[str, str]) -> StreamOptions:
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


def _settings(given: Mapping[str, str]) -> FileSourceSettings:
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


class RdfReader(DataSourceReader):  # type: ignore[misc]
    """Reads all present files."""

    def __init__(self, options: _Options) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        from spaseq.runtime.arrivals.input_splits import bounded_splits
        from spaseq.sources.files import FileSource

        options = self._options
        splits = bounded_splits([FileSource(options.stream)], options.range_bytes)
        return [SplitPartition((split,)) for split in splits]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SplitPartition)
        return chain.from_iterable(map(self._options.events, partition.splits))


class RdfStreamReader(PlannedReader):
    """Plans batches with a `FileSourceLog`; an offset is the number of the last batch.

    During a backlog, a batch is planned while Spark processes the one before.
    """

    def __init__(self, followed: FollowedFiles) -> None:
        super().__init__(followed)
        self._upto: Sizes | None = None  # how far files may be read, if that is fixed
        self._thread = ThreadPoolExecutor(1)
        self._ahead: tuple[Future[int], float] | None = None  # a batch being planned, and its limit

    @cached_property
    def _log(self) -> FileSourceLog:
        from spaseq.runtime.arrivals.file_source_log import FileSourceLog

        followed = self._followed
        given = followed.log, followed.streams, followed.settings
        return FileSourceLog(*given, depths=followed.depths)

    def initialOffset(self) -> dict[str, int]:
        return {"batch": self._followed.repetition.begin}

    def prepareForTriggerAvailableNow(self) -> None:
        self._upto = self._log.sizes()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        most, last = self._most(limit), self._followed.repetition.end
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

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """A task per split, or one task if there is little to read."""
        from spaseq.runtime.arrivals.arrived_batch import StreamProgress, arrived_splits, bytes_of

        batches = [self._log.batch(n) for n in range(start["batch"] + 1, end["batch"] + 1)]
        splits, marks = arrived_splits(batches), list[StreamProgress]()
        if self._followed.rows is None:
            for last in batches[-1:]:
                clocks = enumerate(stream.clock for stream in last.streams)
                marks = [StreamProgress(n, c.watermark, last.knowledge) for n, c in clocks]
        return in_tasks(splits, marks, bytes_of(splits) <= SMALL_BATCH_BYTES)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if self._followed.rows is None:
            return super().read(partition)
        assert isinstance(partition, SplitPartition)
        return chain.from_iterable(map(self._followed.rows.events, partition.splits))

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
