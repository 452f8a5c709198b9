"""Makes window events of events, and evaluates the GPMs that stand on windows.

The operator is between stage 1 and the sequence. It takes rows in order of time, and replaces the
rows with the content of windows by the solutions of GPMs on window events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from spaseq.algebra import nodes as n
from spaseq.algebra.entailment import entailed
from spaseq.algebra.groups import translate_group
from spaseq.algebra.nodes import expressions
from spaseq.algebra.substitution import substituted
from spaseq.algebra.translate import EVENT
from spaseq.compiled.arrays import Int64s
from spaseq.expr.temporal import moment_of_ms
from spaseq.expr.values import encode
from spaseq.gpm.evaluator import EventSolutions, GpmEvaluator
from spaseq.gpm.graphs.vertical_partition import WindowPartition
from spaseq.gpm.solution_rows import SolutionRows, distinct_solutions, without_private
from spaseq.gpm.solutions.lazy_columns import encoded
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.lang.variables import exists_uses
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.plan.gpm_plans import NOW
from spaseq.plan.pattern_plan import EachEventExtent, GpmPlan, KeptJoin, WindowSource
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch, first_rows
from spaseq.rdf.columns.term_columns import UNBOUND, TermColumn
from spaseq.rdf.inputs.stream_options import BadInput, OnBad, over_limit, warn
from spaseq.rdf.schema import Schema
from spaseq.rdf.terms.times import format_time
from spaseq.stateful import Parts, Stateful
from spaseq.windows.group_keeper import GroupKeeper
from spaseq.windows.join_keeper import JoinKeeper
from spaseq.windows.window_events import WindowEvent, WindowGraphs
from spaseq.windows.window_keeper import KeptWindow, WindowKeeper
from spaseq.windows.window_runs import EVER, ContentEvent, WindowRun, run_of

MOST_TOGETHER = 100_000
"""Number of windows' events that are evaluated together; an event counts in each of its windows."""

Key = tuple[str, ...]
Solution = tuple[str | None, ...]


