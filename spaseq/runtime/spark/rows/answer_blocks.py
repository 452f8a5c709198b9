"""Blocks of answers: answers leave the tasks of stage 2 as blocks, and the driver merges them.

A block has answers of one query, in order, as bytes. Answers that are columns stay Arrow columns.
"""

from __future__ import annotations

import json
import marshal
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from spaseq import thresholds
from spaseq.algebra.answer_batch import PIECE, AnswerBatch, AnswerNames, Runs
from spaseq.algebra.answers import Answer, TraceItem
from spaseq.rdf.columns.solution_batch import SolutionCodec
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.stages.columnar_answers import RowRanks, can_be_ordered, in_order

Answers: TypeAlias = AnswerBatch | list[Answer]


_COLUMNS, _VALUES = b"c", b"v"
_NAMES = b"names"


def blocks(answers: Sequence[Answer]) -> Iterator[tuple[int, bytes]]:
    """(time at which the first answer ends in ms, block) of answers in order."""
    if isinstance(answers, AnswerBatch):
        for part in answers.parts():
            yield int(part.end_times[0]), _COLUMNS + _columns(part)
        return
    for start in range(0, len(answers), PIECE):
        values = answers[start : start + PIECE]
        yield values[0].end[0], _VALUES + marshal.dumps([*map(answer_value, values)])


def answers_of(block: bytes) -> Answers:
    """The answers of a block."""
    data = memoryview(block)[1:]
    if block[:1] == _COLUMNS:
        return _batch(data)
    return [*map(answer_of_value, marshal.loads(data))]


def answer_value(answer: Answer) -> Any:
    """An answer as plain tuples, which `marshal` writes seven times as fast as pickle."""
    a, trace = answer, [(*t,) for t in answer.trace]
    graph = None if a.graph is None else (a.event, a.graph)
    return a.first, a.end, trace, a.bindings, a.singles, a.lists, graph


def answer_of_value(value: Any) -> Answer:
    """The inverse of `answer_value`."""
    first, end, items, bindings, singles, lists, made = value
    event, graph = made or (None, None)
    trace = tuple([TraceItem(*item) for item in items])
    return Answer(first, end, trace, bindings, singles, lists, graph, event)


def _columns(answers: AnswerBatch) -> bytes:
    """Two Arrow streams: the rows, and for each answer the numbers of its rows."""
    names = answers.names
    rows = SolutionCodec(SolutionColumns(names.variables)).batch(answers.rows)
    rows = rows.replace_schema_metadata({_NAMES: json.dumps(astuple(names))})
    runs = {"solutions": _lists(answers.solutions)}
    if answers.trace is not answers.solutions:
        runs["trace"] = _lists(answers.trace)
    sink = pa.BufferOutputStream()
    for batch in (rows, pa.RecordBatch.from_pydict(runs)):
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def _batch(data: memoryview) -> AnswerBatch:
    """The inverse of `_columns`."""
    file = pa.BufferReader(pa.py_buffer(data))
    (rows,), (runs,) = ([*pa.ipc.open_stream(file)] for _ in range(2))
    names = AnswerNames(*map(tuple, json.loads(rows.schema.metadata[_NAMES])))
    solutions = _runs(runs.column("solutions"))
    trace = _runs(runs.column("trace")) if "trace" in runs.schema.names else solutions
    codec = SolutionCodec(SolutionColumns(names.variables))
    return AnswerBatch(names, codec.rows(rows), solutions, trace)


def _lists(runs: Runs) -> pa.Array:
    offsets = np.concatenate([np.zeros(1, np.int64), runs.ends])
    return pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(runs.places))


def _runs(lists: pa.Array) -> Runs:
    return Runs(lists.values.to_numpy(), lists.offsets.to_numpy()[1:])


# --- order --------------------------------------------------------------------------------------


def merged(found: Iterable[tuple[int, Answers]]) -> Iterator[Answers]:
    """The answers of one query in order, from blocks of all tasks.

    `found` has the answers of each block, and the time at which the first one ends (ms), ascending.
    About `thresholds.current.ordered_answers` solutions are in memory, or the blocks that overlap.
    """
    held: list[Answers] = []
    for time, block in found:
        if sum(map(_size, held)) >= thresholds.current.ordered_answers:
            places = [_place(answers, time) for answers in held]
            ready = [_part(a, 0, n) for a, n in zip(held, places, strict=True) if n]
            held = [_part(a, n, len(a)) for a, n in zip(held, places, strict=True) if n < len(a)]
            yield from _in_order(ready)
        held.append(block)
    yield from _in_order(held)


def _size(answers: Answers) -> int:
    """About how many solutions answers have."""
    return len(answers.solutions.places) if isinstance(answers, AnswerBatch) else len(answers)


def _place(answers: Answers, time: int) -> int:
    """How many answers end before a time (ms)."""
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
    """The answers of some pieces, each of which is in order, in order."""
    columns = [p for p in pieces if isinstance(p, AnswerBatch)]
    values = _sorted([p for p in pieces if not isinstance(p, AnswerBatch)])
    batch = _ordered(columns)
    if batch is None:
        values += [answer for piece in columns for answer in piece]
        yield sorted(values, key=Answer.order_key) if columns else values
    elif not values:
        yield batch
    else:  # only answers that end when a value ends, or between them, are made one by one
        begin, end = _place(batch, values[0].end[0]), _place(batch, values[-1].end[0] + 1)
        yield batch.part(0, begin)
        yield sorted([*values, *batch.part(begin, end)], key=Answer.order_key)
        yield batch.part(end, len(batch))


def _sorted(pieces: Sequence[list[Answer]]) -> list[Answer]:
    """The answers of some pieces in order. Those of a single task follow each other already."""
    answers = [answer for piece in pieces for answer in piece]
    if any(a[-1].order_key() > b[0].order_key() for a, b in pairwise(filter(None, pieces))):
        answers.sort(key=Answer.order_key)
    return answers


def _ordered(pieces: Sequence[AnswerBatch]) -> AnswerBatch | None:
    """The answers of some pieces in order; None if there are none, or if they are too many."""
    if len(pieces) <= 1:
        return pieces[0] if pieces else None
    whole = AnswerBatch.concat(pieces)
    if not can_be_ordered(whole.solutions):
        return None
    return in_order(whole, RowRanks.of(whole.rows, whole.names))
