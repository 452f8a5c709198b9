"""Columns of texts made at once: terms in the syntax of a format, times, and lines of JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq import thresholds
from spaseq.algebra.answer_batch import AnswerBatch
from spaseq.algebra.graph_batch import GraphBatch
from spaseq.algebra.joined_texts import (
    Part,
    PlacedTexts,
    bytes_of,
    joined,
    joined_runs,
    joined_where_bound,
)
from spaseq.compiled.arrays import Bools, Indices, Int32s, Int64s
from spaseq.rdf.columns.term_columns import (
    NO_TEXTS,
    UNBOUND,
    TermColumn,
    TextArray,
    distinct_codes,
    text_array,
)
from spaseq.rdf.kernels.texts import holding_any
from spaseq.rdf.terms.term import CDT_LIST, GENERATED_AT_TIME, XSD_DATE_TIME
from spaseq.rdf.terms.times import FRACTIONS, format_time
from spaseq.records import record
from spaseq.sinks.answer_json import plain_json, quoted, step_json, term_json

TEXT = pa.large_string()

Form: TypeAlias = tuple[str, str]
"""The opening and the end of a term, such as `"` and `"@en`."""

_FORMS = 12
"""At most this many forms of terms (datatypes, languages) are looked for in one column."""

_FAR = 2**31 - 1
"""Behind every text. Without a stop, `binary_slice` of Arrow 26 fails for several texts."""

_DAY_MS = 86_400_000

_LIST = f'"^^<{CDT_LIST}>'


def bytes_table(special: bytes) -> Bools:
    """By byte: whether it is one of these, or a control character."""
    table = np.arange(256) < 32
    table[[*special]] = True
    return table


@record
class Syntax:
    """The form of terms in a format.

    `convert` returns the text of any term. `special` says by byte whether it may change the text
    around it. A term is an opening, a body and an end, such as `<`, an IRI and `>`. Bodies without
    special bytes are written as they are, between two texts that depend on the rest only.
    """

    convert: Callable[[str], str]
    special: Bools

    def texts(self, column: TermColumn) -> PlacedTexts:
        """The texts of a column of terms, none where it is unbound."""
        column = column.compact()
        return PlacedTexts(self.of_terms(column.terms), column.codes)

    def of_terms(self, terms: TextArray) -> TextArray:
        """The texts of terms, none of which is null."""
        if len(terms) <= thresholds.current.few_texts:
            return encoded([self.convert(text) for text in terms.to_pylist()])
        converted = []
        for rows, alike, form in by_form(terms):
            if form is None:
                texts = encoded([self.convert(text) for text in alike.to_pylist()])
            else:
                texts = self._of_form(alike, *form)
            converted.append((rows, texts))
        return merged(converted)

    def _of_form(self, terms: TextArray, opening: str, end: str) -> TextArray:
        body = body_of(terms, opening, end)
        head, tail = self.convert(f"{opening}@{end}").split("@", 1)
        parts = wrapped(body, head, tail, self.special, terms, self.convert)
        return joined(parts, len(terms))


def by_form(terms: TextArray) -> Iterator[tuple[Indices, TextArray, Form | None]]:
    """Terms by their openings and ends: (rows, the terms in them, their form).

    The form is None for terms of which more has to be known.
    """
    rest, rows = terms, np.arange(len(terms))
    for _ in range(_FORMS):
        form = _form(rest[0].as_py()) if len(rest) else None
        if form is None:
            break
        mine = _bools(pc.and_(pc.starts_with(rest, form[0]), pc.ends_with(rest, form[1])))
        if mine.all():
            yield rows, rest, form
            return
        yield rows[mine], rest.filter(pa.array(mine)), form
        rest, rows = rest.filter(pa.array(~mine)), rows[~mine]
    if len(rest):
        yield rows, rest, None


def body_of(terms: TextArray, opening: str, end: str) -> TextArray:
    """The bodies between the openings and the ends of terms."""
    first, last = len(opening.encode()), len(end.encode())
    stop = -last if last else _FAR
    return pc.binary_slice(terms.view(pa.large_binary()), first, stop).view(TEXT)


def encoded(texts: Sequence[str | None]) -> TextArray:
    """Texts as a column, with escapes for characters that UTF-8 cannot encode."""
    try:
        return text_array(texts)
    except UnicodeEncodeError:
        escaped = [None if t is None else t.encode("utf-8", "backslashreplace") for t in texts]
        return pa.array(escaped, pa.large_binary()).view(TEXT)


def wrapped(
    body: TextArray,
    head: str,
    tail: str,
    special: Bools,
    texts: TextArray,
    convert: Callable[[str], str],
) -> list[Part]:
    """Parts that write bodies between two texts, or `convert` of a text with special bytes."""
    is_special = holding_any(*bytes_of(body), special)
    if not is_special.any():
        return [head, body, tail]
    plain, others = np.flatnonzero(~is_special), np.flatnonzero(is_special)
    whole = joined([head, body.take(pa.array(plain)), tail], len(plain))
    made = [convert(text) for text in texts.take(pa.array(others)).to_pylist()]
    return [merged([(plain, whole), (others, encoded(made))])]


def joined_fields(columns: Sequence[Part], separator: str, line_end: str, size: int) -> TextArray:
    """Lines of a table."""
    parts = [part for column in columns for part in (separator, column)]
    return joined([*parts[1:], line_end], size)


def integer_texts(numbers: Int32s | Int64s) -> TextArray:
    """Integers as texts."""
    return pc.cast(pa.array(numbers), TEXT)


def time_texts(times_ms: Int64s) -> TextArray:
    """`format_time` of times."""
    if not len(times_ms):
        return NO_TEXTS
    days = times_ms // _DAY_MS
    past = times_ms - days * _DAY_MS
    first = days.min()
    known, day = distinct_codes(days - first, int(days.max() - first) + 1)
    dates = [format_time(day * _DAY_MS)[: -len("00:00:00Z")] for day in (known + first).tolist()]
    places = day, past // 60_000, past // 1000 % 60, past % 1000
    tables = zip((text_array(dates), *_clock()), places, strict=True)
    return joined(
        [PlacedTexts(table, numbers.astype(np.int32)) for table, numbers in tables], len(times_ms)
    )


@cache
def _clock() -> tuple[TextArray, TextArray, TextArray]:
    """The texts of minutes, seconds and fractions, as `format_time` writes them."""
    minutes = [f"{minute // 60:02}:{minute % 60:02}:" for minute in range(24 * 60)]
    return text_array(minutes), text_array([f"{s:02}" for s in range(60)]), text_array(FRACTIONS)


def _form(text: str) -> Form | None:
    """The opening and the end of a term; None if there is more to know about it."""
    if text[0] == '"':
        end = text[text.rindex('"') :]
        return None if end == _LIST else ('"', end)
    return ("_:", "") if text[0] == "_" else ("<", ">")


def merged(parts: Sequence[tuple[Indices, TextArray]]) -> TextArray:
    """Texts in the order of their rows, which are all of 0 ... n - 1."""
    if len(parts) == 1:
        return parts[0][1]
    rows = np.concatenate([rows for rows, _ in parts])
    places = np.empty(len(rows), np.int64)
    places[rows] = np.arange(len(rows))
    return pa.concat_arrays([texts for _, texts in parts]).take(pa.array(places))


def _bools(values: pa.Array) -> Bools:
    bools: Bools = values.to_numpy(zero_copy_only=False)
    return bools


_SPECIAL = bytes_table(b'"\\<')
JSON_SYNTAX = Syntax(term_json, _SPECIAL)
PLAIN_JSON_SYNTAX = Syntax(plain_json, _SPECIAL)


def json_lines(query: str, answers: AnswerBatch) -> TextArray:
    """The lines that `answer_json` makes of the answers, with their line ends."""
    return of_query(query, *_rests(answers), size=len(answers))


def rests_of_json_lines(answers: AnswerBatch) -> TextArray:
    """The text after the query's name in each line; `of_query` makes lines of it."""
    return joined(_rests(answers), len(answers))


