"""The events that templates make of the solutions of rows: triples, names and times.

Events of lanes whose lift is usual get their triples on demand; others get them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from typing import TypeGuard

import numpy as np

from spaseq.algebra.constants import composed_text
from spaseq.algebra.nodes import PatternTerm, is_reserved
from spaseq.compiled.arrays import Bools, Indices, Int8s, Int32s, Int64s
from spaseq.lang import ast
from spaseq.lang.variables import variables_of
from spaseq.lift.lane_terms import SharedTexts
from spaseq.lift.lanes import Lane, LaneForm, Listed, position_of
from spaseq.lift.lift_plan import LiftPlan, TemplateTriple
from spaseq.lift.lifted_graphs import LiftedEvents, LiftedGraphs, event_triples, united
from spaseq.lift.solutions import RowSolutions
from spaseq.limits import Limits
from spaseq.rdf.columns.event_batch import EventBatch, EventNames
from spaseq.rdf.columns.term_tables import ListedTerms
from spaseq.rdf.events.graph_times import TimeTerms
from spaseq.rdf.inputs.sizes import literal_size, long_literal
from spaseq.rdf.terms.times import time_literal
from spaseq.records import record

_MOST_FIELDS = 3
_SHOWN = 100  # characters of a cell

NO_TIME = -(2**63)
"""The time of a row that has none."""

_NOWHERE = 2**62
"""The place of a time that no triple has."""


class FieldReasons:
    """Names the fields of one lift that a bad row is bad for."""

    def __init__(self, plan: LiftPlan) -> None:
        fields = plan.fields
        self._known = fields.wanted | fields.elements
        self._binds = plan.binds

    def fields(self, variable: str) -> list[str]:
        """The fields that a variable of the template is made of, in the order of their names."""
        names, waiting = set[str](), [variable]
        while waiting:
            name = waiting.pop()
            if name in self._binds:
                waiting += variables_of(self._binds[name])
            elif name in self._known:
                names.add(name)
        return sorted(names)

    def without_value(
        self, terms: Iterable[PatternTerm], text: Callable[[ast.Var], str | None]
    ) -> str:
        """The fields of the first variable that a solution does not bind, in words.

        It begins with a colon, and is empty if there is no such variable, or it has no fields.
        `text` gives the solution's term of a variable.
        """
        for term in terms:
            if isinstance(term, str) or is_reserved(term.name) or text(term) is not None:
                continue
            name = term.name
            cells = [_shown(f, text(ast.Var(f))) for f in self.fields(name)]
            if cells:
                said = ", ".join(cells[:_MOST_FIELDS])
                return f": {said}" if name not in self._binds else f": ?{name} has no value, {said}"
        return ""

    def of(self, term: PatternTerm) -> str:
        """The fields of a term, in words: ` of field at`; empty if there are none."""
        fields = [] if isinstance(term, str) else self.fields(term.name)[:_MOST_FIELDS]
        return f" of field{'s' * (len(fields) > 1)} {', '.join(fields)}" if fields else ""


def _shown(field: str, cell: str | None) -> str:
    if cell is None:
        return f"field {field} is empty"
    return f"field {field} is {cell if len(cell) <= _SHOWN else cell[:_SHOWN] + '...'}"


def _at(
    texts: Callable[[PatternTerm], Sequence[str | None]], number: int, term: PatternTerm
) -> str | None:
    return texts(term)[number]


@record
class LiftedBatch:
    """n events of the rows `rows` [n] of a block, by place.

    `time_texts` returns the literals [n] of the times. `bad` has the reason of each row that makes
    none, although it has a solution.
    """

    events: EventBatch
    rows: Int64s
    time_texts: Callable[[], Sequence[str | None]]
    bad: dict[int, str]


class Templates:
    """The templates of a lift, each the triples of one GRAPH, ready for the solutions of blocks.

    Attributes:
        is_usual: whether events may get their triples on demand. They have one template, with one
            time and constant predicates, and no blank nodes.
        plan: the lift.
        limits: bounds on literals.
        times: the reader of times.
        asked: the predicates of triples that are made on demand; None for all.
        texts: the texts that blocks share.
    """

    def __init__(
        self, plan: LiftPlan, limits: Limits, times: TimeTerms, asked: Collection[str] | None
    ) -> None:
        self.plan, self.limits, self.times, self.asked = plan, limits, times, asked
        self.texts, self.reasons = SharedTexts(), FieldReasons(plan)
        self._plans = (plan, *plan.others)
        self._reserved = [*dict.fromkeys(t for t in plan.terms if is_variable(t, is_reserved))]
        timed = [t for t in plan.template if t.terms[1] == plan.time_predicate]
        self.is_usual = (
            not plan.others
            and not self._reserved
            and len(timed) == 1
            and len(plan.template) > 1
            and not any(is_variable(t.terms[1]) for t in plan.template)
        )

    def events(self, solutions: RowSolutions, size: int, times: Int64s | None) -> LiftedBatch:
        """The events of the solutions of `size` rows; all are the first at their times.

        `times` [size], ms, are for rows whose lift makes none.
        """
        self._make_terms(solutions)
        present, event = solutions.rows, np.arange(len(solutions))
        if (present[1:] == present[:-1]).any():
            present, event = np.unique(present, return_inverse=True)
        given = None if times is None else times[present]
        graphs = [
            TemplateEvents(self, plan, solutions, event, len(present)) for plan in self._plans
        ]
        bad: dict[int, str] = {}
        for graph in graphs:
            bad = graph.check(given, len(graphs) > 1) | bad
        if len(graphs) > 1:
            _check_together(graphs, bad)
        for graph in graphs:
            graph.good[[*bad]] = False
        filtered = size - len(present) - len(solutions.bad)
        parts = [graph.batch(filtered) for graph in graphs]
        rows = [present[graph.good] for graph in graphs]
        all_bad = {int(present[event]): reason for event, reason in bad.items()}
        if len(graphs) == 1:
            return LiftedBatch(parts[0], rows[0], graphs[0].time_texts, all_bad)
        every = np.concatenate(rows)
        order = np.argsort(every, kind="stable")
        texts = [text for graph in graphs for text in graph.time_texts()]
        whole = replace(united(parts).take(order), filtered=filtered)
        return LiftedBatch(whole, every[order], lambda: [texts[i] for i in order], all_bad)

    def _make_terms(self, solutions: RowSolutions) -> None:
        """Give the template's blank nodes and triple terms their columns."""
        composed = dict(self.plan.composed)
        for term in self._reserved:
            label = term.name.removeprefix("_:")
            if term.name not in composed:
                numbers = range(solutions.first, solutions.first + len(solutions))
                solutions.add(term.name, [f"_:l{n}{label}" for n in numbers])
        for name, terms in composed.items():
            parts = zip(*map(solutions.texts, terms), strict=True)
            solutions.add(name, [composed_text(three) for three in parts])


