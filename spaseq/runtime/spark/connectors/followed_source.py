"""A Spark data source for followed runs: rows are splits, which the tasks of a run read.

A followed run of this package gets each split as one unread row: the task that matches its events
parses them. The data source has no options, because Spark shows options in plans and logs, and a
URL may have a password. So each run makes a class, which Spark pickles with its attributes.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Protocol

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)

from spaseq.options import FileSourceSettings
from spaseq.runtime.arrivals.input_splits import BatchSizer

SPLIT_DDL = "stream int, split binary"


class Followed(Protocol):
    """The followed streams of a run of one kind; it can be pickled.

    Attributes:
        kind: names the data source.
        settings: limits of a batch, and the rules of time.
    """

    kind: ClassVar[str]

    @property
    def settings(self) -> FileSourceSettings: ...

    def reader(self) -> PlannedReader:
        """The reader of the streams."""


class FollowedSource(DataSource):  # type: ignore[misc]
    """Rows of `SPLIT_DDL`; `of` makes the class for a run.

    The streams are pickled, as the process that gives the schema does not need them.
    """

    followed: ClassVar[bytes]
    kind: ClassVar[str]

    @classmethod
    def of(cls, followed: Followed) -> type[FollowedSource]:
        """The data source of a run."""
        return type(
            "RunSource", (cls,), {"followed": pickle.dumps(followed), "kind": followed.kind}
        )

    @classmethod
    def name(cls) -> str:
        return cls.kind

    def schema(self) -> str:
        return SPLIT_DDL

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        followed: Followed = pickle.loads(self.followed)
        return followed.reader()


@dataclass(frozen=True)
class SplitPartition(InputPartition):  # type: ignore[misc]
    """The splits of a task."""

    splits: tuple[Any, ...]


class PlannedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Plans batches in a separate process."""

    def __init__(self, followed: Any) -> None:
        self._followed = followed
        self._sizer = BatchSizer(followed.settings.max_bytes)

    def __reduce__(self) -> tuple[Any, ...]:
        """The copy for a task, which plans nothing."""
        return type(self), (self._followed,)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxBytes(self._followed.settings.max_bytes)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The splits as rows."""
        assert isinstance(partition, SplitPartition)
        for split in partition.splits:
            data = pickle.dumps(split, pickle.HIGHEST_PROTOCOL)
            columns = [pa.array([split.stream], pa.int32()), pa.array([data], pa.binary())]
            yield pa.RecordBatch.from_arrays(columns, ["stream", "split"])

    def _most(self, limit: ReadLimit) -> float:
        """Maximum bytes of each stream in a batch."""
        if isinstance(limit, ReadAllAvailable):
            return float("inf")
        most = self._sizer.bytes
        return min(most, limit.max_bytes) if isinstance(limit, ReadMaxBytes) else most


def in_tasks(splits: Sequence[Any], marks: Sequence[Any], together: bool) -> list[SplitPartition]:
    """A task for each split, or one for all of them; the first one also has the marks."""
    parts = [tuple(splits)] if together else [(split,) for split in splits]
    first, rest = parts[:1], parts[1:]
    whole = (*chain.from_iterable(first), *marks)
    return [SplitPartition(part) for part in (whole, *rest) if part]
