"""Columns of term codes during the evaluation of patterns: translation between tables, and lazy
columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from spaseq.compiled.arrays import Bools, Indices, Int32s
from spaseq.rdf.columns.term_columns import UNBOUND, TermColumn, distinct_codes
from spaseq.rdf.columns.term_tables import ExtendedTerms

Lexicon: TypeAlias = ExtendedTerms
"""The terms of an event batch or a knowledge base, and the terms that an evaluation adds."""


def translated(codes: Int32s, source: Lexicon, target: Lexicon, *, add: bool) -> Int32s:
    """The codes [n] of the same terms in another lexicon; unbound stays unbound.

    Terms that the target does not have are added to it, or (`add=False`) become ABSENT.
    """
    if source is target or not len(codes):
        return codes
    used, where = distinct_codes(codes, len(source))
    distinct = used.astype(np.int32)
    bound = distinct >= 0
    texts = source.take(distinct[bound])
    there = distinct.copy()
    there[bound] = target.encode(texts) if add else target.find(texts)
    return there[where]


def encoded(lexicon: Lexicon, texts: Sequence[str | None]) -> Int32s:
    """The codes [n] of some terms, which are added to the lexicon if new."""
    if None not in texts:
        return lexicon.encode(texts)  # type: ignore[arg-type]
    codes = np.full(len(texts), UNBOUND, np.int32)
    bound = [i for i, text in enumerate(texts) if text is not None]
    codes[bound] = lexicon.encode([text for text in texts if text is not None])
    return codes


class LazyColumn(ABC):
    """Codes [n] that are made once, when they are first read.

    A column is in no cycle of references. So a batch's terms are freed with the last column that
    uses them, even while the garbage collector pauses.
    """

    __slots__ = ("_codes",)

    def __init__(self) -> None:
        self._codes: Int32s | None = None

    @property
    def codes(self) -> Int32s:
        """The codes."""
        if self._codes is None:
            self._codes = self._made()
        return self._codes

    @property
    def terms(self) -> TermColumn | None:
        """The terms [n], None if they are known by their codes only."""
        return None

    @abstractmethod
    def _made(self) -> Int32s:
        """Make the codes."""

    def take(self, rows: Indices | Bools) -> LazyColumn:
        """The codes at the given rows, or where a mask is true."""
        return ComputedColumn(lambda: self.codes[rows])


class ComputedColumn(LazyColumn):
    """Codes from a function, which is called once."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[], Int32s]) -> None:
        super().__init__()
        self._make: Callable[[], Int32s] | None = make

    def _made(self) -> Int32s:
        assert self._make is not None
        codes, self._make = self._make(), None
        return codes


class LazyColumns(Mapping[str, Int32s]):
    """Columns by variable.

    >>> import numpy as np
    >>> columns = LazyColumns({"x": ComputedColumn(lambda: np.array([4, 5, 6], np.int32))})
    >>> columns.take(np.array([2, 0]))["x"].tolist()
    [6, 4]
    """

    def __init__(self, columns: Mapping[str, LazyColumn]) -> None:
        self._columns = columns

    @classmethod
    def of(cls, columns: Mapping[str, Int32s]) -> LazyColumns:
        """Columns that may be lazy already."""
        if isinstance(columns, LazyColumns):
            return columns
        return cls({v: ComputedColumn(partial(np.asarray, codes)) for v, codes in columns.items()})

    def column(self, variable: str) -> LazyColumn | None:
        """A column, possibly lazy, None if there is none."""
        return self._columns.get(variable)

    def __getitem__(self, variable: str) -> Int32s:
        return self._columns[variable].codes

    def __contains__(self, variable: object) -> bool:
        return variable in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def take(self, rows: Indices | Bools) -> LazyColumns:
        """All columns at the given rows, or where a mask is true."""
        return LazyColumns({v: column.take(rows) for v, column in self._columns.items()})

    def only(self, variables: Iterable[str]) -> LazyColumns:
        """Some of the columns, where present."""
        return LazyColumns({v: self._columns[v] for v in variables if v in self._columns})

    def with_column(self, variable: str, codes: Int32s) -> LazyColumns:
        """All columns and one more."""
        return self.with_made(variable, ComputedColumn(lambda: codes))

    def with_made(self, variable: str, column: LazyColumn) -> LazyColumns:
        """All columns and one more lazy column."""
        return LazyColumns({**self._columns, variable: column})
