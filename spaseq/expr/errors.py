"""Errors of expressions: at evaluation, where SPARQL gives them a meaning, and at compilation."""

from __future__ import annotations

from spaseq.errors import SpaseqError
from spaseq.lang import ast


class ExpressionError(Exception):
    """An evaluation error in the sense of SPARQL 1.1 section 17.2: a value like any other."""


class NotCompilable(SpaseqError):
    """An expression that cannot be compiled; query checking finds these before, with their place.

    `node` is the part that is at fault, `suggestion` the nearest that would be none.
    """

    def __init__(self, node: ast.Node, message: str, suggestion: str | None = None) -> None:
        self.node = node
        self.suggestion = suggestion
        super().__init__(message)
