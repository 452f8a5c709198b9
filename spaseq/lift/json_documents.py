"""JSON files that are one array of objects, or one object: each object is a row."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import IO

from spaseq import thresholds
from spaseq.lift.cells import Cell
from spaseq.lift.json_rows import DECODER, JsonRows, Members
from spaseq.lift.lift_plan import Fields
from spaseq.lift.row_blocks import RowBlock
from spaseq.lift.text_lines import BOM, Report
from spaseq.limits import Limits

_SPACE = re.compile(r"[ \t\r\n]*")
_LINE_OBJECT = re.compile(rb"\s*\{.*\}\s*\n")
_PEEKED = 1 << 16
_SHOWN = 300


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
        lines: list[int] = []
        numbers: list[int] = []
        rows: list[dict[str, Cell]] = []
        for number, (line, value, text) in enumerate(self._values(report), 1):
            try:
                if not isinstance(value, Members):
                    raise ValueError("a row is an object, and this is none")
                row = self._rows.row_of(value)
            except (ValueError, RecursionError) as error:
                report(line, str(error), text)
                continue
            lines.append(line)
            numbers.append(number)
            rows.append(row)
            if len(rows) >= thresholds.current.block_rows:
                yield self._rows.block(lines, numbers, rows)
                lines, numbers, rows = [], [], []
        if rows:
            yield self._rows.block(lines, numbers, rows)

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
    place = _after_space(text, 0)
    is_array = text[place : place + 1] == "["
    place = _after_space(text, place + is_array)
    line, counted = 1, 0
    while place < len(text) and not (is_array and text[place] == "]"):
        line, counted = line + text.count("\n", counted, place), place
        try:
            value, end = DECODER.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            report(line, f"not JSON: {reason}; the rest is not read", text[place:][:_SHOWN])
            return
        yield line, value, place, end
        place = _after_space(text, end)
        if is_array and text[place : place + 1] == ",":
            place = _after_space(text, place + 1)
        elif not is_array or text[place : place + 1] != "]":
            break
    rest = text[place + is_array :].strip() if place < len(text) else ""
    if rest or (is_array and text[place : place + 1] != "]"):
        line += text.count("\n", counted, place)
        reason = "the array has no end" if not rest else "text that belongs to no row"
        report(line, f"not JSON: {reason}", rest[:_SHOWN])


def _after_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    assert found is not None
    return found.end()
