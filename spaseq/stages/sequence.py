"""Stage 2 of a query: solutions of graph patterns in, answers out.

A stage is a plain object over column batches. It knows neither Spark nor threads nor clocks: time
comes in with the watermark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NoReturn, Protocol

from spaseq import thresholds
from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.automaton.batch.match_builder import TooManyMatches
from spaseq.automaton.partition_sequencer import PartitionSequencer
from spaseq.automaton.run.event_rows import EventRows, batch_of
from spaseq.automaton.run.live_states import LiveStates, Wanted
from spaseq.automaton.run.machine import CorrelatedSolver
from spaseq.automaton.run.waiting_limit import Excess, Member
from spaseq.automaton.sequencer import sequencer
from spaseq.budget import Budget, spending
from spaseq.expr.env import ExpressionError
from spaseq.expr.uses import calls_functions
from spaseq.gpm.correlated import CorrelatedEvaluator
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.knowledge_versions import EARLIEST, Values
from spaseq.limits import Limits
from spaseq.memory import collection_paused
from spaseq.options import StageOptions
from spaseq.plan.evaluators import limits
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.inputs.stream_options import OnBad, over_limit, warn
from spaseq.stages import state_pickles
from spaseq.stages.answer_filters import AnswerFilters, Answering
from spaseq.stages.canonical_rows import CanonicalRows
from spaseq.stages.columnar_answers import MOST_BYTES, ColumnarAnswers, can_be_columns
from spaseq.stages.hopeless_rows import LeftOutRows
from spaseq.stages.machine_of_plan import expressions_of, machine_of, waiting_limit
from spaseq.stages.sorting import ReorderBuffer
from spaseq.stateful import Stateful
from spaseq.storage.safe_pickles import BROKEN

if TYPE_CHECKING:
    from spaseq.stages.changing_knowledge import ChangingKnowledge
    from spaseq.stages.partial_stage import PartialStage
    from spaseq.windows.window_operator import WindowOperator

EVER = 2**63 - 1
"""Later than every time (ms)."""

_NEVER = -(2**63)

_BEYOND_EVENTS = "an expression over several events, or over an answer"


class RowOperator(Protocol):
    """An operator between Order and Sequence: it takes rows in order, up to a watermark (ms).

    A few events come as single events, others as columns. It returns the rows for the next
    operator.
    """

    def events(self, events: Sequence[EventRows], watermark: int) -> Sequence[EventRows]: ...

    def rows(self, rows: SolutionBatch, watermark: int) -> SolutionBatch: ...


class SequenceStage(Stateful):
    """Buffers solutions, orders them, and turns them into answers.

    Rows may be pushed in any order; `advance` processes the rows at or before the watermark. The
    answers of one call are in order (docs/meaning.md#order-of-answers), and all end before the
    answers of the next call.

    `options.limit_per_event` bounds the answers of one end instant and one partition (of PARTITION
    BY); `suppressed` counts the others. Answers are the matches
    that HAVING, the selection strategy, AFTER MATCH and DISTINCT leave. Correlated GPMs are
    evaluated here: they read `knowledge`, and `on_bad` is called for each event for which an
    endpoint gave no answer. `filters` makes the replacement of the query's `AnswerFilters`, given
    the limit to apply. `left_out` are rows that the evaluator need not see.
    """

    STATE = ("_sequencer", "_filters", "_partial", "_changing", "_windows", "_excesses")

    def __init__(
        self,
        plan: QueryPlan,
        options: StageOptions = StageOptions(),
        knowledge: KnowledgeBase | None = None,
        on_bad: OnBad = warn,
        filters: Callable[[int | None], Answering] | None = None,
    ) -> None:
        self._plan, self._on_bad, self._limits = plan, on_bad, options.limits
        self._calls = any(calls_functions(expr) for expr in expressions_of(plan))
        known = KnowledgeBase.empty() if knowledge is None else knowledge
        given = plan, known, on_bad, options.limits
        self._windows = _windows(*given) if plan.inputs.windows else None
        window_of = None if self._windows is None else self._windows.graphs.event_of
        self._correlated = CorrelatedEvaluator(*given, window_of)
        limit, in_evaluator = options.limit_per_event, limits(plan)
        self._limit = waiting_limit(plan, options)
        solve, in_machine = self._correlated.solve, limit if in_evaluator else None
        self._machine = machine_of(plan, solve, in_machine, self._limit)
        self._sequencer = sequencer(self._machine)
        # The first matches that an evaluator finds must not depend on batches.
        canonical = CanonicalRows(plan) if self._machine.limit is not None else None
        filters = filters or partial(AnswerFilters, plan)
        self._filters = filters(None if in_evaluator else limit)
        self._columnar = (
            ColumnarAnswers(plan, self._machine) if can_be_columns(plan, limit) else None
        )
        self.left_out = LeftOutRows(plan, self._machine, self._sequencer, self._limit)
        self._partial = _partial(plan, self._correlated.solve) if plan.levels else None
        self._changing = _changing(*given) if plan.changing is not None else None
        if self._changing is not None:
            self._use_in_windows(known)
        possible: tuple[RowOperator | None, ...] = (
            self._partial,
            self.left_out if self.left_out.looks else None,
            canonical,
        )
        self._operators = [operator for operator in possible if operator is not None]
        self._buffer = ReorderBuffer(plan.patterns.columns)
        self._events: list[EventRows] = []  # pushed one by one
        self._is_closing = False
        self._values: Values = ()
        self._used, self._since = known, EARLIEST  # the present value, and its first time

    def use(self, knowledge: KnowledgeBase) -> None:
        """Evaluate with this knowledge base from now on; earlier solutions stay."""
        self._correlated.use(knowledge)
        if self._changing is not None:
            self._changing.use(knowledge)
        self._use_in_windows(knowledge)

    def _use_in_windows(self, knowledge: KnowledgeBase) -> None:
        """Let windows read this knowledge base from now on, with the present changing graphs."""
        if self._windows is not None and self._changing is not None:
            self._windows.use_later(self._changing.current)
        elif self._windows is not None:
            self._windows.use(knowledge)

    def use_values(self, values: Values) -> None:
        """Evaluate with the values of the knowledge base at different times.

        A value takes effect when time reaches it. Values may be given again, with others.
        """
        is_read = self._correlated.is_used or self._windows or self._changing
        self._values = values if is_read else ()
        of_used = [since for since, known in self._values if known is self._used]
        self._since = of_used[0] if of_used else EARLIEST
        if self._values and not of_used:
            self._take(values[0][1])

    def _take(self, value: KnowledgeBase) -> None:
        """Use a value of the knowledge base."""
        self.use(value)
        self._used = value

    def push(self, rows: SolutionBatch | EventRows) -> None:
        """Take rows into the reorder buffer."""
        if isinstance(rows, EventRows):
            self._events.append(rows)
        else:
            self._buffer.push(rows)

    def advance(self, watermark: int, ahead: bool = False) -> Sequence[Answer]:
        """The answers that are certain if no more rows come at or before `watermark` (ms).

        With `ahead`, no more rows come at or before the instants of all rows that were pushed
        either. All rows are processed, and the answers that end there are returned, too.

        Many answers of one call may be an `AnswerBatch`, which makes each when it is read.

        An expression that exceeds a limit is an error, as in SPARQL, and reported to `on_bad`.
        """
        limit = self._limit
        if limit is None:
            return self._budgeted(watermark, ahead)
        if limit.is_over:  # no answers follow those before the instant
            self._buffer.take_all()
            self._events.clear()
            return []
        return limit.before(self._budgeted(watermark, ahead))

    def _budgeted(self, watermark: int, ahead: bool) -> Sequence[Answer]:
        if not self._calls:
            return self._advanced(watermark, ahead)
        with spending(self._budget()):
            return self._advanced(watermark, ahead)

    def _budget(self) -> Budget:
        """The budget of expressions over several events; it reports each reason of a query once."""
        reported: set[tuple[str, str]] = set()

        def exceed(reason: str) -> NoReturn:
            name = self._filters.name
            if (name, reason) not in reported:
                reported.add((name, reason))
                self._on_bad(over_limit(name, reason, _BEYOND_EVENTS))
            raise ExpressionError(reason)

        return Budget(self._limits, exceed=exceed)

    def _advanced(self, watermark: int, ahead: bool) -> Sequence[Answer]:
        answers: list[Answer] = []
        for since, knowledge in self._values:
            if since > self._since:
                last = max([watermark, *self._last_times()]) if ahead else watermark
                if since > last:
                    break
                answers += self._evaluated(since - 1, False)
                self._take(knowledge)
                self._since = since
        rest = self._evaluated(watermark, ahead)
        return [*answers, *rest] if answers else rest

    def _last_times(self) -> list[int]:
        """The times (ms) of the last waiting row, and of each event."""
        return [
            *([self._buffer.last_time()] if self._buffer else []),
            *(event.time for event in self._events),
        ]

    def _evaluated(self, watermark: int, ahead: bool) -> Sequence[Answer]:
        """As `_advanced`, with the present knowledge base."""
        until, windows = EVER if ahead else watermark, self._windows
        if windows is not None and windows.has_tied_instants and not self._is_closing:
            until = watermark
        events: Sequence[EventRows] = [e for e in self._events if e.time <= until]
        if len(events) == len(self._events):
            self._events.clear()
        elif events:
            self._events = [e for e in self._events if e.time > until]
        few = len(events) <= thresholds.current.single_events
        if windows is None and few and not self._buffer:
            for operator in self._operators:
                events = operator.events(events, watermark)
            return self._filters.answers(self._sequencer.run_events(events, watermark))
        if events:
            self._buffer.push(self._columns_of(events))
        rows, changing = self._buffer.due(until), self._changing
        with collection_paused():
            if windows is not None:
                reached = int(rows.time.max(initial=watermark))
                if changing is not None:
                    return self._with_changes(windows, changing, rows, reached)
                rows = windows.advance(rows, reached)
            elif changing is not None:
                return self._matched(changing, rows, watermark)
            return self._taken(rows, watermark)

    def _matched(
        self, changing: ChangingKnowledge, rows: SolutionBatch, watermark: int
    ) -> Sequence[Answer]:
        """The answers for events that are matched with changing graphs."""
        if not self._correlated.is_used:
            return self._taken(changing.matched(rows), watermark)
        answers: list[Answer] = []
        for piece in changing.steps(rows):
            if len(piece):
                self._correlated.use(changing.current())
                answers += self._taken(piece, min(watermark, int(piece.time.max()) - 1))
        return [*answers, *self._taken(SolutionBatch.empty(self._plan.patterns.columns), watermark)]

    def _taken(self, rows: SolutionBatch, watermark: int) -> Sequence[Answer]:
        """The answers for rows, which follow all earlier rows."""
        for operator in self._operators:
            rows = operator.rows(rows, watermark)
        return self._answers(rows, watermark)

    def _with_changes(
        self, windows: WindowOperator, changing: ChangingKnowledge, rows: SolutionBatch, until: int
    ) -> list[Answer]:
        """The answers of windows beside graphs that change, up to a time (ms).

        A window that closes before a change sees the graphs without it; at its time, with it.
        """
        answers: list[Answer] = []
        nothing = SolutionBatch.empty(self._plan.patterns.columns)

        def take(some: SolutionBatch, closing: int) -> None:
            due = windows.next_due
            if not len(some) and (due is None or due > closing):
                return
            if self._correlated.is_used:
                self._correlated.use(changing.current())
            solutions = windows.advance(some, closing)
            if len(solutions):
                answers.extend(self._taken(solutions, int(solutions.time.max()) - 1))

        def before_change(time: int) -> None:
            take(nothing, time - 1)
            windows.use_later(changing.current)

        for piece in changing.steps(rows, before_change, until):
            if len(piece):
                take(piece, int(piece.time.max()))
        take(nothing, until)
        return [*answers, *self._taken(nothing, until)]

    def _answers(self, rows: SolutionBatch, watermark: int) -> Sequence[Answer]:
        """The answers for rows, which follow all earlier rows."""
        columnar, sequencer = self._columnar, self._sequencer
        close = sequencer.next_close
        if not len(rows) and (close is None or close > watermark):
            return ()  # nothing waits for the watermark
        if columnar is None or isinstance(sequencer, PartitionSequencer) or not len(rows):
            return self._filters.answers(sequencer.run(rows, watermark))
        if not sequencer.can_enumerate(rows):
            return self._filters.answers(sequencer.run(rows, watermark))
        answers: Sequence[Answer] = []
        try:
            for numbered in sequencer.enumerated(rows, MOST_BYTES):
                made = columnar.answers(numbered)
                if made is not None:
                    answers = self._filters.of_columns(made)
                else:
                    matches = chain.from_iterable(map(numbered.built, numbered.pieces))
                    answers = self._filters.answers(matches)
        except TooManyMatches as error:
            raise self._filters.too_many(error.events) from None
        return answers

    def _columns_of(self, events: Sequence[EventRows]) -> SolutionBatch:
        rows, patterns = [row for event in events for row in event.rows()], self._plan.patterns
        variables = [*patterns.row_variables, self._plan.sequence.partition]
        return batch_of(rows, variables, patterns.columns)

    def close(self, open_end: int | None = None) -> Sequence[Answer]:
        """The remaining answers; all streams have ended.

        With `open_end`, the greatest time (ms) of all events, the end closes no window.
        """
        self._is_closing = True
        if open_end is not None:
            return self.advance(open_end - 1, ahead=True)
        parts = [self.advance(since) for since, _ in self._values if since > self._since]
        if self._buffer or self._events:
            parts.append(self.advance(max(self._last_times())))
        with spending(self._budget()):
            parts.append(self._closed_windows())
            if self._partial is not None:
                self._partial.close()
            parts.append(self._filters.answers(self._sequencer.close()))
        given = [answers for answers in parts if answers]
        return given[0] if len(given) == 1 else [*chain.from_iterable(given)]

    def _closed_windows(self) -> Sequence[Answer]:
        """The answers for the windows that the end of the streams closes."""
        if self._windows is None:
            return []
        if self._changing is not None:
            nothing = SolutionBatch.empty(self._plan.patterns.columns)
            return self._with_changes(self._windows, self._changing, nothing, EVER)
        rows = self._windows.close()
        return self._taken(rows, int(rows.time.max())) if len(rows) else []

    def partials(self) -> list[PartialAnswer]:
        """The partial matches whose windows have closed since the last call, in order.

        There are none unless the plan has levels.
        """
        return [] if self._partial is None else self._partial.take()

    @property
    def exceeded(self) -> Mapping[Member, Excess]:
        """The instant after which the query, or a member of the family, had too many partial
        matches.

        The answers of a single query end there. The answers of a member do not.
        """
        return {} if self._limit is None else self._limit.exceeded

    @property
    def suppressed(self) -> int:
        """Number of answers beyond the limit so far."""
        return self._filters.suppressed + self._sequencer.suppressed

    @property
    def muted(self) -> Mapping[str, int]:
        """Number of answers that MUTE has left out so far, by the title of the query."""
        return self._filters.muted

    def live_runs(self) -> int:
        """The number of partial matches that wait."""
        partial = 0 if self._partial is None else self._partial.live()
        return self._sequencer.live_runs() + partial

    def waits(self) -> bool:
        """Whether earlier pushes may give answers without further rows."""
        if self._buffer or self._events or self.live_runs():
            return True
        if self._windows is not None and self._windows.next_due is not None:
            return True
        return any(self.live_states().waiting.values())  # matches whose windows are open

    def next_due(self) -> int:
        """The time (ms) before which `advance` changes nothing, unless rows are pushed."""
        if self._partial is not None:
            return _NEVER
        window = None if self._windows is None else self._windows.next_due
        closes = (close for close in (self._sequencer.next_close, window) if close is not None)
        rows = (*self._buffer.first_times(), *(event.time for event in self._events))
        return min(chain(closes, rows), default=EVER)

    def last_buffered(self, watermark: int) -> int:
        """The time (ms) of the last row in the reorder buffer; `watermark` if there is none."""
        return self._buffer.last_time() if self._buffer else watermark

    def live_states(self, wanted: Wanted | None = None) -> LiveStates:
        """The states of the partial matches, for all partitions or for those wanted."""
        return self._sequencer.live_states(wanted)

    # --- state ------------------------------------------------------------------------------------

    def snapshot(self, rows: Sequence[SolutionBatch] = ()) -> bytes:
        """The stage's state, for `restore` on a stage of the same plan.

        `rows` come before those in the reorder buffer, as if they had been pushed.
        """
        if self._events:
            self._buffer.push(self._columns_of(self._events))
            self._events.clear()
        waiting = [each.compact() for each in (*rows, *self._buffer.batches())]
        state = waiting, *super().snapshot()
        head = state_pickles.STATE_VERSION, self._plan.signature.fingerprint
        return state_pickles.dumps(head, state, self._machine)

    def take_buffer(self) -> list[SolutionBatch]:
        """Remove and return the rows in the reorder buffer."""
        return self._buffer.take_all()

    def restore(self, snapshot: bytes) -> None:
        """Restore from a snapshot.

        Raises:
            OtherStateError: it belongs to another query, or to an incompatible version. The stage
                is unchanged.
            RunError: it is damaged, or names classes that are no state.
        """
        try:
            pickled = state_pickles.StatePickle(snapshot)
            pickled.check_head(self._plan)
            waiting, *state = pickled.state(self._machine)
            super().restore(state)
            for rows in waiting:
                self._buffer.push(rows)
        except BROKEN as error:
            raise state_pickles.damaged(self._plan, error) from error

    def _after_restore(self) -> None:
        self.left_out.restored()

    @property
    def _excesses(self) -> list[tuple[Member, int, int, int]]:
        return [(m, *each.instant, each.count) for m, each in self.exceeded.items()]

    @_excesses.setter
    def _excesses(self, excesses: list[tuple[Member, int, int, int]]) -> None:
        if self._limit is not None:
            self._limit.room = -1  # unknown: partial matches are counted next
            for member, time, k, count in excesses:
                self._limit.exceeded[member] = Excess((time, k), count)


# Operators that few queries have, and whose imports others need not pay


def _windows(
    plan: QueryPlan, knowledge: KnowledgeBase, on_bad: OnBad, limits: Limits
) -> WindowOperator:
    from spaseq.windows.window_operator import WindowOperator

    return WindowOperator(plan, knowledge, on_bad, limits)


def _partial(plan: QueryPlan, solve: CorrelatedSolver) -> PartialStage:
    from spaseq.stages.partial_stage import PartialStage

    return PartialStage(plan, solve)


def _changing(
    plan: QueryPlan, knowledge: KnowledgeBase, on_bad: OnBad, limits: Limits
) -> ChangingKnowledge:
    from spaseq.stages.changing_knowledge import ChangingKnowledge

    return ChangingKnowledge(plan, knowledge, on_bad, limits)
