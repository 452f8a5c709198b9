"""Whether a feature makes a difference: the answers of a query without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from spaseq.lang import ast


def without(feature: str, query: ast.Query) -> ast.Query:
    """The query without a feature of `REMOVALS`."""
    changed = _rebuilt(query, REMOVALS[feature])
    assert isinstance(changed, ast.Query)
    return changed


def _no_own_operator(node: Any) -> Any:
    return replace(node, own=None) if isinstance(node, ast.Quantifier) else node


def _no_greedy(node: Any) -> Any:
    return replace(node, greedy=False) if isinstance(node, ast.Quantifier) else node


def _no_until(node: Any) -> Any:
    return replace(node, until=None) if isinstance(node, ast.Quantifier) else node


def _no_negation(node: Any) -> Any:
    """A sequence without its negated steps; with the operators before what is left."""
    if not isinstance(node, ast.Sequence):
        return node
    pairs = list(zip((None, *node.ops), node.steps, strict=True))
    kept = [(op, step) for op, step in pairs if not step.negated]
    return replace(
        node,
        steps=tuple(step for _, step in kept),
        ops=tuple(op for op, _ in kept[1:] if op is not None),
    )


def _no_aggregates(node: Any) -> Any:
    """A pattern without the FILTERs that have an aggregate."""
    if not isinstance(node, ast.GroupGraphPattern):
        return node
    kept = (
        e
        for e in node.elements
        if not (isinstance(e, ast.Filter) and any(isinstance(n, ast.Aggregate) for n in _below(e)))
    )
    return replace(node, elements=tuple(kept))


REMOVALS: dict[str, Callable[[Any], Any]] = {
    "own-operator": _no_own_operator,
    "greedy": _no_greedy,
    "until": _no_until,
    "!-union": _no_negation,
    "running": _no_aggregates,
}


def _below(node: object) -> Iterator[object]:
    yield node
    if isinstance(node, tuple):
        for child in node:
            yield from _below(child)
    elif is_dataclass(node):
        for f in fields(node):
            yield from _below(getattr(node, f.name))


def _rebuilt(node: Any, change: Callable[[Any], Any]) -> Any:
    """The tree with every node changed, inner ones first."""
    if isinstance(node, tuple):
        return tuple(_rebuilt(child, change) for child in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    old = {f.name: getattr(node, f.name) for f in fields(node) if f.init}
    new = {name: _rebuilt(value, change) for name, value in old.items()}
    different = {name: value for name, value in new.items() if value is not old[name]}
    return change(replace(node, **different) if different else node)
