"""SPARQL endpoints over HTTP: SELECT requests with timeouts and retries; and where answers come
from: a cache, or else a request.

Requests follow SPARQL 1.1 Protocol section 2.1 (query by URL-encoded POST). Answers are SPARQL 1.1
Query Results JSON. An incomplete answer is a failure. Endpoints need not be trusted: every term of
a row is a valid RDF term in canonical N-Triples text, so it can go into answers and into the next
request.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from math import inf
from typing import Protocol, TypeAlias
from urllib.parse import urlencode

import numpy as np
import pyoxigraph as ox

from spaseq.back_off import BackOff
from spaseq.kb.http_request import NETWORK, HttpRequest, Network
from spaseq.kb.service_address import RetryCount, ServiceFailure
from spaseq.limits import Limits
from spaseq.message_text import one_line, public_address
from spaseq.options import ServiceOptions
from spaseq.rdf.terms.term import LANG_STRING
from spaseq.rdf.terms.triple_terms import triple_term_text
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


AnswerRow: TypeAlias = tuple[str | None, ...]
"""N-Triples texts, None where a variable is unbound."""

_MORE_COLUMNS = 100
_LEVELS = 5  # of JSON around the values of a term
_MOST_ARRAYS = 100
_PIECE = 1 << 20
_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_NO_BRACKET = bytes(set(range(256)) - set(b"{}[]"))


class AnswerError(Exception):
    """An answer cannot be taken; the message says why."""


def answer_rows(
    data: bytes, variables: Sequence[str], label: str, limits: Limits
) -> list[AnswerRow]:
    """The rows of an answer, with the values of some variables.

    Args:
        data: the bytes of SPARQL 1.1 Query Results JSON.
        variables: the names of the wanted variables.
        label: distinguishes the blank nodes of different answers.
        limits: bounds on nesting, literals and the number of rows.

    Raises:
        AnswerError: the answer exceeds a limit, or has a forbidden part.
        SyntaxError: the answer is not valid JSON results; it may be incomplete.
    """
    _check_nesting(data, limits.nesting)
    try:
        rows = _parsed(data, variables, _Terms(label, limits))
    except (AnswerError, SyntaxError) as error:
        # The traceback refers to pyoxigraph's parser, which must end in the thread of its start.
        failure = error.with_traceback(None)
    else:
        _check_keys(data)
        return rows
    raise failure


def _parsed(data: bytes, variables: Sequence[str], terms: _Terms) -> list[AnswerRow]:
    results = ox.parse_query_results(data, format=ox.QueryResultsFormat.JSON)
    if not isinstance(results, ox.QuerySolutions):
        raise AnswerError("the answer is a boolean, not solutions")
    known = {v.value for v in results.variables}
    if len(known) > len(variables) + _MORE_COLUMNS:
        raise AnswerError(f"the answer has {len(known):,} variables")
    wanted = [v if v in known else None for v in variables]
    return list(_rows(results, wanted, terms))


def _rows(
    results: ox.QuerySolutions, wanted: Sequence[str | None], terms: _Terms
) -> Iterator[AnswerRow]:
    for number, solution in enumerate(results, 1):
        if number > terms.limits.solutions:
            raise AnswerError(f"the answer has more than {terms.limits.solutions:,} solutions")
        yield tuple(None if v is None else terms.text(solution[v]) for v in wanted)


class _Terms:
    """Makes texts of the terms of one answer."""

    def __init__(self, label: str, limits: Limits) -> None:
        self._label, self.limits = label, limits

    def text(self, term: object) -> str | None:
        return None if term is None else self._term(term)

    def _term(self, term: object) -> str:
        match term:
            case ox.BlankNode():
                key = f"{self._label}\0{term.value}".encode()
                return "_:v" + blake2b(key, digest_size=8).hexdigest()
            case ox.NamedNode():
                return str(term)
            case ox.Literal():
                self._check_literal(term)
                return str(term)
            case ox.Triple():
                s, p, o = (self._term(t) for t in (term.subject, term.predicate, term.object))
                return triple_term_text(s, p, o)
            case _:
                raise AnswerError(f"the answer has the term {term}")

    def _check_literal(self, literal: ox.Literal) -> None:
        value = literal.value
        most = self.limits.literal_bytes
        if len(value) > most or (4 * len(value) > most and len(value.encode()) > most):
            raise AnswerError(f"the answer has a literal of more than {most:,} bytes")
        if literal.language is None and literal.datatype.value == LANG_STRING:
            raise AnswerError("the answer has a literal of rdf:langString without a language")


# --- JSON -----------------------------------------------------------------------------------------


def _check_nesting(data: bytes, nesting: int) -> None:
    """Refuse JSON that is nested too deeply for a recursive parser."""
    arrays = depth = 0
    most = _LEVELS + 2 * nesting
    for brackets in _brackets(data):
        arrays += brackets.count(b"[")
        if arrays > _MOST_ARRAYS:
            raise AnswerError("the answer has arrays where results have none")
        codes = np.frombuffer(brackets, np.uint8)
        opens = codes & 2  # { and [ have this bit, } and ] do not
        depths = depth + np.cumsum(np.where(opens, 1, -1))
        if depths.max(initial=0) > most:
            raise AnswerError(f"the answer is nested more than {nesting} deep")
        depth = int(depths[-1]) if len(depths) else depth


def _brackets(data: bytes) -> Iterator[bytes]:
    """The brackets outside of strings, in pieces."""
    if b"\\" in data:
        data = _ESCAPED.sub(b"", data)
    inside = 0
    for start in range(0, len(data), _PIECE):
        parts = data[start : start + _PIECE].split(b'"')
        yield b"".join(parts[inside::2]).translate(None, _NO_BRACKET)
        inside = (inside + len(parts) - 1) % 2


def _check_keys(data: bytes) -> None:
    """Refuse keys that occur twice in an object, and text that is no UTF-8."""
    try:
        json.loads(
            data.decode("utf-8-sig"),
            object_pairs_hook=_check_object,
            parse_int=_no_number,
            parse_float=_no_number,
        )
    except UnicodeDecodeError as error:
        raise AnswerError("the answer is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise AnswerError(f"the answer is not JSON: {error}") from error


def _check_object(pairs: list[tuple[str, object]]) -> None:
    if len({key for key, _ in pairs}) < len(pairs):
        raise AnswerError("the answer has a key twice in one object")


def _no_number(digits: str) -> None:
    """Numbers stand nowhere in results; their digits are not read."""
