"""Joins and unions of many patterns as trees of little depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from spaseq.algebra import nodes as n

IN_A_ROW = 16
"""Up to this number of operands a tree leans to the left, as the specification writes it."""


def folded(
    make: Callable[[n.Pattern, n.Pattern], n.Pattern], operands: Sequence[n.Pattern]
) -> n.Pattern:
    """At least one operand, combined by an associative operator.

    The depth is logarithmic, so that code which recurs into patterns can read thousands of them.

    >>> a, b, c = (n.Table((name,), ()) for name in "abc")
    >>> folded(n.Union, [a, b, c]) == n.Union(n.Union(a, b), c)
    True
    """
    if len(operands) <= IN_A_ROW:
        return reduce(make, operands)
    half = len(operands) // 2
    return make(folded(make, operands[:half]), folded(make, operands[half:]))


def all_joined(operands: Sequence[n.Pattern]) -> n.Pattern:
    """The join of the operands. The empty pattern joined with another is the other (18.2.2.8)."""
    rest = [operand for operand in operands if operand != n.UNIT]
    return folded(n.Join, rest) if rest else n.UNIT
