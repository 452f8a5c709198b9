"""The environment of expressions (variables, groups and event times), and their errors.

SPARQL gives evaluation errors a meaning; compile errors refuse a query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol, runtime_checkable

from spaseq.errors import SpaseqError
from spaseq.lang import ast
from spaseq.records import record


class Env(Protocol):
    """The bindings that one evaluation of an expression reads. Terms are N-Triples texts."""

    def value(self, name: str) -> str | None:
        """The term bound to `?name`, or None if it is unbound."""

    def previous(self, name: str) -> str | None:
        """`PREV(?name)`: the value of the repetition before, or None."""

    def group(self, name: str) -> Sequence[str]:
        """All bound values of the group variable `?name`, in order."""

    def time(self, gpm: str) -> int | None:
        """The time of the last event of a GPM in milliseconds since the epoch, or None."""

    def now(self) -> int | None:
        """The time of `NOW()` in milliseconds since the epoch, or None.

        In SELECT, CONSTRUCT and HAVING it is the end of the match, in a FILTER the time of the
        step's own event.
        """


@runtime_checkable
class BlankNodeScope(Protocol):
    """An `Env` that also labels the blank nodes of `BNODE("label")` for its one solution."""

    def blank_node(self, label: str) -> str:
        """The N-Triples text of this solution's blank node for the label."""


class PlainEnv:
    """Has no previous repetition, no groups and no times."""

    __slots__ = ()

    def previous(self, name: str) -> str | None:
        return None

    def group(self, name: str) -> Sequence[str]:
        return ()

    def time(self, gpm: str) -> int | None:
        return None

    def now(self) -> int | None:
        return None


@record
class DictEnv(PlainEnv):
    """Plain variables, and perhaps the time of `NOW()`."""

    bindings: Mapping[str, str | None] = field(default_factory=dict)
    now_ms: int | None = None

    def value(self, name: str) -> str | None:
        return self.bindings.get(name)

    def now(self) -> int | None:
        return self.now_ms


class ExpressionError(Exception):
    """An evaluation error in the sense of SPARQL 1.1 section 17.2."""


class NotCompilable(SpaseqError):
    """An expression cannot be compiled. The checker of queries reports this with its place.

    `node` is the part at fault, `suggestion` the nearest valid name.
    """

    def __init__(self, node: ast.Node, message: str, suggestion: str | None = None) -> None:
        self.node = node
        self.suggestion = suggestion
        super().__init__(message)
