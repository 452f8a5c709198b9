"""Columns of texts made at once: terms in the syntax of a format, times, joined texts, and lines of
JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq import thresholds
from spaseq.algebra.answer_batch import AnswerBatch, Runs
from spaseq.algebra.window_extent import extent_of
from spaseq.compiled.arrays import Bools, Bytes, Indices, Int32s, Int64s
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import TermColumn, TextArray, text_array
from spaseq.rdf.terms.term import CDT_LIST
from spaseq.rdf.terms.times import format_time
from spaseq.records import record
from spaseq.sinks.answer_json import item_json, quoted, step_json, term_json

TEXT = pa.large_string()

Form: TypeAlias = tuple[str, str]
"""The opening and the end of a term, such as `"` and `"@en`."""

_FORMS = 12
"""At most this many forms of terms (datatypes, languages) are looked for in one column."""

_FAR = 2**31 - 1
"""Behind every text. Without a stop, `binary_slice` of Arrow 26 fails for several texts."""

_DAY_MS = 86_400_000
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999  # of years with four digits

_LIST = f'"^^<{CDT_LIST}>'


def bytes_table(special: bytes) -> Bools:
    """By byte: whether it is one of these, or a control character."""
    table = np.arange(256) < 32
    table[[*special]] = True
    return table


@record
class Syntax:
    """How a format writes a term.

    `convert` gives the text of any term. `special` says by byte whether it may change the text
    around it. A term is an opening, a body and an end, such as `<`, an IRI and `>`. Bodies without
    special bytes are written as they are, between two texts that depend on the rest only.
    """

    convert: Callable[[str], str]
    special: Bools

    def texts(self, column: TermColumn) -> TextArray:
        """The texts of a column of terms, null where it is unbound."""
        column = column.compact()
        return TermColumn(column.codes, self.of_terms(column.terms)).strings()

    def of_terms(self, terms: TextArray) -> TextArray:
        """The texts of terms, none of which is null."""
        if len(terms) <= thresholds.current.few_texts:
            return encoded([self.convert(text) for text in terms.to_pylist()])
        found = []
        for rows, own, form in by_form(terms):
            if form is None:
                texts = encoded([self.convert(text) for text in own.to_pylist()])
            else:
                texts = self._of_form(own, *form)
            found.append((rows, texts))
        return merged(found)

    def _of_form(self, terms: TextArray, opening: str, end: str) -> TextArray:
        body = body_of(terms, opening, end)
        head, tail = self.convert(f"{opening}@{end}").split("@", 1)
        return wrapped(body, head, tail, self.special, terms, self.convert)


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
    """What stands between the openings and the ends of terms."""
    first, last = len(opening.encode()), len(end.encode())
    stop = -last if last else _FAR
    return pc.binary_slice(terms.view(pa.large_binary()), first, stop).view(TEXT)


def encoded(texts: Sequence[str | None]) -> TextArray:
    """Texts as a column; what UTF-8 cannot write is escaped."""
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
) -> TextArray:
    """Each body between two texts; `convert` of its text where it has special bytes."""
    plain = joined([head, body, tail], len(body))
    data, ends = _bytes_of(body)
    places = np.flatnonzero(special[data])
    flagged = np.unique(np.searchsorted(ends, places, "right") - 1)
    if not len(flagged):
        return plain
    others = np.ones(len(body), np.bool_)
    others[flagged] = False
    made = [convert(text) for text in texts.take(pa.array(flagged)).to_pylist()]
    kept = np.flatnonzero(others)
    return merged([(kept, plain.take(pa.array(kept))), (flagged, encoded(made))])


def joined(parts: Sequence[str | TextArray], size: int) -> TextArray:
    """Texts [n] one after the other, row by row. A `str` stands in all rows; null gives null."""
    columns = [pa.scalar(part, TEXT) if isinstance(part, str) else part for part in parts]
    if all(isinstance(part, str) for part in parts):
        return pa.repeat(pa.scalar("".join(map(str, parts)), TEXT), size)
    return pc.binary_join_element_wise(*columns, pa.scalar("", TEXT))


def joined_where_bound(columns: Sequence[TextArray], separator: str, size: int) -> TextArray:
    """Texts [n] one after the other, row by row, separated where several are not null."""
    if not columns:
        return joined([""], size)
    if not any(column.null_count for column in columns):
        parts: list[str | TextArray] = [columns[0]]
        for column in columns[1:]:
            parts += [separator, column]
        return joined(parts, size)
    before, leads = np.zeros(size, np.int64), text_array(["", separator])
    parts = []
    for column in columns:
        led = joined([leads.take(pa.array(before)), column], size)
        parts.append(led.fill_null(pa.scalar("", TEXT)))
        before |= _bools(column.is_valid())
    return joined(parts, size)


def joined_fields(
    columns: Sequence[TextArray], separator: str, line_end: str, size: int
) -> TextArray:
    """Lines of a table; null is an empty field."""
    parts: list[str | TextArray] = []
    for column in columns:
        parts += [separator, column.fill_null(pa.scalar("", TEXT))]
    return joined([*parts[1:], line_end], size)


def joined_runs(texts: TextArray, runs: Runs, separator: str) -> TextArray:
    """The texts of each run, separated."""
    if width := runs.width:
        places = runs.places.reshape(-1, width)
        parts: list[str | TextArray] = [texts.take(pa.array(places[:, 0].copy()))]
        for i in range(1, width):
            parts += [separator, texts.take(pa.array(places[:, i].copy()))]
        return joined(parts, len(runs))
    ends = np.concatenate([[0], runs.ends])
    lists = pa.LargeListArray.from_arrays(pa.array(ends), texts.take(pa.array(runs.places)))
    return pc.binary_join(lists, pa.scalar(separator, TEXT))


def integer_texts(numbers: Int32s) -> TextArray:
    """Integers as texts."""
    return pc.cast(pa.array(numbers), TEXT)


def time_texts(times_ms: Int64s) -> TextArray:
    """`format_time` of times."""
    n = len(times_ms)
    if not n or times_ms.min() < _FIRST_MS or times_ms.max() > _LAST_MS:
        return text_array([format_time(time) for time in times_ms.tolist()])
    days, past = np.divmod(times_ms, _DAY_MS)
    known, which = np.unique(days, return_inverse=True)
    dates = "".join([format_time(day * _DAY_MS)[:11] for day in known.tolist()])
    text = np.empty((n, 24), np.uint8)
    text[:, :11] = np.frombuffer(dates.encode(), np.uint8).reshape(-1, 11)[which]
    seconds, fraction = np.divmod(past, 1000)
    minutes, second = np.divmod(seconds, 60)
    hour, minute = np.divmod(minutes, 60)
    text[:, 11:13], text[:, 14:16], text[:, 17:19] = _TWO[hour], _TWO[minute], _TWO[second]
    text[:, [13, 16]] = ord(":")
    text[:, 19], text[:, 20:23], text[:, 23] = ord("."), _THREE[fraction], ord("Z")
    whole = fraction == 0
    text[whole, 19] = ord("Z")
    lengths = np.where(whole, 20, 24)
    shown = text.reshape(-1) if not whole.any() else text[np.arange(24) < lengths[:, None]]
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return pa.LargeStringArray.from_buffers(
        n, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(shown))
    )


def _digits(count: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """[10 ** count, count] the digits of numbers, as bytes."""
    text = "".join(f"{number:0{count}}" for number in range(10**count))
    return np.frombuffer(text.encode(), np.uint8).reshape(-1, count)


_TWO, _THREE = _digits(2), _digits(3)


def _form(text: str) -> Form | None:
    """The opening and the end of a term; None if there is more to know about it."""
    if text[0] == '"':
        end = text[text.rindex('"') :]
        return None if end == _LIST else ('"', end)
    return ("_:", "") if text[0] == "_" else ("<", ">")


def _bytes_of(texts: TextArray) -> tuple[Bytes, Int64s]:
    """The bytes of texts, and [n + 1] where each text begins and the last one ends."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    whole = np.frombuffer(data or b"", np.uint8)
    return whole[ends[0] : ends[-1]], ends - ends[0]


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