def of_query(query: str, *rests: Part, size: int) -> TextArray:
    """The lines of answers of a query."""
    return joined([f'{{"query": {quoted(query)}', *rests], size)


def graph_lines(query: str, graphs: GraphBatch) -> TextArray:
    """The lines that `answer_json` makes of answers with graphs, with their line ends."""
    events = joined(wrapped(graphs.events, '"', '"', _SPECIAL, graphs.events, quoted), len(graphs))
    triples = joined_where_bound(
        [
            (
                "",
                _where(
                    kept,
                    [
                        '{"subject": ',
                        PLAIN_JSON_SYNTAX.texts(s),
                        ', "predicate": ',
                        PLAIN_JSON_SYNTAX.texts(p),
                        ', "object": ',
                        PLAIN_JSON_SYNTAX.texts(o),
                        "}",
                    ],
                ),
            )
            for (s, p, o), kept in zip(graphs.triples, graphs.kept, strict=True)
        ],
        ", ",
        len(graphs),
    )
    result: list[Part] = ['"event": ', events, ', "graph": [', *triples, "]"]
    return of_query(query, *_around(graphs.answers, result), size=len(graphs))


def triple_lines(graphs: GraphBatch, after: str) -> TextArray:
    """The N-Quads of graphs and of their times, with a text after each of them."""
    event = joined([" <", graphs.events, "> .\n"], len(graphs))
    lines = [
        _where(kept, [*_apart(PlacedTexts.of(column) for column in triple), event])
        for triple, kept in zip(graphs.triples, graphs.kept, strict=True)
    ]
    times = time_texts(graphs.answers.end_times)
    end = f'"^^<{XSD_DATE_TIME}> .\n{after}'
    return joined(
        [*lines, "<", graphs.events, f'> <{GENERATED_AT_TIME}> "', times, end], len(graphs)
    )


