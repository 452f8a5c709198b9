"""Events, and solutions inside EVENT, that stage 1 passes on to stage 2 as rows.

An event is a bare row for each of its triples, or one row without a term if it has none. Stage 2
makes groups of the solutions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow.compute as pc

from spaseq.compiled.arrays import Bools, Int32s, Int64s
from spaseq.gpm.evaluator import EventSolutions
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.plan.changing_graphs import HANDED_ON
from spaseq.plan.pattern_plan import GpmPlan, Operand
from spaseq.rdf.columns.event_batch import EventBatch, EventNames
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.rdf.columns.term_columns import UNBOUND, NumberColumn, TermColumn
from spaseq.rdf.columns.term_tables import ArrayTerms, TermTable, term_table
from spaseq.rdf.terms.number_kinds import DOUBLE


def handed_on(
    index: VerticalPartition, events: Int64s, stream: int, columns: SolutionColumns
) -> SolutionBatch:
    """Some events of a batch, ascending, as bare rows."""
    batch, terms = index.batch, term_table(index.batch.terms)
    if len(events) < len(batch):
        batch = batch.take(events)
    sizes = np.diff(batch.start)
    event = np.repeat(np.arange(len(batch)), np.maximum(sizes, 1))
    values = dict.fromkeys(columns.variables, TermColumn.unbound(len(event)))
    for name, column in zip(HANDED_ON, (batch.s, batch.p, batch.o), strict=True):
        codes = np.full(len(event), UNBOUND, np.int32)
        codes[(sizes > 0)[event]] = column
        values[name] = _column(codes, terms)
    return SolutionBatch(
        np.full(len(event), stream, np.int32),
        batch.time[event],
        batch.k[event],
        np.full(len(event), BARE, np.int32),
        batch.names(event),
        values,
        dict.fromkeys(columns.numbers, NumberColumn.unknown(len(event))),
    )


def _column(codes: Int32s, terms: TermTable) -> TermColumn:
    """A column of terms; the texts of a table that most rows use are not copied."""
    if isinstance(terms, ArrayTerms):
        return TermColumn(codes, terms.array).compact()
    return TermColumn.of_codes(codes, len(terms), terms.strings)


def begins(rows: SolutionBatch) -> Bools:
    """A mask of the first row of each event, where all rows of an event are adjacent."""
    is_first: Bools = np.ones(len(rows), np.bool_)
    is_first[1:] = rows.time[1:] != rows.time[:-1]
    for column in (rows.k, rows.stream):
        is_first[1:] |= column[1:] != column[:-1]
    return is_first


def name_ranks(names: EventNames) -> Int64s:
    """[n] the rank of each name among all; equal names have one rank."""
    texts = names.strings()
    if len(texts) and pc.all(pc.equal(texts, texts[0])).as_py() and not texts.null_count:
        return np.zeros(len(texts), np.int64)
    coded = texts.dictionary_encode()
    rank = np.argsort(np.argsort(coded.dictionary.to_pylist()))
    ranks: Int64s = rank[coded.indices.to_numpy()]
    return ranks


def triples_of(rows: SolutionBatch) -> tuple[Int32s, ArrayTerms]:
    """The triples of m rows: subjects, predicates and objects [3, m] as codes of a table."""
    whole = TermColumn.concat([rows.values[name].compact() for name in HANDED_ON])
    return whole.codes.reshape(3, -1), ArrayTerms(whole.terms)


def events_of(rows: SolutionBatch, stream: str) -> EventBatch:
    """The events of a stream, from rows."""
    (s, p, o), terms = triples_of(rows)
    first = np.flatnonzero(begins(rows))
    bound = s != UNBOUND
    start = np.append(0, np.cumsum(bound))[[*first, len(rows)]]
    names = rows.event.take(first)
    s, p, o = s[bound], p[bound], o[bound]
    return EventBatch(stream, rows.time[first], rows.k[first], names, start, s, p, o, terms)


def of_groups(
    solutions: EventSolutions, gpm: GpmPlan, operands: Sequence[Operand], index: VerticalPartition
) -> EventSolutions:
    """All solutions, with the keys of groups and with operands as numbers and texts.

    A double is mostly summed only, so it has no text where its number determines it.
    """
    columns = {v: solutions.columns[v] for v in gpm.variables if v in solutions.columns}
    for operand in operands:
        codes = solutions.columns.get(operand.variable)
        if codes is not None:
            columns[operand.number] = codes
            columns[operand.text] = _texts(codes, operand, index)
    return EventSolutions(solutions.event, columns, solutions.terms)


def _texts(codes: Int32s, operand: Operand, index: VerticalPartition) -> Int32s:
    lexicon = index.lexicon
    if operand.needs_text and not lexicon.base.has_canonical_doubles:
        return codes
    _, kinds = lexicon.numbers(codes)
    return np.where(kinds == DOUBLE, np.int32(UNBOUND), codes)
