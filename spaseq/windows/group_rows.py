"""Rows of a content as rows of groups: in the order of events, with numbers that can be summed.

DISTINCT goes by rows: each has the row before with the same group and term.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow.compute as pc

from spaseq.compiled.arrays import Array, Bools, Int8s, Int32s, Int64s
from spaseq.expr.doubles import of_decimals, whole_numbers
from spaseq.plan.pattern_plan import KeptGroups, Operand
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.window_groups import SOLVED
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import DECIMAL_TYPE, NumberColumn, TermColumn
from spaseq.rdf.terms import number_kinds
from spaseq.rdf.terms.term import XSD
from spaseq.stateful import Stateful
from spaseq.windows.exact_numbers import double_strings, fits_whole, of_doubles
from spaseq.windows.group_tables import GroupTable, TrackedOperands
from spaseq.windows.kept_rows import EVENT_COLUMNS, LINKS, Form
from spaseq.windows.kernels.group_runs import (
    DECIMAL,
    DOUBLE,
    NO_TERM,
    NONE,
    OTHER,
    PLACES,
    SCALE,
    WHOLE,
)
from spaseq.windows.window_rows import WindowRows, renumbered

_BITS = 32

_CANONICAL = (
    rf'^"(0|-?[1-9][0-9]*)"\^\^<{XSD}(integer|decimal)>$'
    rf'|^"-?(0|[1-9][0-9]*)\.[0-9]*[1-9]"\^\^<{XSD}decimal>$'
)
"""The canonical texts of integers and decimals (XSD 1.1)."""

_DECIMAL_KINDS = (number_kinds.EXACT, number_kinds.SHORT)


class TwinRows(Stateful):
    """The last row of each pair of a group and a term, of rows that are in windows or will be."""

    STATE = ("_pairs", "_rows", "_terms")

    def __init__(self) -> None:
        self._terms = GroupTable(("term",))
        self._pairs, self._rows = np.empty(0, np.int64), np.empty(0, np.int64)

    def twins(self, group: Int32s, terms: TermColumn, first: int) -> Int64s:
        """[n] the row before with the same group and term, -1 if there is none.

        NO_TERM where the group is -1, or the term is unbound. `first` is the number of the first
        row.
        """
        twin_of = np.full(len(group), NO_TERM, np.int64)
        rows = np.flatnonzero((group >= 0) & (terms.codes >= 0))
        if not len(rows):
            return twin_of
        number = self._terms.of_column(terms.take(rows))
        pair = (group[rows].astype(np.int64) << _BITS) | number
        order = np.argsort(pair, kind="stable")
        pair, rows = pair[order], rows[order]
        begins = np.append(True, pair[1:] != pair[:-1])
        twin = np.append(-1, first + rows[:-1])
        pair, last = pair[begins], first + rows[np.append(begins[1:], True)]
        at = np.searchsorted(self._pairs, pair)
        known = np.zeros(len(pair), np.bool_)
        inside = at < len(self._pairs)
        known[inside] = self._pairs[at[inside]] == pair[inside]
        before = np.full(len(pair), -1, np.int64)
        before[known] = self._rows[at[known]]
        twin[begins] = before
        twin_of[rows] = twin
        self._rows[at[known]] = last[known]
        self._pairs = np.insert(self._pairs, at[~known], pair[~known])
        self._rows = np.insert(self._rows, at[~known], last[~known])
        return twin_of

    def forget(self, first: int) -> None:
        """Drop pairs whose last row is before `first`, if there are many."""
        stays = self._rows >= first
        if 2 * np.count_nonzero(stays) <= len(stays):
            self._keep(stays)

    def renumber_rows(self, places: Int64s, first: int) -> None:
        """Give the rows the numbers of `WindowRows.without_left`."""
        self._rows = renumbered(self._rows, places, first)
        self._keep(self._rows >= 0)

    def renumber_groups(self, places: Int32s) -> None:
        """Give the groups new numbers, by the old ones; those that are -1 have no rows."""
        group = places[self._pairs >> _BITS].astype(np.int64)
        stays = group >= 0
        self._pairs = (group << _BITS) | self._numbers
        self._keep(stays)

    def _keep(self, stays: Bools) -> None:
        self._pairs, self._rows = self._pairs[stays], self._rows[stays]
        used = np.zeros(len(self._terms), np.bool_)
        used[self._numbers] = True
        terms = self._terms.without_empty(used)
        if terms is not None:
            self._pairs = self._pairs - self._numbers + terms[self._numbers]

    @property
    def _numbers(self) -> Int64s:
        """The numbers of the pairs' terms."""
        numbers: Int64s = self._pairs & ((1 << _BITS) - 1)
        return numbers