def is_variable(term: object, test: Callable[[str], bool] = bool) -> TypeGuard[ast.Var]:
    """Whether a term is a variable whose name passes a test."""
    return isinstance(term, ast.Var) and test(term.name)


def _check_together(graphs: Sequence[TemplateEvents], bad: dict[int, str]) -> None:
    """A row is bad if it has no event, or two with one name."""
    names = [graph.name_texts() for graph in graphs]
    for event in range(len(graphs[0].good)):
        mine = [n[event] for n, graph in zip(names, graphs, strict=True) if graph.good[event]]
        if not mine:
            bad.setdefault(event, "no event of the row has a triple besides its time")
        elif len(set(mine)) < len(mine):
            bad.setdefault(event, "two GRAPHs of the row have one name")


class TemplateEvents:
    """The events that one template makes of the solutions of a block: at most one for each row.

    Attributes:
        plan: the template's.
        good: whether each row with a solution makes this event [n].
        time: the times [n] in ms, `NO_TIME` for none.
    """

    def __init__(
        self, maker: Templates, plan: LiftPlan, solutions: RowSolutions, event: Int64s, events: int
    ) -> None:
        """`event` [m] is the row of each solution, among `events` of them."""
        self._maker, self.plan, self._solutions = maker, plan, solutions
        self._event, self._one_each = event, events == len(event)
        self.time = np.full(events, NO_TIME, np.int64)
        self.good = np.ones(events, np.bool_)
        self._time_place = np.full(events, _NOWHERE, np.int64)
        self._bad: dict[int, str] = {}
        self._positions: dict[PatternTerm, Int8s | int] = {}
        self._masks = [self._mask(t) for t in plan.template]
        predicate = plan.time_predicate
        self._timed = [
            (number, t.terms)
            for number, t in enumerate(plan.template)
            if is_variable(t.terms[1]) or t.terms[1] == predicate
        ]

    def _mask(self, triple: TemplateTriple) -> Bools | None:
        """The solutions [m] in which a triple is RDF and has no unbound variable; None if all."""
        mask = None
        for term, least in zip(triple.terms, (2, 3, 1), strict=True):
            possible = self._position(term)
            if isinstance(possible, int):
                if possible >= least:
                    continue
                return np.zeros(len(self._event), np.bool_)
            mask = possible >= least if mask is None else mask & (possible >= least)
        return mask

    def _position(self, term: PatternTerm) -> Int8s | int:
        """The positions [m] that a term may have (see `position_of`), 0 for unbound; one number if
        they are the same.
        """
        found = self._positions.get(term)
        if found is None:
            column = None if isinstance(term, str) else self._solutions.columns.get(term.name)
            found = 0 if column is None else column.positions()
            if isinstance(term, str):
                found = position_of(term)
            self._positions[term] = found
        return found

    def check(self, given: Int64s | None, may_be_absent: bool) -> dict[int, str]:
        """Find the times. Returns the reasons of rows whose event lacks something, or is not theirs
        alone.

        `given` [n] are times, ms, of rows whose lift makes none. An event without triples is bad,
        or just absent.
        """
        plan = self.plan
        self._check_names()
        self._find_times()
        if given is not None:
            self.time = np.where(self.time == NO_TIME, given, self.time)
        of_times = [t.terms for t in plan.template if t.terms[1] == plan.time_predicate]
        untimed = np.flatnonzero(self.time == NO_TIME)
        self._refuse(untimed, "the event has no time", chain(*of_times))
        content = np.zeros(len(self.good), np.bool_)
        for number, triple in enumerate(plan.template):
            if triple.inside and triple.terms not in of_times:
                content[self._event[self._places(number, of_time=False)]] = True
        if may_be_absent:
            self._bad = {e: reason for e, reason in self._bad.items() if content[e]}
            self.good &= content
        else:
            others = chain(*(t.terms for t in plan.template if t.terms not in of_times))
            empty = np.flatnonzero(~content)
            self._refuse(empty, "the event has no triple besides its time", others)
        self._refuse_long_literals()
        return self._bad

    def _places(self, number: int, of_time: bool) -> Indices | slice:
        """The solutions that have a triple of the template, as one of the time or as another."""
        mask, predicate = self._masks[number], self.plan.template[number].terms[1]
        if isinstance(predicate, ast.Var):
            texts = self._solutions.texts(predicate)
            same = np.array([t == self.plan.time_predicate for t in texts], np.bool_) == of_time
            mask = same if mask is None else mask & same
        return slice(None) if mask is None else np.flatnonzero(mask)

    def _refuse(self, events: Indices, reason: str, terms: Iterable[PatternTerm]) -> None:
        """Events are bad, as one of some terms is unbound in their first solutions."""
        given, refused = [*terms], [event for event in events.tolist() if event not in self._bad]
        if not refused:
            return
        texts = cache(partial(self._solutions.texts_at, np.searchsorted(self._event, refused)))
        for number, event in enumerate(refused):
            text = partial(_at, texts, number)
            self._bad[event] = reason + self._maker.reasons.without_value(given, text)

    def _check_names(self) -> None:
        """Each event has exactly one name, an IRI, if there is GRAPH."""
        graph = self.plan.graph
        if graph is None or (self._one_each and np.all(np.equal(self._position(graph), 3))):
            return
        names: dict[int, str] = {}
        texts = self._solutions.texts(graph)
        for event, text in zip(self._event.tolist(), texts, strict=True):
            if text is None or event in self._bad:
                continue
            if position_of(text) != 3:
                self._bad[event] = f"the event's name is no IRI: {text}"
            elif names.setdefault(event, text) != text:
                self._bad[event] = f"two names of one event: {names[event]} and {text}"
        unnamed = [event for event in range(len(self.good)) if event not in names]
        self._refuse(np.array(unnamed, np.int64), "the event's name is unbound", [graph])

    def _find_times(self) -> None:
        """The time of each event; it is bad with two times, or one that cannot be read."""
        odd = np.zeros(len(self.good), np.bool_)
        for which, (number, terms) in enumerate(self._timed):
            places = self._places(number, of_time=True)
            event = self._event[places]
            ms, readable = self._read(terms[2], places, len(event))
            before = self.time[event]
            self.time[event] = ms
            same = (before == NO_TIME) | (before == ms)
            odd[event[~(readable & same & (self.time[event] == ms))]] = True
            place = np.arange(len(self._event))[places] * len(self._timed) + which
            np.minimum.at(self._time_place, event, place)
        for number in np.flatnonzero(odd).tolist():
            self._bad.setdefault(number, self._odd_time(number))

    def _read(
        self, term: PatternTerm, places: Indices | slice, size: int
    ) -> tuple[Int64s, Bools | bool]:
        """(times [k] in ms, mask of the readable ones) of a term in some solutions."""
        times = self._maker.times
        if isinstance(term, str):
            ms = times.read(term) if size else None
            return np.full(size, ms or 0, np.int64), ms is not None
        column = self._solutions.columns.get(term.name)
        if column is None:  # its field is no column of a DataFrame
            return np.zeros(size, np.int64), False
        if not isinstance(places, slice):
            column = column.take(places)
        if isinstance(column, Lane) and column.form is LaneForm.MOMENT:
            return column.values.to_numpy() // 1000, True
        if isinstance(column, Lane) and column.form is LaneForm.INTEGER:
            read = times.integers(column.values.to_numpy())
            if read is not None:
                return read, True
        return column.read(times.read)

    def _odd_time(self, event: int) -> str:
        """Why an event has no single time."""
        first = None
        for place in np.flatnonzero(self._event == event).tolist():
            for number, terms in self._timed:
                if place in np.arange(len(self._event))[self._places(number, of_time=True)]:
                    text = self._solutions.text(place, terms[2])
                    ms = self._maker.times.read(text or "")
                    if ms is None:
                        return f"unreadable time {text}{self._maker.reasons.of(terms[2])}"
                    if first is None:
                        first = ms, text
                    elif first[0] != ms:
                        return f"two times of one event: {first[1]} and {text}"
        raise AssertionError("the event has one time")

    def _refuse_long_literals(self) -> None:
        """Make the events bad that have a literal beyond the limit."""
        solutions, limits = self._solutions, self._maker.limits
        least = limits.literal_bytes // 8  # escapes, and a datatype, may be added
        for number, triple in enumerate(self.plan.template):
            term = triple.terms[2]
            column = Listed([term]) if isinstance(term, str) else solutions.columns.get(term.name)
            if not triple.inside or column is None or column.is_within(least):
                continue
            places = np.arange(len(self._event))[self._places(number, of_time=False)]
            texts = solutions.texts(term)
            for place in places.tolist():
                reason = long_literal(literal_size((texts[place] or "").encode()), limits)
                if reason is not None:
                    self._bad.setdefault(int(self._event[place]), reason)

    def batch(self, filtered: int) -> EventBatch:
        """The good events; all are the first at their times."""
        maker, solutions, at = self._maker, self._solutions, np.flatnonzero(self.good)
        head = maker.times.stream, self.time[at], np.zeros(len(at), np.int32), self._names(at)
        inside = [
            (t.terms, mask)
            for t, mask in zip(self.plan.template, self._masks, strict=True)
            if t.inside
        ]
        triples, masks = [t for t, _ in inside], [mask for _, mask in inside]
        if maker.is_usual and solutions.lanes and self._one_each:
            given = sum(len(at) if mask is None else int(mask[at].sum()) for mask in masks)
            asked = [(t, m) for t, m in inside if maker.asked is None or t[1][1:-1] in maker.asked]  # type: ignore[index]
            triples, masks = [t for t, _ in asked], [mask for _, mask in asked]
            graphs = LiftedGraphs(len(solutions), triples, solutions.columns, masks, maker.texts)  # type: ignore[arg-type]
            return LiftedEvents(
                head, graphs, None if len(at) == len(solutions) else at, given, filtered
            )
        owner = self._event
        if len(at) < len(self.good):
            owner = np.where(self.good, np.cumsum(self.good) - 1, -1)[owner]
        if solutions.lanes:
            graphs = LiftedGraphs(len(solutions), triples, solutions.columns, masks)  # type: ignore[arg-type]
            made = event_triples(triples, graphs.codes, masks, owner, len(at))
            return EventBatch(*head, *made, graphs.terms, filtered=filtered)
        codes: dict[str, int] = {}

        @cache
        def coded(term: PatternTerm) -> Int32s:
            texts = solutions.texts(term)
            known = [-1 if t is None else codes.setdefault(t, len(codes)) for t in texts]
            return np.array(known, np.int32)

        made = event_triples(triples, coded, masks, owner, len(at))
        return EventBatch(*head, *made, ListedTerms([*codes]), filtered=filtered)

    def name_texts(self) -> list[str | None]:
        """The names [n]; None where there is none."""
        names: list[str | None] = [None] * len(self.good)
        if self.plan.graph is not None:
            texts = self._solutions.texts(self.plan.graph)
            for event, text in zip(self._event.tolist(), texts, strict=True):
                if text is not None and names[event] is None:
                    names[event] = text[1:-1]
        return names

    def _names(self, at: Indices) -> EventNames:
        """The names of some good events."""
        graph = self.plan.graph
        if graph is None:
            return EventNames.none(len(at))
        if isinstance(graph, ast.Var) and self._one_each:
            lane = self._solutions.columns.get(graph.name)
            if isinstance(lane, Lane) and lane.form is LaneForm.IRI:
                return EventNames.between(lane.prefix, lane.take(at).values, lane.suffix)
        texts = self.name_texts()
        return EventNames.of([texts[event] for event in at.tolist()])

    def time_texts(self) -> Sequence[str | None]:
        """The literals of the times of the good events."""
        if self._maker.times.scale != 1:  # integers are seconds
            return [time_literal(time) for time in self.time[self.good].tolist()]
        several, solutions = len(self._timed), self._solutions
        texts = [solutions.texts(terms[2]) for _, terms in self._timed]
        places = zip(
            self._time_place[self.good].tolist(), self.time[self.good].tolist(), strict=True
        )
        return [
            texts[place % several][place // several] if place < _NOWHERE else time_literal(time)
            for place, time in places
        ]
