"""Events as values of the variable EVENT: their triples as one literal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress

import numpy as np

from spaseq.algebra.translate import EVENT
from spaseq.gpm.evaluator import EventSolutions
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.term_columns import distinct
from spaseq.rdf.columns.term_tables import term_table
from spaseq.rdf.terms.term import XSD_STRING, Triple, literal_text, scoped_term, split_literal


def with_events(
    solutions: EventSolutions, index: VerticalPartition, predicates: Sequence[str] | None = None
) -> EventSolutions:
    """The solutions with the variable EVENT: the triples of their event as one literal.

    Blank nodes in it have their labels of answers. Only triples with some `predicates` (N-Triples
    texts) are in it, unless it is None.
    """
    events = distinct(solutions.event)
    texts = [*_event_texts(index.batch.take(events), predicates)]
    codes = index.lexicon.encode(texts)[np.searchsorted(events, solutions.event)]
    return EventSolutions(solutions.event, {**solutions.columns, EVENT: codes}, solutions.terms)


def _event_texts(batch: EventBatch, predicates: Sequence[str] | None) -> Iterator[str]:
    """The triples of each event, only those with some predicates if these are given."""
    table = term_table(batch.terms)
    kept = None if predicates is None else np.isin(batch.p, table.find(predicates)).tolist()
    rows = [*zip(*map(table.take, (batch.s, batch.p, batch.o)), strict=True)]
    starts, times, ks = batch.start.tolist(), batch.time.tolist(), batch.k.tolist()
    for first, end, time, k in zip(starts, starts[1:], times, ks, strict=False):
        triples = rows[first:end] if kept is None else compress(rows[first:end], kept[first:end])
        terms = (term for triple in triples for term in triple)
        if table.has_blank:
            terms = (scoped_term(batch.stream, time, k, term) for term in terms)
        yield literal_text("\n".join(terms), XSD_STRING)  # no canonical term has a line break


def event_triples(event: str) -> list[Triple]:
    """The triples of a value of EVENT."""
    lines = split_literal(event)[0].split("\n")
    return list(zip(lines[::3], lines[1::3], lines[2::3], strict=False))
