"""Changes of a maintained graph, as columns (docs/meaning.md#knowledge-that-changes)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from re import match
from string import ascii_letters, digits
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.algebra.answer_batch import AnswerBatch
from spaseq.algebra.answers import Answer
from spaseq.algebra.construct import (
    Template,
    can_be_object,
    can_be_predicate,
    can_be_subject,
    constructed,
)
from spaseq.algebra.graph_changes import DELETED, INSERTED, wildcard
from spaseq.algebra.nodes import PatternTerm, is_reserved
from spaseq.compiled.arrays import Bools
from spaseq.lang import ast
from spaseq.rdf.columns.event_batch import EventBatch, EventNames
from spaseq.rdf.columns.term_columns import (
    UNBOUND,
    TermColumn,
    TextArray,
    side_by_side,
    text_array,
)
from spaseq.rdf.columns.term_tables import ArrayTerms
from spaseq.rdf.events.instants import InstantCounter

_SCHEME = "<[A-Za-z][A-Za-z0-9+.-]*:"
_PLAIN = f"{ascii_letters}{digits}._~/#-:+".encode()
"""Characters that are allowed at any place in an IRI behind its scheme."""

_SURE_IRI = r"^<[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9._~/#-]*>$"
_SURE_LITERAL = r'^"[\s\S]*[^>]$'
_ALLOWED = (
    (can_be_subject, _SURE_IRI),
    (can_be_predicate, _SURE_IRI),
    (can_be_object, f"(?:{_SURE_IRI})|(?:{_SURE_LITERAL})"),
)
"""For each place in a triple: which terms RDF allows there, and most of these at once."""


def has_columns(template: Template) -> bool:
    """Whether the changes of a template can be made as columns: each answer gives an event."""
    inserted = template.triples[template.deleted :]
    made = (t for triple in inserted for t in triple.terms if isinstance(t, ast.Var))
    return (
        template.graph is not None
        and template.deleted > 0
        and not template.composed
        and not any(is_reserved(variable.name) for variable in made)
    )


@dataclass(frozen=True, slots=True, eq=False)
class ChangeBatch(Sequence[Answer]):
    """n answers of a query that maintains a graph; `Answer`s are made when somebody reads them.

    Attributes:
        answers: of the query, without graphs.
        template: of the changes; see `has_columns`.
        query: the query's name.
    """

    answers: AnswerBatch
    template: Template
    query: str

    def __len__(self) -> int:
        return len(self.answers)

    def __iter__(self) -> Iterator[Answer]:
        return map(self._changing, self.answers)

    @overload
    def __getitem__(self, place: int) -> Answer: ...
    @overload
    def __getitem__(self, place: slice) -> list[Answer]: ...
    def __getitem__(self, place: int | slice) -> Answer | list[Answer]:
        if isinstance(place, slice):
            return [*map(self._changing, self.answers[place])]
        return self._changing(self.answers[place])

    def __radd__(self, others: list[Answer]) -> list[Answer]:
        return [*others, *self]

    def _changing(self, answer: Answer) -> Answer:
        found = constructed(self.template, self.query, answer)
        assert found is not None  # it removes something
        return found

    def events(self, stream: str, counter: InstantCounter) -> EventBatch:
        """The answers as events of the stream of changes.

        A term may have several codes, as nobody looks for triples in these events.
        """
        n, triples = len(self), self.template.triples
        columns, kept = list[TermColumn](), np.ones((len(triples), n), np.bool_)
        for number, triple in enumerate(triples):
            for place, term in enumerate(triple.terms):
                if number < self.template.deleted:
                    own = self._wanted(term)
                else:
                    own = self._column(term)
                    kept[number] &= _allowed(own, *_ALLOWED[place])
                if place == 1:
                    own = _marked(own, DELETED if number < self.template.deleted else INSERTED)
                columns.append(own)
        codes, terms = side_by_side(columns)
        codes = codes.reshape(len(triples), 3, n)
        s, p, o = (codes[:, place].T[kept.T] for place in range(3))
        start = np.zeros(n + 1, np.int64)
        np.cumsum(kept.sum(axis=0), out=start[1:])
        time = self.answers.end_times
        names = EventNames(pa.repeat(pa.scalar(self.query, pa.large_string()), n))
        k = counter.assign(time)
        return EventBatch(stream, time, k, names, start, s, p, o, ArrayTerms(terms))

    def _column(self, term: PatternTerm) -> TermColumn:
        """A term of INSERT for each answer."""
        if isinstance(term, str):
            return TermColumn(np.zeros(len(self), np.int32), text_array([term]))
        names = self.answers.names
        if term.name in (*names.singles, *names.groups):
            return self.answers.column(term.name)
        return TermColumn.unbound(len(self))

    def _wanted(self, term: PatternTerm) -> TermColumn:
        """A term of DELETE for each answer; a wildcard where it is not bound."""
        own = self._column(term)
        if isinstance(term, str) or own.codes.min(initial=0) >= 0:
            return own
        terms = pa.concat_arrays([own.terms, text_array([wildcard(term.name)])])
        return TermColumn(
            np.where(own.codes < 0, len(own.terms), own.codes).astype(np.int32), terms
        )


def _marked(column: TermColumn, mark: str) -> TermColumn:
    """Predicates, with the mark of what is removed or added."""
    text, end = (pa.scalar(each, pa.large_string()) for each in (mark, ""))
    return TermColumn(column.codes, pc.binary_join_element_wise(text, column.terms, end))


def _are_sure_iris(texts: TextArray) -> bool:
    """Whether all texts are IRIs with the scheme of the first one, and plain characters only."""
    scheme = match(_SCHEME, texts[0].as_py()) if len(texts) else None
    if scheme is None or not pc.all(pc.starts_with(texts, scheme.group())).as_py():
        return False
    if not pc.all(pc.ends_with(texts, ">")).as_py():
        return False
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return bytes(data[int(ends[0]) : int(ends[-1])]).translate(None, _PLAIN) == b"<>" * len(texts)


def _allowed(column: TermColumn, test: Callable[[str], bool], sure: str) -> Bools:
    """In which rows a term is bound and allowed."""
    used = column.compact()
    terms: TextArray = used.terms
    if _are_sure_iris(terms):
        bound: Bools = used.codes != UNBOUND
        return bound
    fine: Any = pc.match_substring_regex(terms, sure).to_numpy(zero_copy_only=False).copy()
    for code in np.flatnonzero(~fine).tolist():
        fine[code] = test(terms[code].as_py())
    found: Bools = np.append(fine, False)[used.codes]  # the last is that of unbound rows
    return found
