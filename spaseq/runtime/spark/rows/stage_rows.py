"""The rows that travel between the stages of a Spark run; Spark moves them as Arrow batches.

Four kinds of row have blocks of bytes as payloads, so that few rows are moved and sorted:

* A *pack* has many solutions of one query.
* An *answer row* has a block of answers, and the text that orders it (`blocks`).
* A *partial row* has a block of `PartialAnswer`s; its query is `PARTIAL` and the number of the
  query.
* A *side row* has pickled messages: counts, bad input, late events or an error. Its query is
  `SIDE`.

Rows of the queries `EXTENT`, `OVERLAP` and `TIES` number ties; see `arrivals.tie_numbering`.
"""

from __future__ import annotations

import marshal
import pickle
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import chain, groupby, pairwise, repeat
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

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
from spaseq.runtime.job.job import Job, LateEvent, ProcessCounts, Stats
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
"""What the payload of a row of `OUTPUT` has, one or many."""

_SHIFT = 2**63
"""Offset of times, so that no time is negative."""


class OutputRow(NamedTuple):
    """A row that stage 2 yields: a side row, an answer row or a partial row."""

    query: int
    order: str
    payload: Any  # bytes; on one machine the place of the bytes in a file

    @classmethod
    def of_messages(cls, order: str, payload: bytes) -> OutputRow:
        """A side row."""
        return cls(SIDE, order, payload)


OUTPUT = pa.schema([("query", pa.int32()), ("order", pa.string()), ("payload", pa.binary())])

NO_SPLIT = -1


class Pack(NamedTuple):
    """A row that stage 1 of a bounded run yields.

    Attributes:
        part: of stage 2.
        query: the group that the unit is in, or a kind of row.
        bucket: the bucket.
        time: the least of the pack, ms.
        unit: the unit of queries.
        split: the split of the solutions, or `NO_SPLIT`.
        order: of a side row.
        payload: bytes; on one machine the place of the solutions or bytes in a file.
    """

    part: int = 0
    query: int = 0
    bucket: int = 0
    time: int = 0
    unit: int = 0
    split: int = NO_SPLIT
    order: str = ""
    payload: Any = b""

    @classmethod
    def of_messages(cls, order: str, payload: bytes) -> Pack:
        """A side row."""
        return cls(query=SIDE, order=order, payload=payload)


PACKS = pa.schema(
    [
        *((name, pa.int32()) for name in ("part", "query", "bucket")),
        ("time", pa.int64()),
        *((name, pa.int32()) for name in ("unit", "split")),
        ("order", pa.string()),
        ("payload", pa.binary()),
    ]
)


