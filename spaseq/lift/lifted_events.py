"""From solutions and a template to event batches: one event for each row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from spaseq.algebra.nodes import PatternTerm, is_reserved
from spaseq.compiled.arrays import Bools, Int32s, Int64s
from spaseq.lift.cells import (
    BLOCK_ROWS,
    FilteredRows,
    RowBlock,
    TableBlock,
    TimedRows,
    is_term,
)
from spaseq.lift.lift_plan import LiftPlan
from spaseq.lift.row_solutions import RowSolutions, SolutionMaker
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.term_tables import ListedTerms
from spaseq.rdf.documents.repeated_triples import repeated_rows
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.sizes import literal_size, long_literal
from spaseq.rdf.terms.term import is_rdf_term, kind_of
from spaseq.rdf.terms.times import parse_time

if TYPE_CHECKING:
    from spaseq.lift.lane_events import LaneEvents

_SOLUTION_BITS = 40
"""A place has up to so many bits of solutions."""

_FEW_ROWS = 512
"""Up to this number of rows, one that is not usual is lifted with all of them."""

_OF = {"iri": 3, "bnode": 2, "triple": 1}
"""How much a term may be: 1 an object, 2 a subject, too, 3 a predicate, too."""

NO_TIME = -(2**63)
"""The time of a row that has none."""

OnBadRow = Callable[[int, str], None]
"""Called with the place of a bad row in its block, and the reason."""


@dataclass(frozen=True, slots=True)
class LiftedBatch:
    """The events of some rows of a block.

    `time_texts` [n] are the literals of their times, `rows` [n] their places in the block.
    """

    events: EventBatch
    time_texts: Sequence[str]
    rows: Int64s


class EventMaker:
    """Makes the events of one stream from blocks of rows.

    Attributes:
        filtered: how many rows had no solution.
    """

    def __init__(
        self,
        plan: LiftPlan,
        stream: str,
        types: dict[str, str] | None = None,
        counter: InstantCounter | None = None,
        limits: Limits = DEFAULT_LIMITS,
        asked: Collection[str] | None = None,
    ) -> None:
        """`asked` are the only predicates whose triples need to be there; None asks for all."""
        self._plan, self._stream, self._limits = plan, stream, limits
        self._asked = asked
        self._maker = SolutionMaker(plan, types)
        self._counter = counter or InstantCounter()
        self._solutions = 0
        self._types = types or {}
        self._lanes: LaneEvents | None = None
        self._by_row = False
        self._part: EventMaker | None = None
        self.filtered = 0

    def of_part(self, plan: LiftPlan) -> EventMaker:
        """The maker for a part of the same lift (`pruned_lifts`); it goes on counting instants."""
        if plan is self._plan:
            return self
        if self._part is None or self._part._plan != plan:
            counted = self._counter, self._limits, self._asked
            self._part = EventMaker(plan, self._stream, self._types, *counted)
        return self._part

    def lifted(
        self, block: RowBlock | TableBlock, on_bad: OnBadRow, times: Int64s | None = None
    ) -> Iterator[LiftedBatch]:
        """The events of a block's rows, in order; bad rows are reported.

        The rows of a table are lifted as columns, if the lift and the rows allow it. `times` are
        for rows without one, as in `events`.
        """
        if isinstance(block, RowBlock):
            yield self.events(block, on_bad, times)
        elif self._columns() is None:
            yield from self._row_by_row(block, 0, on_bad, times)
        else:
            yield from self._as_columns(block, 0, on_bad, times)

    def without(self, block: FilteredRows | TimedRows) -> LiftedBatch:
        """The events of rows that are not read: none, or without names and triples."""
        times, filtered = np.empty(0, np.int64), 0
        if isinstance(block, TimedRows):
            times = block.times
        else:
            filtered = len(block)
        self.filtered += filtered
        size, codes = len(times), np.empty(0, np.int32)
        start, terms = np.zeros(size + 1, np.int64), ListedTerms([])
        events = EventBatch(
            self._stream,
            times,
            self._counter.assign(times),
            [None] * size,
            start,
            codes,
            codes,
            codes,
            terms,
            filtered=filtered,
            skipped_groups=block.groups,
        )
        return LiftedBatch(events, (), np.empty(0, np.int64))

    @property
    def makes_columns(self) -> bool:
        """Whether the lift allows it to lift tables as columns."""
        return self._columns() is not None

    def _columns(self) -> LaneEvents | None:
        if self._lanes is None and not self._by_row:
            from spaseq.lift.lane_events import LaneEvents
            from spaseq.lift.lanes import NotColumns

            try:
                self._lanes = LaneEvents(
                    self._plan, self._stream, self._counter, self._limits, self._asked, self._types
                )
            except NotColumns:
                self._by_row = True
        return self._lanes

    def _as_columns(
        self, block: TableBlock, before: int, on_bad: OnBadRow, times: Int64s | None
    ) -> Iterator[LiftedBatch]:
        """The events of rows, `before` rows after the first of the whole block, as `times` are."""
        from spaseq.lift.lanes import NotColumns

        assert self._lanes is not None
        try:
            events, texts, rows = self._lanes.events(block)
        except NotColumns:
            if len(block) <= _FEW_ROWS:
                yield from self._row_by_row(block, before, on_bad, times)
                return
            size = -(-len(block) // 8)
            for start in range(0, len(block), size):
                part = block.part(start, size)
                yield from self._as_columns(part, before + start, on_bad, times)
            return
        self.filtered += events.filtered
        yield LiftedBatch(events, texts, rows + before)

    def _row_by_row(
        self, block: TableBlock, before: int, on_bad: OnBadRow, times: Int64s | None
    ) -> Iterator[LiftedBatch]:
        wanted = self._plan.fields.wanted
        for start in range(0, len(block), BLOCK_ROWS):
            rows = block.part(start, BLOCK_ROWS).rows(wanted)
            first = before + start

            def report(row: int, reason: str, first: int = first) -> None:
                on_bad(first + row, reason)

            own = None if times is None else times[first : first + len(rows)]
            made = self.events(rows, report, own)
            yield replace(made, rows=made.rows + first)

    def events(self, block: RowBlock, on_bad: OnBadRow, times: Int64s | None = None) -> LiftedBatch:
        """The events of a block's rows, in order; bad rows are reported.

        A row for which the lift makes no time has that of `times` [n], in ms, if it is not NO_TIME.
        """
        found = self._maker.solutions(block, self._solutions)
        self._solutions += max(len(block), found.most)
        rows = np.array(found.rows, np.int64)
        present = np.unique(rows)
        filtered = len(block) - len(present) - len(found.bad)
        self.filtered += filtered
        graph = _Graphs(self._plan, found, None if times is None else times[present])
        bad = dict(found.bad)
        event = np.searchsorted(present, rows)  # [m] the event of each solution
        made = graph.made(event, len(present))
        _refuse_long_literals(made, self._limits)
        for place, reason in made.bad.items():
            bad.setdefault(int(present[place]), reason)
        for row in sorted(bad):
            on_bad(row, bad[row])
        return self._batch(made, filtered, present)

    def number_after(self, *place: object) -> None:
        """Number solutions from a number on that only this place has.

        The labels of blank nodes have the numbers, so no two places share a blank node.
        """
        digest = blake2b(repr((self._stream, *place)).encode(errors="replace"), digest_size=8)
        self._solutions = int.from_bytes(digest.digest()) << _SOLUTION_BITS

    def _batch(self, made: _Made, filtered: int, rows: Int64s) -> LiftedBatch:
        kept = np.ones(len(made.time), np.bool_)
        kept[[*made.bad]] = False
        inside = kept[made.event]
        number = np.cumsum(kept) - 1
        start = np.zeros(int(kept.sum()) + 1, np.int64)
        np.cumsum(np.bincount(number[made.event[inside]], minlength=len(start) - 1), out=start[1:])
        s, p, o = made.s[inside], made.p[inside], made.o[inside]
        twice = repeated_rows(start, s, p, o)
        if len(twice):
            s, p, o = (np.delete(column, twice) for column in (s, p, o))
            start = start - np.searchsorted(twice, start)
        time = made.time[kept]
        names = [name for name, keep in zip(made.names, kept.tolist(), strict=True) if keep]
        texts = [made.terms[code] for code in made.time_code[kept].tolist()]
        k = self._counter.assign(time)
        terms = ListedTerms(made.terms)
        events = EventBatch(self._stream, time, k, names, start, s, p, o, terms, filtered=filtered)
        return LiftedBatch(events, texts, rows[kept])


@dataclass(frozen=True, slots=True)
class _Made:
    """n events with all their triples; `bad` has the reason of each that is none."""

    terms: list[str]
    event: Int64s  # [m] the event of each triple, ascending
    s: Int32s  # [m]
    p: Int32s  # [m]
    o: Int32s  # [m]
    time: Int64s  # [n] ms
    time_code: Int32s  # [n] the code of the time's literal
    names: list[str | None]  # [n] IRIs
    bad: dict[int, str]


class _Graphs:
    """The template's triples for the solutions of one block."""

    def __init__(self, plan: LiftPlan, found: RowSolutions, times: Int64s | None) -> None:
        self._plan, self._found, self._times = plan, found, times
        self._codes: dict[str, int] = {}
        self._columns: dict[PatternTerm, Int32s] = {}

    def made(self, event: Int64s, events: int) -> _Made:
        """The events, given the event [m] of each solution."""
        size, template = len(self._found), self._plan.template
        matrix = [
            np.stack([self._column(t.terms[i]) for t in template], axis=1)
            if template
            else np.empty((size, 0), np.int32)
            for i in range(3)
        ]
        graph = None if self._plan.graph is None else self._column(self._plan.graph)
        terms = [*self._codes]
        valid = self._valid(terms, *matrix)
        timed = valid & (matrix[1] == self._codes.get(self._plan.time_predicate, -2))
        inside = valid & np.array([t.inside for t in template], np.bool_)
        bad: dict[int, str] = {}
        names = _names(graph, event, events, terms, bad)
        time, code = _times(matrix[2], timed, event, events, terms, bad)
        if self._times is not None:
            time = np.where(time == NO_TIME, self._times, time)
        for place in np.flatnonzero(time == NO_TIME).tolist():
            bad.setdefault(place, "the event has no time")
        owner = np.broadcast_to(event[:, None], valid.shape)
        content = np.bincount(owner[inside & ~timed], minlength=events)
        for place in np.flatnonzero(content == 0).tolist():
            bad.setdefault(place, "the event has no triple besides its time")
        s, p, o = (column[inside] for column in matrix)
        return _Made(terms, owner[inside], s, p, o, time, code, names, bad)

    def _code(self, text: str) -> int:
        return self._codes.setdefault(text, len(self._codes))

    def _column(self, term: PatternTerm) -> Int32s:
        """The codes [m] of a term of the template, -1 where it is unbound."""
        if term in self._columns:
            return self._columns[term]
        found, size = self._found, len(self._found)
        if isinstance(term, str):
            column = np.full(size, self._code(term), np.int32)
        elif is_reserved(term.name):
            label = term.name.removeprefix("_:")
            numbers = range(found.first, found.first + size)
            column = np.array([self._code(f"_:l{n}{label}") for n in numbers], np.int32)
        else:
            texts = found.columns.get(term.name)
            codes = self._codes
            column = (
                np.full(size, -1, np.int32)
                if texts is None
                else np.array(
                    [-1 if t is None else codes.setdefault(t, len(codes)) for t in texts], np.int32
                )
            )
        self._columns[term] = column
        return column

    @staticmethod
    def _valid(terms: list[str], s: Int32s, p: Int32s, o: Int32s) -> Bools:
        """Which triples are RDF and have no unbound variable."""
        kinds = np.zeros(len(terms) + 1, np.int8)  # the last is for unbound ones
        kinds[:-1] = [1 if t[0] == '"' else _OF[kind_of(t)] for t in terms]
        kinds[:-1] *= [is_term(t) for t in terms]
        valid: Bools = (kinds[s] >= 2) & (kinds[p] == 3) & (kinds[o] >= 1)
        return valid


