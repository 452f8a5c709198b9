"""Rows of a content as rows of groups: in the order of events, with numbers that can be summed."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from spaseq.compiled.arrays import Array, Bools, Int64s
from spaseq.expr.doubles import whole_numbers
from spaseq.plan.query_plan import KeptGroups, Operand, QueryPlan
from spaseq.plan.window_groups import SOLVED
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import TermColumn
from spaseq.rdf.terms import number_kinds
from spaseq.rdf.terms.term import XSD
from spaseq.windows.exact_sums import fits_whole, of_decimals, of_doubles
from spaseq.windows.group_tables import GroupTable
from spaseq.windows.kept_rows import KeptRows
from spaseq.windows.kernels.group_runs import DECIMAL, DOUBLE, NONE, OTHER, SCALE, WHOLE

_DECIMAL_KINDS = (number_kinds.EXACT, number_kinds.SHORT)


class GroupRows:
    """Makes rows of groups. `events` counts the events so far."""

    def __init__(self, plan: QueryPlan, kept: KeptGroups, window: int, table: GroupTable) -> None:
        self.events = 0
        self._table, self._stream = table, kept.stream
        self._streams = np.array(plan.inputs.windows[window].streams, np.int32)
        self._operands = plan.patterns.contents[kept.content].operands or ()
        self._bare = plan.patterns.number_of(kept.content, bare=True)
        iris = plan.inputs.streams
        self._ranks = np.array([sorted(iris).index(iri) for iri in iris], np.int32)

    def append(self, rows: SolutionBatch, to: KeptRows) -> int:
        """Append the rows of the window's streams; how many there are."""
        if len(self._streams) < len(self._ranks):
            of_window = np.isin(rows.stream, self._streams)
            if not of_window.all():
                rows = rows.take(np.flatnonzero(of_window))
        if not len(rows):
            return 0
        rows = self._in_order(rows)
        opens = np.ones(len(rows), np.bool_)
        opens[1:] = _differs(rows.time) | _differs(rows.k) | _differs(rows.stream)
        events = self.events + np.cumsum(opens) - 1
        self.events = int(events[-1]) + 1
        outside: Bools = rows.gpm == self._bare
        if SOLVED in rows.values:
            outside |= rows.values[SOLVED].codes < 0
        if self._stream is not None:
            outside |= rows.stream != self._stream
        group = np.full(len(rows), -1, np.int32)
        inside = slice(None) if not outside.any() else np.flatnonzero(~outside)
        group[inside] = self._table.numbers(rows.take(inside))
        columns: dict[str, Array] = {
            "time": rows.time, "opens": opens, "event": events, "group": group
        }  # fmt: skip
        own = [_values(rows, operand) for operand in self._operands]
        if own:
            columns |= {name: np.stack([values[name] for values in own]) for name in own[0]}
        to.append(len(rows), columns)
        return len(rows)

    def _in_order(self, rows: SolutionBatch) -> SolutionBatch:
        """The rows in the order of events: by time, k and the stream's IRI."""
        tied = rows.time[1:] == rows.time[:-1]
        ordered = (rows.time[1:] >= rows.time[:-1]).all()
        if ordered and not (_differs(rows.k) & tied).any() and not _differs(rows.stream).any():
            return rows
        return rows.take(np.lexsort((self._ranks[rows.stream], rows.k, rows.time)))


def _differs(column: Array) -> Bools:
    found: Bools = column[1:] != column[:-1]
    return found


def _values(rows: SolutionBatch, operand: Operand) -> dict[str, Array]:
    """The columns of an operand (`kept_rows.OPERAND_COLUMNS`)."""
    number, terms = rows.numbers[operand.number], rows.values[operand.text]
    kind = np.full(len(rows), OTHER, np.int8)
    whole, shift, fits = of_doubles(number.value)
    is_double = number.kind == number_kinds.DOUBLE
    kind[is_double & fits] = DOUBLE
    text = np.full(len(rows), None, np.object_)
    if len(terms.terms):
        text = terms.objects()
        kind[(number.kind == number_kinds.OTHER) & (terms.codes < 0)] = NONE
        is_decimal = _are_decimals(terms) & np.isin(number.kind, _DECIMAL_KINDS)
        values, fits = of_decimals(number.value)
        is_decimal &= fits
        kind[is_decimal], whole[is_decimal], shift[is_decimal] = DECIMAL, values[is_decimal], 0
        is_whole, values = _wholes(terms)
        kind[is_whole] = WHOLE
        whole[is_whole], shift[is_whole] = values[is_whole], SCALE
    else:
        kind[number.kind == number_kinds.OTHER] = NONE
    return {"kind": kind, "whole": whole, "shift": shift, "value": number.value, "text": text}


def _are_decimals(terms: TermColumn) -> Bools:
    """Which rows [n] have an xsd:decimal."""
    found = np.zeros(len(terms.terms) + 1, np.bool_)  # the last is UNBOUND's
    ends = pc.ends_with(terms.terms, f"^^<{XSD}decimal>")
    found[:-1] = ends.to_numpy(zero_copy_only=False)
    return found[terms.codes]


def _wholes(terms: TermColumn) -> tuple[Bools, Int64s]:
    """(which rows [n] have an xsd:integer that a sum has room for, the integers)."""
    if terms.values is not None:
        column = terms.values
        return fits_whole(column), column
    part = terms.compact()
    is_whole, values = whole_numbers(part.terms.to_pylist())
    is_whole = np.append(is_whole & fits_whole(values), False)  # the last is UNBOUND's
    return is_whole[part.codes], np.append(values, 0)[part.codes]
