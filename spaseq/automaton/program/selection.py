"""Selection strategies: which of the matches with the same end are kept
(docs/meaning.md#selection).

They compare enumerated matches by their sets of positions (instant, stream). "Foundations of CEP"
defines the strategies in section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
) -> list[M]:
    """The matches of one partition and one end that a strategy keeps, in their order.

    STRICT looks at each match by itself, so the evaluators apply it.
    """
    if strategy in ("ALL", "STRICT") or not matches:
        return list(matches)
    sets = [positions(m) for m in matches]
    if strategy == "MAX":
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
