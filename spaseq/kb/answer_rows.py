"""SPARQL query results in JSON from endpoints that need not be trusted, checked and as texts.

Every term of a row is a valid RDF term in canonical N-Triples text, so it can go into answers and
into the next request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
import pyoxigraph as ox

from spaseq.limits import Limits
from spaseq.rdf.terms.term import LANG_STRING
from spaseq.rdf.terms.triple_terms import triple_term_text

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
