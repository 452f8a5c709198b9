"""Term tables of batches: codes to texts, texts to codes, codes to numbers.

The table of an N-Quads batch may have millions of terms, of which few are ever read. So callers
request single terms and never iterate over a table. `spaseq.rdf.lines.arenas` makes strings on
request.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, TypeAlias, overload

import numpy as np
import pyarrow as pa

from spaseq import thresholds
from spaseq.compiled.arrays import Bools, Bytes, Float64s, Int8s, Int32s, Int64s
from spaseq.rdf.columns.term_columns import TermColumn, TextArray, concat_texts, text_array
from spaseq.rdf.terms.number_kinds import OTHER, UNKNOWN
from spaseq.rdf.terms.triple_terms import may_have_blank_node

Numbers: TypeAlias = tuple[Float64s, Int8s]

ABSENT = -2
"""The code of a text that is not in a table; it occurs in no row."""


class TermTable(Sequence[str]):
    """Distinct canonical N-Triples texts. The code of a text is its position."""

    has_canonical_doubles = False
    """Whether numbers of kind DOUBLE in the result of `numbers` have canonical texts."""

    @abstractmethod
    def text(self, code: int) -> str:
        """The text of a code."""

    @abstractmethod
    def take(self, codes: Int32s) -> list[str]:
        """The texts of nonnegative codes [n]."""

    def row_texts(self, codes: Int32s) -> list[str | None]:
        """The texts of codes [n], None for unbound."""
        bound = codes >= 0
        texts = np.full(len(codes), None, object)
        texts[bound] = self.take(codes[bound])
        rows: list[str | None] = texts.tolist()
        return rows

    def strings(self, codes: Int32s) -> TextArray:
        """The texts of nonnegative codes [n] as an Arrow array of large strings."""
        return text_array(self.take(codes))

    def shared(self, codes: Int32s) -> TermColumn | None:
        """The column of codes [n], -1 for unbound, that shares its texts with other batches.

        None if no others share them.
        """
        return None

    @abstractmethod
    def find(self, texts: Sequence[str]) -> Int32s:
        """The codes [n] of n texts, ABSENT for texts that are not in the table."""

    def find_strings(self, texts: TextArray) -> Int32s:
        """As `find`, of an Arrow array of large strings."""
        return self.find(texts.to_pylist())

    def code(self, text: str) -> int:
        """The code of a text, ABSENT if it is not in the table."""
        return int(self.find([text])[0])

    def numbers(self, codes: Int32s) -> Numbers:
        """(values [n], kinds [n]) of codes [n] as float64; see `spaseq.rdf.terms.number_kinds`."""
        kinds = np.where(codes < 0, OTHER, UNKNOWN).astype(np.int8)
        return np.full(len(codes), np.nan), kinds

    def integers(self, codes: Int32s) -> tuple[Bools, Int64s]:
        """(mask of nonnegative codes [n] that are known to be small xsd:integers, values [n]).

        A small one has at most 15 digits. Other small ones are not known without their texts.
        """
        return np.zeros(len(codes), np.bool_), np.zeros(len(codes), np.int64)

    @property
    @abstractmethod
    def has_blank(self) -> bool:
        """Whether the table may contain a blank node."""

    def may_have_blank_nodes(self, codes: Int32s) -> Bools:
        """A mask of nonnegative codes [n] of blank nodes, or triple terms that may have one."""
        return np.fromiter(map(may_have_blank_node, self.take(codes)), np.bool_, len(codes))

    @overload
    def __getitem__(self, code: int) -> str: ...
    @overload
    def __getitem__(self, code: slice) -> list[str]: ...
    def __getitem__(self, code: int | slice) -> str | list[str]:
        if isinstance(code, slice):
            return self.take(np.arange(*code.indices(len(self)), dtype=np.int32))
        return self.text(code)

    def __iter__(self) -> Iterator[str]:
        yield from self.take(np.arange(len(self), dtype=np.int32))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


class ListedTerms(TermTable):
    """A term table over a list of Python strings."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts
        self._codes: dict[str, int] | None = None
        self._has_blank: bool | None = None

    def __len__(self) -> int:
        return len(self._texts)

    def text(self, code: int) -> str:
        return self._texts[code]

    def take(self, codes: Int32s) -> list[str]:
        texts = self._texts
        return [texts[code] for code in codes.tolist()]

    def find(self, texts: Sequence[str]) -> Int32s:
        known = self._known()
        return np.fromiter((known.get(t, ABSENT) for t in texts), np.int32, len(texts))

    def code(self, text: str) -> int:
        return self._known().get(text, ABSENT)

    def _known(self) -> dict[str, int]:
        if self._codes is None:
            self._codes = {text: code for code, text in enumerate(self._texts)}
        return self._codes

    @property
    def has_blank(self) -> bool:
        if self._has_blank is None:
            self._has_blank = any(map(may_have_blank_node, self._texts))
        return self._has_blank


