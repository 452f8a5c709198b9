"""Where the answers of SPARQL endpoints come from: a cache, or else a request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from spaseq.kb.answer_cache import AnswerKey, shared_cache
from spaseq.kb.answer_rows import AnswerRow
from spaseq.kb.service_failure import ServiceFailure
from spaseq.options import ServiceOptions

Answered: TypeAlias = "list[AnswerRow] | ServiceFailure"


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
