"""Stage 2 of a unit (a single query or a family); it is made when its rows may have a match."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from spaseq import thresholds
from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.automaton.program.window import Counted
from spaseq.automaton.run.event_rows import EventRows, events_of
from spaseq.automaton.run.live_states import LiveStates
from spaseq.automaton.run.waiting_limit import Excess
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.knowledge_versions import Values
from spaseq.options import StageOptions
from spaseq.plan.families import Family, UnitPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.inputs.stream_options import OnBad, ignore, warn
from spaseq.stages.answer_filters import Answering, MemberAnswers
from spaseq.stages.sequence import EVER, SequenceStage
from spaseq.stages.sorting import ReorderBuffer
from spaseq.stages.waiting_rows import WaitingRows
from spaseq.windows.window_runs import longest_wait

FoundAnswers: TypeAlias = Mapping[int, Sequence[Sequence[Answer]]]
"""The answers of each query in some pieces, in order, by the query's number."""

_NEVER = -(2**63)

EMPTY_STATE = b""
"""The snapshot of a stage that has had no rows."""


class UnitSequence:
    """A `SequenceStage` whose answers belong to one or several queries, by number.

    It gets rows that may be in a match. Making a stage takes a millisecond or two, and calling an
    evaluator a fifth of one. Of a thousand standing queries many never get a row, and most batches
    have rows of a query that can be in no match. Such rows wait (`WaitingRows`) until a caller asks
    for partial matches.
    """

    def __init__(
        self,
        unit: UnitPlan,
        options: StageOptions = StageOptions(),
        knowledge: KnowledgeBase | None = None,
        on_bad: OnBad = warn,
    ) -> None:
        plan = unit.plan
        self._unit, self._given = unit, (options, knowledge)
        self._number: int | None = None  # of a single query
        self._members: MemberAnswers | None = None
        filters: Callable[[int | None], Answering] | None = None
        if unit.family is None:
            self._number, _ = unit.only
        else:
            self._members = MemberAnswers(unit.family, unit.plans)
            filters = self._members.with_limit
        self._make = partial(SequenceStage, plan, options, knowledge, on_bad, filters)
        self._made: SequenceStage | None = None
        self._values: Values = ()  # given by `use_values`
        window = plan.sequence.window
        self._horizon = 0 if isinstance(window, Counted) else window.horizon
        self._horizon += longest_wait(plan.inputs.windows)
        self._open_until: int | None = _NEVER  # see `waits_after`; None if it is not known
        self._is_quiet = False  # no rows have come since the last call of `advance`
        # Before this time (ms) `advance` changes nothing, unless rows come: most queries of a
        # server wait for a window that closes later.
        self.next_due = _NEVER
        self.on_wake: Callable[[], object] | None = None
        self._is_limited = options.most_waiting is not None
        self._waiting = WaitingRows.of(plan)
        self._buffer = ReorderBuffer(plan.patterns.columns)  # empty if no rows wait
        gpms, partition = plan.patterns.gpms, plan.sequence.partition
        self._variables = [*(gpm.variables for gpm in gpms), partition]  # of BARE last
        has_keys = all(gpm.certain.issuperset(partition) for gpm in gpms)
        self._takes_events = has_keys and not plan.inputs.windows and plan.changing is None
        self._answered = 0  # answers of the last call

    @property
    def _stage(self) -> SequenceStage:
        if self._made is None:
            self._made = self._make()
            self._made.use_values(self._values)
        return self._made

    def use(self, family: Family) -> None:
        """Continue with other members of the family; the unit's plans include the new ones."""
        if self._members is not None:
            self._unit = UnitPlan(self._unit.plans, family)
            self._members.use(family)

    def use_values(self, values: Values) -> None:
        """Evaluate with the values of the knowledge base at different times."""
        self._values = values
        if self._made is not None:
            self._made.use_values(values)

    def forget(self, number: int) -> None:
        """Return no further answers of a member."""
        if self._members is not None:
            self._members.forget(number)

    # --- rows -------------------------------------------------------------------------------------

    def push(self, rows: SolutionBatch | EventRows) -> None:
        """Take rows into the reorder buffer."""
        self._wake()
        if self._open_until is not None and len(rows):
            last = rows.time if isinstance(rows, EventRows) else int(rows.time.max())
            self._open_until = max(self._open_until, last + self._horizon)
        if isinstance(rows, EventRows):
            self._wait_no_longer()
            self._stage.push(rows)
        elif self._waiting is not None:
            self._buffer.push(rows)
        elif len(rows):
            self._give(rows)

    def _give(self, rows: SolutionBatch) -> None:
        """Give rows to the evaluator: few rows as single events, as columns have a fixed cost.

        If the last ones gave many answers, few rows become columns, too.
        """
        sizes = thresholds.current
        is_small = len(rows) <= sizes.rows_as_events and self._answered < sizes.columnar_matches
        if self._takes_events and is_small:
            for event in events_of(rows, self._variables):
                self._stage.push(event)
        else:
            self._stage.push(rows)

    def _wake(self) -> None:
        if self.on_wake is not None and self.next_due != _NEVER:
            self.on_wake()
        self._is_quiet, self.next_due = False, _NEVER

    def _wait_no_longer(self) -> None:
        """Give all rows to the evaluator from now on; it takes single events in less time."""
        if self._waiting is not None:
            self._catch_up()
            for rows in self._buffer.take_all():
                self._stage.push(rows)
            self._waiting = None

    def _catch_up(self) -> None:
        """Give the waiting rows to the evaluator. They give no answers."""
        if self._waiting is not None and self._waiting.is_ahead:
            self._wake()
            rows, watermark = self._waiting.release()
            if self._made is not None or len(rows):
                self._stage.push(rows)
                self._stage.advance(watermark, ahead=True)

    # --- answers ----------------------------------------------------------------------------------

    def advance(self, watermark: int, ahead: bool = False) -> FoundAnswers:
        """The answers that are certain by a watermark (ms); see `SequenceStage.advance`."""
        return self._by_number(self._advanced(watermark, ahead))

    def close(self, open_end: int | None = None) -> FoundAnswers:
        """The remaining answers; all streams have ended. `open_end` is as for `SequenceStage`."""
        return self._by_number(self._closed(open_end))

    def _by_number(self, answers: Sequence[Answer]) -> FoundAnswers:
        """The answers since the last call. A failed member gives no further answers."""
        if self._members is None:
            assert self._number is not None
            return {self._number: [answers]} if answers else {}
        by_number = self._members.take()
        for number, excess in self.exceeded().items():
            pieces = by_number.pop(number, [])
            kept = [[answer for answer in piece if answer.end < excess.instant] for piece in pieces]
            if any(kept):
                by_number[number] = [*filter(None, kept)]
        return by_number

    def _advanced(self, watermark: int, ahead: bool) -> Sequence[Answer]:
        answers = self._evaluated(watermark, ahead)
        if self._is_quiet:  # with rows at each call, it would be in vain
            self.next_due = self._due_next()
        self._is_quiet = True
        return answers

    def _due_next(self) -> int:
        due = self._buffer.first_times()
        due += [] if self._waiting is None else [self._waiting.next_due]
        due += [] if self._made is None else [self._made.next_due()]
        return min(due, default=EVER)

    def _evaluated(self, watermark: int, ahead: bool) -> Sequence[Answer]:
        waiting = self._waiting
        if waiting is None:
            return () if self._made is None else self._made.advance(watermark, ahead)
        if not self._buffer and waiting.passes(watermark):
            return ()
        rows = self._buffer.due(EVER if ahead else watermark)
        ready = waiting.take(rows, watermark, at_once=self._may_be_too_many(waiting, rows))
        if ready is None:
            return ()
        self._give(ready)
        answers = self._stage.advance(watermark, ahead)
        self._answered = len(answers)
        return answers

    def _may_be_too_many(self, waiting: WaitingRows, rows: SolutionBatch) -> bool:
        """Whether rows must not wait, as a query may exceed the limit on partial matches."""
        if not self._is_limited:
            return False
        count = len(waiting) + len(rows)
        return not self._stage.left_out.has_room(count, lambda: waiting.most_of_member(rows))

    def _closed(self, open_end: int | None) -> Sequence[Answer]:
        if open_end is not None and self._waiting is None:
            return () if self._made is None else self._made.close(open_end)
        if open_end is not None:
            return self._advanced(open_end - 1, ahead=True)
        if not self._buffer:
            return () if self._made is None else self._made.close()
        answers = self._advanced(self._buffer.last_time(), ahead=False)
        rest = () if self._made is None else self._made.close()
        return [*answers, *rest] if rest else answers

    def foreseen(self, number: int, until: int) -> Sequence[Answer]:
        """The answers of a query by a watermark (ms), if no rows follow; the state stays."""
        other = UnitSequence(self._unit, *self._given, on_bad=ignore)
        other.use_values(self._values)
        other.restore(self.snapshot())
        return [answer for piece in other.advance(until).get(number, ()) for answer in piece]

    def partials(self) -> list[PartialAnswer]:
        """The partial matches whose windows have closed since the last call; a family has none."""
        return [] if self._made is None else self._made.partials()

    # --- counts -----------------------------------------------------------------------------------

    def exceeded(self) -> Mapping[int, Excess]:
        """The instants at which queries exceeded the limit on partial matches, by the query's
        number.

        They have no answers that end there or later.
        """
        exceeded, members = {} if self._made is None else self._made.exceeded, self._members
        if members is None:
            assert self._number is not None
            return {self._number: exceeded[None]} if None in exceeded else {}
        return {n: exceeded[term] for term in exceeded if term for n in members.owners(term)}

    @property
    def suppressed(self) -> int:
        """Number of answers beyond the limit so far."""
        return 0 if self._made is None else self._made.suppressed

    @property
    def muted(self) -> Mapping[str, int]:
        """Number of answers that MUTE has left out so far, by the title of the query."""
        return {} if self._made is None else self._made.muted

    @property
    def has_state(self) -> bool:
        """Whether there may be partial matches."""
        return self._made is not None or bool(self._buffer) or bool(self._waiting)

    def live_runs(self) -> int:
        """The number of partial matches that wait."""
        self._catch_up()
        return 0 if self._made is None else self._made.live_runs()

    def live_states(self, number: int) -> LiveStates:
        """The states of the partial matches of a query."""
        self._catch_up()
        members = self._members
        if members is None:
            return self._stage.live_states()
        return self._stage.live_states(lambda key: members.is_of(number, key))

    def waits(self) -> bool:
        """Whether time alone may give answers, or let state leave."""
        if self._buffer or (self._waiting is not None and len(self._waiting)):
            return True
        return self._made is not None and self._made.waits()

    def waits_after(self, watermark: int) -> bool:
        """Whether time after a watermark (ms) alone may give answers, or let state leave.

        Unlike `waits`, this takes no time, and is true until all windows have surely closed.
        """
        if self._open_until is None:
            last = max(watermark, self._last_buffered(watermark))
            self._open_until = last + self._horizon if self.waits() else _NEVER
        return watermark < self._open_until

    def _last_buffered(self, watermark: int) -> int:
        if self._buffer:
            return self._buffer.last_time()
        return watermark if self._made is None else self._made.last_buffered(watermark)

    # --- state ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """The state, for `restore`."""
        waiting = [] if self._waiting is None else self._waiting.waiting()
        rows = [*waiting, *self._buffer.batches()]
        return self._stage.snapshot(rows) if rows or self._made is not None else EMPTY_STATE

    def restore(self, snapshot: bytes) -> None:
        """Restore from a snapshot.

        Raises:
            RunError: as `SequenceStage.restore`.
        """
        if snapshot == EMPTY_STATE:
            return
        self._wake()
        self._stage.restore(snapshot)
        self._open_until = None
        if self._waiting is not None:
            self._waiting.restored()
            for rows in self._stage.take_buffer():
                self._buffer.push(rows)
