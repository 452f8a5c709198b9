"""The causes in a predicate or a constant that never occurs, with the nearest that does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Literal

import numpy as np

from spaseq.algebra.constants import constant_text
from spaseq.algebra.entailment import entailed
from spaseq.algebra.groups import translate_group
from spaseq.algebra.schema import AXIOM_PREDICATES, TYPE, Schema
from spaseq.diagnosis.nearest_terms import nearest_term
from spaseq.diagnosis.observed import Observed
from spaseq.diagnosis.question import GpmPlace, group_of
from spaseq.diagnosis.report import Cause
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.lang import ast
from spaseq.records import record

MOST_AXIOMS = 10_000
"""A knowledge base with more axioms gives no hint."""


@record
class EntailmentHint:
    """What the axioms in the knowledge base say about a run without entailment."""

    schema: Schema

    @classmethod
    def of(cls, observed: Observed) -> EntailmentHint | None:
        """The hint of the given knowledge base; None with entailment, and without axioms."""
        if observed.question.schema is not None:
            return None
        schema = Schema.of(_axioms(observed.knowledge))
        useful = 0 < len(schema.axioms) <= MOST_AXIOMS and not schema.transitive_types
        return cls(schema) if useful else None

    def applies(self, triple: ast.Triple) -> bool:
        """Whether entailment changes what a triple pattern matches."""
        pattern = translate_group(group_of([triple]))
        return entailed(pattern, self.schema) != pattern

    def text(
        self,
        place: GpmPlace,
        triple: ast.Triple,
        term: ast.Iri | ast.Literal,
        known: Mapping[str, int],
        solutions: int,
    ) -> str:
        """The hint for a term of a triple pattern.

        Args:
            place: where it stands.
            triple: the triple pattern.
            term: its class or predicate, which is not in the data.
            known: the classes or predicates that are in the data, with their counts.
            solutions: how many solutions the triple pattern has with entailment.
        """
        is_class = _is_class(triple, term)
        below = self._below(constant_text(term), is_class)
        used = max((name for name in below if known.get(name)), key=known.__getitem__, default="")
        if used:
            kind = "subclass" if is_class else "subproperty"
            text = f"a {kind} of it, {place.written(used)}, is ({known[used]:,})"
        else:
            text = f"the knowledge base entails it ({solutions:,})"
        return f"; {text}: try --entailment rdfs, with the knowledge base as --ontology"

    def _below(self, name: str, is_class: bool) -> list[str]:
        """The subclasses or the subproperties."""
        if is_class:
            return sorted(self.schema.subclasses(name))
        return [other for other, turned in self.schema.subproperties(name) if not turned]


def _axioms(knowledge: KnowledgeBase) -> Iterator[tuple[str, str, str]]:
    """The axioms in the graphs of a knowledge base."""
    terms = knowledge.terms
    for predicate, objects in AXIOM_PREDICATES.items():
        code = knowledge.find(predicate)
        for relation in (graph[code] for graph in knowledge.graphs.values() if code in graph):
            rows = np.arange(len(relation))
            if objects:
                rows = np.flatnonzero(np.isin(relation.o, [knowledge.find(o) for o in objects]))
            rows = rows[: MOST_AXIOMS + 1]
            for s, o in zip(
                terms.take(relation.s[rows]), terms.take(relation.o[rows]), strict=True
            ):
                yield s, predicate, o


def _is_class(triple: ast.Triple, term: ast.Iri | ast.Literal) -> bool:
    """Whether a term is the class in a triple pattern `?x a :C`."""
    predicate = triple.predicate
    return term is triple.object and (
        isinstance(predicate, ast.Iri) and constant_text(predicate) == TYPE
    )


@record
class AbsentTerm:
    """A term of a triple pattern that is not in the data, as a predicate or a constant.

    `known` are the terms that the data have in its place, with their counts. `where` says that it
    is not in the data.
    """

    triple: ast.Triple
    what: Literal["predicate", "constant"]
    term: ast.Iri | ast.Literal
    known: Counter[str]
    where: str

    def cause(self, place: GpmPlace, hint: EntailmentHint | None, entailed: int) -> Cause:
        """The cause; `entailed` are the solutions of the triple pattern with entailment."""
        written = place.question.text(self.term.span)
        text = f"{self.what} {written} {self.where}"
        near = nearest_term(constant_text(self.term), self.known)
        suggestion = None if near is None else place.written(near)
        common = next((place.written(text) for text, _ in self.known.most_common(1)), None)
        if hint is not None and entailed:
            text += hint.text(place, self.triple, self.term, self.known, entailed)
            suggestion = "--entailment rdfs"
        elif near is not None:
            text += f"; did you mean {suggestion} ({self.known[near]:,})?"
        elif common is not None and self.what == "constant":
            text += f"; there is {common}, for example"
        example = common if near is None else place.written(near)
        kind = f"{self.what}-never-occurs"
        return place.cause(kind, self.triple, text, 0, written, suggestion, example)
