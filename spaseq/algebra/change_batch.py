"""Changes of a maintained graph, as columns (docs/meaning.md#knowledge-that-changes)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.algebra.answer_batch import AnswerBatch, AnswerSequence
from spaseq.algebra.answers import Answer
from spaseq.algebra.construct import (
    Template,
    constructed,
)
from spaseq.algebra.graph_batch import (
    TripleColumns,
    are_allowed,
    column_of,
    event_batch,
)
from spaseq.algebra.graph_changes import DELETED, INSERTED, wildcard
from spaseq.algebra.nodes import PatternTerm, is_reserved
from spaseq.lang import ast
from spaseq.rdf.columns.event_batch import EventBatch, EventNames
from spaseq.rdf.columns.term_columns import (
    TermColumn,
    text_array,
)
from spaseq.rdf.events.instants import InstantCounter


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
class ChangeBatch(AnswerSequence):
    """n answers of a query that maintains a graph; `Answer`s are made at their first use.

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

    def part(self, begin: int, end: int) -> Self:
        return replace(self, answers=self.answers.part(begin, end))

    def made(self) -> Iterator[Answer]:
        return map(self._changing, self.answers.made())

    def _changing(self, answer: Answer) -> Answer:
        change = constructed(self.template, self.query, answer)
        assert change is not None  # it removes something
        return change

    def events(self, stream: str, counter: InstantCounter) -> EventBatch:
        """The answers as events of the stream of changes.

        A term may have several codes, as no pattern is matched on these events.
        """
        n, patterns, deleted = len(self), self.template.triples, self.template.deleted
        triples, kept = list[TripleColumns](), np.ones((len(patterns), n), np.bool_)
        for number, pattern in enumerate(patterns):
            if number < deleted:
                s, p, o = (self._wanted(term) for term in pattern.terms)
            else:
                s, p, o = (column_of(self.answers, term) for term in pattern.terms)
                kept[number] = are_allowed((s, p, o))
            triples.append((s, _marked(p, DELETED if number < deleted else INSERTED), o))
        names = EventNames(pa.repeat(pa.scalar(self.query, pa.large_string()), n))
        time = self.answers.end_times
        return event_batch((stream, counter), time, names, triples, kept, joined=False)

    def _wanted(self, term: PatternTerm) -> TermColumn:
        """A term of DELETE for each answer; a wildcard where it is not bound."""
        column = column_of(self.answers, term)
        if isinstance(term, str) or column.codes.min(initial=0) >= 0:
            return column
        terms = pa.concat_arrays([column.terms, text_array([wildcard(term.name)])])
        return TermColumn(
            np.where(column.codes < 0, len(column.terms), column.codes).astype(np.int32), terms
        )


def _marked(column: TermColumn, mark: str) -> TermColumn:
    """Predicates, with the mark of removed or added triples."""
    text, end = (pa.scalar(each, pa.large_string()) for each in (mark, ""))
    return TermColumn(column.codes, pc.binary_join_element_wise(text, column.terms, end))
