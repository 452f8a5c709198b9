"""A cache of what SPARQL endpoints answered."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache

from spaseq.kb.answer_rows import AnswerRow
from spaseq.options import ServiceOptions


class AnswerCache:
    """A cache of the answers for single solutions, with least-recently-used eviction."""

    def __init__(
        self, size: int, ttl_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._size, self._ttl_s, self._clock = size, ttl_s, clock
        self._known: OrderedDict[object, tuple[float, list[AnswerRow]]] = OrderedDict()

    def get(self, key: object) -> list[AnswerRow] | None:
        """The answer in the cache, unless it is too old."""
        found = self._known.get(key)
        if found is None:
            return None
        if found[0] <= self._clock():
            del self._known[key]
            return None
        self._known.move_to_end(key)
        return found[1]

    def put(self, key: object, rows: list[AnswerRow]) -> None:
        """Add an answer."""
        if not self._size:
            return
        self._known[key] = self._clock() + self._ttl_s, rows
        self._known.move_to_end(key)
        if len(self._known) > self._size:
            self._known.popitem(last=False)

    def __len__(self) -> int:
        return len(self._known)


@lru_cache(maxsize=4)
def shared_cache(options: ServiceOptions) -> AnswerCache:
    """This process's cache for all requests with these options."""
    return AnswerCache(options.cache, options.ttl_s)
