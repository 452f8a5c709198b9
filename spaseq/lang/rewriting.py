"""Replaces nodes of a syntax tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import is_
from typing import Any, TypeVar, cast

from spaseq.lang import ast
from spaseq.lang.variables import child_fields, walk_patterns

NodeT = TypeVar("NodeT", bound=ast.Node)


def rewritten(node: NodeT, change: Callable[[ast.Node], ast.Node | None]) -> NodeT:
    """The tree with nodes replaced from the root down.

    Where `change` returns a node, that node takes the place of the subtree. Where it returns None,
    the node stays, and its children are rewritten.
    """
    return cast(NodeT, _rewrite(node, change))


def _rewrite(value: Any, change: Callable[[ast.Node], ast.Node | None]) -> Any:
    """The same object if nothing in it changes."""
    if isinstance(value, tuple):
        items = [_rewrite(item, change) for item in value]
        return value if all(map(is_, items, value)) else tuple(items)
    if not isinstance(value, ast.Node):
        return value
    changed = change(value)
    if changed is not None:
        return changed
    new = {}
    for name in child_fields(value):
        child = getattr(value, name)
        made = _rewrite(child, change)
        if made is not child:
            new[name] = made
    return replace(value, **new) if new else value


def without_services(group: ast.GroupGraphPattern) -> ast.GroupGraphPattern:
    """The group with an empty group for each SERVICE, which an endpoint evaluates."""
    if not any(isinstance(node, ast.ServiceGraphPattern) for node in walk_patterns(group)):
        return group
    return rewritten(
        group,
        lambda node: (
            ast.GroupGraphPattern(()) if isinstance(node, ast.ServiceGraphPattern) else None
        ),
    )
