"""Answers of one query as bytes: on disk, and between processes.

Columns of answers are two Arrow streams; answers that are no columns are plain tuples.
"""

from __future__ import annotations

import json
import marshal
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from spaseq.algebra.answer_batch import PIECE, AnswerBatch, AnswerNames, Runs
from spaseq.algebra.answers import Answer, TraceItem
from spaseq.rdf.columns.solution_batch import SolutionCodec
from spaseq.rdf.columns.solution_columns import SolutionColumns

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
