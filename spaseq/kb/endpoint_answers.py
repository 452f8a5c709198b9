"""Where the answers of SPARQL endpoints come from: a cache, or else a request."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Protocol, TypeAlias

from spaseq.kb.answer_rows import AnswerRow
from spaseq.kb.service_address import ServiceFailure
from spaseq.options import ServiceOptions

AnswerKey: TypeAlias = "tuple[str, ...]"
"""The address, the pattern, and the names and values of the bound variables."""

Answered: TypeAlias = "list[AnswerRow] | ServiceFailure"


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


class EndpointAnswers(Protocol):
    """Asks endpoints, and knows what they have answered."""

    def get(self, key: AnswerKey) -> Answered | None:
        """What is known already; None if the endpoint must be asked."""

    def put(self, key: AnswerKey, answer: Answered) -> None:
        """Take note of an answer or a failure."""

    def select(self, url: str, query: str, variables: Sequence[str]) -> list[AnswerRow]:
        """The solutions of a SELECT; ServiceFailure as from `Endpoint.select`."""


class CachedAnswers:
    """The answers in this process's cache, which has no failures."""

    def __init__(self, options: ServiceOptions) -> None:
        self._options = options

    def get(self, key: AnswerKey) -> Answered | None:
        return shared_cache(self._options).get(key)

    def put(self, key: AnswerKey, answer: Answered) -> None:
        if not isinstance(answer, ServiceFailure):
            shared_cache(self._options).put(key, answer)

    def select(self, url: str, query: str, variables: Sequence[str]) -> list[AnswerRow]:
        from spaseq.kb.endpoint import Endpoint  # loads the HTTP library

        return Endpoint(url, self._options).select(query, variables)