class ArrayTerms(ListedTerms):
    """A term table over an Arrow array of distinct texts; strings are made when one is read."""

    def __init__(self, array: TextArray) -> None:
        self.array = array
        self._codes = self._has_blank = None

    @cached_property
    def _texts(self) -> list[str]:  # type: ignore[override]
        texts: list[str] = self.array.to_pylist()
        return texts

    def __len__(self) -> int:
        return len(self.array)

    def strings(self, codes: Int32s) -> TextArray:
        return self.array.take(pa.array(codes))

    def find(self, texts: Sequence[str]) -> Int32s:
        if len(texts) <= thresholds.current.few_terms:
            return super().find(texts)
        import pyarrow.compute as pc  # planning finds no terms here

        places = pc.index_in(text_array(texts), value_set=self.array).fill_null(ABSENT)
        codes: Int32s = places.to_numpy(zero_copy_only=False).copy()  # Arrow's is read-only
        return codes

    @property
    def has_blank(self) -> bool:
        if self._has_blank is None:
            import pyarrow.compute as pc

            some = pc.any(pc.match_substring(self.array, "_:")).as_py()
            self._has_blank = bool(some) and any(map(may_have_blank_node, self._texts))
        return self._has_blank


class ExtendedTerms(TermTable):
    """A term table that appends texts to another one, which stays unchanged.

    Attributes:
        base: the other one.
        looked_through: number of appended texts at the last check of those needed.
    """

    def __init__(self, base: TermTable) -> None:
        self.base, self.looked_through = base, 0
        self._size = len(base)
        self._added: list[str] = []
        # Codes of texts that were appended or looked up; None until the first look-up.
        self._codes: dict[str, int] | None = {}

    def __len__(self) -> int:
        return self._size + len(self._added)

    @property
    def added(self) -> int:
        """Number of appended texts."""
        return len(self._added)

    def with_only(self, codes: Int32s) -> ExtendedTerms:
        """Another table with the appended texts of some codes, in their order."""
        table = ExtendedTerms(self.base)
        table.encode(self.take(codes))
        table.looked_through = table.added
        return table

    @property
    def _known(self) -> dict[str, int]:
        if self._codes is None:
            self._codes = {text: self._size + i for i, text in enumerate(self._added)}
        return self._codes

    def forget_codes(self) -> None:
        """Free the index of texts, as no look-up will follow soon."""
        self._codes = None

    def text(self, code: int) -> str:
        beyond = code - self._size
        return self.base[code] if beyond < 0 else self._added[beyond]

    def take(self, codes: Int32s) -> list[str]:
        if not self._added:
            return self.base.take(codes)
        ours = np.flatnonzero(codes >= self._size)
        if not len(ours):
            return self.base.take(codes)
        theirs = np.flatnonzero(codes < self._size)
        all_texts = np.empty(len(codes), dtype=object)
        all_texts[theirs] = self.base.take(codes[theirs])
        all_texts[ours] = [self._added[i] for i in (codes[ours] - self._size).tolist()]
        texts: list[str] = all_texts.tolist()
        return texts

    def strings(self, codes: Int32s) -> TextArray:
        ours = codes >= self._size
        if not ours.any():
            return self.base.strings(codes)
        texts = concat_texts([self.base.strings(codes[~ours]), text_array(self.take(codes[ours]))])
        places = np.where(ours, np.cumsum(ours) + np.count_nonzero(~ours), np.cumsum(~ours)) - 1
        return texts.take(pa.array(places))

    def shared(self, codes: Int32s) -> TermColumn | None:
        return None if self._added else self.base.shared(codes)

    def code(self, text: str) -> int:
        known = self._known
        code = known.get(text)
        if code is None:
            code = self.base.code(text)
            if code != ABSENT:
                known[text] = code
        return code

    def find(self, texts: Sequence[str]) -> Int32s:
        codes = self.base.find(texts)
        if self._added:
            known = self._known
            for i in np.flatnonzero(codes < 0).tolist():
                codes[i] = known.get(texts[i], ABSENT)
        return codes

    def find_strings(self, texts: TextArray) -> Int32s:
        codes = self.base.find_strings(texts)
        if self._added:
            rest = np.flatnonzero(codes < 0)
            known = map(self._known.get, texts.take(pa.array(rest)).to_pylist())
            codes[rest] = [ABSENT if code is None else code for code in known]
        return codes

    def encode(self, texts: Sequence[str]) -> Int32s:
        """The codes [n] of n texts; unknown texts are appended."""
        known, size = self._known, self._size
        codes = self.base.find(texts) if size else np.full(len(texts), ABSENT, np.int32)
        rows = np.flatnonzero(codes < 0)
        rest = texts if len(rows) == len(texts) else [texts[i] for i in rows.tolist()]
        new = [text for text in dict.fromkeys(rest) if text not in known]
        first = size + len(self._added)
        known.update(zip(new, range(first, first + len(new)), strict=True))
        self._added += new
        codes[rows] = [*map(known.__getitem__, rest)]
        return codes

    def numbers(self, codes: Int32s) -> Numbers:
        if not self._added:
            return self.base.numbers(codes)
        values, kinds = self.base.numbers(np.where(codes < self._size, codes, -1).astype(np.int32))
        kinds[codes >= self._size] = UNKNOWN
        return values, kinds

    def integers(self, codes: Int32s) -> tuple[Bools, Int64s]:
        theirs = codes < self._size
        if theirs.all():
            return self.base.integers(codes)
        known, values = self.base.integers(np.where(theirs, codes, 0).astype(np.int32))
        return known & theirs, values

    @property
    def has_blank(self) -> bool:
        return self.base.has_blank or any(map(may_have_blank_node, self._added))


