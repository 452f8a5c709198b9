"""Stage 1 of a query: from event batches to the solutions of all its GPMs, without state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from spaseq.compiled.arrays import Bools, Int32s, Int64s
from spaseq.expr.doubles import doubles_of
from spaseq.gpm.evaluator import EventSolutions, GpmEvaluator
from spaseq.gpm.event_literals import with_events
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.kernels.keyed_ranges import some_repeats
from spaseq.gpm.solutions.solutions import only, taken, with_columns
from spaseq.gpm.solutions.value_columns import known_terms
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.lang.shapes import QUERY
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.measures import Measures
from spaseq.plan.query_plan import ChangingGraphs, QueryPlan
from spaseq.rdf.columns.distinct_rows import first_rows
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch
from spaseq.rdf.columns.term_columns import (
    UNBOUND,
    NumberColumn,
    RowSelection,
    TermColumn,
    TextArray,
)
from spaseq.rdf.inputs.stream_options import BadInput, OnBad, over_limit, warn
from spaseq.rdf.kernels.compact import compacted
from spaseq.rdf.terms.term import scoped_term
from spaseq.rdf.terms.times import format_time
from spaseq.rdf.terms.triple_terms import blank_nodes

_UNDERSCORE, _LESS = b"_<"


class JoinedQueries(Protocol):
    """Queries whose GPMs are evaluated together."""

    def add(self, stage: PatternStage) -> None:
        """Take the stage of one more query."""

    def solutions(self, stage: PatternStage, index: VerticalPartition) -> SolutionBatch | None:
        """The solutions of a stage on a whole batch; None if it must make them by itself."""


class PatternStage:
    """Evaluates every GPM of a plan on the events of its streams.

    It calls `on_bad` for each event that lacks an endpoint's answer, and for each event that
    exceeds one of the `limits`. An event of the second kind has no solution at all; `exceeding` has
    those of the last batch. `measures` are filled if they are given. Stages that share `joint` are
    evaluated together, unless they are measured.
    """

    def __init__(
        self,
        plan: QueryPlan,
        knowledge: KnowledgeBase,
        on_bad: OnBad = warn,
        limits: Limits = DEFAULT_LIMITS,
        measures: Measures | None = None,
        joint: JoinedQueries | None = None,
    ) -> None:
        self.plan, self._on_bad, self.limits = plan, on_bad, limits
        self.knowledge, self._measures = knowledge, measures
        self.exceeding: list[int] = []
        self._streams = {iri: i for i, iri in enumerate(plan.inputs.streams)}
        self._evaluators: dict[int, GpmEvaluator] = {}  # those that have been asked for
        options, evaluation = plan.expressions, plan.patterns.evaluation
        known = knowledge.only(plan.inputs.kbs) if plan.patterns.memberships else knowledge
        self.memberships = [
            (each.streams, GpmEvaluator(each.pattern, known, options, evaluation, limits))
            for each in plan.patterns.memberships
        ]
        alone = plan.changing is not None or plan.inputs.windows
        self._joint = joint = None if alone else joint
        if joint is not None and measures is None:
            joint.add(self)

    def evaluator(self, gpm: int) -> GpmEvaluator:
        """The evaluator of a GPM, by index."""
        known = self._evaluators.get(gpm)
        if known is None:
            plan, gpm_plan = self.plan, self.plan.patterns.evaluated[gpm]
            pattern = gpm_plan.correlation.core if gpm_plan.correlation else gpm_plan.pattern
            if plan.changing is not None and not plan.changing.by_windows:
                pattern = plan.changing.candidates[gpm]
            known = self._evaluators[gpm] = GpmEvaluator(
                pattern,
                self.knowledge.only(plan.inputs.kbs),
                plan.expressions,
                plan.patterns.evaluation,
                self.limits,
                self._measures,
            )
        return known

    def match(self, batch: EventBatch, index: VerticalPartition | None = None) -> SolutionBatch:
        """The solutions of the batch's events.

        If stage 2 counts events, those without a solution are rows, too: *bare* events.

        There are none if the query does not read the batch's stream. Stages that match one batch
        with one `index` evaluate each basic graph pattern that they have in common once.
        """
        self.exceeding = []
        if self._joint is not None and index is not None:
            joint = self._joint.solutions(self, index)
            if joint is not None:
                return joint
        stream = self._streams.get(batch.stream)
        if stream is None or not len(batch):
            return SolutionBatch.empty(self.plan.patterns.columns)
        index = index or VerticalPartition(batch)
        changing = self.plan.changing
        if changing is not None and not self._is_matched(changing, stream):
            return self._handed_on(changing, index, stream)
        rows = SolutionRows(self.plan, stream, index)
        for number, gpm in enumerate(self.plan.patterns.evaluated):
            if stream in gpm.streams:
                if self._measures is None:
                    solutions = self.solutions(number, index, stream)
                else:
                    with self._measures.inside("gpm", gpm.name) as measure:
                        solutions = self.solutions(number, index, stream)
                    measure.took(len(solutions.event), _bytes(solutions), len(batch))
                rows.add(number, solutions)
                self._add_bare_content(rows, number, solutions, len(batch))
        if self.plan.sequence.needs_instants:
            self._add_bare(rows, index, stream)
        self.exceeding = self._report(batch)
        return rows.batch(without=self.exceeding)

    def _brings_events(self, changing: ChangingGraphs, stream: int) -> bool:
        """Whether a stream brings events, and not changes of a graph."""
        return stream < len(self._streams) - len(changing.makers)

    def _is_matched(self, changing: ChangingGraphs, stream: int) -> bool:
        """Whether solutions are handed on, perhaps of the candidates, and not the events."""
        is_matched = changing.splits is not None or changing.by_windows
        return is_matched and self._brings_events(changing, stream)

    def _handed_on(
        self, changing: ChangingGraphs, index: VerticalPartition, stream: int
    ) -> SolutionBatch:
        """The events on which a GPM may match, for the stage that knows the graphs then."""
        from spaseq.gpm.handed_on import handed_on  # few queries need it

        events = np.arange(len(index.batch), dtype=np.int64)
        if self._brings_events(changing, stream) and not changing.every_event:
            of_streams = [
                self.evaluator(number).evaluate(index).event
                for number, gpm in enumerate(self.plan.patterns.gpms)
                if stream in gpm.streams
            ]
            events = np.unique(np.concatenate([events[:0], *of_streams]))
            self.exceeding = self._report(index.batch)
            events = np.setdiff1d(events, self.exceeding)
        return handed_on(index, events, stream, self.plan.patterns.columns)

    def take_exceeding(self) -> bool:
        """Whether an event has exceeded a limit since the last call or `match`."""
        evaluators = (*self._evaluators.values(), *(each for _, each in self.memberships))
        taken = [evaluator.take_exceeding() for evaluator in evaluators]
        return any(taken)

    def solutions(self, number: int, index: VerticalPartition, stream: int) -> EventSolutions:
        """The distinct solutions of a GPM, with the columns that stage 1 hands on."""
        gpm = self.plan.patterns.evaluated[number]
        solutions = self.evaluator(number).evaluate(index)
        if not len(solutions.event):
            return solutions
        content = number - len(self.plan.patterns.gpms)
        if content >= 0:
            operands = self.plan.patterns.contents[content].operands
            if operands is not None:
                from spaseq.gpm.operand_columns import of_groups  # few queries need it

                return of_groups(solutions, gpm, operands, index)
        if gpm.correlation is not None:
            certain = {v: solutions.columns[v] for v in gpm.certain}
            solutions = EventSolutions(solutions.event, certain, solutions.terms)
        solutions = distinct_solutions(solutions)
        if gpm.correlation is not None:
            solutions = with_events(solutions, index)
        if content >= 0:
            return with_events(solutions, index, self.plan.patterns.contents[content].predicates)
        if not set(self.plan.sequence.partition) <= gpm.certain:
            solutions = self._spread(solutions, index, stream)
        changing, private = self.plan.changing, gpm.private
        if changing is not None and changing.splits is not None:
            private -= changing.splits[number].handed_on
        return without_private(solutions, private)

    def _report(self, batch: EventBatch) -> list[int]:
        """Report the bad events of the batch; returns the ones that exceed a limit."""
        exceeding: dict[int, str] = {}
        for evaluator in (*self._evaluators.values(), *(each for _, each in self.memberships)):
            for failed in evaluator.services.take_failures():
                events = np.arange(len(batch)) if failed.event is None else failed.event
                for at in _descriptions(batch, events):
                    self._on_bad(BadInput(failed.url, None, f"no answer: {failed.reason}", at))
            exceeding.update(evaluator.take_exceeding())
        for i, at in zip(
            exceeding, _descriptions(batch, np.array([*exceeding], np.int64)), strict=True
        ):
            self._on_bad(over_limit(self.plan.identity.name, exceeding[i], at))
        return [*exceeding]

    def _add_bare_content(
        self, rows: SolutionRows, number: int, solutions: EventSolutions, events: int
    ) -> None:
        """Add a row for each event without a solution, if groups are made of them."""
        patterns = self.plan.patterns
        content = number - len(patterns.gpms)
        if content < 0 or patterns.contents[content].operands is None:
            return
        if self.plan.sequence.own_partition:  # the pattern says which events are in partitions
            return
        missing = np.ones(events, np.bool_)
        missing[solutions.event] = False
        bare = EventSolutions(np.flatnonzero(missing), {}, solutions.terms)
        rows.add(patterns.number_of(content, bare=True), bare)

    def _add_bare(self, rows: SolutionRows, index: VerticalPartition, stream: int) -> None:
        partition = self.plan.sequence.partition
        if not partition:
            rows.add(BARE, EventSolutions(rows.unseen(), {}, index.batch.terms))
            return
        for keys in self._keys(index, stream):
            rows.add(BARE, keys)

    def _keys(self, index: VerticalPartition, stream: int) -> Iterator[EventSolutions]:
        """The partitions of events: the values that GPMs without FILTERs give the variables."""
        partition = self.plan.sequence.partition
        for streams, membership in self.memberships:
            if stream in streams:
                solutions = membership.evaluate(index)
                if not all(v in solutions.columns for v in partition):
                    continue  # no solution binds them
                bound = np.logical_and.reduce([solutions.columns[v] >= 0 for v in partition])
                keys = {v: solutions.columns[v][bound] for v in partition}
                yield distinct_solutions(
                    EventSolutions(solutions.event[bound], keys, solutions.terms)
                )

    def _spread(
        self, solutions: EventSolutions, index: VerticalPartition, stream: int
    ) -> EventSolutions:
        """The solutions of a negated GPM that leaves partition variables unbound.

        A solution is repeated for each partition of its event that it is compatible with.
        """
        partition = self.plan.sequence.partition
        keys: dict[int, set[tuple[str, ...]]] = {}
        for bindings in self._keys(index, stream):
            columns = [[bindings.terms[c] for c in bindings.columns[v]] for v in partition]
            for event, key in zip(bindings.event.tolist(), zip(*columns, strict=True), strict=True):
                keys.setdefault(event, set()).add(key)
        picked: list[int] = []
        spread: dict[str, list[str]] = {v: [] for v in partition}
        for i, event in enumerate(solutions.event.tolist()):
            known = [_text(solutions, v, i) for v in partition]
            for texts in sorted(keys.get(event, ())):
                if all(o in (None, k) for o, k in zip(known, texts, strict=True)):
                    picked.append(i)
                    for v, text in zip(partition, texts, strict=True):
                        spread[v].append(text)
        columns_out = {v: c[picked] for v, c in solutions.columns.items()}
        columns_out.update({v: index.lexicon.encode(texts) for v, texts in spread.items()})
        return EventSolutions(solutions.event[picked], columns_out, solutions.terms)


def _bytes(solutions: EventSolutions) -> int:
    """The bytes of the columns of some solutions."""
    return int(solutions.event.nbytes) + sum(int(c.nbytes) for c in solutions.columns.values())


def _text(solutions: EventSolutions, variable: str, row: int) -> str | None:
    codes = solutions.columns.get(variable)
    return None if codes is None or codes[row] < 0 else solutions.terms[codes[row]]


def _descriptions(batch: EventBatch, events: Int64s) -> Iterator[str]:
    """Which events these are, in words."""
    for i, name in zip(events.tolist(), batch.names(events).texts(), strict=True):
        time = format_time(int(batch.time[i]))
        yield f"{name or 'an event'} of <{batch.stream}> at {time}"


class SolutionRows:
    """Collects solutions, all in the batch's lexicon, into one SolutionBatch."""

    def __init__(self, plan: QueryPlan, stream: int, index: VerticalPartition) -> None:
        self._plan, self._stream, self._events = plan, stream, index.batch
        self._terms = index.lexicon
        self._parts: list[tuple[int, EventSolutions]] = []
        self._texts: list[tuple[Int32s, TextArray]] = []  # codes, and their texts

    def add(self, gpm: int, bindings: EventSolutions) -> None:
        if len(bindings.event):
            self._parts.append((gpm, bindings))

    def unseen(self) -> Int64s:
        """The events without solutions so far."""
        seen = np.zeros(len(self._events), dtype=bool)
        for _, bindings in self._parts:
            seen[bindings.event] = True
        return np.flatnonzero(~seen)

    def batch(self, without: Sequence[int] = ()) -> SolutionBatch:
        """The rows, in order of events, without the rows of some events."""
        columns, events = self._plan.patterns.columns, self._events
        if without:
            self._parts = [(gpm, _except(rows, without)) for gpm, rows in self._parts]
        if not self._parts:
            return SolutionBatch.empty(columns)
        event = np.concatenate([b.event for _, b in self._parts])
        gpm = np.concatenate([np.full(len(b.event), g, np.int32) for g, b in self._parts])
        order: RowSelection = slice(None)
        if len(self._parts) > 1:
            order = np.argsort(event, kind="stable")
            event, gpm = event[order], gpm[order]
        read = {*columns.variables, *columns.numbers}
        known = {v: column for v in read if (column := self._known(v, order)) is not None}
        bound = {v for _, b in self._parts for v in b.columns if v in read and v not in known}
        codes = {v: self._codes(v, order) for v in bound}
        return SolutionBatch(
            np.full(len(event), self._stream, dtype=np.int32),
            events.time[event],
            events.k[event],
            gpm,
            events.names(event),
            {
                v: known[v] if v in known else self._column(codes.get(v), event)
                for v in columns.variables
            },
            {v: self._numbers(known.get(v), codes.get(v), len(event)) for v in columns.numbers},
        )

    def _known(self, variable: str, order: RowSelection) -> TermColumn | None:
        """The terms of a variable, in all rows in order, if they are known without their codes."""
        parts = list[TermColumn]()
        for _, bindings in self._parts:
            terms = known_terms(bindings.columns, variable)
            if variable not in bindings.columns:
                terms = TermColumn.unbound(len(bindings.event))
            if terms is None:
                return None
            parts.append(terms)
        return TermColumn.concat(parts).take(order) if any(map(len, parts)) else None

    def _codes(self, variable: str, order: RowSelection) -> Int32s:
        """The codes of a variable in all rows, in order."""
        parts = [
            b.columns[variable]
            if variable in b.columns
            else np.full(len(b.event), UNBOUND, np.int32)
            for _, b in self._parts
        ]
        codes = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return np.ascontiguousarray(codes[order])  # as kernels want it

    def _column(self, codes: Int32s | None, event: Int64s) -> TermColumn:
        if codes is None:
            return TermColumn.unbound(len(event))
        column = self._terms.shared(codes)
        if column is None:
            used, places = compacted(codes, len(self._terms))
            column = TermColumn(places, self._strings(used))
        return self._scoped(column, codes, event) if self._terms.base.has_blank else column

    def _strings(self, used: Int32s) -> TextArray:
        """The texts of codes; variables of several GPMs that have the same ones share them."""
        for codes, texts in self._texts:
            if np.array_equal(codes, used):
                return texts
        texts = self._terms.strings(used)
        self._texts.append((used, texts))
        return texts

    def _numbers(self, known: TermColumn | None, codes: Int32s | None, size: int) -> NumberColumn:
        if known is not None:
            numbers = known.numbers
            if numbers is not None:
                return numbers
            return doubles_of(known.codes, known.terms.to_pylist())
        return NumberColumn.unknown(size) if codes is None else doubles_of(codes, self._terms)

    def _scoped(self, column: TermColumn, codes: Int32s, event: Int64s) -> TermColumn:
        """The column with the answer labels of the events' blank nodes."""
        blank = may_be_blank(column.terms)
        if not blank.any():
            return column
        rows = np.flatnonzero(codes >= 0)
        rows = rows[blank[column.codes[rows]]]
        if not len(rows):
            return column
        texts, events = column.objects(), self._events
        made = (codes[rows] >= len(events.terms)).tolist()
        for row, e, is_made in zip(rows.tolist(), event[rows].tolist(), made, strict=True):
            time, k = int(events.time[e]), int(events.k[e])
            labels = self._blank_nodes(e) if is_made else None
            texts[row] = scoped_term(events.stream, time, k, texts[row], labels)
        return TermColumn.of(texts.tolist())

    def _blank_nodes(self, event: int) -> set[str]:
        """The blank nodes of an event, also inside its triple terms."""
        first, end = self._events.start[event : event + 2].tolist()
        codes = np.concatenate([self._events.s[first:end], self._events.o[first:end]])
        return {node for text in self._terms.take(codes) for node in blank_nodes(text)}


