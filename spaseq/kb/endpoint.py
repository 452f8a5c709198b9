"""SPARQL endpoints over HTTP: SELECT requests with timeouts and retries; and where answers come
from: a cache, or else a request.

Requests follow SPARQL 1.1 Protocol section 2.1 (query by URL-encoded POST). Answers are SPARQL 1.1
Query Results JSON. An incomplete answer is a failure.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import inf
from typing import Protocol, TypeAlias
from urllib.parse import urlencode

from spaseq.back_off import BackOff
from spaseq.kb.answer_rows import AnswerError, AnswerRow, answer_rows
from spaseq.kb.http_request import NETWORK, HttpRequest, Network
from spaseq.kb.service_address import RetryCount, ServiceFailure
from spaseq.message_text import one_line, public_address
from spaseq.options import ServiceOptions
from spaseq.records import record

_LOG = logging.getLogger("spaseq")
_JSON = "application/sparql-results+json"
_HEADERS = {
    "Accept": f"{_JSON}, application/json;q=0.5",
    "Content-Type": "application/x-www-form-urlencoded",
    "User-Agent": "spaseq",
}
_SHOWN = 200

AnswerKey: TypeAlias = "tuple[str, ...]"
"""The address, the pattern, and the names and values of the bound variables."""

Answered: TypeAlias = "list[AnswerRow] | ServiceFailure"


@record
class Endpoint:
    """One endpoint by its URL."""

    url: str
    options: ServiceOptions = ServiceOptions()
    network: Network = NETWORK

    def select(
        self, query: str, variables: Sequence[str], within_s: float = inf
    ) -> list[AnswerRow]:
        """The solutions of a SELECT as rows of N-Triples texts, None where a variable is unbound.

        Blank nodes get labels that depend on the request, so equal requests give equal labels. All
        attempts together take at most `within_s`.

        Raises:
            ServiceFailure: the request failed, and so did the repeated requests.
        """
        back_off, end = BackOff(self.options.backoff_s, inf), time.monotonic() + within_s
        for left in range(self.options.retries, -1, -1):
            try:
                return self._rows(self._ask(query, end - time.monotonic()), variables, query)
            except ServiceFailure as failure:
                wait = back_off.failed()
                if not left or not failure.again or time.monotonic() + wait >= end:
                    raise
                where = public_address(self.url)
                _LOG.warning("%s: %s; asking again in %g s", where, one_line(str(failure)), wait)
                RetryCount.total += 1
                time.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def check(self) -> None:
        """Send a minimal request.

        Raises:
            ServiceFailure: the endpoint does not answer.
        """
        self.select("SELECT * WHERE { } LIMIT 1", [])

    def _ask(self, query: str, within_s: float) -> bytes:
        """The bytes of a complete answer with the right content type."""
        request = HttpRequest(
            self.url,
            urlencode({"query": query}).encode(),
            _HEADERS,
            min(self.options.timeout_s, within_s),
            self.options.max_bytes,
        )
        answer = request.send(self.network)
        if answer.media_type not in (_JSON, "application/json"):
            start = answer.body[:_SHOWN].decode(errors="replace").strip().splitlines()
            shown = f" ({start[0]})" if start else ""
            kind = answer.media_type[:_SHOWN]
            raise ServiceFailure(f"the answer is {kind}, not {_JSON}{shown}", False)
        return answer.body

    def _rows(self, data: bytes, variables: Sequence[str], query: str) -> list[AnswerRow]:
        try:
            return answer_rows(data, variables, f"{self.url}\0{query}", self.options.limits)
        except AnswerError as error:
            raise ServiceFailure(str(error), False) from error
        except SyntaxError as error:
            reason = f"the answer is incomplete or not JSON: {error}"[:_SHOWN]
            raise ServiceFailure(reason, True) from error


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
    """Sends requests to endpoints, and caches the answers."""

    def get(self, key: AnswerKey) -> Answered | None:
        """The known answer; None if the endpoint must get the request."""

    def put(self, key: AnswerKey, answer: Answered) -> None:
        """Record an answer or a failure."""

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

        return Endpoint(url, self._options).select(query, variables)
