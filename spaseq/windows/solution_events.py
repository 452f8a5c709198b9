"""Solutions of a part of a pattern as events, on which the rest of the pattern is evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from spaseq.algebra import nodes as n
from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.gpm.evaluator import EventSolutions
from spaseq.gpm.graphs.window_partition import ScopedTerms, SolutionsPartition
from spaseq.gpm.solutions.lexicon import Lexicon, encoded
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.rdf.columns.event_batch import EventBatch, EventNames
from spaseq.windows.window_closes import Closes


def as_events(
    closes: Closes,
    places: Int64s,
    pattern: n.Pattern,
    columns: Mapping[str, Sequence[str | None]],
) -> SolutionsPartition:
    """The solutions of `pattern`, as texts [r] by variable, as events at window events [r]."""
    size = len(places)
    terms = ScopedTerms([])
    lexicon = Lexicon(terms)
    start, none = np.zeros(size + 1, np.int64), np.zeros(0, np.int32)
    time, k = closes.time[places], closes.k[places]
    batch = EventBatch("", time, k, EventNames.none(size), start, none, none, none, terms)
    codes = {v: encoded(lexicon, texts) for v, texts in columns.items()}
    solutions = Solutions(size, np.arange(size, dtype=np.int64), codes, lexicon)
    return SolutionsPartition(batch, lexicon, pattern, solutions)


def texts_of(found: EventSolutions, variable: str) -> list[str | None]:
    """The texts [r] of a variable, None where it is unbound; equal ones are one object."""
    codes: Int32s | None = found.columns.get(variable)
    if codes is None:
        return [None] * len(found.event)
    used, which = np.unique(codes, return_inverse=True)
    texts = np.array([None if c < 0 else found.terms[c] for c in used.tolist()], np.object_)
    return texts[which].tolist()  # type: ignore[no-any-return]
