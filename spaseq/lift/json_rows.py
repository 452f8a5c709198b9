"""JSON lines: each line is an object, and the type of a value is its token's."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import IO, Any

from spaseq.expr.numbers import write_double
from spaseq.lift.cells import (
    BLOCK_ROWS,
    Cell,
    Items,
    RowBlock,
    Wrong,
    has_surrogate,
)
from spaseq.lift.flattening import OBJECT, Flattening, element
from spaseq.limits import Limits
from spaseq.rdf.terms.term import literal_text
from spaseq.rdf.terms.vocabulary import XSD

Report = Callable[[int, str, str], None]

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


_DECODER = json.JSONDecoder(
    object_pairs_hook=Members,
    parse_int=_Integer,
    parse_float=_Double,
    parse_constant=_no_constant,
)


def json_blocks(
    data: IO[bytes], wanted: frozenset[str], taken: frozenset[str], limits: Limits, report: Report
) -> Iterator[RowBlock]:
    """The rows of JSON lines with the wanted fields; bad rows are reported.

    A row is bad, too, if it has a field with a name in `taken`.
    """
    flatten = Flattening(wanted | taken, cell, _members)
    lines: list[int] = []
    numbers: list[int] = []
    rows: list[dict[str, Cell]] = []
    number = 0
    for line, raw in _lines(data, limits):
        if not raw.strip():
            continue
        number += 1
        try:
            cells = flatten.row(_parsed(raw, limits))
            mine = taken & cells.keys()
            if mine:
                raise ValueError(
                    f"the lift gives ?{min(mine)} a value, and the row has such a field"
                )
        except (ValueError, RecursionError) as error:
            report(line, _reason(error), raw[:_SHOWN].decode(errors="replace").rstrip("\r\n"))
            continue
        lines.append(line)
        numbers.append(number)
        rows.append(cells)
        if len(lines) == BLOCK_ROWS:
            yield RowBlock(lines, numbers, {v: [r.get(v) for r in rows] for v in wanted})
            lines, numbers, rows = [], [], []
    if lines:
        yield RowBlock(lines, numbers, {v: [r.get(v) for r in rows] for v in wanted})


def _lines(data: IO[bytes], limits: Limits) -> Iterator[tuple[int, bytes]]:
    """(number, text) of each line; of a line that is too long, its begin."""
    number, most = 0, limits.line_bytes + 1
    while raw := data.readline(most):
        number += 1
        if number == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        yield number, raw
        while len(raw) == most and not raw.endswith(b"\n"):
            raw = data.readline(most)


def _parsed(raw: bytes, limits: Limits) -> Members:
    if len(raw) > limits.line_bytes:
        raise ValueError(f"a row of more than {limits.line_bytes:,} bytes")
    if raw.count(b"[") + raw.count(b"{") > limits.nesting:
        _check_depth(raw.decode(), limits.nesting)
    value = _DECODER.decode(raw.decode())
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
    if kind is _Integer:
        return f'"{"0" if value == "-0" else value}"^^<{XSD}integer>'
    if kind is _Double:
        return f'"{write_double(float(value))}"^^<{XSD}double>'
    if kind is bool:
        return _BOOLEANS[value]
    if kind is Members:
        return OBJECT
    return Items(tuple(element(item, cell, _members) for item in value))
