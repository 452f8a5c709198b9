"""Cells of rows, and the names of fields as variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from spaseq.compiled.arrays import Int64s
from spaseq.lang import lexical
from spaseq.lang.lexical import NamePattern
from spaseq.rdf.terms.term import is_rdf_term


@dataclass(frozen=True, slots=True)
class Wrong:
    """A value that is no RDF term; a lift that reads it makes the row bad."""

    reason: str


@dataclass(frozen=True, slots=True)
class Items:
    """A list. An element is its cells, by what the name of its variable has after UNNEST's.

    The key of the element itself is "", of the field `f` of an object `_f`.
    """

    elements: tuple[Mapping[str, Cell], ...]


Cell: TypeAlias = "str | Wrong | Items | None"
"""The N-Triples text of a term, None for null, a list, or what cannot be a term."""


@dataclass(frozen=True, slots=True)
class RowBlock:
    """n consecutive rows of one file: the fields that the lift wants and the rows have.

    `lines` are the places for reports: lines of a text, from 1, and otherwise numbers of rows.
    """

    lines: list[int]  # [n]
    numbers: list[int]  # [n] the row's number in its file, from 1
    columns: dict[str, list[Cell]]  # [n] each

    def __len__(self) -> int:
        return len(self.lines)


@dataclass(frozen=True, slots=True)
class TableBlock:
    """Consecutive rows of a table; `first` is the number of the first one.

    In a text, that is on the line `first + above`, and each row has one line. `is_utf8` says that
    all strings are known to be valid.
    """

    batch: Any  # Arrow record batch
    first: int
    above: int = 0
    is_utf8: bool = False

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def lines(self) -> range:
        """The places of the rows for reports: their lines, or their numbers."""
        first = self.first + self.above
        return range(first, first + len(self))

    def part(self, start: int, rows: int) -> TableBlock:
        """At most `rows` rows from the row `start` on."""
        part = self.batch.slice(start, rows)
        return TableBlock(part, self.first + start, self.above, self.is_utf8)

    def rows(self, wanted: frozenset[str]) -> RowBlock:
        """The rows with cells for the wanted fields."""
        from spaseq.lift.arrow_rows import batch_columns

        numbers = [*range(self.first, self.first + len(self))]
        return RowBlock([*self.lines], numbers, batch_columns(self.batch, wanted))


@dataclass(frozen=True, slots=True)
class FilteredRows:
    """Consecutive rows that are no events by a FILTER of the lift, and are not read."""

    rows: int
    groups: int = 0  # of Parquet, which hold them

    def __len__(self) -> int:
        return self.rows


@dataclass(frozen=True, slots=True)
class TimedRows:
    """Consecutive rows that are events of which no query needs more than the times."""

    times: Int64s  # [n] ms
    groups: int  # row groups of Parquet that are left out, counted with their first rows

    def __len__(self) -> int:
        return len(self.times)


BLOCK_ROWS = 8192
"""Rows of a block."""

TABLE_ROWS = 262_144
"""Rows of a block of a table."""

_NAME = NamePattern(lexical.VARIABLE)


@lru_cache(4096)
def variable_of(field: str) -> str:
    """The name of the variable for a field.

    >>> variable_of("unit price"), variable_of("größe"), variable_of("a.b-c")
    ('unit_price', 'größe', 'a_b_c')
    """
    return "".join(
        c if _NAME.fullmatch(f"?{'x' if place else ''}{c}") else "_"
        for place, c in enumerate(field)
    )


@lru_cache(4096)
def inner_name(field: str) -> str:
    """The part of a variable's name for a field of an object, with the `_` before it."""
    return "_" + variable_of("x" + field)[1:]


def is_term(text: str) -> bool:
    """`is_rdf_term`, faster for literals, whose few datatypes are looked at once."""
    if text[0] != '"':
        return is_rdf_term(text)
    return text[-1] != ">" or _has_valid_datatype(text[text.rfind('"') + 1 :])


@lru_cache(256)
def _has_valid_datatype(end: str) -> bool:
    return is_rdf_term(f'""{end}')


_SURROGATE = re.compile("[\ud800-\udfff]")


def has_surrogate(text: str) -> bool:
    """Whether a text has a lone surrogate, which is no character."""
    return not text.isascii() and _SURROGATE.search(text) is not None
