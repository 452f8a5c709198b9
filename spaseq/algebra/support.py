"""What a graph pattern may say in the language, but is not evaluated yet."""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.errors import Span
from spaseq.lang import ast
from spaseq.lang.variables import walk

Finding = tuple[str, Span]


def unsupported(group: ast.Group) -> Iterator[Finding]:
    """Each construct of a GPM's pattern that is not evaluated yet, with its place."""
    for node in walk(group):
        if isinstance(node, ast.Service):
            yield "SERVICE", node.span
