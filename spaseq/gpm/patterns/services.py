"""SERVICE, and GRAPH over an endpoint: patterns that SPARQL endpoints evaluate.

A request has the bindings of many solutions around the pattern in VALUES, so that only joining
solutions come back (SPARQL 1.1 Federated Query section 2.4). A failed request has no solution or,
with SILENT, one that binds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from spaseq.algebra import nodes as n
from spaseq.algebra.nodes import possible, visible
from spaseq.algebra.remote import pattern_text, values_text
from spaseq.algebra.substitution import sensitive
from spaseq.budget import current_budget
from spaseq.compiled.arrays import Indices, Int64s
from spaseq.errors import RunError
from spaseq.gpm.solutions.lazy_columns import Lexicon, encoded
from spaseq.gpm.solutions.solutions import Solutions, none
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.service_address import AllowedHosts, ServiceFailure
from spaseq.message_text import public_address
from spaseq.options import ServiceOptions
from spaseq.rdf.columns.solution_batch import grouped_rows
from spaseq.rdf.columns.term_columns import distinct
from spaseq.rdf.schema import Schema
from spaseq.records import record

if TYPE_CHECKING:
    from spaseq.kb.endpoint import Answered, AnswerRow, EndpointAnswers

_NUMBER = "spaseq__row"

_NOT_ASKED = "_:", "<<"
"""Prefixes of texts of terms that SPARQL 1.1 cannot write in VALUES."""

Bound = dict[str, str]


@record
class FailedRequest:
    """A failed request, and the events that needed it (None: all events)."""

    url: str
    reason: str
    event: Int64s | None


@record
class _BindingCombination:
    """One distinct combination of bindings, and the solutions that share it."""

    bound: Bound
    rows: Indices


class Services:
    """Evaluates patterns on endpoints; keeps their SPARQL text and the failed requests."""

    def __init__(
        self,
        addresses: Mapping[str, str],
        options: ServiceOptions,
        answers: EndpointAnswers,
        failed: list[FailedRequest] | None = None,
    ) -> None:
        """`addresses` are endpoint URLs by IRI; failed requests are added to `failed`."""
        self._addresses, self._options, self._known = addresses, options, answers
        self._allowed = AllowedHosts.of(options, addresses.values())
        self._texts: dict[int, tuple[n.Pattern, str]] = {}
        self._failed: list[FailedRequest] = [] if failed is None else failed

    def apart(self) -> Services:
        """An evaluator for patterns that occur only once, which shares the list of failures."""
        return Services(self._addresses, self._options, self._known, self._failed)

    def take_failures(self) -> list[FailedRequest]:
        """The failed requests since the last call."""
        failed = self._failed.copy()
        self._failed.clear()
        return failed

    def service(self, pattern: n.Service, given: Solutions | None, lexicon: Lexicon) -> Solutions:
        """The solutions of SERVICE that may join with `given`."""
        if isinstance(pattern.name, str):
            return self._ask_one(pattern, pattern.name, given, lexicon)
        return self._each(pattern, pattern.name.name, given, lexicon)

    def _each(
        self, pattern: n.Service, name: str, given: Solutions | None, lexicon: Lexicon
    ) -> Solutions:
        """SERVICE ?var: a request to each endpoint that a solution names."""
        parts = [none(lexicon, visible(possible(pattern)))]
        codes = np.empty(0, np.int32) if given is None else given.column(name)
        for code in distinct(codes[codes >= 0]).tolist():
            assert given is not None
            mine = given.take(codes == code)
            (term,) = given.lexicon.take(np.array([code], np.int32))
            solutions = self._ask_one(pattern, term, mine, lexicon)
            names = np.full(solutions.size, lexicon.encode([term])[0], np.int32)
            parts.append(solutions.with_column(name, names))
        return _together(parts, lexicon)

    def _ask_one(
        self, pattern: n.Service, term: str, given: Solutions | None, lexicon: Lexicon
    ) -> Solutions:
        """SERVICE with the endpoint that a term names."""
        iri = term[1:-1]
        url = self._addresses.get(iri, iri)
        if term[0] != "<" or url not in self._allowed:
            reason = "neither --kb nor --service-allow names its host"
            event = None if given is None else given.event
            return self._fail(url, reason, event, pattern.silent, lexicon)
        return self.ask(url, pattern.pattern, given, lexicon, silent=pattern.silent)

    def ask(
        self,
        url: str,
        pattern: n.Pattern,
        given: Solutions | None,
        lexicon: Lexicon,
        schema: Schema | None = None,
        *,
        silent: bool = False,
    ) -> Solutions:
        """The solutions of a pattern at an endpoint that may join with `given`.

        The pattern is already rewritten with the `schema`, but the patterns of EXISTS in it are
        not.
        """
        names = visible(possible(pattern))
        bound, combinations = _combinations(given, names)
        free = sorted(names - set(bound))
        answers = self._answers(url, self._text(pattern, bound, schema), bound, free, combinations)
        parts = [none(lexicon, names)]
        for combination, answer in zip(combinations, answers, strict=True):
            if isinstance(answer, ServiceFailure):
                event = _events(given, combination.rows)
                failed = self._fail(url, str(answer), event, silent, lexicon)
                rows: Sequence[AnswerRow] = [(None,) * len(free)] * failed.size
            else:
                rows = answer
            parts.append(_solutions(combination.bound, free, rows, lexicon))
        return _together(parts, lexicon)

    def _fail(
        self, url: str, reason: str, event: Int64s | None, silent: bool, lexicon: Lexicon
    ) -> Solutions:
        """Record a failed request and return its solutions."""
        if silent:
            return Solutions(1, None, {}, lexicon)
        shown = public_address(url)
        if self._options.required:
            raise RunError(f"the endpoint {shown} failed: {reason}")
        self._failed.append(FailedRequest(shown, reason, event))
        return none(lexicon)

    # --- requests -------------------------------------------------------------------------------

    def _answers(
        self,
        url: str,
        text: str,
        bound: list[str],
        free: list[str],
        combinations: Sequence[_BindingCombination],
    ) -> list[Answered]:
        """The free variables' values for each combination, known or from the endpoint."""
        keys = [(url, text, *bound, *(q.bound[v] for v in bound)) for q in combinations]
        answers = [self._known.get(key) for key in keys]
        unknown = [i for i, rows in enumerate(answers) if rows is None]
        for start in range(0, len(unknown), self._options.batch):
            some = unknown[start : start + self._options.batch]
            values = [
                [str(j), *(combinations[i].bound[v] for v in bound)] for j, i in enumerate(some)
            ]
            for i, rows in zip(some, self._request(url, text, bound, free, values), strict=True):
                answers[i] = rows
                self._known.put(keys[i], rows)
        return [rows for rows in answers if rows is not None]

    def _request(
        self, url: str, text: str, bound: list[str], free: list[str], values: list[list[str]]
    ) -> Sequence[Answered]:
        table = values_text([f"?{v}" for v in (_NUMBER, *bound)], values)
        names = " ".join(f"?{v}" for v in (_NUMBER, *free))
        query = f"SELECT {names} WHERE {{ {table} {text} }}"
        answers: list[list[AnswerRow]] = [[] for _ in values]
        try:
            with current_budget().waiting():
                rows = self._known.select(url, query, [_NUMBER, *free])
            for number, *row in rows:
                answers[_number(number, len(values))].append(tuple(row))
        except ServiceFailure as failure:
            return [failure] * len(values)
        return answers

    def _text(self, pattern: n.Pattern, bound: Sequence[str], schema: Schema | None) -> str:
        known = self._texts.get(id(pattern))
        if known is None:
            known = self._texts[id(pattern)] = pattern, pattern_text(pattern, schema)
        # Next to VALUES, an operator other than a join would see the values; in braces it does not.
        apart = isinstance(pattern, n.Extend) or sensitive(pattern) & set(bound)
        return f"{{ {known[1]} }}" if apart else known[1]


