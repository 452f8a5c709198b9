"""SERVICE, and GRAPH over an endpoint: patterns that somebody else evaluates.

An endpoint is asked only for what the solutions around the pattern need, many of them in one
request (VALUES), as in SPARQL 1.1 Federated Query section 2.4. A request that fails has no
solution, or, SILENT, one that binds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spaseq.algebra import nodes as n
from spaseq.algebra.deferral import sensitive
from spaseq.algebra.schema import Schema
from spaseq.algebra.scope import possible, visible
from spaseq.algebra.sparql_text import pattern_text, values_text
from spaseq.compiled.arrays import Indices, Int64s
from spaseq.errors import RunError
from spaseq.gpm.solutions.lexicon import Lexicon
from spaseq.gpm.solutions.modifiers import encoded
from spaseq.gpm.solutions.solutions import Solutions, none
from spaseq.kb.endpoint import AnswerRow, Endpoint, ServiceFailure, shared_cache
from spaseq.options import ServiceOptions
from spaseq.rdf.columns.term_columns import distinct

_NUMBER = "spaseq__row"

Bound = dict[str, str]


@dataclass(frozen=True, slots=True)
class FailedRequest:
    """A request that failed, and the events it was for (None: for all)."""

    url: str
    reason: str
    event: Int64s | None


@dataclass(frozen=True, slots=True)
class _BindingCombination:
    """One distinct combination of bindings, and the solutions that share it."""

    bound: Bound
    rows: Indices


class Services:
    """Evaluates patterns on endpoints; remembers their text and what has failed."""

    def __init__(
        self,
        addresses: Mapping[str, str],
        options: ServiceOptions,
        failed: list[FailedRequest] | None = None,
    ) -> None:
        """`addresses` are the URLs of endpoints that the KB knows by IRI; failures are added to
        `failed`."""
        self._addresses, self._options = addresses, options
        self._texts: dict[int, tuple[n.Pattern, str]] = {}
        self._failed: list[FailedRequest] = [] if failed is None else failed

    def apart(self) -> Services:
        """The same for patterns that do not come back."""
        return Services(self._addresses, self._options, self._failed)

    def take_failures(self) -> list[FailedRequest]:
        """What has failed since the last call."""
        failed = self._failed.copy()
        self._failed.clear()
        return failed

    def service(self, pattern: n.Service, given: Solutions | None, lexicon: Lexicon) -> Solutions:
        """The solutions of SERVICE that `given` may join with."""
        if isinstance(pattern.name, str):
            iri = pattern.name[1:-1]
            url = self._addresses.get(iri, iri)
            return self._solutions(url, pattern.pattern, given, lexicon, silent=pattern.silent)
        return self._each(pattern, pattern.name.name, given, lexicon)

    def _each(
        self, pattern: n.Service, name: str, given: Solutions | None, lexicon: Lexicon
    ) -> Solutions:
        """SERVICE ?var: each endpoint is asked for the solutions that name it."""
        parts = [none(lexicon, visible(possible(pattern)))]
        codes = np.empty(0, np.int32) if given is None else given.column(name)
        for code in distinct(codes[codes >= 0]).tolist():
            assert given is not None
            mine = given.take(codes == code)
            (term,) = given.lexicon.take(np.array([code], np.int32))
            url = self._addresses.get(term[1:-1])
            if url is None:
                reason = f"SERVICE ?{name} asks only endpoints that a KB names"
                found = self._fail(term, reason, mine.event, pattern.silent, lexicon)
            else:
                found = self._solutions(url, pattern.pattern, mine, lexicon, silent=pattern.silent)
            own = np.full(found.size, lexicon.encode([term])[0], np.int32)
            parts.append(found.with_column(name, own))
        return _together(parts, lexicon)

    def graph(
        self,
        url: str,
        pattern: n.Pattern,
        given: Solutions | None,
        lexicon: Lexicon,
        schema: Schema | None = None,
    ) -> Solutions:
        """The solutions, over an endpoint's graph, that `given` may join with.

        The pattern has been rewritten with the `schema`; those of EXISTS in it have not.
        """
        return self._solutions(url, pattern, given, lexicon, schema)

    def _solutions(
        self,
        url: str,
        pattern: n.Pattern,
        given: Solutions | None,
        lexicon: Lexicon,
        schema: Schema | None = None,
        *,
        silent: bool = False,
    ) -> Solutions:
        names = visible(possible(pattern))
        bound, questions = _questions(given, names)
        free = sorted(names - set(bound))
        answers = self._answers(url, self._text(pattern, bound, schema), bound, free, questions)
        parts = [none(lexicon, names)]
        for question, found in zip(questions, answers, strict=True):
            if isinstance(found, ServiceFailure):
                event = _events(given, question.rows)
                failed = self._fail(url, str(found), event, silent, lexicon)
                rows: Sequence[AnswerRow] = [(None,) * len(free)] * failed.size
            else:
                rows = found
            parts.append(_solutions(question.bound, free, rows, lexicon))
        return _together(parts, lexicon)

    def _fail(
        self, url: str, reason: str, event: Int64s | None, silent: bool, lexicon: Lexicon
    ) -> Solutions:
        """What a failed request gives, once it has been taken note of."""
        if silent:
            return Solutions(1, None, {}, lexicon)
        if self._options.required:
            raise RunError(f"the endpoint {url} failed: {reason}")
        self._failed.append(FailedRequest(url, reason, event))
        return none(lexicon)

    # --- requests -------------------------------------------------------------------------------

    def _answers(
        self,
        url: str,
        text: str,
        bound: list[str],
        free: list[str],
        questions: Sequence[_BindingCombination],
    ) -> list[list[AnswerRow] | ServiceFailure]:
        """The values of the free variables for each question, kept or asked for."""
        cache = shared_cache(self._options)
        keys = [(url, text, *bound, *(q.bound[v] for v in bound)) for q in questions]
        found: list[list[AnswerRow] | ServiceFailure | None] = [cache.get(key) for key in keys]
        unknown = [i for i, rows in enumerate(found) if rows is None]
        for start in range(0, len(unknown), self._options.batch):
            some = unknown[start : start + self._options.batch]
            values = [[str(j), *(questions[i].bound[v] for v in bound)] for j, i in enumerate(some)]
            for i, rows in zip(some, self._request(url, text, bound, free, values), strict=True):
                found[i] = rows
                if not isinstance(rows, ServiceFailure):
                    cache.put(keys[i], rows)
        return [rows for rows in found if rows is not None]

    def _request(
        self, url: str, text: str, bound: list[str], free: list[str], values: list[list[str]]
    ) -> Sequence[list[AnswerRow] | ServiceFailure]:
        table = values_text([f"?{v}" for v in (_NUMBER, *bound)], values)
        names = " ".join(f"?{v}" for v in (_NUMBER, *free))
        query = f"SELECT {names} WHERE {{ {table} {text} }}"
        answers: list[list[AnswerRow]] = [[] for _ in values]
        try:
            for number, *row in Endpoint(url, self._options).select(query, [_NUMBER, *free]):
                answers[_number(number, len(values))].append(tuple(row))
        except ServiceFailure as failure:
            return [failure] * len(values)
        return answers

    def _text(self, pattern: n.Pattern, bound: Sequence[str], schema: Schema | None) -> str:
        known = self._texts.get(id(pattern))
        if known is None:
            known = self._texts[id(pattern)] = pattern, pattern_text(pattern, schema)
        # Beside VALUES, what is no join would see the values; in a group of its own it does not.
        apart = isinstance(pattern, n.Extend) or sensitive(pattern) & set(bound)
        return f"{{ {known[1]} }}" if apart else known[1]


def _number(text: str | None, count: int) -> int:
    """The question that a solution answers."""
    try:
        number = int((text or "").split('"')[1])
    except (IndexError, ValueError):
        number = -1
    if not 0 <= number < count:
        raise ServiceFailure("the answer is not one to what was asked", False)
    return number


def _questions(
    given: Solutions | None, names: frozenset[str]
) -> tuple[list[str], list[_BindingCombination]]:
    """The variables of a pattern that all solutions bind, and the distinct bindings of these.

    Of other variables nothing is asked: what is compatible with a solution that leaves one unbound
    may be compatible with others, too, and must come once. A blank node is known to no endpoint,
    so what binds one has no question.
    """
    if given is None:
        return [], [_BindingCombination({}, np.arange(0))]
    if not given.size:
        return [], []
    shared = sorted(v for v in names & set(given.columns) if not given.may_be_unbound(v))
    if not shared:
        return [], [_BindingCombination({}, np.arange(given.size))]
    table = np.stack([given.columns[v] for v in shared])
    asked, which = np.unique(table, axis=1, return_inverse=True)
    order = np.argsort(which.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(which.reshape(-1), minlength=asked.shape[1]))
    questions = []
    for codes, rows in zip(asked.T, np.split(order, ends[:-1]), strict=True):
        texts = given.lexicon.take(codes)
        if not any(text.startswith("_:") for text in texts):
            questions.append(_BindingCombination(dict(zip(shared, texts, strict=True)), rows))
    return shared, questions


def _events(given: Solutions | None, rows: Indices) -> Int64s | None:
    if given is None or given.event is None:
        return None
    return distinct(given.event[rows])


def _solutions(
    bound: Bound, free: Sequence[str], rows: Sequence[AnswerRow], lexicon: Lexicon
) -> Solutions:
    """Rows of the free variables' values, each with the bound ones'."""
    empty = Solutions(len(rows), None, {}, lexicon)
    columns = {v: encoded(empty, [row[i] for row in rows]) for i, v in enumerate(free)}
    for variable, text in bound.items():
        columns[variable] = np.full(len(rows), lexicon.encode([text])[0], np.int32)
    return Solutions(len(rows), None, columns, lexicon)


def _together(parts: Sequence[Solutions], lexicon: Lexicon) -> Solutions:
    """One after the other; all have the same variables but the first, which has no solution."""
    names = dict.fromkeys(v for part in parts for v in part.columns)
    columns = {v: np.concatenate([part.column(v) for part in parts]) for v in names}
    return Solutions(sum(part.size for part in parts), None, columns, lexicon)
