"""The events that templates make of the solutions of rows: triples, names and times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from spaseq.algebra.constants import Terms, composed_text
from spaseq.algebra.nodes import PatternTerm, is_reserved
from spaseq.compiled.arrays import Bools, Int32s, Int64s
from spaseq.lang.variables import variables_of
from spaseq.lift.cells import is_term
from spaseq.lift.lift_plan import LiftPlan
from spaseq.lift.row_solutions import RowSolutions
from spaseq.limits import Limits
from spaseq.rdf.events.graph_times import TimeTerms
from spaseq.rdf.inputs.sizes import literal_size, long_literal
from spaseq.rdf.terms.term import is_rdf_term, kind_of

_MOST_FIELDS = 3
_SHOWN = 100  # characters of a cell

Columns = Mapping[str, Sequence[str | None]]


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

    def without_value(self, variables: Iterable[str], columns: Columns, row: int) -> str:
        """The fields of the first variable that a solution does not bind, in words.

        It begins with a colon, and is empty if there is no such variable, or it has no fields.
        `columns` hold the solutions, `row` is the number of this one.
        """
        for name in variables:
            if _cell(columns, name, row) is not None:
                continue
            cells = [_shown(f, _cell(columns, f, row)) for f in self.fields(name)]
            if cells:
                said = ", ".join(cells[:_MOST_FIELDS])
                return f": {said}" if name not in self._binds else f": ?{name} has no value, {said}"
        return ""

    def of(self, variable: str) -> str:
        """The fields of a variable, in words: ` of field at`; empty if there are none."""
        fields = self.fields(variable)[:_MOST_FIELDS]
        return f" of field{'s' * (len(fields) > 1)} {', '.join(fields)}" if fields else ""


def _cell(columns: Columns, name: str, row: int) -> str | None:
    column = columns.get(name)
    return None if column is None else column[row]


def _shown(field: str, cell: str | None) -> str:
    if cell is None:
        return f"field {field} is empty"
    return f"field {field} is {cell if len(cell) <= _SHOWN else cell[:_SHOWN] + '...'}"


_OF = {"iri": 3, "bnode": 2, "triple": 1}
"""The possible positions of a term: 1 object, 2 also subject, 3 also predicate."""

NO_TIME = -(2**63)
"""The time of a row that has none."""


@dataclass(frozen=True, slots=True)
class MadeEvents:
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
    absent: list[int] = field(default_factory=list)  # further GRAPHs without triples


def joined(parts: Sequence[MadeEvents], terms: list[str]) -> MadeEvents:
    """The events of several GRAPHs of rows, by row; a row is bad if one of its events is."""
    size, several = len(parts[0].time), len(parts)
    event = np.concatenate([made.event * several + n for n, made in enumerate(parts)])
    order = np.argsort(event, kind="stable")
    s, p, o = (
        np.concatenate([getattr(made, name) for made in parts])[order] for name in ("s", "p", "o")
    )
    time = np.stack([made.time for made in parts], axis=1).ravel()
    code = np.stack([made.time_code for made in parts], axis=1).ravel()
    names = [made.names[row] for row in range(size) for made in parts]
    absent = {row * several + n for n, made in enumerate(parts) for row in made.absent}
    bad: dict[int, str] = {}
    for row in range(size):
        numbers = range(row * several, (row + 1) * several)
        reasons = [made.bad[row] for made in parts if row in made.bad]
        row_names = [names[number] for number in numbers if number not in absent]
        if not reasons and not row_names:
            reasons = ["no event of the row has a triple besides its time"]
        if not reasons and len(set(row_names)) < len(row_names):
            reasons = ["two GRAPHs of the row have one name"]
        if reasons:
            bad |= dict.fromkeys(numbers, reasons[0])
    return MadeEvents(terms, event[order], s, p, o, time, code, names, bad, sorted(absent))


class TemplateGraphs:
    """The template's triples for the solutions of one block."""

    def __init__(
        self,
        plan: LiftPlan,
        solutions: RowSolutions,
        times: Int64s | None,
        codes: dict[str, int],
        terms: TimeTerms,
    ) -> None:
        """`codes` of terms are for all templates of a lift; `terms` read its times."""
        self._terms = terms
        self._plan, self._found, self._times = plan, solutions, times
        self._codes, self._composed = codes, dict(plan.composed)
        self._columns: dict[PatternTerm, Int32s] = {}

    def made(self, event: Int64s, events: int, may_be_absent: bool) -> MadeEvents:
        """The events, given the event [m] of each solution.

        An event without triples is bad, or just absent.
        """
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
        report = _Unbound(self._plan, self._found.columns, event, bad)
        if self._plan.graph is not None:
            unnamed = [place for place, name in enumerate(names) if name is None]
            report.take(unnamed, "the event's name is unbound", [self._plan.graph])
        time, code = _times(matrix[2], timed, event, events, terms, report, self._terms)
        if self._times is not None:
            time = np.where(time == NO_TIME, self._times, time)
        of_times = [t.terms for t in template if t.terms[1] == self._plan.time_predicate]
        report.take(
            np.flatnonzero(time == NO_TIME).tolist(), "the event has no time", chain(*of_times)
        )
        owner = np.broadcast_to(event[:, None], valid.shape)
        content = np.bincount(owner[inside & ~timed], minlength=events)
        others = chain(*(t.terms for t in template if t.terms not in of_times))
        empty = np.flatnonzero(content == 0).tolist()
        s, p, o = (column[inside] for column in matrix)
        if may_be_absent:
            bad = {place: reason for place, reason in bad.items() if content[place]}
            return MadeEvents(terms, owner[inside], s, p, o, time, code, names, bad, empty)
        report.take(empty, "the event has no triple besides its time", others)
        return MadeEvents(terms, owner[inside], s, p, o, time, code, names, bad)

    def _code(self, text: str) -> int:
        return self._codes.setdefault(text, len(self._codes))

    def _column(self, term: PatternTerm) -> Int32s:
        """The codes [m] of a term of the template, -1 where it is unbound."""
        if term in self._columns:
            return self._columns[term]
        solutions, size = self._found, len(self._found)
        if isinstance(term, str):
            column = np.full(size, self._code(term), np.int32)
        elif term.name in self._composed:
            column = self._composed_column(self._composed[term.name])
        elif is_reserved(term.name):
            label = term.name.removeprefix("_:")
            numbers = range(solutions.first, solutions.first + size)
            column = np.array([self._code(f"_:l{n}{label}") for n in numbers], np.int32)
        else:
            texts = solutions.columns.get(term.name)
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

    def _composed_column(self, terms: Terms) -> Int32s:
        """The codes [m] of a triple term of these terms."""
        parts = [self._column(term).tolist() for term in terms]
        known = [*self._codes, None]  # the last is for unbound ones
        rows = zip(*parts, strict=True)
        texts = (composed_text((known[s], known[p], known[o])) for s, p, o in rows)
        return np.array([-1 if text is None else self._code(text) for text in texts], np.int32)

    @staticmethod
    def _valid(terms: list[str], s: Int32s, p: Int32s, o: Int32s) -> Bools:
        """Which triples are RDF and have no unbound variable."""
        kinds = np.zeros(len(terms) + 1, np.int8)  # the last is for unbound ones
        kinds[:-1] = [1 if t[0] == '"' else _OF[kind_of(t)] for t in terms]
        kinds[:-1] *= [is_term(t) for t in terms]
        valid: Bools = (kinds[s] >= 2) & (kinds[p] == 3) & (kinds[o] >= 1)
        return valid


