"""Answers as rows of the users' DataFrame, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from spaseq.algebra.answer_batch import AnswerBatch
from spaseq.algebra.answers import Answer, PartialAnswer, TraceItem, extent_text
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.runtime.job.job import LateEvent
from spaseq.runtime.spark.rows.stage_rows import batch_of
from spaseq.sinks.answer_columns import TRACED, TRIPLE, AnswerColumns
from spaseq.sinks.typed_columns import TIME

ANSWER_SCHEMA = pa.schema(
    [
        ("query", pa.string()),
        ("start", TIME),
        ("end", TIME),
        ("bindings", pa.map_(pa.string(), pa.string())),
        ("trace", pa.list_(TRACED)),
        ("event", pa.string()),
        ("graph", pa.list_(TRIPLE)),
    ]
)
PARTIAL_SCHEMA = pa.schema(
    [("reached", pa.string()), ("waiting", pa.list_(pa.string())), ("closed", TIME)]
)
"""The further columns of partial matches; they are null in other rows."""
SIDES_SCHEMA = pa.schema(
    [
        (
            "late",
            pa.struct(
                [
                    ("stream", pa.string()),
                    ("event", pa.string()),
                    ("time", TIME),
                    ("late_ms", pa.int64()),
                ]
            ),
        ),
        (
            "bad",
            pa.struct(
                [
                    ("file", pa.string()),
                    ("line", pa.int64()),
                    ("reason", pa.string()),
                    ("text", pa.string()),
                ]
            ),
        ),
    ]
)
"""The columns of late events and of malformed input; only one of them is not null."""


def side_row_of(side: LateEvent | BadInput) -> dict[str, Any]:
    """A row of `SIDES_SCHEMA`."""
    match side:
        case LateEvent(stream, event, time, late_ms):
            late = {"stream": stream, "event": event, "time": time * 1000, "late_ms": late_ms}
            return {"late": late}
        case BadInput(file, line, reason, text):
            return {"bad": {"file": file, "line": line, "reason": reason, "text": text}}


def answer_columns(name: str, answers: Sequence[Answer]) -> pa.RecordBatch:
    """Rows of `ANSWER_SCHEMA` for answers of the query with this name."""
    columns = AnswerColumns((), several=True, graphs=True)
    if isinstance(answers, AnswerBatch):
        table, bindings = columns.raw_of(name, answers), _bindings(answers)
    else:
        table = columns.raw([(name, answer) for answer in answers])
        of_answers = [list(answer.bindings) for answer in answers]
        bindings = pa.array(of_answers, ANSWER_SCHEMA.field("bindings").type)
    arrays = [bindings if n == "bindings" else table.column(n) for n in ANSWER_SCHEMA.names]
    return pa.RecordBatch.from_arrays(arrays, schema=ANSWER_SCHEMA)


def partial_columns(name: str, partials: Sequence[PartialAnswer]) -> pa.RecordBatch:
    """Rows of `ANSWER_SCHEMA` and `PARTIAL_SCHEMA` for partial matches of this query."""
    closed = (p.closed and p.closed[0] * 1000 for p in partials)
    rows = zip([p.reached for p in partials], [p.waiting for p in partials], closed, strict=True)
    columns = answer_columns(name, [p.answer for p in partials]).columns
    columns += batch_of(PARTIAL_SCHEMA, [*rows]).columns
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([*ANSWER_SCHEMA, *PARTIAL_SCHEMA]))


def _bindings(answers: AnswerBatch) -> pa.MapArray:
    """The variables that each answer binds, with their terms."""
    size, names = len(answers), tuple(dict.fromkeys(answers.names.projected))
    texts = [answers.column(name).compact().strings().cast(pa.string()) for name in names]
    if not names:
        return pa.MapArray.from_arrays([0] * (size + 1), *(pa.array([], pa.string()),) * 2)
    bound = np.stack([text.is_valid().to_numpy(zero_copy_only=False) for text in texts], axis=1)
    answer, variable = np.nonzero(bound)
    ends = np.concatenate([[0], np.cumsum(bound.sum(axis=1))]).astype(np.int32)
    keys = pa.array(names, pa.string()).take(pa.array(variable))
    terms = pa.concat_arrays(texts).take(pa.array(variable * size + answer))
    return pa.MapArray.from_arrays(pa.array(ends), keys, terms)


def answer_of_row(row: dict[str, Any]) -> Answer:
    """The answer of a row of `ANSWER_SCHEMA`; the k of its first and its end are 0."""
    trace = tuple(map(_item, row["trace"]))
    graph = row["graph"]
    triples = (
        None if graph is None else tuple((t["subject"], t["predicate"], t["object"]) for t in graph)
    )
    return Answer(
        (_ms(row["start"]), 0),
        (_ms(row["end"]), 0),
        trace,
        tuple(row["bindings"]),
        graph=triples,
        event=row["event"],
    )


def _item(row: dict[str, Any]) -> TraceItem:
    event, begin = row["event"], row["from"]
    if begin is not None:
        event = extent_text(_ms(begin), row["events"])
    return TraceItem(_ms(row["time"]), row["k"], row["gpm"], row["stream"], event)


def _ms(time: Any) -> int:
    """Milliseconds of a timestamp, which Arrow gives as an aware datetime."""
    ms: int = round(time.timestamp() * 1000)
    return ms
