"""JSON lines as Arrow columns, as far as a kernel is sure of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from spaseq.compiled.arrays import Array, Bools, Bytes
from spaseq.lift.cells import inner_name, variable_of
from spaseq.lift.kernels import json_lines as kernel
from spaseq.lift.kernels.json_values import gathered
from spaseq.lift.lanes import Lane, LaneForm
from spaseq.lift.row_blocks import term_array
from spaseq.limits import Limits
from spaseq.rdf.kernels import PAD

_MOST_KEYS = 256
_FORMS = {
    kernel.INTEGER: LaneForm.INTEGER,
    kernel.DOUBLE: LaneForm.DOUBLE,
    kernel.TRUE: LaneForm.BOOLEAN,
    kernel.TEXT: LaneForm.STRING,
}
_ALIKE = np.arange(8, dtype=np.int8)
_ALIKE[kernel.ESCAPED] = kernel.TEXT
_ALIKE[kernel.LONG_DOUBLE] = kernel.DOUBLE
_ALIKE[kernel.FALSE] = kernel.TRUE
"""By kind of a cell: the kind of its column."""


@dataclass(frozen=True, slots=True)
class JsonColumns:
    """The wanted fields of n lines. Lines that are `unsure` [n] have no values here."""

    batch: Any  # Arrow record batch
    unsure: Bools


class JsonScanner:
    """Makes columns of lines. It remembers the keys of objects, which mostly come again."""

    def __init__(self, wanted: frozenset[str], taken: frozenset[str], limits: Limits) -> None:
        """The fields that are wanted; a line with a field in `taken` is unsure."""
        self._wanted, self._names = sorted(wanted), wanted | taken
        self._limits = limits
        self._variables: list[str] = []
        self._texts = b""
        starts, sizes, parents, columns = np.zeros((4, _MOST_KEYS), np.int32)
        opens = np.zeros(_MOST_KEYS, np.bool_)
        self._keys = kernel.Keys(_padded(b""), starts, sizes, parents, columns, opens)

    def columns(self, chunk: bytes) -> JsonColumns:
        """The columns of some lines."""
        lines = chunk.count(b"\n") + (not chunk.endswith(b"\n"))
        if not _is_utf8(chunk):
            return JsonColumns(pa.record_batch({"#": pa.nulls(lines)}), np.ones(lines, np.bool_))
        data, end = _padded(chunk), len(chunk) + (not chunk.endswith(b"\n"))
        cells = _empty_cells(len(self._wanted), lines)
        depth = kernel.MOST_DEPTH + 1
        place = kernel.ScanPlace(
            np.zeros(6, np.int64), np.zeros(depth, np.int32), np.zeros(depth, np.bool_)
        )
        deepest = min(self._limits.nesting, kernel.MOST_DEPTH) - 1
        while True:
            place.state[kernel.KEYS] = len(self._variables)
            longest = self._limits.line_bytes
            if kernel.scan_lines(data, end, deepest, longest, self._keys, cells, place):
                break
            start, size, parent = place.state[kernel.KEY_START : kernel.KEYS].tolist()
            self._add(chunk[start : start + size], parent)
        columns = {name: _column(data, cells, number) for number, name in enumerate(self._wanted)}
        return JsonColumns(pa.record_batch(columns or {"#": pa.nulls(lines)}), cells.unsure)

    def _add(self, text: bytes, parent: int) -> None:
        """Remember a key as it is written, in the object of another one."""
        key = json.loads(b'"%b"' % text)
        name = variable_of(key)
        if parent != kernel.ROOT:
            name = self._variables[parent] + inner_name(key)
        keys, number = self._keys, len(self._variables)
        keys.starts[number], keys.sizes[number] = len(self._texts), len(text)
        keys.parents[number] = parent
        keys.opens[number] = any(other.startswith(f"{name}_") for other in self._names)
        keys.columns[number] = (
            self._wanted.index(name)
            if name in self._wanted
            else kernel.UNSURE_FIELD
            if name in self._names
            else kernel.UNREAD
        )
        self._variables.append(name)
        self._texts += text
        self._keys = keys._replace(texts=_padded(self._texts))


def _padded(text: bytes) -> Bytes:
    return np.frombuffer(text + b"\n" * PAD, np.uint8)


def _is_utf8(text: bytes) -> bool:
    try:
        return text.isascii() or bool(text.decode())
    except UnicodeDecodeError:
        return False


def _empty_cells(columns: int, lines: int) -> kernel.Cells:
    size = (columns, lines)
    return kernel.Cells(
        np.zeros(size, np.int8),
        np.empty(size, np.int64),
        np.empty(size, np.int32),
        np.empty(size, np.float64),
        np.zeros(columns, np.int64),
        np.zeros(lines, np.bool_),
    )


def _column(data: Bytes, cells: kernel.Cells, number: int) -> Any:
    """The Arrow array of a column; of N-Triples texts, if its values have several types."""
    kinds = cells.kinds[number]
    alike = _ALIKE[kinds]
    of_values = [kind for kind in _FORMS if (alike == kind).any()]
    if not of_values:
        return pa.nulls(len(kinds), pa.string())
    if len(of_values) == 1:
        return _values(data, cells, number, slice(None), of_values[0])
    texts, places = [], []
    for kind in of_values:
        rows = np.flatnonzero(alike == kind)
        codes, distinct = Lane(_FORMS[kind], _values(data, cells, number, rows, kind)).encoded()
        texts.append(distinct.texts().take(pa.array(codes)))
        places.append(rows)
    whole = np.full(len(kinds), -1, np.int64)
    whole[np.concatenate(places)] = np.arange(sum(map(len, places)))
    return term_array(pa.concat_arrays(texts).take(pa.array(whole, mask=whole < 0)))


def _values(data: Bytes, cells: kernel.Cells, number: int, rows: Any, kind: int) -> Any:
    """The Arrow array of some rows of a column; values of another kind are null."""
    kinds, wholes = cells.kinds[number, rows], cells.wholes[number, rows]
    mask = _ALIKE[kinds] != kind
    match kind:
        case kernel.INTEGER:
            return pa.array(wholes, mask=mask)
        case kernel.TRUE:
            return pa.array(kinds == kernel.TRUE, mask=mask)
        case kernel.DOUBLE:
            doubles = cells.doubles[number, rows]
            long = np.flatnonzero(kinds == kernel.LONG_DOUBLE)
            if len(long):
                sizes = cells.sizes[number, rows]
                texts = _texts(data, kinds[long], wholes[long], sizes[long], None)
                doubles = doubles.copy()
                doubles[long] = texts.cast(pa.float64())
            return pa.array(doubles, mask=mask)
    sizes = np.where(mask, 0, cells.sizes[number, rows])
    return _texts(data, kinds, np.where(mask, 0, wholes), sizes, mask)


def _texts(data: Bytes, kinds: Array, starts: Array, sizes: Array, null: Bools | None) -> Any:
    """The strings at some spans of the data."""
    offsets, texts = gathered(data, kinds, starts, sizes.astype(np.int32), kernel.ESCAPED)
    valid = None
    if null is not None and null.any():
        valid = pa.py_buffer(np.packbits(~null, bitorder="little"))
    return pa.LargeStringArray.from_buffers(
        len(sizes), pa.py_buffer(offsets), pa.py_buffer(texts), valid
    )