def form_of(tracked: TrackedOperands) -> Form:
    """The columns of rows of groups."""
    operands, queues, twins = tracked.operands, len(tracked.queues), len(tracked.twins)
    return {
        **EVENT_COLUMNS,
        "group": (None, np.int32),  # -1 for none
        LINKS: (None, np.int64),  # the number of the next row of the group
        "kind": (operands, np.int8),
        "whole": (operands, np.int64),  # m and shift of a number (`kernels.group_runs`)
        "shift": (operands, np.int16),
        "value": (operands, np.float64),  # of a number
        "text": (operands, np.object_),  # of all terms but doubles without text
        "after": (queues, np.int64),
        "before": (queues, np.int64),
        "twin": (twins, np.int64),
        "again": (twins, np.int8),
    }


class GroupRows:
    """Makes rows of groups, whose numbers a table gives, and puts them behind others.

    `twins` are by operand.
    """

    def __init__(
        self,
        plan: QueryPlan,
        kept: KeptGroups,
        to: WindowRows,
        table: GroupTable,
        tracked: TrackedOperands,
    ) -> None:
        self._table, self._to, self._kept = table, to, kept
        self._ordered = {operand for operand, _ in tracked.queues}
        self.twins = {operand: TwinRows() for operand in tracked.twins}
        self._operands = plan.patterns.contents[kept.content].operands or ()
        self._bare = plan.patterns.number_of(kept.content, bare=True)

    def append(self, rows: SolutionBatch) -> int:
        """Append the rows of the window's streams; how many there are."""
        rows = self._to.order.ordered(rows)
        if not len(rows):
            return 0
        event = self._to.events_of(rows)
        if self._kept.order and (event[1:] == event[:-1]).any():
            keys = [_text_ranks(rows.values[v]) for v in self._kept.order]
            rows = rows.take(np.lexsort((*keys[::-1], event)))
        partition = self._to.partitions_of(rows)
        group = self._groups(rows, partition)
        columns: dict[str, Array] = {"event": event, "partition": partition, "group": group}
        own = [
            _values(rows, operand, number in self._ordered)
            for number, operand in enumerate(self._operands)
        ]
        if own:
            columns |= {name: _stacked([values[name] for values in own]) for name in own[0]}
            texts = [rows.values[operand.text] for operand in self._operands]
            if any(len(terms.terms) for terms in texts):
                columns["text"] = np.stack([terms.objects() for terms in texts])
        if self.twins:
            first = self._to.first + len(self._to)
            given = ((twins, self._terms(rows, number)) for number, twins in self.twins.items())
            columns["twin"] = np.stack([twins.twins(group, own, first) for twins, own in given])
        self._to.take(rows, columns)
        return len(rows)

    def _groups(self, rows: SolutionBatch, partition: Int32s) -> Int32s:
        """The group [n] of each row, which the table numbers; -1 for none."""
        outside: Bools = rows.gpm == self._bare
        if SOLVED in rows.values:
            outside |= rows.values[SOLVED].codes < 0
        if self._kept.stream is not None:
            outside |= rows.stream != self._kept.stream
        if self._table is self._to.partitions:
            return np.where(outside, np.int32(-1), partition)
        if not outside.any():
            return self._table.of_rows(rows)
        group, inside = np.full(len(rows), -1, np.int32), np.flatnonzero(~outside)
        group[inside] = self._table.of_rows(rows.take(inside))
        return group

    def _terms(self, rows: SolutionBatch, number: int) -> TermColumn:
        """The terms of an operand, also of doubles without text."""
        operand = self._operands[number]
        terms, numbers = rows.values[operand.text], rows.numbers[operand.number]
        bare = (terms.codes < 0) & (numbers.kind == number_kinds.DOUBLE)
        if not bare.any():
            return terms
        used, which = np.unique(numbers.value[bare], return_inverse=True)
        doubles = TermColumn(which.astype(np.int32), double_strings(used))
        back = np.empty(len(rows), np.int64)
        back[np.append(np.flatnonzero(~bare), np.flatnonzero(bare))] = np.arange(len(rows))
        return TermColumn.concat([terms.take(np.flatnonzero(~bare)), doubles]).take(back)

    def forget(self) -> None:
        """Drop the state of rows that have left."""
        for twin_rows in self.twins.values():
            twin_rows.forget(self._to.first)

    def renumber_rows(self, places: Int64s, first: int) -> None:
        """Give the rows the numbers of `WindowRows.without_left`."""
        for twin_rows in self.twins.values():
            twin_rows.renumber_rows(places, first)

    def renumber_groups(self, places: Int32s) -> None:
        """Give the groups new numbers, by the old ones."""
        for twin_rows in self.twins.values():
            twin_rows.renumber_groups(places)