def _apart(texts: Iterable[Part]) -> list[Part]:
    """Texts with a space between them."""
    return [part for text in texts for part in (" ", text)][1:]


def _where(kept: Bools, parts: Sequence[Part]) -> PlacedTexts:
    """Joined texts in some rows, and no text in the others."""
    size = len(kept)
    places = np.where(kept, np.arange(size), UNBOUND).astype(np.int32)
    return PlacedTexts(joined(parts, size), places)


def _rests(answers: AnswerBatch) -> list[Part]:
    return _around(answers, ['"bindings": {', *_bindings(answers), "}"])


def _around(answers: AnswerBatch, result: Sequence[Part]) -> list[Part]:
    """The text after the query's name in each line, given the text between times and trace."""
    times = time_texts(answers.rows.time)
    return [
        ', "start": "',
        PlacedTexts(times, answers.first.astype(np.int32)),
        '", "end": "',
        PlacedTexts(times, answers.last.astype(np.int32)),
        '", ',
        *result,
        ', "trace": [',
        *joined_runs(_items(answers, times), answers.trace, ", "),
        "]}\n",
    ]


def _bindings(answers: AnswerBatch) -> list[Part]:
    """The members of the objects of bindings."""
    fields = [
        (f"{quoted(name)}: ", JSON_SYNTAX.texts(answers.column(name)))
        for name in answers.names.projected
    ]
    return joined_where_bound(fields, ", ", len(answers))


def _items(answers: AnswerBatch, times: TextArray) -> TextArray:
    """The item of a trace for each row."""
    rows, names, size = answers.rows, answers.names, len(answers.rows)
    count = len(names.streams)
    steps = text_array([step_json(gpm, s) for gpm in names.gpms for s in names.streams])
    step = PlacedTexts(steps, rows.gpm.astype(np.int32) * count + rows.stream)
    graph, extents = split_names(rows.event.strings())
    more: list[Part] = ['", "k": ', integer_texts(rows.k)]
    if extents is not None:
        begins, events = time_texts(extents.begin), integer_texts(extents.events)
        parts: list[Part] = [', "from": "', begins, '", "events": ', events]
        extent_of = np.full(size, UNBOUND, np.int32)
        extent_of[extents.rows] = np.arange(len(extents.rows))
        more.append(PlacedTexts(joined(parts, len(events)), extent_of))
    return joined([step, *_graphs(graph), ', "time": "', times, *more, "}"], size)


@record
class Extents:
    """The extents of m window events among n events.

    Attributes:
        rows: [m] the numbers of these events.
        begin: int64 [m], when their ranges begin (ms).
        events: int64 [m], the numbers of events in them.
    """

    rows: Indices
    begin: Int64s
    events: Int64s


def split_names(names: TextArray) -> tuple[TextArray, Extents | None]:
    """The IRIs of events' graphs, null for window events, and the extents of these, if any."""
    is_window = pc.match_substring(names, " ")
    rows = np.flatnonzero(is_window.fill_null(False))
    if not len(rows):
        return names, None
    parts = pc.list_flatten(pc.split_pattern(names.take(pa.array(rows)), " "))
    begin, events = parts.cast(pa.int64()).to_numpy().reshape(-1, 2).T
    return pc.if_else(is_window, pa.scalar(None, names.type), names), Extents(rows, begin, events)


def _graphs(names: TextArray) -> list[Part]:
    """Parts that write the names of events' graphs as JSON."""
    if not names.null_count:
        return wrapped(names, '"', '"', _SPECIAL, names, quoted)
    named = names.fill_null(pa.scalar("", TEXT))
    texts = joined(wrapped(named, '"', '"', _SPECIAL, named, quoted), len(names))
    return [pc.if_else(names.is_valid(), texts, pa.scalar("null", TEXT))]
