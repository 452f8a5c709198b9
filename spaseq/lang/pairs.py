"""How deep the pairs of `&` and AND nest: `(A & B & C)` is the pair of `(A & B)` and C."""

from __future__ import annotations

from spaseq.lang import ast

MOST_PAIRS = 100
"""Pairs may nest this deep. Evaluation goes into them one by one."""


def too_deep(sequence: ast.Sequence) -> ast.Bracket | None:
    """The first bracket whose pairs nest too deep, outer before inner; None if there is none."""
    brackets = (s.atom for s in sequence.steps if isinstance(s.atom, ast.Bracket))
    return next((b for b in brackets if _depth(b) > MOST_PAIRS), None)


def _depth(bracket: ast.Bracket) -> int:
    own = len(bracket.operands) - 1 if bracket.kind in ("&", "AND") else 0
    steps = (step for operand in bracket.operands for step in operand.steps)
    inner = (_depth(s.atom) for s in steps if isinstance(s.atom, ast.Bracket))
    return own + max(inner, default=0)
