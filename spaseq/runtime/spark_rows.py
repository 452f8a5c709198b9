"""The rows that travel between Spark's stages, as Arrow record batches.

Three kinds of row share each schema, so that one pass over the input yields everything:

* *side* rows: what is not an answer - counts, bad inputs, late events, errors - as a pickled
  message; their query is `SIDE`;
* *solution* rows: a solution of a graph pattern, the plan's variables by position, `v0, v1 ...`,
  and of those it has as numbers the values `n0, n1 ...` and kinds `k0, k1 ...`;
* *answer* rows: an `Answer` as bytes with the text that orders it.
"""

from __future__ import annotations

import marshal
import pickle
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spaseq.algebra.answers import Answer, TraceItem
from spaseq.errors import SpaseqError
from spaseq.rdf.batches import BadInput, Int32s, SolutionBatch, SolutionColumns
from spaseq.rdf.columns import NumberColumn, TermColumn
from spaseq.runtime.job import LateEvent, Stats

SIDE = -1
"""`query` of a side row; it sorts before every query."""

Message: TypeAlias = Stats | BadInput | LateEvent | SpaseqError

OUTPUT = pa.schema([("query", pa.int32()), ("order", pa.string()), ("payload", pa.binary())])
"""What stage 2 yields: side rows and answer rows."""

OUTPUT_DDL = "query int, `order` string, payload binary"


def widest(columns: Iterable[SolutionColumns]) -> SolutionColumns:
    """The most columns that any plan has: terms `v0, v1 ...`, numbers `0, 1 ...`."""
    given = list(columns)
    variables = max(len(c.variables) for c in given)
    numbers = max(len(c.numbers) for c in given)
    return SolutionColumns(
        tuple(f"v{i}" for i in range(variables)), tuple(str(i) for i in range(numbers))
    )


def solution_schema(width: SolutionColumns) -> pa.Schema:
    """Arrow schema of what stage 1 yields; `width` is that of the `widest` plan."""
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
            *((v, pa.string()) for v in width.variables),
            *((f"n{v}", pa.float64()) for v in width.numbers),
            *((f"k{v}", pa.int8()) for v in width.numbers),
        ]
    )


def solution_ddl(width: SolutionColumns) -> str:
    """`solution_schema` as Spark writes it."""
    fixed = (
        "part int, query int, bucket int, time bigint, k int, stream int, gpm int, event string,"
        " `order` string, payload binary"
    )
    terms = [f", {v} string" for v in width.variables]
    values = [f", n{v} double" for v in width.numbers]
    return "".join([fixed, *terms, *values, *(f", k{v} tinyint" for v in width.numbers)])


def rows(schema: pa.Schema, n: int, **columns: Any) -> pa.RecordBatch:
    """A record batch of n rows: the given columns (an array, or one value for all), nulls else."""
    arrays = []
    for field in schema:
        given = columns.get(field.name)
        if given is None:
            arrays.append(pa.nulls(n, field.type))
        elif isinstance(given, int | str | bytes):
            arrays.append(pa.repeat(pa.scalar(given, field.type), n))
        elif isinstance(given, pa.Array):
            arrays.append(given.cast(field.type))
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
        for zero in ("part", "bucket", "reader", "time", "k", "stream", "gpm"):
            given[zero] = 0
        return rows(self._schema, len(messages), **given)


def solution_rows(
    solutions: SolutionBatch,
    columns: SolutionColumns,
    query: int,
    bucket: Int32s,
    part: Int32s,
    schema: pa.Schema,
) -> pa.RecordBatch:
    """Solution rows of one query; `bucket` and `part` are int32[n]."""
    given: dict[str, Any] = {}
    for i, v in enumerate(columns.variables):
        given[f"v{i}"] = solutions.values[v].strings()
    for i, v in enumerate(columns.numbers):
        numbers = solutions.numbers[v]
        given[f"n{i}"], given[f"k{i}"] = numbers.value, numbers.kind
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
        **given,
    )


def read_solutions(batch: pa.RecordBatch, columns: SolutionColumns) -> SolutionBatch:
    """The inverse of `solution_rows`."""

    def ints(name: str) -> npt.NDArray[Any]:
        return np.asarray(batch.column(name).to_numpy(zero_copy_only=False))

    return SolutionBatch(
        ints("stream"),
        ints("time"),
        ints("k"),
        ints("gpm"),
        batch.column("event").cast(pa.large_string()),
        {v: TermColumn.from_arrow(batch.column(f"v{i}")) for i, v in enumerate(columns.variables)},
        {v: NumberColumn(ints(f"n{i}"), ints(f"k{i}")) for i, v in enumerate(columns.numbers)},
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


def _hashes(column: TermColumn) -> npt.NDArray[np.uint64]:
    used = column.compact()
    distinct = [zlib.crc32(t.encode()) for t in used.terms.to_pylist()]
    return np.array([*distinct, 0], np.uint64)[used.codes]  # the last is UNBOUND's


def runs(batch: pa.RecordBatch) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """The stretches of equal (query, bucket) of a sorted batch, each as (query, bucket, rows)."""
    query = batch.column("query").to_numpy(zero_copy_only=False)
    bucket = batch.column("bucket").to_numpy(zero_copy_only=False)
    cuts = np.flatnonzero((np.diff(query) != 0) | (np.diff(bucket) != 0)) + 1
    edges = [0, *cuts.tolist(), batch.num_rows]
    for start, end in pairwise(edges):
        if end > start:
            yield int(query[start]), int(bucket[start]), batch.slice(start, end - start)
