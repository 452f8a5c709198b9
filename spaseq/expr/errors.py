"""Errors of expressions: evaluation errors, which SPARQL gives a meaning, and compile errors."""

from __future__ import annotations

from spaseq.errors import SpaseqError
from spaseq.lang import ast


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
