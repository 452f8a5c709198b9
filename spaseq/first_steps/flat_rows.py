"""Rows whose nested objects have become fields, as a lift sees them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from spaseq.lift.cells import inner_name, variable_of
from spaseq.records import record

Row = dict[str, Any]
"""The values that are not null, by variable."""


@record
class FlatRows:
    """Rows, and what is known of their variables.

    Attributes:
        rows: the rows, without values that are no terms.
        names: the variables of all fields, objects and lists included.
        objects: by variable of a nested field, the objects at the top of the row that it is in.
        inner: the fields directly in such an object.
    """

    rows: list[Row]
    names: frozenset[str] = frozenset()
    objects: Mapping[str, str] = field(default_factory=dict)
    inner: frozenset[str] = frozenset()


def flat_rows(values: Iterable[Mapping[str, Any]]) -> FlatRows:
    """The rows of objects. A field that is no term in one of them is left out of all."""
    fields = _Fields()
    rows = [dict(fields.of(value, ())) for value in values]
    kept = [{n: v for n, v in row.items() if n not in fields.composite} for row in rows]
    return FlatRows(kept, frozenset(fields.names), fields.objects, frozenset(fields.inner))


class _Fields:
    """Takes note of the fields of rows."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.objects: dict[str, str] = {}
        self.inner: set[str] = set()
        self.composite: set[str] = set()

    def of(self, value: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        """(variable, value) of each field; `path` has the variables of the objects around it."""
        for name, content in value.items():
            variable = path[-1] + inner_name(name) if path else variable_of(name)
            self.names.add(variable)
            if path:
                self.objects[variable] = path[0]
            if len(path) == 1:
                self.inner.add(variable)
            if isinstance(content, Mapping | list | bytes):
                self.composite.add(variable)
            if not isinstance(content, Mapping):
                yield variable, content
            elif name != "@context":
                yield from self.of(content, (*path, variable))
