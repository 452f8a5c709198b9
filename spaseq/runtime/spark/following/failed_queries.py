"""The last batch of a run in which a query has had too many partial matches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from spaseq.algebra.answers import Answer
from spaseq.errors import TooManyWaiting
from spaseq.runtime.spark.rows.stage_rows import Item


def until_failure(
    items: Sequence[tuple[int, Item]],
) -> tuple[Sequence[tuple[int, Item]], TooManyWaiting | None]:
    """(the items of a batch by query, without failures; the first failure).

    A query fails in each of its buckets by itself. In no bucket it has an answer that ends when the
    first one has failed, or later.
    """
    failures: dict[int, TooManyWaiting] = {}
    for _, item in items:
        if isinstance(item, TooManyWaiting):
            known = failures.setdefault(item.query, item)
            if item.instant < known.instant:
                failures[item.query] = item
    if not failures:
        return items, None
    kept = [(query, _before(failures.get(query), item)) for query, item in items]
    left = [each for each in kept if not isinstance(each[1], TooManyWaiting)]
    return left, min(failures.values(), key=lambda failure: failure.instant)


def _before(failure: TooManyWaiting | None, item: Item) -> Item:
    """The answers of a query that has failed, as far as they ended before."""
    if failure is None:
        return item
    return [answer for answer in cast("Sequence[Answer]", item) if answer.end < failure.instant]