def _refuse_long_literals(made: _Made, limits: Limits) -> None:
    """Make the events bad that have a literal beyond the limit."""
    least = limits.literal_bytes // 4  # a character has up to four bytes
    for code, text in enumerate(made.terms):
        if len(text) > least:
            reason = long_literal(literal_size(text.encode()), limits)
            if reason is not None:
                for place in made.event[made.o == code].tolist():
                    made.bad.setdefault(place, reason)


def _names(
    graph: Int32s | None, event: Int64s, events: int, terms: list[str], bad: dict[int, str]
) -> list[str | None]:
    """The name of each event; with GRAPH each must have exactly one, an IRI."""
    if graph is None:
        return [None] * events
    names: list[str | None] = [None] * events
    for place, code in zip(event.tolist(), graph.tolist(), strict=True):
        if code < 0 or place in bad:
            continue
        text = terms[code]
        if kind_of(text) != "iri" or not is_rdf_term(text):
            bad[place] = f"the event's name is no IRI: {text}"
        elif names[place] is None:
            names[place] = text[1:-1]
        elif names[place] != text[1:-1]:
            bad[place] = f"two names of one event: <{names[place]}> and {text}"
    for place, name in enumerate(names):
        if name is None:
            bad.setdefault(place, "the event's name is unbound")
    return names


def _times(
    objects: Int32s, timed: Bools, event: Int64s, events: int, terms: list[str], bad: dict[int, str]
) -> tuple[Int64s, Int32s]:
    """(time in ms, code of its literal) of each event."""
    time = np.full(events, NO_TIME, np.int64)
    code = np.zeros(events, np.int32)
    solution, column = np.nonzero(timed)
    known: dict[int, int | None] = {}
    pairs = zip(event[solution].tolist(), objects[solution, column].tolist(), strict=True)
    for place, text in pairs:
        if text not in known:
            known[text] = parse_time(terms[text])
        ms = known[text]
        if ms is None:
            bad.setdefault(place, f"unreadable time {terms[text]}")
        elif time[place] == NO_TIME:
            time[place], code[place] = ms, text
        elif time[place] != ms:
            bad.setdefault(
                place, f"two times of one event: {terms[int(code[place])]} and {terms[text]}"
            )
    return time, code
