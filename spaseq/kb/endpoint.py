"""SPARQL endpoints over HTTP: SELECT requests with timeouts, retries and a cache of answers.

Requests follow SPARQL 1.1 Protocol section 2.1 (query by URL-encoded POST). Answers are SPARQL 1.1
Query Results JSON. An incomplete answer is a failure.
"""

from __future__ import annotations

import logging
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.message import Message
from functools import lru_cache
from hashlib import blake2b
from http.client import HTTPException
from typing import Any, ClassVar, TypeAlias

import pyoxigraph as ox

from spaseq.options import ServiceOptions

_LOG = logging.getLogger("spaseq")
_JSON = "application/sparql-results+json"
_ACCEPT = f"{_JSON}, application/json;q=0.5"
_CHUNK = 1 << 16
_SHOWN = 200
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
"""HTTP statuses after which the same request may succeed."""

AnswerRow: TypeAlias = tuple[str | None, ...]


def is_url(text: str) -> bool:
    """Whether the location of a knowledge base is an endpoint rather than a file."""
    return text.lower().startswith(("http://", "https://"))


class RetryCount:
    """Counts the requests that this process repeats after a failure."""

    total: ClassVar[int] = 0

    def __init__(self) -> None:
        self._before = self.total

    def take(self) -> int:
        """The number since the last call, or since this object was made."""
        found, self._before = self.total - self._before, self.total
        return found


class ServiceFailure(Exception):
    """A failed request; `again` says that a repeated request may succeed."""

    def __init__(self, reason: str, again: bool) -> None:
        super().__init__(reason)
        self.again = again


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint by its URL."""

    url: str
    options: ServiceOptions = ServiceOptions()

    def select(self, query: str, variables: Sequence[str]) -> list[AnswerRow]:
        """The solutions of a SELECT as rows of N-Triples texts, None where a variable is unbound.

        Blank nodes get labels that depend on the request, so equal requests give equal labels.

        Raises:
            ServiceFailure: the request failed, and so did the repeated requests.
        """
        wait = self.options.backoff_s
        for left in range(self.options.retries, -1, -1):
            try:
                return _rows(self._ask(query), variables, _prefix(self.url, query))
            except ServiceFailure as failure:
                if not left or not failure.again:
                    raise
                _LOG.warning("%s: %s; asking again in %g s", self.url, failure, wait)
                RetryCount.total += 1
                time.sleep(wait)
                wait *= 2
        raise AssertionError("the last attempt returns or raises")

    def check(self) -> None:
        """Send a minimal request.

        Raises:
            ServiceFailure: the endpoint does not answer.
        """
        self.select("SELECT * WHERE { } LIMIT 1", [])

    def _ask(self, query: str) -> bytes:
        """The bytes of a complete answer with the right content type."""
        request = urllib.request.Request(
            self.url,
            urllib.parse.urlencode({"query": query}).encode(),
            {"Accept": _ACCEPT, "User-Agent": "spaseq"},
        )
        deadline = time.monotonic() + self.options.timeout_s
        try:
            with _OPENER.open(request, timeout=self.options.timeout_s) as response:
                data = _read(response, deadline)
                _check_type(response.headers, data)
                return data
        except urllib.error.HTTPError as error:
            raise ServiceFailure(_http_reason(error), error.code in _AGAIN) from error
        except TimeoutError as error:
            raise self._timed_out() from error
        except urllib.error.URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise self._timed_out() from error
            raise ServiceFailure(f"cannot be reached: {error.reason}", True) from error
        except (OSError, HTTPException) as error:
            what = type(error).__name__
            raise ServiceFailure(f"the connection broke: {what}: {error}", True) from error

    def _timed_out(self) -> ServiceFailure:
        return ServiceFailure(f"timed out after {self.options.timeout_s:g} s", True)


class _Resend(urllib.request.HTTPRedirectHandler):
    """Repeats the POST after a redirect; the standard library would drop the query."""

    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if code == 303:
            return super().redirect_request(req, fp, code, msg, headers, newurl)
        return urllib.request.Request(newurl, req.data, req.headers)


_OPENER = urllib.request.build_opener(_Resend)


def _read(response: Any, deadline: float) -> bytes:
    """The complete body; the deadline covers all of it, however slowly it arrives."""
    chunks = []
    while chunk := response.read1(_CHUNK):
        chunks.append(chunk)
        if time.monotonic() > deadline:
            raise TimeoutError
    expected = response.headers.get("Content-Length")
    size = sum(map(len, chunks))
    if expected is not None and size < int(expected):
        raise ServiceFailure(f"the answer is incomplete: {size} of {expected} bytes", True)
    return b"".join(chunks)


def _check_type(headers: Message, data: bytes) -> None:
    kind = headers.get_content_type()
    if kind not in (_JSON, "application/json"):
        start = data[:_SHOWN].decode(errors="replace").strip().splitlines()
        shown = f" ({start[0]})" if start else ""
        raise ServiceFailure(f"the answer is {kind}, not {_JSON}{shown}", False)


def _http_reason(error: urllib.error.HTTPError) -> str:
    try:
        lines = error.read(_SHOWN).decode(errors="replace").strip().splitlines()
    except (OSError, HTTPException):
        lines = []
    detail = f": {lines[0]}" if lines else ""
    return f"HTTP status {error.code} {error.reason}{detail}"


def _rows(data: bytes, variables: Sequence[str], prefix: str) -> list[AnswerRow]:
    try:
        results = ox.parse_query_results(data, format=ox.QueryResultsFormat.JSON)
        if not isinstance(results, ox.QuerySolutions):
            raise ServiceFailure("the answer is a boolean, not solutions", False)
        known = {v.value for v in results.variables}
        own = [v if v in known else None for v in variables]
        return [tuple(None if v is None else _text(s[v], prefix) for v in own) for s in results]
    except (SyntaxError, ValueError) as error:
        raise ServiceFailure(f"the answer is incomplete or not JSON: {error}", True) from error


def _text(term: object, prefix: str) -> str | None:
    match term:
        case None:
            return None
        case ox.BlankNode():
            key = f"{prefix}\0{term.value}".encode()
            return "_:v" + blake2b(key, digest_size=8).hexdigest()
        case _:
            return str(term)


def _prefix(url: str, query: str) -> str:
    return blake2b(f"{url}\0{query}".encode(), digest_size=16).hexdigest()


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
