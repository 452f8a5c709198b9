"""Batches of events in columns, and the quads of a parser before they are grouped into events.

A term is an int32 code into the batch's `terms`, which are canonical N-Triples texts (`<iri>`,
`"x"^^<dt>`, `"x"@en`, `_:b`): equal texts are equal RDF terms. See `spaseq.rdf.terms.term`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, overload

import numpy as np
import pyarrow as pa

from spaseq.compiled.arrays import Indices, Int32s, Int64s
from spaseq.rdf.columns.term_columns import (
    NO_TEXTS,
    RowSelection,
    TextArray,
    take_texts,
    text_array,
)
from spaseq.records import record

_TEXT = pa.large_string()

DEFAULT_GRAPH = -1
"""`g` of a quad in the default graph, and of each triple in a format without graphs."""

MALFORMED = -1
"""`s`, `p` and `o` of a malformed line, which keeps its row in formats without graphs."""

UNKNOWN_LINE = 0
"""The line of quads whose format has no lines."""


@record
class NameForm:
    """How some names are stored: the type of the parts that differ, the text before and after."""

    kind: Any  # Arrow type: large strings, or integers
    prefix: str = ""
    suffix: str = ""

    @property
    def field(self) -> pa.Field:
        """The Arrow column `event` of these names."""
        ends = {"prefix": self.prefix, "suffix": self.suffix}
        return pa.field("event", self.kind, metadata=ends if self != WHOLE else None)


WHOLE = NameForm(_TEXT)
"""Names stored as they are, null where there is none."""


class GraphNames(Protocol):
    """The names of n events, which may be read from a buffer on demand."""

    def __len__(self) -> int: ...

    @overload
    def __getitem__(self, event: int, /) -> str | None: ...
    @overload
    def __getitem__(self, event: slice, /) -> GraphNames: ...

    def take(self, events: Indices | Int64s, /) -> GraphNames:
        """The names of some events."""

    def read(self, events: Indices | Int64s, /) -> EventNames:
        """Read the names of some events, which then do not need the buffer."""


class EventNames(Sequence["str | None"]):
    """The names of n events, None where an event has none.

    Only this class depends on their stored form.

    >>> names = EventNames.between("http://e/", pa.array([7, 8]), "#it")
    >>> import numpy as np
    >>> names.take(np.array([1])).texts(), names.form.kind
    (['http://e/8#it'], DataType(int64))
    >>> EventNames.concat([names, EventNames.of(["urn:a", None])]).texts()
    ['http://e/7#it', 'http://e/8#it', 'urn:a', None]
    """

    __slots__ = ("_values", "form")

    form: NameForm
    _values: Any  # Arrow array [n]

    def __init__(self, values: Any, form: NameForm = WHOLE) -> None:
        """Names from an Arrow array [n] of the parts that differ, without null unless WHOLE."""
        self._values, self.form = values, form

    @classmethod
    def of(cls, names: Sequence[str | None]) -> EventNames:
        """Names given one by one."""
        return cls(text_array(names))

    @classmethod
    def between(cls, prefix: str, values: Any, suffix: str) -> EventNames:
        """Names with a distinct part between two common texts: an Arrow array [n] without null."""
        if not pa.types.is_integer(values.type):
            values = values.cast(_TEXT)
        return cls(values, NameForm(values.type, prefix, suffix))

    @classmethod
    def none(cls, size: int) -> EventNames:
        """The names of events without names."""
        return cls(pa.nulls(size, _TEXT)) if size else NO_NAMES

    @classmethod
    def concat(cls, parts: Sequence[EventNames]) -> EventNames:
        """The names of all parts, in order."""
        if len(parts) == 1:
            return parts[0]
        form = common_form(parts)
        return cls(pa.concat_arrays([part.to_arrow(form) for part in parts]), form)

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, event: int) -> str | None: ...
    @overload
    def __getitem__(self, event: slice) -> EventNames: ...
    def __getitem__(self, event: int | slice) -> str | EventNames | None:
        if isinstance(event, slice):
            return self.take(event)
        part = self._values[event].as_py()
        return part if part is None else f"{self.form.prefix}{part}{self.form.suffix}"

    @property
    def nbytes(self) -> int:
        """The bytes that they take."""
        return int(self._values.nbytes)

    def take(self, rows: RowSelection | Int64s) -> EventNames:
        """The names at the given positions."""
        return EventNames(take_texts(self._values, rows), self.form)

    read = take

    def apart(self, start: int, size: int) -> EventNames:
        """A copy of some names: a slice keeps and pickles the whole array."""
        return EventNames(pa.concat_arrays([self._values.slice(start, size)]), self.form)

    def texts(self) -> list[str | None]:
        """The names, one by one."""
        if self.form == WHOLE:
            return self._values.to_pylist()  # type: ignore[no-any-return]
        prefix, suffix = self.form.prefix, self.form.suffix
        return [f"{prefix}{part}{suffix}" for part in self._values.to_pylist()]

    def strings(self) -> TextArray:
        """The names as an Arrow array of large strings, null where there is none."""
        if self.form == WHOLE:
            return self._values
        import pyarrow.compute as pc  # planning reads no names

        ends = pa.scalar(self.form.prefix, _TEXT), pa.scalar(self.form.suffix, _TEXT)
        inner = self._values.cast(_TEXT)
        return pc.binary_join_element_wise(ends[0], inner, ends[1], pa.scalar("", _TEXT))

    def to_arrow(self, form: NameForm = WHOLE) -> Any:
        """The array of a column `form.field`; the form is the names' own, or WHOLE."""
        return self._values if form == self.form else self.strings()

    @classmethod
    def from_arrow(cls, values: Any, field: pa.Field) -> EventNames:
        """The inverse of `to_arrow`."""
        ends = field.metadata or {}
        if b"prefix" not in ends:
            return cls(values)
        form = NameForm(values.type, ends[b"prefix"].decode(), ends[b"suffix"].decode())
        return cls(values, form)

    def __reduce__(self) -> tuple[Any, ...]:
        return EventNames, (self.strings(),)


