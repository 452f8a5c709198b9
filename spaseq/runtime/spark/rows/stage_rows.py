"""The rows that travel between the stages of a Spark run, as Arrow record batches.

Four kinds of row share a schema, so that one pass over the input yields everything:

* A *pack* has many solutions of one query as Arrow bytes, so that Spark moves and sorts few rows.
* An *answer row* has a block of answers as bytes, and the text that orders it (`answer_blocks`).
* A *partial row* has one `PartialAnswer`; its query is `PARTIAL` and the number of the query.
* A *side row* has a pickled message: counts, bad input, a late event or an error. Its query is
  `SIDE`.

Rows of the queries `EXTENT` and `OVERLAP` number ties; see `arrivals.tie_numbering`. So do those
of `TIES`.
"""

from __future__ import annotations

import marshal
import pickle
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, repeat
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.compiled.arrays import Int32s, UInt64s
from spaseq.errors import SpaseqError
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import TermColumn
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.runtime.job.job import LateEvent, Stats
from spaseq.runtime.spark.rows.answer_blocks import (
    Answers,
    answer_of_value,
    answer_value,
    answers_of,
    blocks,
    merged,
)

SIDE = -1
"""`query` of a side row; it sorts before every query."""

EXTENT = -2
"""`query` of rows that hold a split's `TimeExtent`."""

OVERLAP = -3
"""`query` of the row that says that splits overlap, so that their events are numbered wrongly."""

TIES = -4
"""`query` of rows that hold a `TieTable`; they come before all others, in order of time."""

END = -5
"""`query` of rows that hold a split's `TimeExtent`, for the greatest time of all streams."""

PARTIAL = 2**30
"""Added to the number of a query in the rows of its partial matches, which come after answers."""

Message: TypeAlias = Stats | BadInput | LateEvent | SpaseqError

Item: TypeAlias = Message | PartialAnswer | Answers
"""What a row of `OUTPUT` holds."""

_SHIFT = 2**63
"""Added to times, so that no time is negative."""

OUTPUT = pa.schema([("query", pa.int32()), ("order", pa.string()), ("payload", pa.binary())])
"""The rows that stage 2 yields: side rows, answer rows and partial rows."""

OUTPUT_DDL = "query int, `order` string, payload binary"


PACKS = pa.schema(
    [
        ("part", pa.int32()),  # of stage 2
        ("query", pa.int32()),
        ("bucket", pa.int32()),
        ("time", pa.int64()),  # the least of the pack's, ms
        ("split", pa.int32()),  # whose solutions these are, or `NO_SPLIT`
        ("order", pa.string()),
        ("payload", pa.binary()),
    ]
)
"""The rows that stage 1 of a bounded run yields."""

PACKS_DDL = (
    "part int, query int, bucket int, time bigint, split int, `order` string, payload binary"
)

NO_SPLIT = -1


def rows(schema: pa.Schema, n: int, **columns: Any) -> pa.RecordBatch:
    """A record batch of n rows.

    Args:
        schema: the columns.
        n: the number of rows.
        columns: the values by column: one for each row, or one for all; other columns are null.
    """
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
    """Makes side rows. They are ordered by `source` (a number), then as they were made."""

    def __init__(self, schema: pa.Schema, source: int) -> None:
        self._schema, self._source, self._made = schema, source, 0

    def batch(self, messages: Sequence[Message]) -> pa.RecordBatch:
        """A row per message."""
        first = self._made
        self._made += len(messages)
        order = [f"{self._source:08x}{first + i:012x}" for i in range(len(messages))]
        payload = [pickle.dumps(m, pickle.HIGHEST_PROTOCOL) for m in messages]
        given: dict[str, Any] = {"query": SIDE, "order": order, "payload": payload}
        for zero in ("part", "bucket", "reader", "time", "split", "stream", "partition"):
            given[zero] = 0
        return rows(self._schema, len(messages), **given)


def answer_rows(query: int, answers: Sequence[Answer]) -> pa.RecordBatch:
    """Answer rows of `OUTPUT`; the answers are in order."""
    found = [*blocks(answers)]
    order = [f"{time + _SHIFT:016x}" for time, _ in found]
    payload = [block for _, block in found]
    return rows(OUTPUT, len(found), query=query, order=order, payload=payload)


def partial_rows(query: int, partials: Sequence[PartialAnswer]) -> pa.RecordBatch:
    """Partial rows of `OUTPUT`."""
    order = [p.order_key() for p in partials]
    payload = [
        marshal.dumps((answer_value(p.answer), p.reached, p.waiting, p.closed)) for p in partials
    ]
    return rows(OUTPUT, len(partials), query=PARTIAL + query, order=order, payload=payload)


def payload_of(query: int, payload: bytes) -> Item:
    """The message, answers or partial match in a row of `OUTPUT`."""
    if query >= PARTIAL:
        answer, *reached = marshal.loads(payload)
        return PartialAnswer(answer_of_value(answer), *reached)
    if query != SIDE:
        return answers_of(payload)
    message: Message = pickle.loads(payload)
    return message


def items_of(rows: Iterable[tuple[int, str, bytes]]) -> Iterator[tuple[int, Item]]:
    """(query, item) of rows of `OUTPUT` that come by query and order; answers are in order."""
    for query, own in groupby(rows, itemgetter(0)):
        if 0 <= query < PARTIAL:
            yield from zip(repeat(query), ordered_answers(row[1:] for row in own))
        else:
            yield from ((query, payload_of(query, payload)) for _, _, payload in own)


def ordered_answers(rows: Iterable[tuple[str, bytes]]) -> Iterator[Answers]:
    """The answers of one query in order, from (order, payload) of its answer rows in order."""
    return merged((int(order, 16) - _SHIFT, answers_of(payload)) for order, payload in rows)


def buckets(solutions: SolutionBatch, key: Sequence[str] | None, count: int) -> Int32s:
    """The bucket (0..count-1) of every row: a hash of its key's texts that any process computes."""
    n = len(solutions)
    if key is None or count == 1:
        return np.zeros(n, np.int32)
    mixed = np.zeros(n, np.uint64)
    for variable in key:
        mixed = mixed * np.uint64(1_000_003) + _hashes(solutions.values[variable])
    return np.asarray(mixed % np.uint64(count), np.int32)


def _hashes(column: TermColumn) -> UInt64s:
    used = column.compact()
    distinct = [zlib.crc32(t.encode()) for t in used.terms.to_pylist()]
    return np.array([*distinct, 0], np.uint64)[used.codes]  # UNBOUND takes the last one
