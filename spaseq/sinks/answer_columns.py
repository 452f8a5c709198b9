"""Answers as Arrow tables: typed columns for variables, times, and traces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from spaseq.algebra.answer_batch import PIECE, AnswerBatch, SharedPart
from spaseq.algebra.answers import Answer, TraceItem, extent_of
from spaseq.compiled.arrays import Int64s
from spaseq.errors import RunError
from spaseq.sinks.text_columns import split_names
from spaseq.sinks.typed_columns import TIME, ColumnType

TRACED = pa.struct(
    [
        ("gpm", pa.string()),
        ("stream", pa.string()),
        ("event", pa.string()),
        ("time", TIME),
        ("k", pa.int32()),
        ("from", TIME),
        ("events", pa.int32()),
    ]
)
"""An event of a trace; the last two are the begin of a window's range, and its events."""

PLACES = ("subject", "predicate", "object")
TRIPLE = pa.struct([(place, pa.string()) for place in PLACES])
"""A triple of a graph that CONSTRUCT made, as N-Triples texts."""

_OWN = {
    "query": pa.string(),
    "start": TIME,
    "end": TIME,
    "event": pa.string(),
    "graph": pa.list_(TRIPLE),
    "trace": pa.list_(TRACED),
}
_LONGEST_US = 2**63


class AnswerColumns:
    """The columns of answers: the projected variables, then `start`, `end` and `trace`.

    Answers of several queries have a column `query` first. Answers of CONSTRUCT queries have the
    columns `event` and `graph`. If a variable has the name of such a column, the column is called
    `match_start`, for instance.

    `raw` makes batches whose variables are N-Triples texts, and records their types. After all
    answers, `typed` gives such batches their types.
    """

    def __init__(
        self, variables: Sequence[str], several: bool = False, graphs: bool = False
    ) -> None:
        self._variables = tuple(dict.fromkeys(variables))
        before = ("query",) if several else ()
        after = ("start", "end", *(("event", "graph") if graphs else ()), "trace")
        self._before, self._after = before, after
        self._types = {name: ColumnType() for name in self._variables}

    @property
    def raw_schema(self) -> pa.Schema:
        """The columns of a raw batch."""
        return self._schema({name: pa.string() for name in self._variables})

    @property
    def schema(self) -> pa.Schema:
        """The columns of the answers seen so far."""
        return self._schema({name: column.arrow for name, column in self._types.items()})

    def _schema(self, types: dict[str, pa.DataType]) -> pa.Schema:
        own_before = [(own_column(name, self._variables), _OWN[name]) for name in self._before]
        own_after = [(own_column(name, self._variables), _OWN[name]) for name in self._after]
        return pa.schema([*own_before, *types.items(), *own_after])

    def raw(self, answers: Sequence[tuple[str, Answer]]) -> pa.RecordBatch:
        """A batch of (name of the query, answer)."""
        rows = [dict(answer.bindings) for _, answer in answers]
        columns = [_own(name, answers) for name in self._before]
        for name in self._variables:
            texts = [row.get(name) for row in rows]
            self._types[name].see(texts)
            columns.append(pa.array(texts, pa.string()))
        columns += [_own(name, answers) for name in self._after]
        return pa.RecordBatch.from_arrays(columns, schema=self.raw_schema)

    def raw_of(self, query: str, answers: AnswerBatch) -> pa.RecordBatch:
        """A batch of the answers of one query, which are columns."""
        size, rows = len(answers), answers.rows
        times = pa.array(_all_us(rows.time), TIME)
        own: dict[str, Any] = {
            "query": lambda: pa.repeat(pa.scalar(query, pa.string()), size),
            "start": lambda: times.take(pa.array(answers.first)),
            "end": lambda: times.take(pa.array(answers.last)),
            "event": lambda: pa.nulls(size, pa.string()),
            "graph": lambda: pa.nulls(size, _OWN["graph"]),
            "trace": lambda: _traces(answers, times),
        }
        columns = [own[name]() for name in self._before]
        for name in self._variables:
            if name in answers.names.projected:
                column = answers.column(name).compact()
                self._types[name].see_column(column)
                columns.append(column.strings().cast(pa.string()))
            else:
                columns.append(pa.nulls(size, pa.string()))
        columns += [own[name]() for name in self._after]
        return pa.RecordBatch.from_arrays(columns, schema=self.raw_schema)

    def raw_part(self, query: str, answers: SharedPart) -> pa.RecordBatch:
        """A batch of answers of one query, which are rows of columns."""
        whole = answers.whole.once(self._raw_shared)
        part = whole.slice(answers.begin, len(answers))
        if not self._before:
            return part
        names = pa.repeat(pa.scalar(query, pa.string()), len(part))
        return pa.RecordBatch.from_arrays([names, *part.columns[1:]], schema=self.raw_schema)

    def _raw_shared(self, answers: AnswerBatch) -> pa.RecordBatch:
        return self.raw_of("", answers)

    def typed(self, raw: pa.RecordBatch) -> pa.RecordBatch:
        """A raw batch with typed variables."""
        columns = list(raw.columns)
        for number, name in enumerate(self._variables, len(self._before)):
            columns[number] = self._types[name].column(columns[number])
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def table(self, raw: Iterable[pa.RecordBatch]) -> pa.Table:
        """Raw batches as a typed table."""
        seen = [*_joined(raw)]  # all of them, before their types are known
        return pa.Table.from_batches([self.typed(batch) for batch in seen], self.schema)


