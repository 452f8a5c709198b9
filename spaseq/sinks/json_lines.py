"""Answers of a batch as the lines of the jsonl format, without an object for each answer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spaseq.algebra.answer_batch import AnswerBatch
from spaseq.algebra.window_extent import extent_of
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import TextArray, text_array
from spaseq.sinks.answer_json import item_json, quoted, step_json, term_json
from spaseq.sinks.text_columns import (
    Syntax,
    bytes_table,
    integer_texts,
    joined,
    joined_runs,
    joined_where_bound,
    time_texts,
    wrapped,
)

_SPECIAL = bytes_table(b'"\\<')
JSON_SYNTAX = Syntax(term_json, _SPECIAL)


def json_lines(query: str, answers: AnswerBatch) -> TextArray:
    """The lines that `answer_json` makes of the answers, with their line ends."""
    times = time_texts(answers.rows.time)
    parts: list[str | TextArray] = [
        f'{{"query": {quoted(query)}, "start": "',
        times.take(pa.array(answers.first)),
        '", "end": "',
        times.take(pa.array(answers.last)),
        '", "bindings": {',
        _bindings(answers),
        '}, "trace": [',
        joined_runs(_items(answers, times), answers.trace, ", "),
        "]}\n",
    ]
    return joined(parts, len(answers))


def _bindings(answers: AnswerBatch) -> TextArray:
    """The members of the objects of bindings."""
    size = len(answers)
    columns = [
        joined([f"{quoted(v)}: ", JSON_SYNTAX.texts(answers.column(v))], size)
        for v in answers.names.projected
    ]
    return joined_where_bound(columns, ", ", size)


def _items(answers: AnswerBatch, times: TextArray) -> TextArray:
    """The item of a trace for each row."""
    rows, names, size = answers.rows, answers.names, len(answers.rows)
    count = len(names.streams)
    steps = text_array([step_json(gpm, s) for gpm in names.gpms for s in names.streams])
    step = steps.take(pa.array(rows.gpm.astype(np.int64) * count + rows.stream))
    more = ['", "k": ', integer_texts(rows.k), "}"]
    items = joined([step, _events(rows), ', "time": "', times, *more], size)
    has_windows = any(":" not in name for name in names.streams)  # no IRI is without a colon
    return _of_windows(items, answers) if has_windows else items


def _of_windows(items: TextArray, answers: AnswerBatch) -> TextArray:
    """The items, of which some may be of window events."""
    rows, names = answers.rows, answers.names
    texts = items.to_pylist()
    places = rows.time.tolist(), rows.k.tolist(), rows.gpm.tolist(), rows.stream.tolist()
    for i, (time, k, gpm, stream, name) in enumerate(zip(*places, rows.event.texts(), strict=True)):
        if extent_of(name) is not None:
            texts[i] = item_json(time, k, names.gpms[gpm], names.streams[stream], name)
    return text_array(texts)


def _events(rows: SolutionBatch) -> TextArray:
    """The names of the rows' events as JSON."""
    event = rows.event.strings()
    return wrapped(event, '"', '"', _SPECIAL, event, quoted).fill_null(
        pa.scalar("null", event.type)
    )
