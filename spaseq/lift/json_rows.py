"""JSON lines, and JSON files that are one array of objects, or one object: each object is a row.

The type of a value is its token's. Fields of nested objects are cells, by the names of their
variables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from spaseq import thresholds
from spaseq.compiled.arrays import Bools
from spaseq.expr.numbers import write_double
from spaseq.lift.cells import OBJECT, Cell, Flattening, Wrong, has_surrogate
from spaseq.lift.connect_envelopes import NAMES, Typed, is_envelope, typed
from spaseq.lift.lift_plan import Fields
from spaseq.lift.row_blocks import (
    BOM,
    Report,
    RowBlock,
    TextLines,
    lines_of,
    row_blocks,
    table_block,
    wanted_cells,
)
from spaseq.limits import Limits
from spaseq.rdf.terms.term import XSD, literal_text

if TYPE_CHECKING:
    from spaseq.lift.json_columns import JsonColumns, JsonScanner

_MARK = b'"payload"'

_SHOWN = 300
_BOOLEANS = {flag: literal_text(str(flag).lower(), f"{XSD}boolean") for flag in (True, False)}
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]', re.DOTALL)


class Members(list[tuple[str, Any]]):
    """An object as its members, in order; a name may stand twice."""


class _Integer(str):
    """The token of a number without fraction and exponent."""


class _Double(str):
    """The token of another number."""


def _no_constant(token: str) -> Any:
    raise ValueError(f"{token} is no JSON")


DECODER = json.JSONDecoder(
    object_pairs_hook=Members, parse_int=_Integer, parse_float=_Double, parse_constant=_no_constant
)
"""Decodes objects as `Members`, and numbers as their tokens."""


class JsonRows:
    """The rows of a text of JSON lines.

    Lines that a kernel is sure of become columns, if `scanner` is given. The others are read one by
    one, and so are the few lines between two of them.
    """

    def __init__(
        self, data: IO[bytes], fields: Fields, limits: Limits, scanner: JsonScanner | None = None
    ) -> None:
        self._lines = TextLines(data, limits)
        self._fields, self._limits, self._scanner = fields, limits, scanner
        self._flatten = Flattening(fields.wanted | fields.taken, cell, _members)
        self._opens = not any(name.partition("_")[0] in NAMES for name in fields.wanted)
        self._rows = 0  # that were read, bad ones too

    def blocks(self, report: Report) -> Iterator[RowBlock]:
        """The rows with the wanted fields; bad rows are reported.

        A row is also bad if it has a field with a name that the lift uses otherwise. Envelopes of
        Kafka Connect are removed, unless the lift reads their fields.
        """
        lines = self._lines
        while chunk := lines.chunk():
            if not lines.number:
                chunk = chunk.removeprefix(BOM)
            if self._scanner is None or (self._opens and _MARK in chunk):
                yield from self._row_blocks(lines_of(chunk), report)
            else:
                yield from self._column_blocks(chunk, self._scanner.columns(chunk), report)

    def _column_blocks(
        self, chunk: bytes, columns: JsonColumns, report: Report
    ) -> Iterator[RowBlock]:
        texts = lines_of(chunk) if columns.unsure.any() else []
        done, lines = 0, self._lines
        for first, end in [*_ranges(columns.unsure), (len(columns.unsure), 0)]:
            if first > done:
                batch, wanted = columns.batch.slice(done, first - done), self._fields.wanted
                yield table_block(batch, wanted, self._rows + 1, lines.number - self._rows)
                self._rows += first - done
                lines.number += first - done
            yield from self._row_blocks(texts[first:end], report)
            done = end

    def _row_blocks(self, texts: list[bytes], report: Report) -> Iterator[RowBlock]:
        """The rows of some lines, one by one."""
        self._lines.waiting.extend(texts)
        yield from row_blocks(self._numbered(report), partial(wanted_cells, self._fields.wanted))

    def _numbered(self, report: Report) -> Iterator[tuple[int, int, dict[str, Cell]]]:
        for line, raw in self._waiting():
            self._rows += 1
            try:
                row = self.row_of(_parsed(raw, self._limits))
            except (ValueError, RecursionError) as error:
                report(line, _reason(error), raw[:_SHOWN].decode(errors="replace").rstrip("\r\n"))
                continue
            if row is not None:
                yield line, self._rows, row

    def _waiting(self) -> Iterator[tuple[int, bytes]]:
        """(number, text) of each line that waits and is not blank; of one that is too long, its
        begin."""
        lines = self._lines
        while lines.waiting:
            raw = lines.next()
            if raw.strip():
                yield lines.number, raw
            if len(raw) > self._limits.line_bytes:
                lines.skip_rest(raw)

    def row_of(self, value: Members) -> dict[str, Cell] | None:
        """The cells of a row; ValueError if it is bad. None for an envelope around nothing."""
        if self._opens and is_envelope([name for name, _ in value]):
            parts = dict(value)
            if parts["payload"] is None:
                return None
            value = typed(parts["payload"], parts["schema"])
            if type(value) is not Members:
                raise ValueError("a row is an object, and the payload is none")
        cells = self._flatten.row(value)
        mine = self._fields.taken & cells.keys()
        if mine:
            raise ValueError(f"the lift gives ?{min(mine)} a value, and the row has such a field")
        return cells


def _ranges(unsure: Bools) -> list[tuple[int, int]]:
    """(first, end) of the ranges of lines that are read one by one."""
    lines = np.flatnonzero(unsure)
    if not len(lines):
        return []
    cuts = np.flatnonzero(np.diff(lines) > thresholds.current.lifted_rows)
    firsts = lines[np.concatenate([[0], cuts + 1])]
    ends = lines[np.concatenate([cuts, [len(lines) - 1]])] + 1
    return [*zip(firsts.tolist(), ends.tolist(), strict=True)]


def _parsed(raw: bytes, limits: Limits) -> Members:
    if len(raw) > limits.line_bytes:
        raise ValueError(f"a row of more than {limits.line_bytes:,} bytes")
    if raw.count(b"[") + raw.count(b"{") > limits.nesting:
        _check_depth(raw.decode(), limits.nesting)
    value = DECODER.decode(raw.decode().rstrip("\r\n"))
    if type(value) is not Members:
        raise ValueError("a row is an object, and this is none")
    return value


def _check_depth(text: str, most: int) -> None:
    depth = 0
    for match in _BRACKETS.finditer(text):
        depth += (match[0] in "[{") - (match[0] in "]}")
        if depth > most:
            raise ValueError(f"nested more than {most} deep")


def _reason(error: Exception) -> str:
    match error:
        case UnicodeDecodeError():
            return "not UTF-8"
        case json.JSONDecodeError(msg=message, colno=column):
            return f"not JSON: {message} (column {column})"
        case RecursionError():
            return "nested too deep"
    return str(error)


def _members(value: Any) -> Members | None:
    return value if type(value) is Members else None


def cell(value: Any) -> Cell:
    """The cell of a JSON value."""
    kind = type(value)
    if kind is str:
        return (
            Wrong("a lone surrogate is no character")
            if has_surrogate(value)
            else literal_text(value)
        )
    if value is None:
        return None
    if kind is Typed:
        return str(value)
    if kind is Wrong:
        return cast("Wrong", value)
    if kind is _Integer:
        return f'"{"0" if value == "-0" else value}"^^<{XSD}integer>'
    if kind is _Double:
        return f'"{write_double(float(value))}"^^<{XSD}double>'
    if kind is bool:
        return _BOOLEANS[value]
    if kind is Members:
        return OBJECT
    return _ELEMENTS.items(value)


_ELEMENTS = Flattening(None, cell, _members)
_SPACE = re.compile(r"[ \t\r\n]*")
_LINE_OBJECT = re.compile(rb"\s*\{.*\}\s*\n")
_PEEKED = 1 << 16


def is_document(data: IO[bytes]) -> bool:
    """Whether a JSON file is one document, and not JSON lines."""
    begin: bytes = data.peek(_PEEKED)  # type: ignore[attr-defined]
    begin = begin.removeprefix(BOM).lstrip()
    return begin.startswith(b"[") or not begins_with_line(begin)


def begins_with_line(text: bytes) -> bool:
    """Whether JSON begins with an object that is on a line by itself."""
    return _LINE_OBJECT.match(text) is not None


class DocumentRows:
    """The rows of one document, which is held in memory. Lines are where objects begin."""

    def __init__(self, data: IO[bytes], fields: Fields, limits: Limits) -> None:
        self._data, self._fields = data, fields
        self._rows = JsonRows(data, fields, limits)

    def blocks(self, report: Report) -> Iterator[RowBlock]:
        """The rows with the wanted fields; bad rows are reported.

        Behind text that is no JSON nothing can be read, and one report says so.
        """
        yield from row_blocks(self._numbered(report), partial(wanted_cells, self._fields.wanted))

    def _numbered(self, report: Report) -> Iterator[tuple[int, int, dict[str, Cell]]]:
        for number, (line, value, text) in enumerate(self._values(report), 1):
            try:
                if not isinstance(value, Members):
                    raise ValueError("a row is an object, and this is none")
                row = self._rows.row_of(value)
            except (ValueError, RecursionError) as error:
                report(line, str(error), text)
                continue
            if row is not None:
                yield line, number, row

    def _values(self, report: Report) -> Iterator[tuple[int, object, str]]:
        """(line, value, begin of its text) of each element of the array, or of the one value."""
        try:
            text = self._data.read().removeprefix(BOM).decode()
        except UnicodeDecodeError:
            report(1, "not UTF-8", "")
            return
        for line, value, begin, end in elements(text, report):
            yield line, value, text[begin:end][:_SHOWN]


def elements(text: str, report: Report) -> Iterator[tuple[int, object, int, int]]:
    """(line, value, begin, end) of each element of a JSON array, or of one value.

    Text that is no JSON is reported, and nothing behind it is read.
    """
    at = _after_space(text, 0)
    is_array = text[at : at + 1] == "["
    at = _after_space(text, at + is_array)
    line, counted = 1, 0
    while at < len(text) and not (is_array and text[at] == "]"):
        line, counted = line + text.count("\n", counted, at), at
        try:
            value, end = DECODER.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            report(line, f"not JSON: {reason}; the rest is not read", text[at:][:_SHOWN])
            return
        yield line, value, at, end
        at = _after_space(text, end)
        if is_array and text[at : at + 1] == ",":
            at = _after_space(text, at + 1)
        elif not is_array or text[at : at + 1] != "]":
            break
    rest = text[at + is_array :].strip() if at < len(text) else ""
    if rest or (is_array and text[at : at + 1] != "]"):
        line += text.count("\n", counted, at)
        reason = "the array has no end" if not rest else "text that belongs to no row"
        report(line, f"not JSON: {reason}", rest[:_SHOWN])


def _after_space(text: str, offset: int) -> int:
    space = _SPACE.match(text, offset)
    assert space is not None
    return space.end()