class _Unbound:
    """Reports the events of a block that lack something, with the fields that this is due to."""

    def __init__(
        self,
        plan: LiftPlan,
        columns: dict[str, list[str | None]],
        event: Int64s,
        bad: dict[int, str],
    ) -> None:
        """`event` [m] is the event of each solution; `bad` gets the reasons, by event."""
        self._plan, self._reasons, self._columns = plan, FieldReasons(plan), columns
        self._event, self.bad = event, bad

    def take(self, places: list[int], reason: str, terms: Iterable[PatternTerm]) -> None:
        """Events are bad because a term of these is unbound, in their first solutions."""
        names = [t.name for t in terms if not isinstance(t, str) and not is_reserved(t.name)]
        for event in places:
            if event not in self.bad:
                first = int(np.searchsorted(self._event, event))
                more = self._reasons.without_value(names, self._columns, first)
                self.bad[event] = reason + more

    def fields_of(self, triple: int) -> str:
        """The fields of the object of a triple of the template, in words."""
        term = self._plan.template[triple].terms[2]
        return "" if isinstance(term, str) else self._reasons.of(term.name)


def refuse_long_literals(made: MadeEvents, limits: Limits) -> None:
    """Make the events bad that have a literal beyond the limit."""
    least = limits.literal_bytes // 4  # a character has up to four bytes
    for code, text in enumerate(made.terms):
        if len(text) > least:
            reason = long_literal(literal_size(text.encode()), limits)
            if reason is not None:
                for event in made.event[made.o == code].tolist():
                    made.bad.setdefault(event, reason)


def _names(
    graph: Int32s | None, event: Int64s, events: int, terms: list[str], bad: dict[int, str]
) -> list[str | None]:
    """The name of each event; with GRAPH each must have exactly one, an IRI."""
    if graph is None:
        return [None] * events
    names: list[str | None] = [None] * events
    for number, code in zip(event.tolist(), graph.tolist(), strict=True):
        if code < 0 or number in bad:
            continue
        text = terms[code]
        if kind_of(text) != "iri" or not is_rdf_term(text):
            bad[number] = f"the event's name is no IRI: {text}"
        elif names[number] is None:
            names[number] = text[1:-1]
        elif names[number] != text[1:-1]:
            bad[number] = f"two names of one event: <{names[number]}> and {text}"
    return names


def _times(
    objects: Int32s,
    timed: Bools,
    event: Int64s,
    events: int,
    terms: list[str],
    report: _Unbound,
    times: TimeTerms,
) -> tuple[Int64s, Int32s]:
    """(time in ms, code of its literal) of each event."""
    time = np.full(events, NO_TIME, np.int64)
    code = np.zeros(events, np.int32)
    solution, column = np.nonzero(timed)
    known: dict[int, int | None] = {}
    bad = report.bad
    numbers, texts = event[solution].tolist(), objects[solution, column].tolist()
    for number, text, triple in zip(numbers, texts, column.tolist(), strict=True):
        if text not in known:
            known[text] = times.read(terms[text])
        ms = known[text]
        if ms is None:
            bad.setdefault(number, f"unreadable time {terms[text]}{report.fields_of(triple)}")
        elif time[number] == NO_TIME:
            time[number], code[number] = ms, text
        elif time[number] != ms:
            bad.setdefault(
                number, f"two times of one event: {terms[int(code[number])]} and {terms[text]}"
            )
    return time, code