def may_be_blank(terms: TextArray) -> Bools:
    """Which of some terms are blank nodes or triple terms: they begin with `_` or `<<`."""
    if not len(terms):
        return np.zeros(0, np.bool_)
    _, offsets, data = terms.buffers()
    at = np.frombuffer(offsets, np.int64)[terms.offset : terms.offset + len(terms)]
    texts = np.frombuffer(data, np.uint8)
    first = texts[at]
    may_be: Bools = (first == _UNDERSCORE) | ((first == _LESS) & (texts[at + 1] == _LESS))
    return may_be


def _except(bindings: EventSolutions, events: Sequence[int]) -> EventSolutions:
    """The solutions of all but some events."""
    kept = ~np.isin(bindings.event, events)
    columns = {v: c[kept] for v, c in bindings.columns.items()}
    return EventSolutions(bindings.event[kept], columns, bindings.terms)


def without_private(bindings: EventSolutions, private: frozenset[str]) -> EventSolutions:
    """The solutions without private variables, unless an event has several solutions."""
    if not private or not len(bindings.event):
        return bindings
    columns = only(bindings.columns, [v for v in bindings.columns if v not in private])
    event = bindings.event
    if (event[1:] == event[:-1]).any():
        several = are_several(bindings)
        if several.any():
            given = taken(only(bindings.columns, private), several)
            told = {v: np.full(len(event), UNBOUND, np.int32) for v in given}
            for variable, codes in given.items():
                told[variable][several] = codes
            columns = with_columns(columns, told)
    return EventSolutions(bindings.event, columns, bindings.terms)


