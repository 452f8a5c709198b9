"""The columns of the GPMs of a sequence, for its automaton."""

from __future__ import annotations

from spaseq.lang import ast
from spaseq.records import record


@record
class CorrelatedColumns:
    """The columns of a correlated GPM, which is evaluated when its event is taken.

    `event` is the column that holds the event. The values of the variables `reads` are substituted,
    and the values of the expressions in `parameters`, given by variable.
    """

    event: int
    reads: tuple[str, ...]
    parameters: tuple[tuple[str, ast.Expr], ...]


@record
class GpmColumns:
    """The columns of a GPM.

    `variables` are in the order of a row's values. `conditions` are the FILTERs that look back at
    earlier steps. Every solution binds the `certain` variables.
    """

    variables: tuple[str, ...]
    conditions: tuple[ast.Expr, ...] = ()
    certain: frozenset[str] = frozenset()
    correlation: CorrelatedColumns | None = None
