"""Term tables over a byte buffer: terms are spans where the tokenizer read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
import pyarrow as pa

from spaseq import thresholds
from spaseq.compiled.arrays import Bools, Indices, Int32s, Int64s
from spaseq.rdf.columns.event_batch import EventNames
from spaseq.rdf.columns.term_columns import TermColumn, TextArray
from spaseq.rdf.columns.term_tables import ABSENT, ListedTerms, Numbers, TermTable, encoded
from spaseq.rdf.kernels import PAD
from spaseq.rdf.kernels.gather import gather
from spaseq.rdf.kernels.literal_values import numbers
from spaseq.rdf.kernels.tables import OFFSET, SIZE, find_texts
from spaseq.rdf.lines.arenas import ReadArena
from spaseq.rdf.terms.number_kinds import EXACT
from spaseq.records import record

_INTEGER = b"#integer"
"""How the datatype xsd:integer ends, and no other datatype of numbers."""

_LARGE = 1e15


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
        self._numbers: Numbers | None = None  # by code: values, and what is known of the kinds

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
