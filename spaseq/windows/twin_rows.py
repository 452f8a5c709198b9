"""The row before with the same group and term, for each row: DISTINCT goes by rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.rdf.columns.term_columns import TermColumn
from spaseq.windows.group_tables import GroupTable
from spaseq.windows.kernels.group_runs import NO_TERM

_BITS = 32


class TwinRows:
    """The last row of each pair of a group and a term, of rows that are in windows or will be."""

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

    def forget(self, first: int, places: Int32s | None) -> None:
        """Let go of pairs whose last row is before `first`; `places` are new numbers of groups."""
        stays = self._rows >= first
        if places is None and 2 * np.count_nonzero(stays) > len(stays):
            return
        self._pairs, self._rows = self._pairs[stays], self._rows[stays]
        if places is not None:
            group = places[self._pairs >> _BITS].astype(np.int64)
            self._pairs = (group << _BITS) | self._numbers
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

    def snapshot(self) -> list[Any]:
        """The state, for `restore`."""
        return [self._pairs, self._rows, [*map(list, self._terms.keys)]]

    def restore(self, state: list[Any]) -> None:
        """Go on from a state."""
        self._pairs, self._rows, terms = state
        self._terms.restore([tuple(key) for key in terms])
