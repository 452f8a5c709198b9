"""Any tree of frozen dataclasses as indented text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

from spaseq.plan.query_plan import GpmPlan, QueryPlan


def algebra_text(plan: QueryPlan) -> str:
    """The pattern of each GPM as a tree, then its conditions on earlier steps.

    The core of a correlated GPM, which stage 1 evaluates, follows the pattern.
    """
    return "\n".join(line for gpm in plan.patterns.gpms for line in _gpm(gpm))


def _gpm(gpm: GpmPlan) -> Iterator[str]:
    yield f"GPM {gpm.name}"
    yield tree(gpm.pattern)
    if gpm.correlation is not None:
        yield tree(gpm.correlation.core, "core")
        for name, expr in gpm.correlation.parameters:
            yield tree(expr, f"parameter {name}")
    for condition in gpm.conditions:
        yield tree(condition, "condition on earlier steps")


_HIDDEN = {"span"}


def tree(node: object, label: str = "") -> str:
    """A node and all nodes below it, a line for each node; leaves share the line of their node."""
    return "\n".join(_lines(node, label, 0))


def _lines(node: object, label: str, depth: int) -> Iterator[str]:
    lead = "  " * depth + (f"{label}: " if label else "")
    if isinstance(node, tuple | list):
        if all(_is_leaf(n) for n in node):
            yield f"{lead}[{', '.join(_leaf(n) for n in node)}]"
            return
        yield f"{lead}[{len(node)}]"
        for child in node:
            yield from _lines(child, "", depth + 1)
        return
    if isinstance(node, Mapping):
        yield f"{lead}{{{', '.join(f'{k}: {_leaf(v)}' for k, v in node.items())}}}"
        return
    if _is_leaf(node):
        yield f"{lead}{_leaf(node)}"
        return
    leaves: list[tuple[str, object]] = []
    branches: list[tuple[str, object]] = []
    for field in fields(node):  # type: ignore[arg-type]
        value = getattr(node, field.name)
        if field.name in _HIDDEN or value is None or value == ():
            continue
        (leaves if _is_leaf(value) else branches).append((field.name, value))
    inner = ", ".join(f"{name}={_leaf(value)}" for name, value in leaves)
    yield f"{lead}{type(node).__name__}({inner})"
    for name, value in branches:
        yield from _lines(value, name, depth + 1)


def _is_leaf(node: object) -> bool:
    if is_dataclass(node):
        shown = [f.name for f in fields(node) if f.name not in _HIDDEN]
        values = [getattr(node, name) for name in shown]
        return len(shown) <= 3 and all(
            v is None or isinstance(v, str | int | bool | frozenset) for v in values
        )
    if isinstance(node, tuple | list):
        return not node
    return not isinstance(node, Mapping)


def _leaf(node: object) -> str:
    match node:
        case str():
            return node
        case frozenset():
            return "{" + ", ".join(sorted(map(str, node))) + "}"
        case tuple() | list():
            return "[]"
    if is_dataclass(node):
        values = [getattr(node, f.name) for f in fields(node) if f.name not in _HIDDEN]
        shown = ", ".join(_leaf(v) for v in values if v is not None)
        return f"{type(node).__name__}({shown})"
    return str(node)
