"""The parts of the triple terms of graphs, as triples; see `spaseq.algebra.constants`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from spaseq.algebra.constants import PARTS
from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.gpm.graphs.triple_source import TripleTable
from spaseq.gpm.solutions.lazy_columns import Lexicon
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.term_columns import distinct_codes
from spaseq.rdf.terms.term import Triple
from spaseq.rdf.terms.triple_terms import is_triple_term, triple_term_parts


def parts_of_event(triples: Iterable[Triple]) -> dict[str, list[Triple]]:
    """The parts of the triple terms among the objects, by predicate."""
    waiting = [o for _, _, o in triples if is_triple_term(o)]
    known: dict[str, tuple[str, str, str]] = {}
    while waiting:
        text = waiting.pop()
        if text not in known:
            known[text] = terms = triple_term_parts(text)
            if is_triple_term(terms[2]):
                waiting.append(terms[2])
    return {p: [(t, p, terms[i]) for t, terms in known.items()] for i, p in enumerate(PARTS)}


def parts_of_graph(lexicon: Lexicon, objects: Int32s) -> dict[str, TripleTable]:
    """The parts of the triple terms among the objects [m] of a graph, by predicate."""
    terms = _TripleTerms(lexicon, objects)
    code, *parts = (np.array(column, np.int32) for column in (terms.code, *terms.parts))
    return {p: TripleTable(None, code, None, part) for p, part in zip(PARTS, parts, strict=True)}


def parts_of_events(lexicon: Lexicon, event: Int64s, objects: Int32s) -> TripleTable:
    """The parts of the triple terms among the objects [m] of triples, by event.

    `event` [m] is ascending. Each event has the parts of a term once.
    """
    terms = _TripleTerms(lexicon, objects)
    number = terms.number_of(objects)
    event, number = event[number >= 0], number[number >= 0]
    inner = np.array(terms.inner, np.int64)
    pairs = [np.stack([event, number])]
    while pairs[-1].size:
        event, number = pairs[-1]
        below = inner[number] if len(inner) else number
        pairs.append(np.stack([event[below >= 0], below[below >= 0]]))
    event, number = np.concatenate(pairs, axis=1)
    keys = np.unique(event * max(1, len(terms.code)) + number)
    event, number = np.divmod(keys, max(1, len(terms.code)))
    predicates = np.tile(lexicon.encode(PARTS), len(event))
    code, parts = np.array(terms.code, np.int32), np.array(terms.parts, np.int32).reshape(3, -1)
    return TripleTable(
        np.repeat(event, 3), np.repeat(code[number], 3), predicates, parts[:, number].T.ravel()
    )


def with_parts(batch: EventBatch, lexicon: Lexicon, parts: TripleTable) -> EventBatch:
    """The events with more triples, whose codes are of a lexicon that extends the batch's terms."""
    assert parts.event is not None and parts.p is not None
    events = np.arange(len(batch), dtype=np.int64)
    event_of_row = np.repeat(events, np.diff(batch.start))
    order = np.argsort(np.concatenate([event_of_row, parts.event]), kind="stable")
    more = np.searchsorted(parts.event, np.arange(len(batch) + 1))
    s, p, o = (
        np.concatenate([first, second])[order]
        for first, second in ((batch.s, parts.s), (batch.p, parts.p), (batch.o, parts.o))
    )
    columns = batch.stream, batch.time, batch.k, batch.graph
    return EventBatch(*columns, batch.start + more, s, p, o, lexicon)


class _TripleTerms:
    """The triple terms among some terms, and those inside them, each once.

    `code` has their codes, `parts` the codes of their subjects, predicates and objects, and `inner`
    the numbers of their objects among the triple terms, -1 for others.
    """

    def __init__(self, lexicon: Lexicon, objects: Int32s) -> None:
        self._lexicon, self._numbers = lexicon, dict[int, int]()
        self.code: list[int] = []
        self.parts: tuple[list[int], list[int], list[int]] = ([], [], [])
        self.inner: list[int] = []
        codes, _ = distinct_codes(objects, len(lexicon))
        known = codes[codes >= 0].astype(np.int32)
        self._take(known.tolist(), lexicon.take(known))

    def _take(self, codes: list[int], texts: list[str]) -> None:
        """Take the triple terms among some terms, and what is inside them."""
        new = [
            (code, triple_term_parts(text))
            for code, text in zip(codes, texts, strict=True)
            if is_triple_term(text) and code not in self._numbers
        ]
        if not new:
            return
        for code, _ in new:
            self._numbers[code] = len(self.code)
            self.code.append(code)
        for column, position in zip(self.parts, range(3), strict=True):
            column += self._lexicon.encode([terms[position] for _, terms in new]).tolist()
        inside = [terms[2] for _, terms in new]
        self._take(self.parts[2][-len(new) :], inside)
        self.inner = [self._numbers.get(code, -1) for code in self.parts[2]]

    def number_of(self, codes: Int32s) -> Int64s:
        """The number [m] of each code among the triple terms, -1 for others."""
        if not self.code:
            return np.full(len(codes), -1, np.int64)
        order = np.argsort(np.array(self.code))
        ordered = np.array(self.code)[order]
        index = np.minimum(np.searchsorted(ordered, codes), len(ordered) - 1)
        return np.where(ordered[index] == codes, order[index], -1)
