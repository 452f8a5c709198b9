"""The rows that travel between the stages of a Spark run, as Arrow record batches.

Four kinds of row share a schema, so that one pass over the input yields everything:

* A *pack* has many solutions of one query as Arrow bytes, so that Spark moves and sorts few rows.
* An *answer row* has a block of answers as bytes, and the text that orders it (`blocks`).
* A *partial row* has one `PartialAnswer`; its query is `PARTIAL` and the number of the query.
* A *side row* has a pickled message: counts, bad input, a late event or an error. Its query is
  `SIDE`.

Rows of the queries `EXTENT`, `OVERLAP` and `TIES` number ties; see `arrivals.tie_numbering`.
"""

from __future__ import annotations

import marshal
import pickle
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise, repeat
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from spaseq import thresholds
from spaseq.algebra.answer_batch import AnswerBatch
from spaseq.algebra.answer_blocks import (
    Answers,
    answer_of_value,
    answer_value,
    answers_of,
    blocks,
)
from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.compiled.arrays import Int32s, UInt64s
from spaseq.errors import SpaseqError
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import TermColumn
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.runtime.job.job import LateEvent, ProcessCounts, Stats
from spaseq.stages.columnar_answers import RowRanks, can_be_ordered, in_order

# --- order --------------------------------------------------------------------------------------


def merged(timed: Iterable[tuple[int, Answers]]) -> Iterator[Answers]:
    """The answers of one query in order, from blocks of all tasks.

    `timed` has the answers of each block, and the time at which the first one ends (ms), ascending.
    About `thresholds.current.ordered_answers` solutions are in memory, or the overlapping blocks.
    """
    later: list[Answers] = []
    for time, block in timed:
        if sum(map(_size, later)) >= thresholds.current.ordered_answers:
            places = [_place(answers, time) for answers in later]
            ready = [_part(a, 0, n) for a, n in zip(later, places, strict=True) if n]
            later = [_part(a, n, len(a)) for a, n in zip(later, places, strict=True) if n < len(a)]
            yield from _in_order(ready)
        later.append(block)
    yield from _in_order(later)


def _size(answers: Answers) -> int:
    """Approximate number of solutions in answers."""
    return len(answers.solutions.places) if isinstance(answers, AnswerBatch) else len(answers)


def _place(answers: Answers, time: int) -> int:
    """Number of answers that end before a time (ms)."""
    if isinstance(answers, AnswerBatch):
        return int(answers.end_times.searchsorted(time))
    return bisect_left(answers, time, key=lambda answer: answer.end[0])


def _part(answers: Answers, begin: int, end: int) -> Answers:
    if begin == 0 and end == len(answers):
        return answers
    if isinstance(answers, AnswerBatch):
        return answers.part(begin, end)
    return answers[begin:end]


def _in_order(pieces: Sequence[Answers]) -> Iterator[Answers]:
    """The answers of some sorted pieces, merged."""
    columns = [p for p in pieces if isinstance(p, AnswerBatch)]
    values = _sorted([p for p in pieces if not isinstance(p, AnswerBatch)])
    batch = _ordered(columns)
    if batch is None:
        values += [answer for piece in columns for answer in piece]
        yield sorted(values, key=Answer.order_key) if columns else values
    elif not values:
        yield batch
    else:  # only answers that end between two values, or with one, are made one by one
        begin, end = _place(batch, values[0].end[0]), _place(batch, values[-1].end[0] + 1)
        yield batch.part(0, begin)
        yield sorted([*values, *batch.part(begin, end)], key=Answer.order_key)
        yield batch.part(end, len(batch))


def _sorted(pieces: Sequence[list[Answer]]) -> list[Answer]:
    """The answers of some pieces in order. Answers of a single task follow each other already."""
    answers = [answer for piece in pieces for answer in piece]
    if any(a[-1].order_key() > b[0].order_key() for a, b in pairwise(filter(None, pieces))):
        answers.sort(key=Answer.order_key)
    return answers


def _ordered(pieces: Sequence[AnswerBatch]) -> AnswerBatch | None:
    """The answers of some pieces in order; None if there are none, or too many."""
    if len(pieces) <= 1:
        return pieces[0] if pieces else None
    whole = AnswerBatch.concat(pieces)
    if not can_be_ordered(whole.solutions):
        return None
    return in_order(whole, RowRanks.of(whole.rows, whole.names))


SIDE = -1
"""`query` of a side row; it sorts before every query."""

EXTENT = -2
"""`query` of rows that hold a split's `TimeExtent`."""

OVERLAP = -3
"""`query` of the row that says that splits overlap, so that event numbers are wrong."""

TIES = -4
"""`query` of rows that hold a `TieTable`; they come before all others, in order of time."""

END = -5
"""`query` of rows that hold a split's `TimeExtent`, for the greatest time of all streams."""

PARTIAL = 2**30
"""Offset of a query's number in the rows of its partial matches, which come after answers."""

Message: TypeAlias = Stats | BadInput | LateEvent | SpaseqError

Item: TypeAlias = Message | PartialAnswer | Answers
"""The payload of a row of `OUTPUT`."""

_SHIFT = 2**63
"""Offset of times, so that no time is negative."""

OUTPUT = pa.schema([("query", pa.int32()), ("order", pa.string()), ("payload", pa.binary())])
"""The rows that stage 2 yields: side rows, answer rows and partial rows."""

OUTPUT_DDL = "query int, `order` string, payload binary"


PACKS = pa.schema(
    [
        ("part", pa.int32()),  # of stage 2
        ("query", pa.int32()),  # the group that the unit is in, or a kind of row
        ("bucket", pa.int32()),
        ("time", pa.int64()),  # the least of the pack, ms
        ("unit", pa.int32()),
        ("split", pa.int32()),  # the split of the solutions, or `NO_SPLIT`
        ("order", pa.string()),
        ("payload", pa.binary()),
    ]
)
"""The rows that stage 1 of a bounded run yields."""

