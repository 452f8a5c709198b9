"""Selection strategies: which matches with the same end are kept (docs/language.md#selection).

They compare enumerated matches by their sets of positions (instant, stream). "Foundations of CEP"
defines the strategies in section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeAlias, TypeVar

from spaseq.algebra.answers import Instant

Position: TypeAlias = tuple[Instant, str]
"""An instant and a stream IRI."""

Strategy: TypeAlias = Literal["ALL", "NEXT", "LAST", "MAX", "STRICT"]

M = TypeVar("M")


def select(
    matches: Sequence[M],
    strategy: Strategy,
    positions: Callable[[M], frozenset[Position]],
    consecutive: Callable[[Iterable[Instant]], bool],
) -> list[M]:
    """The matches of one partition and one end that a strategy keeps, in their order.

    `consecutive` tells whether instants follow each other without a gap in the partition.
    """
    if strategy == "ALL" or not matches:
        return list(matches)
    sets = [positions(m) for m in matches]
    if strategy == "STRICT":
        keep = [consecutive(i for i, _ in s) for s in sets]
    elif strategy == "MAX":
        distinct = set(sets)
        keep = [not any(s < other for other in distinct) for s in sets]
    else:
        best = _greatest(sets, smallest=strategy == "NEXT")
        keep = [s == best for s in sets]
    return [m for m, kept in zip(matches, keep, strict=True) if kept]


def _greatest(sets: Sequence[frozenset[Position]], smallest: bool) -> frozenset[Position]:
    """The greatest set. Of two sets, the one with the smallest (largest) differing position."""
    pick = min if smallest else max
    best = sets[0]
    for other in sets[1:]:
        differ = best ^ other
        if differ and pick(differ) in other:
            best = other
    return best