class TermsSoFar(TermTable):
    """The first terms of a growing table; it does not grow with it."""

    def __init__(self, growing: TermTable) -> None:
        self._growing, self._size = growing, len(growing)

    def __len__(self) -> int:
        return self._size

    def text(self, code: int) -> str:
        return self._growing.text(code)

    def take(self, codes: Int32s) -> list[str]:
        return self._growing.take(codes)

    def strings(self, codes: Int32s) -> TextArray:
        return self._growing.strings(codes)

    def find(self, texts: Sequence[str]) -> Int32s:
        codes = self._growing.find(texts)
        codes[codes >= self._size] = ABSENT
        return codes

    def numbers(self, codes: Int32s) -> Numbers:
        return self._growing.numbers(codes)

    def integers(self, codes: Int32s) -> tuple[Bools, Int64s]:
        return self._growing.integers(codes)

    @property
    def has_blank(self) -> bool:
        return self._growing.has_blank


def term_table(terms: Sequence[str]) -> TermTable:
    """The terms as a table: unchanged if they are one already."""
    return terms if isinstance(terms, TermTable) else ListedTerms(list(terms))


class SoughtTexts(list[str]):
    """Texts that are looked up in many tables; their bytes are computed once."""

    __slots__ = ("bytes",)

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__(texts)
        self.bytes = encoded(texts)


def encoded(texts: Sequence[str]) -> tuple[Bytes, Any]:
    """(concatenated UTF-8 bytes uint8, end of each text int64 [n]) of n texts."""
    if isinstance(texts, SoughtTexts):
        return texts.bytes
    sizes, whole = np.fromiter(map(len, texts), np.int64, len(texts)), "".join(texts).encode()
    if len(whole) != sizes.sum():  # not all are ASCII
        sizes = np.array([len(text.encode()) for text in texts], np.int64)
    return np.frombuffer(whole, np.uint8), np.cumsum(sizes)
