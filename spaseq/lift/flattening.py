"""Fields of nested objects as cells, by the names of their variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from spaseq.lift.cells import Cell, Wrong, inner_name, variable_of

TWICE = Wrong("two fields have this name")
OBJECT = Wrong("an object is no term; its fields are")

Members = Callable[[Any], "Iterable[tuple[str, Any]] | None"]
"""The members of an object; None for another value."""

_KNOWN = 10_000  # names of fields that are remembered


class Flattening:
    """Makes the cells of rows, and only of the names that somebody reads."""

    def __init__(
        self, names: frozenset[str], cell: Callable[[Any], Cell], members: Members
    ) -> None:
        self._names, self._cell, self._members = names, cell, members
        self._read: dict[str, bool] = {}

    def row(self, members: Iterable[tuple[str, Any]]) -> dict[str, Cell]:
        """The cells of a row, by variable."""
        out: dict[str, Cell] = {}
        for name, value in members:
            self._add(variable_of(name), value, out)
        return out

    def _add(self, name: str, value: Any, out: dict[str, Cell]) -> None:
        read = self._read.get(name)
        if read is None:
            read = name in self._names or any(n.startswith(f"{name}_") for n in self._names)
            if len(self._read) < _KNOWN:
                self._read[name] = read
        if read:
            out[name] = self._cell(value) if name not in out else TWICE
            for inner, item in self._members(value) or ():
                self._add(name + inner_name(inner), item, out)


def element(value: Any, cell: Callable[[Any], Cell], members: Members) -> dict[str, Cell]:
    """The cells of a list's element, by what their variables have after the element's."""
    out: dict[str, Cell] = {}
    _flatten("", value, out, cell, members)
    return out


def _flatten(
    name: str, value: Any, out: dict[str, Cell], cell: Callable[[Any], Cell], members: Members
) -> None:
    out[name] = cell(value) if name not in out else TWICE
    for inner, item in members(value) or ():
        _flatten(name + inner_name(inner), item, out, cell, members)
