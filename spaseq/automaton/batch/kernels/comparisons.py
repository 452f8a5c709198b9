"""Comparisons of two numbers: a code for each operator."""

from __future__ import annotations

from spaseq.compiled.decorators import inlined_device_function

LESS, AT_MOST, GREATER, AT_LEAST, EQUAL, UNEQUAL = range(6)

CODES = {
    "<": LESS,
    "<=": AT_MOST,
    ">": GREATER,
    ">=": AT_LEAST,
    "=": EQUAL,
    "!=": UNEQUAL,
}
"""The code of each operator, by its sign."""


@inlined_device_function
def holds(operator: int, left: float, right: float) -> bool:
    """Whether a comparison holds."""
    if operator == LESS:
        return left < right
    if operator == AT_MOST:
        return left <= right
    if operator == GREATER:
        return left > right
    if operator == AT_LEAST:
        return left >= right
    if operator == EQUAL:
        return left == right
    return left != right
