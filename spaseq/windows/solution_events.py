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
from spaseq.windows.lasting_solutions import Solution
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


def solutions_of(
    found: EventSolutions, variables: Sequence[str], partition: Mapping[str, str]
) -> tuple[Int64s, list[Solution]]:
    """(event [r], solution [r]) of the solutions that agree with a partition, which they bind."""
    size = len(found.event)
    columns = []
    agree = np.ones(size, np.bool_)
    for v in variables:
        texts = texts_of(found, v)
        if v in partition:
            value = partition[v]
            agree &= np.array([text in (None, value) for text in texts], np.bool_)
            texts = [value] * size
        columns.append(texts)
    solutions: list[Solution] = list(zip(*columns, strict=True)) if columns else [()] * size
    if not agree.all():
        solutions = [own for own, agrees in zip(solutions, agree.tolist(), strict=True) if agrees]
    return found.event[agree], solutions
