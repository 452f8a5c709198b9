"""SPARQL endpoints over HTTP: SELECT requests with timeouts, retries and a cache of answers.

Requests follow SPARQL 1.1 Protocol section 2.1 (query by URL-encoded POST). Answers are SPARQL 1.1
Query Results JSON. An incomplete answer is a failure.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from math import inf
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