class WindowOperator(Stateful):
    """The windows of one query.

    Rows come in order of time, all rows of one time together or in order of instants.
    """

    STATE = ("_runs", "_before", "_keepers")

    def __init__(
        self,
        plan: QueryPlan,
        knowledge: KnowledgeBase,
        on_bad: OnBad = warn,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._plan, self._on_bad, self._limits = plan, on_bad, limits
        self._windows = plan.inputs.windows
        self._partition = plan.sequence.partition
        self.graphs = WindowGraphs(plan)
        self._runs = Parts(self._run)  # by window and partition
        self._before: dict[tuple[int, int, Key], dict[Solution, None]] = {}
        contents = enumerate(plan.patterns.contents)
        self._contents = [plan.patterns.number_of(i) for i, w in contents if w.operands is None]
        self._kept = {w.gpm: w for w in plan.patterns.kept}
        self._keepers = [*self._window_keepers()]
        self._reached = -EVER
        self._known: KnowledgeBase | None = None
        self.use(knowledge)

    def use(self, knowledge: KnowledgeBase) -> None:
        """From now on evaluate with this knowledge base."""
        self.use_later(lambda: knowledge)

    def use_later(self, current: Callable[[], KnowledgeBase]) -> None:
        """Evaluate with the current knowledge base from now on; it has changed."""
        self._current, self._known = current, None
        self._evaluators = dict[int, GpmEvaluator]()
        for keeper in self._keepers:
            keeper.look_again()

    def _knowledge(self) -> KnowledgeBase:
        if self._known is None:
            self._known = self._current().only(self._plan.inputs.kbs)
        return self._known

    @property
    def has_tied_instants(self) -> bool:
        """Whether an event may make a window event of an earlier instant than its own or another's.

        Then all events of one time must come together.
        """
        return any(
            isinstance(w.extent, EachEventExtent) and (self._partition or len(w.streams) > 1)
            for w in self._windows
        )

    @property
    def next_due(self) -> int | None:
        """The time (ms) of the next window event, if no further event comes; None: never."""
        due = [run.next_due for run in self._runs.values()]
        due += [keeper.next_due for keeper in self._keepers]
        return min((time for time in due if time is not None), default=None)

    def advance(self, rows: SolutionBatch, until: int) -> SolutionBatch:
        """The rows for the sequence; no more rows come at or before the time `until` (ms)."""
        is_content = rows.gpm >= len(self._plan.patterns.gpms)
        of_events = np.isin(rows.gpm, self._contents)
        content = rows.take(np.flatnonzero(of_events)) if of_events.any() else None
        by_window: dict[int, list[WindowEvent]] = {}
        if is_content.any():
            until = max(until, int(rows.time[is_content].max()))
        for number, key, event in self._events(content):
            for window in self._of_content(number):
                run = self._runs[window, key]
                by_window.setdefault(window, []).extend(WindowEvent(key, c) for c in run.add(event))
        for (window, key), run in [*self._runs.items()]:
            by_window.setdefault(window, []).extend(WindowEvent(key, c) for c in run.due(until))
            if run.is_idle:
                del self._runs[window, key]
        given = [] if is_content.all() else [rows.take(np.flatnonzero(~is_content))]
        given += self._bare(content)
        for keeper in self._keepers:
            given += keeper.advance(rows, until, partial(self._evaluator, keeper.gpm))
        for window in sorted(by_window):
            events = sorted(by_window[window], key=lambda window_event: window_event.closed[:2])
            given += (self._rows(window, some) for some in _together(events))
        parts = [part for part in given if len(part)]
        return SolutionBatch.concat(parts, self._plan.patterns.columns)

    def close(self) -> SolutionBatch:
        """The rows of all windows that the end of the streams closes."""
        return self.advance(SolutionBatch.empty(self._plan.patterns.columns), EVER)

    def _window_keepers(self) -> Iterator[WindowKeeper]:
        """The kept groups and joins of all GPMs, by window; the first of a window counts."""
        plan, counted = self._plan, set[int]()
        for kept in plan.patterns.kept:
            changes: dict[int, set[str | None]] = {}
            for source in plan.patterns.gpms[kept.gpm].windows:
                changes.setdefault(source.window, set()).add(source.change)
            for window, wanted in changes.items():
                counts = plan.sequence.needs_instants and window not in counted
                counted.add(window)
                exceed = partial(self._exceeded, window)
                of = KeptWindow(plan, window, frozenset(wanted), exceed, self._limits, counts)
                if isinstance(kept, KeptJoin):
                    yield JoinKeeper(of, kept)
                else:
                    yield GroupKeeper(of, kept)

    def _exceeded(self, window: int, time: int, reason: str) -> None:
        at = f"the window {self._windows[window].name} at {format_time(time)}"
        self._on_bad(over_limit(self._plan.identity.name, reason, at))

    # --- content ----------------------------------------------------------------------------------

    def _events(self, rows: SolutionBatch | None) -> Iterator[tuple[int, Key, ContentEvent]]:
        """(number of the content, partition, event) in the order of events."""
        if rows is None:
            return
        texts = [rows.texts(v) for v in self._partition]
        keys = zip(*texts, strict=True) if texts else ((),) * len(rows)
        numbers = (rows.gpm - len(self._plan.patterns.gpms)).tolist()
        places = rows.time.tolist(), rows.k.tolist(), rows.stream.tolist()
        columns: tuple[list[Any], ...] = (*places, rows.event.texts(), rows.texts(EVENT))
        events = map(ContentEvent._make, zip(*columns, strict=True))
        given: list[Any] = [*zip(numbers, keys, events, strict=True)]
        yield from sorted(given, key=lambda each: self.graphs.order(each[2]))

    def _of_content(self, number: int) -> Iterator[int]:
        return (w for w, window in enumerate(self._windows) if window.content == number)

    def _run(self, place: tuple[int, Key]) -> WindowRun:
        return run_of(self._windows[place[0]].extent)

    def _bare(self, content: SolutionBatch | None) -> list[SolutionBatch]:
        """Bare rows of events that count. With partitions, stage 1 provides them."""
        if not self._plan.sequence.needs_instants or self._partition or content is None:
            return []
        contents = self._plan.patterns.contents
        number = content.gpm - len(self._plan.patterns.gpms)
        counted = np.zeros(len(content), np.bool_)
        for i, content_plan in enumerate(contents):
            counted |= (number == i) & np.isin(content.stream, content_plan.counted)
        rows = content.take(np.flatnonzero(counted))
        rows = rows.take(np.sort(first_rows([rows.time, rows.k, rows.stream])))
        unbound = dict.fromkeys(rows.values, TermColumn.unbound(len(rows)))
        bare = np.full(len(rows), BARE, np.int32)
        return [
            SolutionBatch(rows.stream, rows.time, rows.k, bare, rows.event, unbound, rows.numbers)
        ]

    # --- solutions --------------------------------------------------------------------------------

    def _rows(self, window: int, events: Sequence[WindowEvent]) -> SolutionBatch:
        """The solutions of all GPMs on some events of a window, in order of instants."""
        plan = self._plan
        sources = [
            (number, gpm, source)
            for number, gpm in enumerate(plan.patterns.gpms)
            for source in gpm.windows
            if source.window == window and number not in self._kept
        ]
        union = any(reads_union(gpm, plan.expressions.schema) for _, gpm, _ in sources)
        index = self.graphs.index(window, events, union)
        rows = SolutionRows(plan, len(plan.inputs.streams) + window, index)
        exceeding: dict[int, str] = {}
        for number, gpm in dict.fromkeys((number, gpm) for number, gpm, _ in sources):
            of_gpm = [source for i, _, source in sources if i == number]
            solutions = self._solutions(number, gpm, index, events, exceeding)
            solutions = self._changed(number, of_gpm, solutions, index, events)
            rows.add(number, without_private(distinct_solutions(solutions), gpm.private))
        if plan.sequence.needs_instants:
            key = self._key_codes(index, events)
            unseen = np.arange(len(events)) if self._partition else rows.unseen()
            columns = {v: codes[unseen] for v, codes in key.items()}
            rows.add(BARE, EventSolutions(unseen, columns, index.lexicon))
        self._report(window, events, exceeding)
        return rows.batch()

    def _report(
        self, window: int, events: Sequence[WindowEvent], exceeding: dict[int, str]
    ) -> None:
        for event, reason in sorted(exceeding.items()):
            self._exceeded(window, events[event].closed.time, reason)

    def _evaluator(self, number: int) -> GpmEvaluator:
        known = self._evaluators.get(number)
        if known is None:
            gpm = self._plan.patterns.gpms[number]
            pattern = gpm.correlation.core if gpm.correlation else gpm.pattern
            kept = self._kept.get(number)
            if isinstance(kept, KeptJoin):
                pattern = kept.pattern
            known = self._evaluators[number] = self._evaluator_of(pattern)
        return known

    def _evaluator_of(self, pattern: Any) -> GpmEvaluator:
        plan = self._plan
        given = plan.expressions, plan.patterns.evaluation, self._limits
        return GpmEvaluator(pattern, self._knowledge(), *given, on_windows=True)

    def _solutions(
        self,
        number: int,
        gpm: GpmPlan,
        index: WindowPartition,
        events: Sequence[WindowEvent],
        exceeding: dict[int, str],
    ) -> EventSolutions:
        """The distinct solutions of a GPM on window events, which agree with the partitions."""
        if gpm.needed and gpm.correlation is None:
            solutions = self._substituted(gpm, index, events, exceeding)
        else:
            evaluator = self._evaluator(number)
            solutions = evaluator.evaluate(index)
            exceeding.update(evaluator.take_exceeding())
            self._report_failures(evaluator, gpm)
        solutions = self._agreeing(solutions, index, events)
        if gpm.correlation is not None:
            columns = {v: solutions.columns[v] for v in gpm.certain}
            solutions = distinct_solutions(
                EventSolutions(solutions.event, columns, solutions.terms)
            )
            texts = {
                e: self.graphs.text(self._number(index), events[e]) for e in set(solutions.event)
            }
            codes = index.lexicon.encode([texts[e] for e in solutions.event])
            columns = {**solutions.columns, EVENT: codes}
            solutions = EventSolutions(solutions.event, columns, solutions.terms)
        return distinct_solutions(solutions)

    def _report_failures(self, evaluator: GpmEvaluator, gpm: GpmPlan) -> None:
        """Report the graphs of the knowledge base at endpoints that gave no answer."""
        for failed in evaluator.take_failures():
            at = f"a window event of {gpm.name}"
            self._on_bad(BadInput(failed.url, None, f"no answer: {failed.reason}", at))

    def _number(self, index: WindowPartition) -> int:
        return [window.name for window in self._windows].index(index.batch.stream)

    def _substituted(
        self,
        gpm: GpmPlan,
        index: WindowPartition,
        events: Sequence[WindowEvent],
        exceeding: dict[int, str],
    ) -> EventSolutions:
        """The solutions with the values of PARTITION BY and NOW put into the pattern."""
        places: dict[tuple[tuple[str, str], ...], list[int]] = {}
        for place, event in enumerate(events):
            known = dict(zip(self._partition, event.key, strict=True))
            known[NOW] = encode(moment_of_ms(event.closed.time))
            places.setdefault(tuple((v, known[v]) for v in gpm.needed), []).append(place)
        parts = list[EventSolutions]()
        for values, some in places.items():
            evaluator = self._evaluator_of(substituted(gpm.pattern, dict(values)))
            event_places: Int64s = np.array(some, np.int64)
            solutions = evaluator.evaluate(index.part(event_places))
            exceeding.update((some[e], why) for e, why in evaluator.take_exceeding().items())
            parts.append(
                EventSolutions(event_places[solutions.event], solutions.columns, solutions.terms)
            )
        return _in_order(parts, index)

    def _key_codes(
        self, index: WindowPartition, events: Sequence[WindowEvent]
    ) -> dict[str, np.ndarray[Any, Any]]:
        """The codes of the partition's values for each window event."""
        return {
            v: index.lexicon.encode([event.key[i] for event in events])
            for i, v in enumerate(self._partition)
        }

    def _agreeing(
        self, solutions: EventSolutions, index: WindowPartition, events: Sequence[WindowEvent]
    ) -> EventSolutions:
        """The solutions that agree with their partition, which they bind."""
        if not self._partition:
            return solutions
        columns = dict(solutions.columns)
        agree = np.ones(len(solutions.event), np.bool_)
        for v, codes in self._key_codes(index, events).items():
            partition_codes = codes[solutions.event]
            if v in columns:
                agree &= (columns[v] == UNBOUND) | (columns[v] == partition_codes)
            columns[v] = partition_codes
        return EventSolutions(
            solutions.event[agree], {v: c[agree] for v, c in columns.items()}, solutions.terms
        )

    def _changed(
        self,
        number: int,
        sources: Sequence[WindowSource],
        evaluated: EventSolutions,
        index: WindowPartition,
        events: Sequence[WindowEvent],
    ) -> EventSolutions:
        """The changes of a GPM's sources on one window: its solutions, the new or the gone ones."""
        if all(source.change is None for source in sources):
            return evaluated
        variables = sorted(evaluated.columns)
        wanted = {source.change for source in sources}
        now: list[dict[Solution, None]] = [{} for _ in events]
        columns = [[_text(evaluated, c) for c in evaluated.columns[v].tolist()] for v in variables]
        solutions = zip(*columns, strict=True) if columns else [()] * len(evaluated.event)
        for event, solution in zip(evaluated.event.tolist(), solutions, strict=True):
            now[event][solution] = None
        given: list[tuple[int, Solution]] = []
        window = sources[0].window
        for place, (event, current) in enumerate(zip(events, now, strict=True)):
            before = self._before.pop((number, window, event.key), {})
            chosen: dict[Solution, None] = dict(current) if None in wanted else {}
            if "NEW" in wanted:
                chosen.update(dict.fromkeys(s for s in current if s not in before))
            if "GONE" in wanted:
                chosen.update(dict.fromkeys(s for s in before if s not in current))
            given += ((place, solution) for solution in chosen)
            if current:
                self._before[number, window, event.key] = current
        changed = {
            v: encoded(index.lexicon, [solution[i] for _, solution in given])
            for i, v in enumerate(variables)
        }
        places = np.array([place for place, _ in given], np.int64)
        return EventSolutions(places, changed, index.lexicon)

    def _before_snapshot(self) -> None:
        for keeper in self._keepers:
            keeper.settle(partial(self._evaluator, keeper.gpm))


def _together(events: Sequence[WindowEvent]) -> Iterator[Sequence[WindowEvent]]:
    """Window events in parts that are evaluated together."""
    part: list[WindowEvent] = []
    size = 0
    for event in events:
        if part and size + len(event.closed.content) > MOST_TOGETHER:
            yield part
            part, size = [], 0
        part.append(event)
        size += len(event.closed.content)
    if part:
        yield part


def _text(solutions: EventSolutions, code: int) -> str | None:
    return None if code < 0 else solutions.terms[code]


def _in_order(parts: Sequence[EventSolutions], index: WindowPartition) -> EventSolutions:
    """Solutions on different events, in order of events."""
    event = np.concatenate([part.event for part in parts])
    order = np.argsort(event, kind="stable")
    names = dict.fromkeys(v for part in parts for v in part.columns)
    columns = {
        v: np.concatenate(
            [part.columns.get(v, np.full(len(part.event), UNBOUND, np.int32)) for part in parts]
        )[order]
        for v in names
    }
    return EventSolutions(event[order], columns, index.lexicon)


# --- Which GPMs look at the union graph of a window event, and not only at its events -------------


def reads_union(gpm: GpmPlan, schema: Schema | None = None) -> bool:
    """Whether a GPM reads triples outside EVENT."""
    return _reads(gpm.correlation.core if gpm.correlation else gpm.pattern, schema)


def _reads(pattern: n.Pattern, schema: Schema | None) -> bool:
    match pattern:
        case n.BGP(triples):
            return bool(triples)
        case n.Path():
            return True
        case n.EventBlock() | n.Graph() | n.Service():
            return False
    for expr in expressions(pattern):
        for use in exists_uses(expr):
            if _reads(entailed(translate_group(use.pattern), schema), schema):
                return True
    return any(_reads(inner, schema) for inner in n.children(pattern))
