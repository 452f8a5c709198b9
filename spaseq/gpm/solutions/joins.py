"""Join, LeftJoin, Minus and Union of solution sequences in columns (SPARQL 1.1 section 18.5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from spaseq.budget import current_budget
from spaseq.compiled.arrays import Bools, Indices, Int32s, Int64s
from spaseq.gpm.solutions.lazy_columns import translated
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.rdf.columns.solution_batch import row_order
from spaseq.rdf.columns.term_columns import UNBOUND

Column: TypeAlias = "Int32s | Int64s"

_NOWHERE = -2


class KeyIndex:
    """Rows, indexed by the values of some columns.

    Values are below 2^31, so two columns pack into one int64. With more columns, the ranks of the
    packed keys replace them before the next column is packed.
    """

    def __init__(self, columns: Sequence[Column], size: int) -> None:
        """Index `columns` [size]; without columns every row matches."""
        self._ranks: list[Int64s] = []
        keys = self._packed(columns, size, grow=True)
        self._order: Indices | None = None
        steps = keys[1:] - keys[:-1]
        if len(steps) and steps.min() < 0:
            self._order = np.argsort(keys, kind="stable")
            keys = keys[self._order]
            steps = keys[1:] - keys[:-1]
        self._keys = keys
        self._unique = not len(steps) or bool(steps.min() > 0)

    def same(self, columns: Sequence[Column], size: int) -> bool:
        """Whether each row of `columns` [size] matches only the indexed row of the same number."""
        if not self._unique or self._order is not None or len(self._keys) != size:
            return False
        return np.array_equal(self._keys, self._packed(columns, size, grow=False))

    def match(self, columns: Sequence[Column], size: int) -> tuple[Indices, Indices]:
        """(rows of `columns`, indexed rows) of all pairs with equal values, by row of `columns`."""
        left, places = self._places(self._packed(columns, size, grow=False))
        return left, places if self._order is None else self._order[places]

    def count(self, columns: Sequence[Column], size: int) -> int:
        """The number of pairs in the result of `match`."""
        probe = self._packed(columns, size, grow=False)
        low, high = (np.searchsorted(self._keys, probe, side) for side in ("left", "right"))
        return int((high - low).sum())

    def _places(self, probe: Int64s) -> tuple[Indices, Indices]:
        keys = self._keys
        low = np.searchsorted(keys, probe, "left")
        if self._unique:
            if not len(keys):
                return low[:0], low[:0]
            left = np.flatnonzero(keys[np.minimum(low, len(keys) - 1)] == probe)
            return left, low[left]
        counts = np.searchsorted(keys, probe, "right") - low
        return expanded(low, counts)

    def _packed(self, columns: Sequence[Column], size: int, *, grow: bool) -> Int64s:
        if not columns:
            return np.zeros(size, np.int64)
        key = columns[0].astype(np.int64)
        for i, column in enumerate(columns[1:]):
            if i:
                key = self._rank(key, i - 1, grow)
            key = (key << 32) | (column.astype(np.int64) & 0xFFFFFFFF)
        return key

    def _rank(self, key: Int64s, level: int, grow: bool) -> Int64s:
        if grow:
            ranks, where = np.unique(key, return_inverse=True)
            self._ranks.append(ranks)
            return where.astype(np.int64)
        ranks = self._ranks[level]
        if not len(ranks):
            return np.full(len(key), _NOWHERE, np.int64)
        rank = np.minimum(np.searchsorted(ranks, key), len(ranks) - 1)
        return np.where(ranks[rank] == key, rank, _NOWHERE)


def expanded(low: Indices, counts: Indices) -> tuple[Indices, Indices]:
    """All ranges low[i] .. low[i] + counts[i] - 1, joined: (i for each element, the elements).

    Raises:
        LimitExceeded: there are more elements than the budget allows.
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    current_budget().spend(total)
    left = np.repeat(np.arange(len(counts)), counts)
    return left, np.arange(total) + np.repeat(low - ends + counts, counts)


Pairs = tuple[Indices, Indices]


def join(left: Solutions, right: Solutions) -> Solutions:
    """All unions of compatible solutions. Solutions of different events are not compatible."""
    if left.event is None and right.event is not None:
        left, right = right, left
    if _row_by_row(left, right):
        columns = {**right.columns, **left.columns}
        return Solutions(left.size, left.event, columns, left.lexicon)
    return merged(left, right, pairs(left, right)).within(current_budget())


def _row_by_row(left: Solutions, right: Solutions) -> bool:
    """Whether each solution joins only with the one in the same row, as in most star patterns."""
    if left.event is None or right.event is None or left.size != right.size:
        return False
    shared = _shared(left, right)
    if _may_be_unbound(left, right, shared):
        return False
    columns: list[Column] = [left.event, *(left.columns[v] for v in shared)]
    return _index(right, shared, left).same(columns, left.size)


def left_join(
    left: Solutions, right: Solutions, test: Callable[[Solutions], Bools] | None
) -> Solutions:
    """The join, and the left solutions without a partner that passes the test.

    If the right solutions are of events, the left ones must be, too.
    """
    partners = pairs(left, right)
    both = merged(left, right, partners)
    if test is not None:
        passed = test(both)
        both, partners = both.take(passed), (partners[0][passed], partners[1][passed])
    alone = np.ones(left.size, np.bool_)
    alone[partners[0]] = False
    rows = np.concatenate([partners[0], np.flatnonzero(alone)])
    return concatenated(both, left.take(alone)).take(np.argsort(rows, kind="stable"))


