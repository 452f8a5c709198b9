"""Solutions of a part of a pattern as events, on which the rest of the pattern is evaluated."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from spaseq.algebra import nodes as n
from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.gpm.evaluator import EventSolutions
from spaseq.gpm.graphs.window_partition import SolutionsPartition
from spaseq.gpm.solutions.lazy_columns import Lexicon
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.rdf.columns.event_batch import EventBatch, EventNames
from spaseq.windows.window_closes import Closes


def as_events(
    closes: Closes,
    places: Int64s,
    pattern: n.Pattern,
    columns: Mapping[str, Int32s],
    lexicon: Lexicon,
) -> SolutionsPartition:
    """The solutions of `pattern`, as codes [r] by variable, as events at window events [r]."""
    size = len(places)
    start, none = np.zeros(size + 1, np.int64), np.zeros(0, np.int32)
    time, k = closes.time[places], closes.k[places]
    names = EventNames.none(size)
    batch = EventBatch("", time, k, names, start, none, none, none, lexicon.base)
    solutions = Solutions(size, np.arange(size, dtype=np.int64), columns, lexicon)
    return SolutionsPartition(batch, lexicon, pattern, solutions)


def texts_of(codes: Int32s, lexicon: Lexicon) -> list[str | None]:
    """The texts [r] of codes, None for unbound; equal ones are one object."""
    used, which = np.unique(codes, return_inverse=True)
    unbound = int(len(used) > 0 and used[0] < 0)
    texts = np.array([None] * unbound + lexicon.take(used[unbound:]), np.object_)
    return texts[which].tolist()  # type: ignore[no-any-return]


def agreeing(
    solutions: EventSolutions, lexicon: Lexicon, partition: Mapping[str, str]
) -> EventSolutions:
    """The solutions that agree with a partition, which they bind; variables by name."""
    columns = dict(solutions.columns)
    agree = np.ones(len(solutions.event), np.bool_)
    for v, value in partition.items():
        code = lexicon.encode([value])[0]
        codes = columns.get(v)
        if codes is not None:
            agree &= (codes < 0) | (codes == code)
        columns[v] = np.full(len(agree), code, np.int32)
    shown = {v: columns[v][agree] for v in sorted(columns)}
    return EventSolutions(solutions.event[agree], shown, lexicon)
