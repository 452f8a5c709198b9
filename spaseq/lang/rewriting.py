"""Putting other nodes in the place of nodes of a syntax tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar, cast

from spaseq.lang import ast
from spaseq.lang.variables import child_fields

NodeT = TypeVar("NodeT", bound=ast.Node)


def rewritten(node: NodeT, change: Callable[[ast.Node], ast.Node | None]) -> NodeT:
    """The tree with every outermost node that `change` answers for replaced by its answer.

    Nodes for which `change` gives None are kept, and their children looked at.
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
    """The group with nothing in the place of SERVICE, which is none of ours to evaluate."""
    return rewritten(
        group,
        lambda n: ast.GroupGraphPattern(()) if isinstance(n, ast.ServiceGraphPattern) else None,
    )