PACKS_DDL = (
    "part int, query int, bucket int, time bigint, unit int, split int, `order` string, "
    "payload binary"
)

NO_SPLIT = -1


def rows(schema: pa.Schema, n: int, **columns: Any) -> pa.RecordBatch:
    """A record batch of n rows.

    Args:
        schema: the columns.
        n: the number of rows.
        columns: the values by column: one for each row, or one for all rows; other columns are
            null.
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


class TaskReport:
    """The messages of a task, as side rows of a schema, ordered by the number of their source.

    Attributes:
        stats: the counts, which are reported last.
    """

    def __init__(self, schema: pa.Schema, source: int) -> None:
        self.stats, self._side, self._counts = Stats(), SideRows(schema, source), ProcessCounts()
        self._found: list[BadInput | LateEvent] = []

    def take(self, report: BadInput | LateEvent) -> None:
        """Report bad input, or an event that is late, and count it."""
        self.tell(report)
        if isinstance(report, LateEvent):
            self.stats.late += 1
        else:
            self.stats.count_bad([report])

    def tell(self, report: BadInput | LateEvent) -> None:
        """Report a count."""
        self._found.append(report)

    def rows(
        self, work: Iterator[pa.RecordBatch], given: Iterable[Any] = ()
    ) -> Iterator[pa.RecordBatch]:
        """The rows of some work, and its messages; after a failure `given` is read to its end.

        Spark expects a task to read all of its input.
        """
        try:
            for batch in work:
                if self._found:
                    yield self._messages()
                yield batch
        except SpaseqError as error:
            yield self._side.batch([*self._found, error])
            self._found.clear()
            for _ in given:
                pass
        self._counts.add_to(self.stats)
        yield self._side.batch([*self._found, self.stats])

    def _messages(self) -> pa.RecordBatch:
        messages = self._side.batch(self._found)
        self._found.clear()
        return messages


def answer_rows(query: int, answers: Sequence[Answer]) -> pa.RecordBatch:
    """Answer rows of `OUTPUT`; the answers are in order."""
    timed_blocks = [*blocks(answers)]
    order = [f"{time + _SHIFT:016x}" for time, _ in timed_blocks]
    payload = [block for _, block in timed_blocks]
    return rows(OUTPUT, len(timed_blocks), query=query, order=order, payload=payload)


def partial_rows(query: int, partials: Sequence[PartialAnswer]) -> pa.RecordBatch:
    """Partial rows of `OUTPUT`."""
    order = [p.order_key() for p in partials]
    payload = [
        marshal.dumps((answer_value(p.answer), p.reached, p.waiting, p.closed)) for p in partials
    ]
    return rows(OUTPUT, len(partials), query=PARTIAL + query, order=order, payload=payload)


class ReportedRows:
    """Makes rows of `OUTPUT` of a job's reports beside answers."""

    def __init__(self, plans: Sequence[QueryPlan]) -> None:
        self._numbers = {plan.identity.name: number for number, plan in enumerate(plans)}
        self._partials = dict[int, list[PartialAnswer]]()
        self._changes = list[pa.RecordBatch]()

    def take_partial(self, query: str, partial: PartialAnswer) -> None:
        """Take a partial match of a query."""
        self._partials.setdefault(self._numbers[query], []).append(partial)

    def take_changes(self, plan: QueryPlan, answers: Sequence[Answer]) -> None:
        """Take the answers of a query that maintains a graph."""
        self._changes.append(answer_rows(self._numbers[plan.identity.name], answers))

    def taken(self) -> Iterator[pa.RecordBatch]:
        """The rows since the last call."""
        yield from self._changes
        yield from (partial_rows(*of_query) for of_query in self._partials.items())
        self._changes.clear()
        self._partials.clear()


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
    for query, query_rows in groupby(rows, itemgetter(0)):
        if 0 <= query < PARTIAL:
            yield from zip(repeat(query), ordered_answers(row[1:] for row in query_rows))
        else:
            yield from ((query, payload_of(query, payload)) for _, _, payload in query_rows)


def ordered_answers(rows: Iterable[tuple[str, bytes]]) -> Iterator[Answers]:
    """The answers of one query in order, from (order, payload) of its answer rows in order."""
    return merged((int(order, 16) - _SHIFT, answers_of(payload)) for order, payload in rows)


def buckets(solutions: SolutionBatch, key: Sequence[str] | None, count: int) -> Int32s:
    """The bucket (0..count-1) of every row: a hash of its key's texts that is equal in all
    processes.
    """
    n = len(solutions)
    if key is None or count == 1:
        return np.zeros(n, np.int32)
    mixed = np.zeros(n, np.uint64)
    for variable in key:
        mixed = mixed * np.uint64(1_000_003) + _hashes(solutions.values[variable])
    return np.asarray(mixed % np.uint64(count), np.int32)


def by_bucket(
    solutions: SolutionBatch, key: Sequence[str] | None, count: int
) -> Iterator[tuple[int, SolutionBatch]]:
    """(bucket, its rows) of each bucket that has any; see `buckets`."""
    bucket = buckets(solutions, key, count)
    for number in np.unique(bucket).tolist():
        yield number, solutions.take(np.flatnonzero(bucket == number))


def _hashes(column: TermColumn) -> UInt64s:
    used = column.compact()
    distinct = [zlib.crc32(t.encode()) for t in used.terms.to_pylist()]
    return np.array([*distinct, 0], np.uint64)[used.codes]  # UNBOUND takes the last one
