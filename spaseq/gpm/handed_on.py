"""Events that stage 1 hands on as they are: as rows, and from rows.

The triples of an event are one text, a term a line: no canonical term has a line break.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.plan.changing_graphs import HANDED_ON
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.rdf.columns.term_columns import NumberColumn, TermColumn
from spaseq.rdf.columns.term_tables import ArrayTerms, term_table
from spaseq.rdf.terms.term import Triple, split_literal

_TEXT = pa.large_string()


def handed_on(
    index: VerticalPartition, events: Int64s, stream: int, columns: SolutionColumns
) -> SolutionBatch:
    """Some events of a batch as bare rows, each with its triples as one text."""
    batch, size = index.batch, len(events)
    values = dict.fromkeys(columns.variables, TermColumn.unbound(size))
    values[HANDED_ON] = TermColumn.from_arrow(_graphs(batch.take(events)))
    return SolutionBatch(
        np.full(size, stream, np.int32),
        batch.time[events],
        batch.k[events],
        np.full(size, BARE, np.int32),
        batch.names(events),
        values,
        dict.fromkeys(columns.numbers, NumberColumn.unknown(size)),
    )


def _graphs(batch: EventBatch) -> pa.Array:
    """The triples of each event, as one text."""
    codes = np.stack([batch.s, batch.p, batch.o], axis=1).reshape(-1).astype(np.int32)
    terms = term_table(batch.terms)
    texts = TermColumn.of_codes(codes, len(terms), terms.strings).strings()
    lines = pa.LargeListArray.from_arrays(pa.array(3 * batch.start), texts)
    return pc.binary_join(lines, pa.scalar("\n", _TEXT))


def graph_of(literal: str) -> list[Triple]:
    """The triples of an event that was handed on."""
    text = split_literal(literal)[0] if literal.startswith('"') else literal  # as it was once
    lines = text.split("\n")
    return [*zip(lines[::3], lines[1::3], lines[2::3], strict=False)]


def triples_of(rows: SolutionBatch) -> tuple[Int64s, Int32s, ArrayTerms]:
    """The triples of n events that were handed on.

    Returns:
        where each event's triples begin [n + 1]; subjects, predicates and objects [m, 3] as codes
        of a table, which comes last.
    """
    texts = rows.values[HANDED_ON].strings()
    if pc.any(pc.starts_with(texts, '"')).as_py():  # as it was once
        texts = pa.array(["\n".join(map("\n".join, graph_of(t))) for t in texts.to_pylist()], _TEXT)
    lines = pc.split_pattern(texts, "\n")
    start = lines.offsets.to_numpy().astype(np.int64) // 3
    terms = lines.flatten().dictionary_encode()
    if pc.any(pc.equal(texts, "")).as_py():  # the event has no triple, but the text has a line
        sizes = np.diff(lines.offsets.to_numpy()) // 3
        start = np.concatenate([[0], np.cumsum(sizes)])
        kept = pc.not_equal(lines.flatten(), "")
        terms = lines.flatten().filter(kept).dictionary_encode()
    codes = terms.indices.to_numpy().reshape(-1, 3)
    return start, codes, ArrayTerms(terms.dictionary)


def events_of(rows: SolutionBatch, stream: str) -> EventBatch:
    """The events of a stream that were handed on."""
    start, codes, terms = triples_of(rows)
    s, p, o = (np.ascontiguousarray(codes[:, place]) for place in range(3))
    return EventBatch(stream, rows.time, rows.k, rows.event, start, s, p, o, terms)
