"""Bounds on the depth of a query, so that no query takes more stack than there is.

Lists may be of any length: triples, UNION, FILTER, `&&`, `||`, VALUES, the steps of a sequence, the
alternatives of a path. Nested constructs are deeper. So are constructs that apply to everything
before them: each OPTIONAL, MINUS and BIND of a group, each operand of `+ - * /` and of AND.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from spaseq.errors import Span
from spaseq.lang import ast
from spaseq.lang.scan import Lexeme
from spaseq.lang.variables import child_fields, children

PER_LEVEL = 20
"""Calls that may be open for each level of a query."""

CALLS = 1_000
"""Calls that may be open besides."""

USUAL = 20
"""Python's own bound serves this many levels."""


def make_room(levels: int) -> None:
    """Raise the recursion limit to the need of a query with this number of levels.

    The limit stays raised: threads and generators of the run read the query later.
    """
    needed = CALLS + PER_LEVEL * levels
    if levels > USUAL and sys.getrecursionlimit() < needed:
        sys.setrecursionlimit(needed)


DEEPEST = 1_200
"""Most levels. Twice as many still fit into a stack of 8 MB, in all stages."""

_AND = 3
"""Levels of an operand of AND, whose automaton is nested more deeply."""

_DEEPENING = ("OPTIONAL", "MINUS", "BIND")
_DEEPER = ast.OptionalGraphPattern | ast.MinusGraphPattern | ast.Bind
_IN_PLACE = ast.Triples | ast.Triple | ast.Sequence | ast.Step


def too_deep(roots: Iterable[ast.Node]) -> Span | None:
    """The place of the first node, in the order of the text, that is too deep.

    If there is none, Python gets room for calls as deep as the query.
    """
    waiting, deepest = [(root, 0) for root in reversed([*roots])], 0
    while waiting:
        node, depth = waiting.pop()
        if depth > DEEPEST:
            return node.span
        if depth > deepest:
            deepest = depth
        if child_fields(node):
            waiting += _inside(node, depth)[::-1]
    make_room(deepest)
    return None


def _inside(node: ast.Node, depth: int) -> list[tuple[ast.Node, int]]:
    """The children with their depths."""
    if isinstance(node, ast.GroupGraphPattern):
        further: list[tuple[ast.Node, int]] = []
        for child in node.elements:
            depth += isinstance(child, _DEEPER)
            further.append((child, depth))
        return further
    within = depth if isinstance(node, _IN_PLACE) else depth + 1
    if isinstance(node, ast.Bracket) and node.kind == "AND":
        return [(child, within + _AND * i) for i, child in enumerate(children(node))]
    return [(child, within) for child in children(node)]


def too_deep_groups(lexemes: Sequence[Lexeme]) -> Span | None:
    """The first OPTIONAL, MINUS or BIND that is too deep, before a parser reads them all."""
    if sum(lexeme.keyword in _DEEPENING for lexeme in lexemes) <= DEEPEST:
        return None
    depth, outside = 0, []
    for lexeme in lexemes:
        if lexeme.is_punct("{"):
            outside.append(depth)
        elif lexeme.is_punct("}"):
            depth = outside.pop() if outside else 0
        elif lexeme.keyword in _DEEPENING:
            depth += 1
            if depth > DEEPEST:
                return lexeme.span
    return None


def make_room_for_any() -> None:
    """Let a worker process read any query that its driver has checked."""
    make_room(DEEPEST)
