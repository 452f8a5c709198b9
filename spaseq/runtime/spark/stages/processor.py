"""The processor that Spark calls for every bucket of a followed run.

Before a query's first batch Spark starts one more process, which only reads the names of the
state's variables. To keep that process quick, this module imports next to nothing: the processor
holds `bucket_state.Buckets` as bytes, which only a worker unpickles.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

if TYPE_CHECKING:
    import pandas as pd

    from spaseq.runtime.spark.stages.bucket_state import Buckets

_META_DDL = (
    "format int, version bigint, first bigint, snapshot_chunks int, snapshot_bytes bigint,"
    " log_bytes bigint, marks array<bigint>"
)
_CHUNK_KEY_DDL = "kind int, number bigint"
_CHUNK_DDL = "data binary"


@dataclass(slots=True)
class FollowSequence(StatefulProcessor):  # type: ignore[misc]
    """For `transformWithStateInPandas` on groups of (query, bucket): rows of `PACKED` to `OUTPUT`.

    `buckets` is a pickled `Buckets`.
    """

    buckets: bytes
    _opened: Buckets | None = field(default=None, init=False)
    _meta: Any = field(default=None, init=False)
    _chunks: Any = field(default=None, init=False)

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._meta = handle.getValueState("meta", _META_DDL)
        self._chunks = handle.getMapState("chunks", _CHUNK_KEY_DDL, _CHUNK_DDL)

    def handleInputRows(
        self, key: tuple[int, int], rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        if self._opened is None:
            self._opened = pickle.loads(self.buckets)
        yield from self._opened.batch(int(key[0]), int(key[1]), rows, self._meta, self._chunks)