def _values(rows: SolutionBatch, operand: Operand, is_ordered: bool) -> dict[str, Array]:
    """The columns of an operand (`form_of`), without its texts.

    If it `is_ordered`, a number whose text is not canonical is OTHER: its value does not determine
    the text.
    """
    number, terms = rows.numbers[operand.number], rows.values[operand.text]
    kind = np.full(len(rows), OTHER, np.int8)
    whole, shift, fits = of_doubles(number.value)
    is_double = number.kind == number_kinds.DOUBLE
    kind[is_double & fits] = DOUBLE
    if len(terms.terms):
        kind[(number.kind == number_kinds.OTHER) & (terms.codes < 0)] = NONE
        is_decimal = _are_decimals(terms) & np.isin(number.kind, _DECIMAL_KINDS)
        values, fits = of_decimals(number.value, PLACES)
        is_decimal &= fits
        kind[is_decimal], whole[is_decimal], shift[is_decimal] = DECIMAL, values[is_decimal], 0
        is_whole, values = _wholes(terms)
        kind[is_whole] = WHOLE
        whole[is_whole], shift[is_whole] = values[is_whole], SCALE
        if is_ordered:
            kind[(terms.codes >= 0) & ~_are_canonical(terms, number, kind)] = OTHER
    else:
        kind[number.kind == number_kinds.OTHER] = NONE
    if is_ordered:
        kind[(kind == DOUBLE) & (number.value == 0) & np.signbit(number.value)] = OTHER
    return {"kind": kind, "whole": whole, "shift": shift, "value": number.value}


def _stacked(columns: Sequence[Array]) -> Array:
    """Columns [n] as rows of an array; only one is not copied."""
    return np.stack(columns) if len(columns) > 1 else columns[0][np.newaxis]


def _are_canonical(terms: TermColumn, number: NumberColumn, kind: Int8s) -> Bools:
    """Which rows [n] are numbers with their canonical texts."""
    table = np.zeros(len(terms.terms) + 1, np.bool_)  # the last is UNBOUND's
    table[:-1] = pc.match_substring_regex(terms.terms, _CANONICAL).to_numpy(zero_copy_only=False)
    is_canonical: Bools = table[terms.codes] & (kind != OTHER)
    doubles = np.flatnonzero((kind == DOUBLE) & (terms.codes >= 0))
    same = pc.equal(double_strings(number.value[doubles]), terms.take(doubles).strings())
    is_canonical[doubles] = same.to_numpy(zero_copy_only=False)
    return is_canonical


def _are_decimals(terms: TermColumn) -> Bools:
    """Which rows [n] have an xsd:decimal."""
    is_decimal = np.zeros(len(terms.terms) + 1, np.bool_)  # the last is UNBOUND's
    ends = pc.ends_with(terms.terms, DECIMAL_TYPE)
    is_decimal[:-1] = ends.to_numpy(zero_copy_only=False)
    return is_decimal[terms.codes]


def _wholes(terms: TermColumn) -> tuple[Bools, Int64s]:
    """(which rows [n] have an xsd:integer that a sum has room for, the integers)."""
    if terms.values is not None:
        column = terms.values
        return fits_whole(column), column
    part = terms.compact()
    is_whole, values = whole_numbers(part.terms.to_pylist())
    is_whole = np.append(is_whole & fits_whole(values), False)  # the last is UNBOUND's
    return is_whole[part.codes], np.append(values, 0)[part.codes]


def _text_ranks(column: TermColumn) -> Int64s:
    """The rank [n] of each row's term by its N-Triples text; unbound comes first."""
    part = column.compact()
    texts = part.terms.to_pylist()
    ranks = np.full(len(texts) + 1, -1, np.int64)  # the last is UNBOUND's
    ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return ranks[part.codes]