def _joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of batches in fewer ones where batches are small."""
    small: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        small.append(batch)
        size += len(batch)
        if size >= PIECE:
            yield from pa.Table.from_batches(small).combine_chunks().to_batches()
            small, size = [], 0
    if small:
        yield from pa.Table.from_batches(small).combine_chunks().to_batches()


def own_column(name: str, variables: Sequence[str]) -> str:
    """The name of a column beside the variables.

    >>> own_column("end", ["road", "end"])
    'match_end'
    """
    while name in variables:
        name = f"match_{name}"
    return name


def _own(name: str, answers: Sequence[tuple[str, Answer]]) -> pa.Array:
    """A column beside the variables."""
    return pa.array([_VALUES[name](query, answer) for query, answer in answers], _OWN[name])


def _us(time_ms: int) -> int:
    """Microseconds, as Arrow counts."""
    if not -_LONGEST_US <= time_ms * 1000 < _LONGEST_US:
        raise RunError(f"a time {time_ms} ms is too far from the epoch for a table")
    return time_ms * 1000


def _all_us(times_ms: Int64s) -> Int64s:
    """`_us` of many times."""
    if len(times_ms):
        _us(int(times_ms.min()))
        _us(int(times_ms.max()))
    return times_ms * 1000


def _traces(answers: AnswerBatch, times: pa.Array) -> pa.Array:
    """The traces of answers, given the times of their rows."""
    rows, names = answers.rows, answers.names
    events = rows.event.strings().cast(pa.string())
    gpms, streams = pa.array(names.gpms, pa.string()), pa.array(names.streams, pa.string())
    graphs, *extents = _graph_names(events)
    fields = [
        gpms.take(pa.array(rows.gpm)),
        streams.take(pa.array(rows.stream)),
        graphs,
        times,
        pa.array(rows.k, pa.int32()),
        *extents,
    ]
    items = pa.StructArray.from_arrays(fields, fields=list(TRACED))
    ends = np.concatenate([[0], answers.trace.ends]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), items.take(pa.array(answers.trace.places)))


def _graph_names(names: pa.Array) -> list[pa.Array]:
    """The IRIs of events' graphs, or the begins of ranges and numbers of events of windows."""
    graphs, extents = split_names(names)
    if extents is None:
        return [names, pa.nulls(len(names), TIME), pa.nulls(len(names), pa.int32())]
    begins, events = np.zeros((2, len(names)), np.int64)
    begins[extents.rows], events[extents.rows] = _all_us(extents.begin), extents.events
    is_graph = np.ones(len(names), np.bool_)
    is_graph[extents.rows] = False
    return [
        graphs,
        pa.array(begins, TIME, mask=is_graph),
        pa.array(events.astype(np.int32), mask=is_graph),
    ]


def traced(item: TraceItem) -> dict[str, Any]:
    """A row of `TRACED`."""
    begin, events = extent_of(item.event) or (None, None)
    return {
        "gpm": item.gpm,
        "stream": item.stream,
        "event": item.event if events is None else None,
        "time": _us(item.time),
        "k": item.k,
        "from": None if begin is None else _us(begin),
        "events": events,
    }


def _graph(query: str, answer: Answer) -> list[dict[str, str]] | None:
    if answer.graph is None:
        return None
    return [dict(zip(PLACES, triple, strict=True)) for triple in answer.graph]


_VALUES: dict[str, Any] = {
    "query": lambda query, answer: query,
    "start": lambda query, answer: _us(answer.first[0]),
    "end": lambda query, answer: _us(answer.end[0]),
    "event": lambda query, answer: answer.event,
    "graph": _graph,
    "trace": lambda query, answer: [traced(item) for item in answer.trace],
}