NO_NAMES = EventNames(NO_TEXTS)


def common_form(parts: Sequence[EventNames]) -> NameForm:
    """The common form of all parts, else WHOLE."""
    first = parts[0].form
    return first if all(part.form == first for part in parts) else WHOLE


@record
class EventBatch:
    """n consecutive events of one stream, in order of arrival, with m triples.

    Event i has the triples start[i]:start[i + 1]. Do not iterate over `terms`: there may be
    millions, which become strings only on demand (see `spaseq.rdf.columns.term_tables`).
    """

    stream: str  # stream IRI
    time: Int64s  # [n] milliseconds since the epoch
    k: Int32s  # [n] second component of the instant: earlier events of equal time
    graph: GraphNames  # [n] graph IRI (no brackets), or None where the format has none
    start: Int64s  # [n + 1]
    s: Int32s  # [m]
    p: Int32s  # [m]
    o: Int32s  # [m]
    terms: Sequence[str]  # code -> N-Triples text
    skipped: int = 0  # triples that were read but dropped: no query names their predicates
    filtered: int = 0  # rows read with these events that gave none
    skipped_groups: int = 0  # row groups of Parquet that were not read

    def __len__(self) -> int:
        return len(self.time)

    @property
    def triples(self) -> int:
        """Number of triples read."""
        return len(self.s) + self.skipped

    def part(self, first: int, end: int) -> EventBatch:
        """Events first:end with the same term table; the counts are the first part's."""
        if end - first == len(self):
            return self
        rows = slice(int(self.start[first]), int(self.start[end]))
        return EventBatch(
            self.stream,
            self.time[first:end],
            self.k[first:end],
            self.graph[first:end],
            self.start[first : end + 1] - self.start[first],
            self.s[rows],
            self.p[rows],
            self.o[rows],
            self.terms,
            0 if first else self.skipped,
            0 if first else self.filtered,
            0 if first else self.skipped_groups,
        )

    def take(self, events: Indices | Int64s) -> EventBatch:
        """The events at the given positions, in that order, with the same term table."""
        first = self.start[events]
        sizes = self.start[1:][events] - first
        start = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        rows = np.arange(start[-1]) + np.repeat(first - start[:-1], sizes)
        return EventBatch(
            self.stream,
            self.time[events],
            self.k[events],
            self.graph.take(events),
            start,
            self.s[rows],
            self.p[rows],
            self.o[rows],
            self.terms,
        )

    def with_k(self, k: Int32s) -> EventBatch:
        """The events with other values of k [n]."""
        return replace(self, k=k)

    def with_time(self, time: Int64s) -> EventBatch:
        """The same events at other times [n], ms."""
        return self if time is self.time else replace(self, time=time)

    def names(self, events: Indices) -> EventNames:
        """The graph IRIs [m] of some events."""
        return self.graph.read(events)


@record
class QuadBlock:
    """m consecutive quads of one file, in order, with their own term table."""

    s: Int32s  # [m] codes into terms
    p: Int32s  # [m]
    o: Int32s  # [m]
    g: Int32s  # [m], or DEFAULT_GRAPH
    line: Int64s  # [m] from 1
    terms: Sequence[str]  # code -> N-Triples text, all distinct

    def __len__(self) -> int:
        return len(self.s)
