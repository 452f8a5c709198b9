"""A cache of what SPARQL endpoints answered."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from spaseq.kb.answer_rows import AnswerRow
from spaseq.options import ServiceOptions

AnswerKey: TypeAlias = "tuple[str, ...]"
"""The address, the pattern, and the names and values of the bound variables."""


class AnswerCache:
    """A cache of the answers for single solutions, with least-recently-used eviction."""

    def __init__(
        self, options: ServiceOptions, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._options, self._clock = options, clock
        self._known: OrderedDict[AnswerKey, tuple[float, list[AnswerRow]]] = OrderedDict()

    def get(self, key: AnswerKey) -> list[AnswerRow] | None:
        """The answer in the cache, unless it is too old."""
        entry = self._known.get(key)
        if entry is None:
            return None
        if entry[0] <= self._clock():
            del self._known[key]
            return None
        self._known.move_to_end(key)
        return entry[1]

    def put(self, key: AnswerKey, rows: list[AnswerRow]) -> None:
        """Add an answer."""
        if not self._options.cache:
            return
        self._known[key] = self._clock() + self._options.kept_s(key[0]), rows
        self._known.move_to_end(key)
        if len(self._known) > self._options.cache:
            self._known.popitem(last=False)

    def __len__(self) -> int:
        return len(self._known)


@lru_cache(maxsize=4)
def shared_cache(options: ServiceOptions) -> AnswerCache:
    """This process's cache for all requests with these options."""
    return AnswerCache(options)