def services_of(knowledge: KnowledgeBase) -> Services:
    """Sends requests to the endpoints of a knowledge base."""
    from spaseq.kb.endpoint import CachedAnswers  # loads the HTTP library

    answers = knowledge.asked or CachedAnswers(knowledge.services)
    return Services(knowledge.addresses, knowledge.services, answers)


def _number(text: str | None, count: int) -> int:
    """The number of the combination that a solution belongs to."""
    try:
        number = int((text or "").split('"')[1])
    except (IndexError, ValueError):
        number = -1
    if not 0 <= number < count:
        raise ServiceFailure("the answer does not fit the request", False)
    return number


def _combinations(
    given: Solutions | None, names: frozenset[str]
) -> tuple[list[str], list[_BindingCombination]]:
    """(variables of the pattern that all solutions bind, distinct combinations of their bindings).

    A request does not restrict the other variables: an answer that fits a solution with an unbound
    variable may fit further solutions, but must come once. Combinations with blank nodes are left
    out, as no endpoint knows them.
    """
    if given is None:
        return [], [_BindingCombination({}, np.arange(0))]
    if not given.size:
        return [], []
    shared = sorted(v for v in names & set(given.columns) if not given.may_be_unbound(v))
    if not shared:
        return [], [_BindingCombination({}, np.arange(given.size))]
    columns = [given.columns[v] for v in shared]
    first, which = grouped_rows(columns)
    asked = np.stack([column[first] for column in columns])
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which, minlength=len(first)))
    combinations = []
    for codes, rows in zip(asked.T, np.split(order, ends[:-1]), strict=True):
        texts = given.lexicon.take(codes)
        if not any(text.startswith(_NOT_ASKED) for text in texts):
            combinations.append(_BindingCombination(dict(zip(shared, texts, strict=True)), rows))
    return shared, combinations


def _events(given: Solutions | None, rows: Indices) -> Int64s | None:
    if given is None or given.event is None:
        return None
    return distinct(given.event[rows])


def _solutions(
    bound: Bound, free: Sequence[str], rows: Sequence[AnswerRow], lexicon: Lexicon
) -> Solutions:
    """Solutions with the free variables' values, each extended by the bound variables."""
    columns = {v: encoded(lexicon, [row[i] for row in rows]) for i, v in enumerate(free)}
    for variable, text in bound.items():
        columns[variable] = np.full(len(rows), lexicon.encode([text])[0], np.int32)
    return Solutions(len(rows), None, columns, lexicon)


def _together(parts: Sequence[Solutions], lexicon: Lexicon) -> Solutions:
    """The concatenation of all parts. Only the first, which is empty, may have other variables."""
    names = dict.fromkeys(v for part in parts for v in part.columns)
    columns = {v: np.concatenate([part.column(v) for part in parts]) for v in names}
    return Solutions(sum(part.size for part in parts), None, columns, lexicon)