def struct_of(schema: pa.Schema) -> Any:
    """The Spark type of rows with these Arrow columns."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def batch_of(schema: pa.Schema, rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """Rows, at least one, as a record batch."""
    columns = zip(schema, zip(*rows, strict=True), strict=True)
    arrays = [pa.array(column, field.type) for field, column in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def batches_of(
    schema: pa.Schema, rows: Iterable[Sequence[Sequence[Any]]]
) -> Iterator[pa.RecordBatch]:
    """A record batch for all rows that come together."""
    return (batch_of(schema, some) for some in rows if some)


def messages_of(source: int, number: int, messages: Sequence[Message]) -> tuple[str, bytes]:
    """The order and payload of a side row: by its source, then by its number there."""
    return f"{source:08x}{number:012x}", pickle.dumps(messages, pickle.HIGHEST_PROTOCOL)


RowT = TypeVar("RowT")


class TaskReport(Generic[RowT]):
    """The messages of a task, as side rows, ordered by the number of their source.

    Attributes:
        stats: the counts, which are reported last.
        failed: whether one of the messages is an error.
    """

    def __init__(self, source: int, row: Callable[[str, bytes], RowT]) -> None:
        self.stats, self.failed, self._counts = Stats(), False, ProcessCounts()
        self._source, self._row, self._made = source, row, 0
        self._found: list[Message] = []

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

    def rows(self, work: Iterator[list[RowT]], given: Iterable[Any] = ()) -> Iterator[list[RowT]]:
        """The rows of some work, and its messages; after a failure `given` is read to its end.

        Spark expects a task to read all of its input.
        """
        try:
            for some in work:
                if self._found:
                    yield self._messages()
                yield some
        except SpaseqError as error:
            self.failed = True
            self._found.append(error)
            yield self._messages()
            for _ in given:
                pass
        self._counts.add_to(self.stats)
        self._found.append(self.stats)
        yield self._messages()

    def _messages(self) -> list[RowT]:
        row = self._row(*messages_of(self._source, self._made, self._found))
        self._made += 1
        self._found = []
        return [row]


def answer_rows(query: int, answers: Sequence[Answer]) -> list[OutputRow]:
    """Answer rows; the answers are in order."""
    return [OutputRow(query, f"{time + _SHIFT:016x}", block) for time, block in blocks(answers)]


def partial_rows(query: int, partials: Iterable[PartialAnswer]) -> list[OutputRow]:
    """Partial rows."""
    values = [
        (p.order_key(), (answer_value(p.answer), p.reached, p.waiting, p.closed)) for p in partials
    ]
    values.sort(key=itemgetter(0))
    size = thresholds.current.partial_rows
    some = (values[start : start + size] for start in range(0, len(values), size))
    return [OutputRow(PARTIAL + query, each[0][0], marshal.dumps(each)) for each in some]


class ReportedRows:
    """Makes rows of a job's answers, and of its reports beside them."""

    def __init__(self, job: Job) -> None:
        job.on_partial, job.on_changes = self._take_partial, self._take_changes
        self._numbers = {plan.identity.name: number for number, plan in enumerate(job.plans)}
        self._partials = dict[int, list[PartialAnswer]]()
        self._changes = list[OutputRow]()

    def _take_partial(self, query: str, partial: PartialAnswer) -> None:
        self._partials.setdefault(self._numbers[query], []).append(partial)

    def _take_changes(self, plan: QueryPlan, answers: Sequence[Answer]) -> None:
        self._changes += answer_rows(self._numbers[plan.identity.name], answers)

    def with_answers(
        self, found: Iterable[tuple[int, Sequence[Answer]]]
    ) -> Iterator[list[OutputRow]]:
        """The rows of (query, answers), and of the reports meanwhile."""
        for query, answers in found:
            yield [*answer_rows(query, answers), *self._taken()]
        yield self._taken()

    def _taken(self) -> list[OutputRow]:
        partials = (partial_rows(*of_query) for of_query in self._partials.items())
        found = [*self._changes, *chain.from_iterable(partials)]
        self._changes.clear()
        self._partials.clear()
        return found


def items_in(query: int, payload: bytes) -> Sequence[Item]:
    """The messages, answers or partial matches in a row of `OUTPUT`."""
    if query >= PARTIAL:
        return [partial for _, partial in _partials_in(payload)]
    if query != SIDE:
        return [answers_of(payload)]
    messages: list[Item] = pickle.loads(payload)
    return messages


def _partials_in(payload: bytes) -> Iterator[tuple[str, PartialAnswer]]:
    for key, (answer, *reached) in marshal.loads(payload):
        yield key, PartialAnswer(answer_of_value(answer), *reached)


def items_of(rows: Iterable[tuple[int, str, bytes]]) -> Iterator[tuple[int, Item]]:
    """(query, item) of rows of `OUTPUT` that come by query and order; all items are in order."""
    for query, query_rows in groupby(rows, itemgetter(0)):
        items: Iterable[Item]
        if query == SIDE:
            items = chain.from_iterable(items_in(query, payload) for _, _, payload in query_rows)
        elif query >= PARTIAL:
            items = _ordered_partials((order, payload) for _, order, payload in query_rows)
        else:
            items = ordered_answers((order, payload) for _, order, payload in query_rows)
        yield from zip(repeat(query), items)


def _ordered_partials(rows: Iterable[tuple[str, bytes]]) -> Iterator[PartialAnswer]:
    """The partial matches of one query in order, from its rows; overlapping rows are in memory."""
    held: list[tuple[str, int, PartialAnswer]] = []
    count = 0
    for order, payload in rows:
        while held and held[0][0] < order:
            yield heappop(held)[2]
        for key, partial in _partials_in(payload):
            heappush(held, (key, count, partial))
            count += 1
    while held:
        yield heappop(held)[2]


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
