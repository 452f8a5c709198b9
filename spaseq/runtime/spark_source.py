"""The Spark data source `rdf`: files of RDF streams as they arrive.

Its rows are not events but work: one per stream and batch, with the files to read in it. A stream
without new files has a row too, so that stage 1 can pass on where that stream's time stands.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)

from spaseq.rdf.readers import StreamOptions
from spaseq.runtime.arrivals import ArrivalLog

WORK_DDL = "batch bigint, stream int, at bigint, files array<string>"

Row: TypeAlias = tuple[int, int, int, list[str]]
"""(number of the batch, number of the stream, when its files were found in ms, the files)."""


def source_options(directory: Path, streams: Sequence[StreamOptions]) -> dict[str, str]:
    """The options of the data source: where it keeps its log, and the streams."""
    return {"log": str(directory), "streams": json.dumps([asdict(s) for s in streams])}


@dataclass(frozen=True)
class _Work(InputPartition):  # type: ignore[misc]
    """Rows of `WORK_DDL` that one task passes on."""

    rows: tuple[Row, ...]


class RdfDataSource(DataSource):  # type: ignore[misc]
    """`spark.readStream.format("rdf")` with the options of `source_options`."""

    @classmethod
    def name(cls) -> str:
        return "rdf"

    def schema(self) -> str:
        return WORK_DDL

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return RdfStreamReader(self.options)


class RdfStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Plans batches from an `ArrivalLog`; an offset is the number of the last batch."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        given = json.loads(options["streams"])
        self._streams = [StreamOptions(**{**s, "paths": tuple(s["paths"])}) for s in given]
        self._log = ArrivalLog(Path(options["log"]), self._streams)
        self._among: list[frozenset[str]] | None = None  # all that may be taken, if not None

    def initialOffset(self) -> dict[str, int]:
        return {"batch": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._among = [frozenset(f.path for f in files) for files in self._log.waiting(0)]

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return {"batch": self._log.take(start["batch"], self._among)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """A task per stream with files; one for all the others."""
        by_stream: list[list[Row]] = [[] for _ in self._streams]
        for number in range(start["batch"] + 1, end["batch"] + 1):
            arrivals = self._log.batch(number)
            for stream, files in enumerate(arrivals.files):
                by_stream[stream].append((number, stream, arrivals.at, list(files)))
        busy = [rows for rows in by_stream if any(row[3] for row in rows)]
        idle = [row for rows in by_stream if rows not in busy for row in rows]
        return [_Work(tuple(rows)) for rows in [*busy, idle] if rows]

    def read(self, partition: InputPartition) -> Iterator[Row]:
        yield from partition.rows

    def commit(self, end: dict[str, int]) -> None:
        self._log.forget(end["batch"] - 1)

    def stop(self) -> None:
        pass
