"""Replaces nodes of a syntax tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar, cast

from spaseq.lang import ast
from spaseq.lang.variables import child_fields

NodeT = TypeVar("NodeT", bound=ast.Node)


def rewritten(node: NodeT, change: Callable[[ast.Node], ast.Node | None]) -> NodeT:
    """The tree with nodes replaced from the root down.

    Where `change` returns a node, that node takes the place of the subtree. Where it returns None,
    the node stays, and its children are rewritten.
    """
    return cast(NodeT, _rewrite(node, change))


def _rewrite(value: Any, change: Callable[[ast.Node], ast.Node | None]) -> Any:
    if isinstance(value, tuple):
        return tuple(_rewrite(item, change) for item in value)
    if not isinstance(value, ast.Node):
        return value
    changed = change(value)
    if changed is not None:
        return changed
    old = {name: getattr(value, name) for name in child_fields(value)}
    new = {name: _rewrite(child, change) for name, child in old.items()}
    return value if new == old else replace(value, **new)


def without_services(group: ast.GroupGraphPattern) -> ast.GroupGraphPattern:
    """The group with an empty group for each SERVICE, which an endpoint evaluates."""
    return rewritten(
        group,
        lambda node: (
            ast.GroupGraphPattern(()) if isinstance(node, ast.ServiceGraphPattern) else None
        ),
    )
