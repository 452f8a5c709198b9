"""Reusable memory for reading and tokenizing chunks of a file, and the term tables over it.

Fresh memory is slow, as the system maps each page at its first use. An arena returns to its pool
when nothing refers to its terms any more. The terms of a table are spans where the tokenizer read
them.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
import pyarrow as pa

from spaseq import thresholds
from spaseq.compiled.arrays import Bools, Bytes, Float64s, Indices, Int8s, Int32s, Int64s
from spaseq.rdf.columns.event_batch import EventNames
from spaseq.rdf.columns.term_columns import TermColumn, TextArray
from spaseq.rdf.columns.term_tables import ABSENT, ListedTerms, Numbers, TermTable, encoded
from spaseq.rdf.kernels import PAD
from spaseq.rdf.kernels.lines import DeferredLines, QuadRows
from spaseq.rdf.kernels.literal_values import numbers
from spaseq.rdf.kernels.texts import FULLEST, OFFSET, SIZE, fill_slots, find_texts, gather
from spaseq.rdf.terms.number_kinds import EXACT
from spaseq.records import record

LASTING_BYTES = 1 << 26
"""Arenas for larger chunks are made for single events, and their memory is given back."""

_ROWS = 1 << 12
_SLOTS = 1 << 13
_DEFERRED = 1 << 8
_CONSTANTS = 1 << 12  # bytes

_INTEGER = b"#integer"
"""The end of the datatype xsd:integer, and of no other numeric datatype."""

_LARGE = 1e15


def _larger(column: Any) -> Any:
    grown = np.empty((2 * len(column), *column.shape[1:]), column.dtype)
    grown[: len(column)] = column
    return grown


@dataclass(slots=True, weakref_slot=True)
class ReadArena:
    """A text buffer and the output arrays of the tokenizer.

    The buffer has room for `capacity` bytes of text and as many bytes of canonical texts. See
    `spaseq.rdf.kernels.lines` for the arrays.
    """

    capacity: int
    buffer: Bytes = field(init=False)
    rows: QuadRows = field(init=False)
    deferred: DeferredLines = field(init=False)
    spans: Int32s = field(init=False)
    slots: Int32s = field(init=False)
    values: Float64s = field(init=False)
    kinds: Int8s = field(init=False)

    def __post_init__(self) -> None:
        self.buffer = np.empty(2 * (self.capacity + PAD) + _CONSTANTS, np.uint8)
        s, p, o, g, at, line = np.empty((6, _ROWS), np.int32)
        self.rows = QuadRows(s, p, o, g, at, line, np.empty(_ROWS, np.int64))
        self.deferred = DeferredLines(*np.empty((3, _DEFERRED), np.int32))
        self._make_slots(_SLOTS)
        self.values, self.kinds = np.empty(0), np.empty(0, np.int8)

    def clear(self) -> None:
        """Remove all terms."""
        self.slots.fill(0)

    def grow_rows(self) -> None:
        """Double the room for rows."""
        self.rows = QuadRows._make(_larger(column) for column in self.rows)

    def grow_deferred(self) -> None:
        """Double the room for deferred lines."""
        self.deferred = DeferredLines._make(_larger(column) for column in self.deferred)

    def grow_terms(self, count: int) -> None:
        """Double the room for terms, of which there are `count`."""
        spans = self.spans
        self._make_slots(2 * len(self.slots))
        self.spans[:count] = spans[:count]
        fill_slots(self.spans, count, self.slots)

    def _make_slots(self, slots: int) -> None:
        """Recreate the table of terms, empty."""
        part, whole = FULLEST
        self.spans = np.empty((slots * part // whole, 3), np.int32)
        self.slots = np.zeros(slots, np.int32)

    def numbers(self, count: int) -> tuple[Float64s, Int8s]:
        """Room for the numbers of `count` terms, and for their kinds, which are 0."""
        if len(self.values) < count:
            self.values, self.kinds = np.empty(len(self.spans)), np.empty(len(self.spans), np.int8)
        self.kinds[:count] = 0
        return self.values[:count], self.kinds[:count]

    def reserve(self, used: int, needed: int) -> None:
        """Make room for `needed` bytes after the first `used` bytes, and padding."""
        if used + needed + PAD > len(self.buffer):
            grown = np.empty(used + needed + max(used, needed) + PAD, np.uint8)
            grown[:used] = self.buffer[:used]
            self.buffer = grown


class ArenaPool:
    """A pool of at most `most` idle arenas. Large ones are not kept."""

    def __init__(self, most: int) -> None:
        """An empty pool that keeps at most `most` idle arenas."""
        self._most = most
        self._idle: list[ReadArena] = []

    def take(self, capacity: int) -> ReadArena:
        """Take an arena for at least `capacity` bytes of text."""
        try:
            while (arena := self._idle.pop()).capacity < capacity:
                pass
        except IndexError:
            return ReadArena(capacity)
        return arena

    def give_back(self, arena: ReadArena) -> None:
        """Return an arena that is not in use any more."""
        if len(self._idle) < self._most and arena.capacity <= LASTING_BYTES:
            self._idle.append(arena)

    def lend(self, arena: ReadArena, user: object) -> None:
        """Return the arena when `user` is garbage-collected."""
        weakref.finalize(user, self.give_back, arena).atexit = False


class BufferTerms(TermTable):
    """The terms of a chunk of an N-Quads or N-Triples file."""

    def __init__(self, arena: ReadArena, count: int, seed: np.uint64, has_blank: bool) -> None:
        """The first `count` terms of an arena, hashed with `seed`."""
        self._arena = arena
        self._count = count
        self._seed = seed
        self._has_blank = has_blank
        self._bytes = memoryview(arena.buffer)  # type: ignore[arg-type]
        self._texts: dict[int, str] = {}
        self._numbers: Numbers | None = None  # by code: values, and the known kinds

    def __len__(self) -> int:
        return self._count

    def text(self, code: int) -> str:
        text = self._texts.get(code)
        if text is None:
            if not -self._count <= code < self._count:
                raise IndexError(code)
            at, size, _ = self._arena.spans[code % self._count].tolist()
            text = self._texts[code] = str(self._bytes[at : at + size], "utf-8")
        return text

    def take(self, codes: Int32s) -> list[str]:
        if len(codes) <= thresholds.current.few_texts:
            return [self[code] for code in codes.tolist()]
        column = TermColumn.of_codes(codes, self._count, self.strings)
        texts: list[str] = column.objects().tolist()
        return texts

    def strings(self, codes: Int32s, inner: int = 0) -> TextArray:
        """The texts of nonnegative codes [n], without `inner` bytes at either end."""
        ends, texts = gather(self._arena.buffer, self._arena.spans, codes, inner)
        return pa.LargeStringArray.from_buffers(len(codes), pa.py_buffer(ends), pa.py_buffer(texts))

    def iris(self, codes: Int32s) -> TextArray:
        """The IRIs of codes [n] without brackets, null for terms that are not IRIs."""
        named = np.ones(len(codes), np.bool_)
        if self._has_blank:
            named = self._arena.buffer[self._arena.spans[codes, 0]] == ord("<")
        if named.all():
            return self.strings(codes, inner=1)
        places = np.where(named, np.cumsum(named) - 1, 0)
        return self.strings(codes[named], inner=1).take(pa.array(places, mask=~named))

    def find(self, texts: Sequence[str]) -> Int32s:
        flat, ends = encoded(texts)
        padded = np.concatenate((flat, np.full(PAD, 10, np.uint8)))
        arena = self._arena
        return find_texts(padded, ends, self._seed, arena.buffer, arena.spans, arena.slots, ABSENT)

    def numbers(self, codes: Int32s) -> Numbers:
        if self._numbers is None:
            self._numbers = self._arena.numbers(self._count)
        columns = np.empty(len(codes)), np.empty(len(codes), np.int8)
        numbers(self._arena.buffer, self._arena.spans, codes, *self._numbers, *columns)
        return columns

    def integers(self, codes: Int32s) -> tuple[Bools, Int64s]:
        values, kinds = self.numbers(codes)
        is_integer: Bools = (kinds == EXACT) & (np.abs(values) < _LARGE)
        # A number of kind EXACT has a datatype of XSD: an integer, a type of integers or a decimal.
        end = self._arena.spans[codes, OFFSET] + self._arena.spans[codes, SIZE]
        for place, letter in enumerate(_INTEGER):
            is_integer &= self._arena.buffer[end - len(_INTEGER) - 1 + place] == letter
        return is_integer, np.where(is_integer, values, 0).astype(np.int64)

    @property
    def has_blank(self) -> bool:
        return self._has_blank

    def may_have_blank_nodes(self, codes: Int32s) -> Bools:
        at, text = self._arena.spans[codes, OFFSET], self._arena.buffer
        may_have: Bools = (text[at] == ord("_")) | (
            (text[at] == ord("<")) & (text[at + 1] == ord("<"))
        )
        return may_have

    def __reduce__(self) -> tuple[Any, ...]:
        return ListedTerms, (list(self),)


@record
class BufferGraphNames(Sequence["str | None"]):
    """The graph IRIs of n events, None where the graph is a blank node."""

    terms: BufferTerms
    codes: Int32s

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, event: int) -> str | None: ...
    @overload
    def __getitem__(self, event: slice) -> BufferGraphNames: ...
    def __getitem__(self, event: int | slice) -> str | BufferGraphNames | None:
        if isinstance(event, slice):
            return BufferGraphNames(self.terms, self.codes[event])
        return _name(self.terms[int(self.codes[event])])

    def take(self, events: Indices | Int64s) -> BufferGraphNames:
        """The names of some events."""
        return BufferGraphNames(self.terms, self.codes[events])

    def read(self, events: Indices | Int64s) -> EventNames:
        """The names of some events, out of the buffer."""
        return EventNames(self.terms.iris(self.codes[events]))

    def __reduce__(self) -> tuple[Any, ...]:
        return self.read(np.arange(len(self))).__reduce__()


def _name(text: str) -> str | None:
    return text[1:-1] if text[0] == "<" else None