def are_several(bindings: EventSolutions) -> Bools:
    """The rows whose event has several solutions, in a family for one member."""
    event, member = bindings.event, _members(bindings)
    if member is None:
        new = np.ones(len(event) + 1, np.bool_)
        new[1:-1] = event[1:] != event[:-1]
        return ~(new[1:] & new[:-1])
    if not _some_repeat(event, member):
        return np.zeros(len(event), np.bool_)
    members = int(member.max()) + 1
    _, which, counts = np.unique(event * members + member, return_inverse=True, return_counts=True)
    several: Bools = counts[which] > 1
    return several


def _members(bindings: EventSolutions) -> Int32s | None:
    """A number of the member of a family for each solution; None if it is of no family."""
    if QUERY not in bindings.columns:
        return None
    members = known_terms(bindings.columns, QUERY)
    return bindings.columns[QUERY] if members is None else members.codes


def _some_repeat(event: Int64s, member: Int32s) -> bool:
    """Whether a member has several solutions on an event; events ascend."""
    return some_repeats(event, member, np.full(int(member.max()) + 1, -1))


def distinct_solutions(bindings: EventSolutions) -> EventSolutions:
    """The distinct solutions, as matches are a set."""
    event = bindings.event
    if len(event) < 2 or (np.diff(event) > 0).all():
        return bindings
    member = _members(bindings)
    # The members of a family have one solution of most events each.
    if member is not None and not _some_repeat(event, member):
        return bindings
    alone = np.ones(len(event) + 1, np.bool_)
    alone[1:-1] = event[1:] != event[:-1]
    kept = alone[1:] & alone[:-1]
    rows = np.flatnonzero(~kept)  # the only ones whose columns are read
    first = first_rows([event[rows], *taken(bindings.columns, rows).values()])
    if len(first) == len(rows):
        return bindings
    kept[rows[first]] = True
    return EventSolutions(event[kept], taken(bindings.columns, kept), bindings.terms)