def minus(left: Solutions, right: Solutions) -> Solutions:
    """The left solutions without a compatible right solution that shares a bound variable."""
    kept = np.ones(left.size, np.bool_)
    kept[pairs(left, right, sharing=True)[0]] = False
    return left.take(kept)


def union(left: Solutions, right: Solutions) -> Solutions:
    """The solutions of both sequences. Both must be of events, or neither."""
    current_budget().spend(left.size + right.size)
    both = concatenated(left, right)
    if both.event is None:
        return both
    return both.take(np.argsort(both.event, kind="stable"))


def concatenated(first: Solutions, second: Solutions) -> Solutions:
    """The concatenation of both, not in order of events. Both have the same lexicon."""
    names = dict.fromkeys((*first.columns, *second.columns))
    columns = {v: np.concatenate([first.column(v), second.column(v)]) for v in names}
    event = None
    if first.event is not None and second.event is not None:
        event = np.concatenate([first.event, second.event])
    return Solutions(first.size + second.size, event, columns, first.lexicon)


def merged(left: Solutions, right: Solutions, partners: Pairs) -> Solutions:
    """The unions of paired solutions, in the lexicon of the left ones."""
    rows, others = partners
    result = left.take(rows)
    columns: dict[str, Int32s] = dict(result.columns)
    for variable, codes in right.columns.items():
        ours = columns.get(variable)
        if ours is None or left.may_be_unbound(variable):
            theirs = translated(codes[others], right.lexicon, left.lexicon, add=True)
            columns[variable] = theirs if ours is None else np.where(ours < 0, theirs, ours)
    return Solutions(result.size, result.event, columns, left.lexicon)


def pairs(left: Solutions, right: Solutions, *, sharing: bool = False) -> Pairs:
    """(rows of left, rows of right) of all pairs of compatible solutions, by ascending left row.

    With `sharing`, only pairs that both bind some variable. Solutions of different events are not
    compatible.
    """
    shared = _shared(left, right)
    columns = [translated(left.columns[v], left.lexicon, right.lexicon, add=False) for v in shared]
    if not _may_be_unbound(left, right, shared):
        if sharing and not shared:
            return np.empty(0, np.intp), np.empty(0, np.intp)
        return _index(right, shared, left).match(_with_event(left, right, columns), left.size)
    return _pairs_by_boundness(left, right, shared, columns, sharing)


def pair_count(left: Solutions, right: Solutions) -> int:
    """The number of pairs of compatible solutions; an upper bound if variables may be unbound."""
    shared = _shared(left, right)
    if _may_be_unbound(left, right, shared):
        return left.size * right.size
    columns = [translated(left.columns[v], left.lexicon, right.lexicon, add=False) for v in shared]
    return _index(right, shared, left).count(_with_event(left, right, columns), left.size)


def _shared(left: Solutions, right: Solutions) -> list[str]:
    return [v for v in left.columns if v in right.columns]


def _may_be_unbound(left: Solutions, right: Solutions, shared: Sequence[str]) -> bool:
    return any(left.may_be_unbound(v) or right.may_be_unbound(v) for v in shared)


def _index(right: Solutions, shared: Sequence[str], left: Solutions) -> KeyIndex:
    """The right side's index on the event (if both sides have events) and the shared variables."""
    by_event = left.event is not None and right.event is not None
    key = ("index", by_event, *shared)
    if key not in right.memo:
        columns = _with_event(right, left, [right.columns[v] for v in shared])
        right.memo[key] = KeyIndex(columns, right.size)
    index: KeyIndex = right.memo[key]
    return index


def _with_event(one: Solutions, other: Solutions, columns: Sequence[Column]) -> Sequence[Column]:
    if one.event is None or other.event is None:
        return columns
    return [one.event, *columns]


def _pairs_by_boundness(
    left: Solutions,
    right: Solutions,
    shared: Sequence[str],
    columns: Sequence[Int32s],
    sharing: bool,
) -> Pairs:
    """Pairs where shared variables may be unbound.

    Rows are grouped by the shared variables that they bind. Two groups join on the variables that
    both bind.
    """
    theirs = [right.columns[v] for v in shared]
    blocks: list[Pairs] = []
    for bound, rows in _groups(columns, left.size):
        current_budget().check()
        for other_bound, others in _groups(theirs, right.size):
            common = [i for i in range(len(shared)) if bound[i] and other_bound[i]]
            if sharing and not common:
                continue
            some, rest = left.take(rows), right.take(others)
            index = KeyIndex(
                _with_event(rest, some, [theirs[i][others] for i in common]), rest.size
            )
            mine = _with_event(some, rest, [columns[i][rows] for i in common])
            i, j = index.match(mine, some.size)
            blocks.append((rows[i], others[j]))
    if not blocks:
        return np.empty(0, np.intp), np.empty(0, np.intp)
    current_budget().spend(sum(len(i) for i, _ in blocks))
    first = np.concatenate([i for i, _ in blocks])
    second = np.concatenate([j for _, j in blocks])
    order = row_order([first, second])
    return first[order], second[order]


def _groups(columns: Sequence[Int32s], size: int) -> list[tuple[tuple[bool, ...], Indices]]:
    """The rows for each combination of bound and unbound columns."""
    mask = np.zeros(size, np.int64)
    for i, column in enumerate(columns):
        mask |= (column != UNBOUND).astype(np.int64) << i
    return [
        (tuple(bool(m >> i & 1) for i in range(len(columns))), np.flatnonzero(mask == m))
        for m in np.unique(mask).tolist()
    ]
