"""Events that stage 1 hands on as they are: as rows, and from rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from spaseq.compiled.arrays import Int64s
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.plan.changing_graphs import HANDED_ON
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.rdf.columns.term_columns import NumberColumn, TermColumn
from spaseq.rdf.columns.term_tables import term_table
from spaseq.rdf.terms.term import Triple, split_literal


def handed_on(
    index: VerticalPartition, events: Int64s, stream: int, columns: SolutionColumns
) -> SolutionBatch:
    """Some events of a batch as bare rows, each with its triples as one text.

    No canonical term has a line break.
    """
    batch, size = index.batch, len(events)
    values = dict.fromkeys(columns.variables, TermColumn.unbound(size))
    values[HANDED_ON] = TermColumn.of(["\n".join(terms) for terms in _graphs(batch.take(events))])
    return SolutionBatch(
        np.full(size, stream, np.int32),
        batch.time[events],
        batch.k[events],
        np.full(size, BARE, np.int32),
        batch.names(events),
        values,
        dict.fromkeys(columns.numbers, NumberColumn.unknown(size)),
    )


def graph_of(literal: str) -> list[Triple]:
    """The triples of an event that was handed on."""
    text = split_literal(literal)[0] if literal.startswith('"') else literal  # as it was once
    lines = text.split("\n")
    return [*zip(lines[::3], lines[1::3], lines[2::3], strict=False)]


def _graphs(batch: EventBatch) -> list[list[str]]:
    """The terms of each event's triples, one after the other."""
    codes = np.stack([batch.s, batch.p, batch.o], axis=1).reshape(-1).astype(np.int32)
    texts = term_table(batch.terms).take(codes)
    cuts = (3 * batch.start).tolist()
    return [texts[low:high] for low, high in pairwise(cuts)]
