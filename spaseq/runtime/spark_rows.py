"""The rows that travel between Spark's stages, as Arrow record batches.

Three kinds of row share each schema, so that one pass over the input yields everything:

* *side* rows: what is not an answer - counts, bad inputs, late events, errors - as a pickled
  message; their query is `SIDE`;
* *solution* rows: a solution of a graph pattern, the plan's variables by position, `v0, v1 ...`;
* *answer* rows: an `Answer` as bytes with the text that orders it.
"""

from __future__ import annotations

import marshal
import pickle
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spaseq.algebra.answers import Answer, TraceItem
from spaseq.errors import SpaseqError
from spaseq.rdf.batches import BadInput, Int32s, SolutionBatch
from spaseq.runtime.job import LateEvent, Stats

SIDE = -1
"""`query` of a side row; it sorts before every query."""

Message: TypeAlias = Stats | BadInput | LateEvent | SpaseqError

OUTPUT = pa.schema([("query", pa.int32()), ("order", pa.string()), ("payload", pa.binary())])
"""What stage 2 yields: side rows and answer rows."""

OUTPUT_DDL = "query int, `order` string, payload binary"


def solution_schema(width: int) -> pa.Schema:
    """Arrow schema of what stage 1 yields; `width` is the most variables that any plan has."""
    return pa.schema(
        [
            ("part", pa.int32()),
            ("query", pa.int32()),
            ("bucket", pa.int32()),
            ("time", pa.int64()),
            ("k", pa.int32()),
            ("stream", pa.int32()),
            ("gpm", pa.int32()),
            ("event", pa.string()),
            ("order", pa.string()),
            ("payload", pa.binary()),
            *((f"v{i}", pa.string()) for i in range(width)),
        ]
    )


def solution_ddl(width: int) -> str:
    """`solution_schema` as Spark writes it."""
    fixed = (
        "part int, query int, bucket int, time bigint, k int, stream int, gpm int, event string,"
        " `order` string, payload binary"
    )
    return fixed + "".join(f", v{i} string" for i in range(width))


def rows(schema: pa.Schema, n: int, **columns: Any) -> pa.RecordBatch:
    """A record batch of n rows: the given columns (an array, or one value for all), nulls else."""
    arrays = []
    for field in schema:
        given = columns.get(field.name)
        if given is None:
            arrays.append(pa.nulls(n, field.type))
        elif isinstance(given, int | str | bytes):
            arrays.append(pa.repeat(pa.scalar(given, field.type), n))
        else:
            arrays.append(pa.array(given, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


class SideRows:
    """Makes side rows whose order is: source, then the order in which they were made."""

    def __init__(self, schema: pa.Schema, source: int) -> None:
        self._schema, self._source, self._made = schema, source, 0

    def batch(self, messages: Sequence[Message]) -> pa.RecordBatch:
        """A row per message."""
        first = self._made
        self._made += len(messages)
        order = [f"{self._source:08x}{first + i:012x}" for i in range(len(messages))]
        payload = [pickle.dumps(m, pickle.HIGHEST_PROTOCOL) for m in messages]
        given: dict[str, Any] = {"query": SIDE, "order": order, "payload": payload}
        for zero in ("part", "bucket", "time", "k", "stream", "gpm"):
            given[zero] = 0
        return rows(self._schema, len(messages), **given)


def solution_rows(
    solutions: SolutionBatch,
    variables: Sequence[str],
    query: int,
    bucket: Int32s,
    part: Int32s,
    schema: pa.Schema,
) -> pa.RecordBatch:
    """Solution rows of one query; `bucket` and `part` are int32[n]."""
    values = {f"v{i}": solutions.values[v] for i, v in enumerate(variables)}
    return rows(
        schema,
        len(solutions),
        part=part,
        query=query,
        bucket=bucket,
        time=solutions.time,
        k=solutions.k,
        stream=solutions.stream,
        gpm=solutions.gpm,
        event=solutions.event,
        **values,
    )


def read_solutions(batch: pa.RecordBatch, variables: Sequence[str]) -> SolutionBatch:
    """The inverse of `solution_rows`."""

    def ints(name: str) -> npt.NDArray[Any]:
        return np.asarray(batch.column(name).to_numpy(zero_copy_only=False))

    def texts(name: str) -> npt.NDArray[np.object_]:
        out = np.empty(batch.num_rows, dtype=object)
        out[:] = batch.column(name).to_pylist()
        return out

    values = {v: texts(f"v{i}") for i, v in enumerate(variables)}
    return SolutionBatch(
        ints("stream"), ints("time"), ints("k"), ints("gpm"), texts("event"), values
    )


def answer_rows(query: int, answers: Sequence[Answer]) -> pa.RecordBatch:
    """Answer rows of `OUTPUT`."""
    order = [a.order_key() for a in answers]
    payload = [answer_bytes(a) for a in answers]
    return rows(OUTPUT, len(answers), query=query, order=order, payload=payload)


def answer_bytes(answer: Answer) -> bytes:
    """An answer as bytes, seven times as fast as pickling it."""
    trace = [(t.time, t.k, t.gpm, t.stream, t.event) for t in answer.trace]
    a = answer
    graph = None if a.graph is None else (a.event, a.graph)
    return marshal.dumps((a.first, a.end, trace, a.bindings, a.singles, a.lists, graph))


def answer_of(data: bytes) -> Answer:
    """The inverse of `answer_bytes`."""
    first, end, items, bindings, singles, lists, made = marshal.loads(data)
    trace = tuple([TraceItem(*t) for t in items])
    event, graph = made or (None, None)
    return Answer(first, end, trace, bindings, singles, lists, graph, event)


def payload_of(query: int, payload: bytes) -> Message | Answer:
    """What a row of `OUTPUT` carries."""
    if query != SIDE:
        return answer_of(payload)
    message: Message = pickle.loads(payload)
    return message


def buckets(solutions: SolutionBatch, key: Sequence[str] | None, count: int) -> Int32s:
    """The bucket in 0..count-1 of every row: a hash of its key's texts, the same in any process."""
    n = len(solutions)
    if key is None or count == 1:
        return np.zeros(n, np.int32)
    mixed = np.zeros(n, np.uint64)
    for variable in key:
        mixed = mixed * np.uint64(1_000_003) + _hashes(solutions.values[variable])
    return np.asarray(mixed % np.uint64(count), np.int32)


def _hashes(texts: npt.NDArray[np.object_]) -> npt.NDArray[np.uint64]:
    encoded = pa.array(texts, pa.string()).fill_null("").dictionary_encode()
    distinct = [zlib.crc32(t.encode()) for t in encoded.dictionary.to_pylist()]
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    return np.asarray(np.array(distinct, np.uint64)[codes])


def runs(batch: pa.RecordBatch) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """The stretches of equal (query, bucket) of a sorted batch, each as (query, bucket, rows)."""
    query = batch.column("query").to_numpy(zero_copy_only=False)
    bucket = batch.column("bucket").to_numpy(zero_copy_only=False)
    cuts = np.flatnonzero((np.diff(query) != 0) | (np.diff(bucket) != 0)) + 1
    edges = [0, *cuts.tolist(), batch.num_rows]
    for start, end in pairwise(edges):
        if end > start:
            yield int(query[start]), int(bucket[start]), batch.slice(start, end - start)
