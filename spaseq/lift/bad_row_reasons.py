"""Why a row makes no event: the fields behind a variable of the template, and their cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from spaseq.expr.compile import variables_of
from spaseq.lang import ast
from spaseq.lift.lift_plan import LiftPlan

_MOST_FIELDS = 3
_SHOWN = 100  # characters of a cell

Columns = Mapping[str, Sequence[str | None]]


class FieldReasons:
    """Names the fields of one lift that a bad row is bad for."""

    def __init__(self, plan: LiftPlan) -> None:
        fields = plan.fields
        self._known = fields.wanted | fields.elements
        self._binds = {e.var.name: e.expr for e in plan.elements if isinstance(e, ast.Bind)}

    def fields(self, variable: str) -> list[str]:
        """The fields that a variable of the template is made of, in the order of their names."""
        found, waiting = set[str](), [variable]
        while waiting:
            name = waiting.pop()
            if name in self._binds:
                waiting += variables_of(self._binds[name])
            elif name in self._known:
                found.add(name)
        return sorted(found)

    def without_value(self, variables: Iterable[str], columns: Columns, place: int) -> str:
        """What the fields of the first variable are that a solution does not bind.

        It begins with a colon, and is empty if there is no such variable, or it has no fields.
        `columns` are those of the solutions, `place` is that of the solution.
        """
        for name in variables:
            if _cell(columns, name, place) is not None:
                continue
            cells = [_shown(f, _cell(columns, f, place)) for f in self.fields(name)]
            if cells:
                said = ", ".join(cells[:_MOST_FIELDS])
                return f": {said}" if name not in self._binds else f": ?{name} has no value, {said}"
        return ""

    def of(self, variable: str) -> str:
        """The fields of a variable, in words: ` of field at`; empty if there are none."""
        fields = self.fields(variable)[:_MOST_FIELDS]
        return f" of field{'s' * (len(fields) > 1)} {', '.join(fields)}" if fields else ""


def _cell(columns: Columns, name: str, place: int) -> str | None:
    column = columns.get(name)
    return None if column is None else column[place]


def _shown(field: str, cell: str | None) -> str:
    if cell is None:
        return f"field {field} is empty"
    return f"field {field} is {cell if len(cell) <= _SHOWN else cell[:_SHOWN] + '...'}"
