"""Events as values of the variable EVENT: their triples as one literal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spaseq.algebra.correlation import EVENT
from spaseq.compiled.arrays import Bools, Indices
from spaseq.gpm.evaluator import EventSolutions
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.term_tables import term_table
from spaseq.rdf.terms.term import XSD_STRING, Triple, literal_text, scoped_term, split_literal


def with_events(
    found: EventSolutions, index: VerticalPartition, predicates: Sequence[str] | None = None
) -> EventSolutions:
    """The solutions with the variable EVENT: the triples of their event as one literal.

    Blank nodes in it have their labels of answers. Only triples with some `predicates` (N-Triples
    texts) are in it, unless it is None.
    """
    batch = index.batch
    kept = None
    if predicates is not None:
        kept = np.isin(batch.p, index.lexicon.find(list(predicates)))
    texts = {e: _event_text(batch, e, kept) for e in dict.fromkeys(found.event.tolist())}
    codes = index.lexicon.encode([texts[e] for e in found.event.tolist()])
    return EventSolutions(found.event, {**found.columns, EVENT: codes}, found.terms)


def _event_text(batch: EventBatch, event: int, kept: Bools | None) -> str:
    """The triples of an event, those that are `kept` [m] of the batch's if that is given."""
    first, end = int(batch.start[event]), int(batch.start[event + 1])
    rows: slice | Indices = slice(first, end)
    if kept is not None and not kept[first:end].all():
        rows = first + np.flatnonzero(kept[first:end])
    columns = [term_table(batch.terms).take(c[rows]) for c in (batch.s, batch.p, batch.o)]
    scope = batch.stream, int(batch.time[event]), int(batch.k[event])
    lines = [scoped_term(*scope, term) for triple in zip(*columns, strict=True) for term in triple]
    return literal_text("\n".join(lines), XSD_STRING)  # no canonical term has a line break


def event_triples(event: str) -> list[Triple]:
    """The triples of a value of EVENT."""
    lines = split_literal(event)[0].split("\n")
    return list(zip(lines[::3], lines[1::3], lines[2::3], strict=False))
