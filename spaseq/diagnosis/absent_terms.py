"""The causes in a predicate or a constant that never occurs, with the nearest that does."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from spaseq.algebra.constants import constant_text
from spaseq.diagnosis.entailment_hint import EntailmentHint
from spaseq.diagnosis.nearest_terms import nearest_term
from spaseq.diagnosis.place import GpmPlace
from spaseq.diagnosis.report import Cause
from spaseq.lang import ast
from spaseq.records import record


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
