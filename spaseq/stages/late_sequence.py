"""Stage 2 of one of many queries: it is made when its rows may be a match."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.automaton.program.window import Counted
from spaseq.automaton.run.event_rows import EventRows
from spaseq.automaton.run.live_states import LiveStates, Wanted
from spaseq.automaton.run.waiting_limit import Excess, Member
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.knowledge_versions import Values
from spaseq.options import StageOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.inputs.stream_options import OnBad, ignore, warn
from spaseq.stages.answer_filters import Answering
from spaseq.stages.reorder_buffer import ReorderBuffer
from spaseq.stages.sequence import EVER, SequenceStage
from spaseq.stages.waiting_rows import WaitingRows
from spaseq.windows.window_runs import longest_wait

_NEVER = -(2**63)

EMPTY_STATE = b""
"""The snapshot of a stage that no rows have come to."""


class LateSequence:
    """A `SequenceStage`, whose methods and arguments it has; it gets rows that may be in a match.

    To make a stage takes a millisecond or two, and to call an evaluator a fifth of one. Of a
    thousand standing queries many never get a row, and most batches have rows of a query that can
    be in no match. These wait (`WaitingRows`), until somebody asks for partial matches.
    """

    def __init__(
        self,
        plan: QueryPlan,
        options: StageOptions = StageOptions(),
        knowledge: KnowledgeBase | None = None,
        on_bad: OnBad = warn,
        filters: Callable[[int | None], Answering] | None = None,
    ) -> None:
        self._make = partial(SequenceStage, plan, options, knowledge, on_bad, filters)
        self._again = partial(LateSequence, plan, options, knowledge, ignore, filters)
        self._made: SequenceStage | None = None
        self._knowledge: KnowledgeBase | None = None  # given by `use`
        self._values: Values = ()  # given by `use_values`
        window = plan.sequence.window
        self._horizon = 0 if isinstance(window, Counted) else window.horizon
        self._horizon += longest_wait(plan.inputs.windows)
        self._open_until: int | None = _NEVER  # see `waits_after`; None if it is not known
        self._is_quiet = False  # no rows have come since the last call of `advance`
        self._next_due = _NEVER  # see `sleeps`
        self._is_limited = options.most_waiting is not None
        self._waiting = WaitingRows.of(plan)
        self._buffer = ReorderBuffer(plan.patterns.columns)  # empty if no rows wait

    @property
    def _stage(self) -> SequenceStage:
        if self._made is None:
            self._made = self._make()
            if self._knowledge is not None:
                self._made.use(self._knowledge)
            self._made.use_values(self._values)
        return self._made

    def use_values(self, values: Values) -> None:
        """Evaluate with the values that the knowledge base has at different times."""
        self._values = values
        if self._made is not None:
            self._made.use_values(values)

    def use(self, knowledge: KnowledgeBase) -> None:
        """From now on evaluate with this knowledge base."""
        self._knowledge = knowledge
        if self._made is not None:
            self._made.use(knowledge)

    def push(self, rows: SolutionBatch | EventRows) -> None:
        """Take rows into the reorder buffer."""
        self._wake()
        if len(rows) and self._open_until is not None:
            last = rows.time if isinstance(rows, EventRows) else int(rows.time.max())
            self._open_until = max(self._open_until, last + self._horizon)
        if isinstance(rows, EventRows):
            self._wait_no_longer()
            self._stage.push(rows)
        elif self._waiting is not None:
            self._buffer.push(rows)
        elif len(rows):
            self._stage.push(rows)

    def _wake(self) -> None:
        self._is_quiet, self._next_due = False, _NEVER

    def sleeps(self, watermark: int) -> bool:
        """Whether `advance` to a watermark (ms) gives nothing and changes nothing.

        Most queries of a server wait for a window that closes in a while, and watermarks rise each
        second.
        """
        return watermark < self._next_due

    def _wait_no_longer(self) -> None:
        """Let the evaluator have all rows from now on; it takes single events in less time."""
        if self._waiting is not None:
            self._catch_up()
            for rows in self._buffer.take_all():
                self._stage.push(rows)
            self._waiting = None

    def advance(self, watermark: int, ahead: bool = False) -> Sequence[Answer]:
        """The answers that are certain by a watermark (ms)."""
        answers = self._advanced(watermark, ahead)
        if self._is_quiet:  # with rows at each call, it would be in vain
            self._next_due = self._due_next()
        self._is_quiet = True
        return answers

    def _due_next(self) -> int:
        if self._buffer:
            return _NEVER
        waiting = EVER if self._waiting is None else self._waiting.next_due
        return waiting if self._made is None else min(waiting, self._made.next_due())

    def _advanced(self, watermark: int, ahead: bool) -> Sequence[Answer]:
        waiting = self._waiting
        if waiting is None:
            return () if self._made is None else self._made.advance(watermark, ahead)
        if not self._buffer and waiting.passes(watermark):
            return ()
        rows = self._buffer.due(EVER if ahead else watermark)
        found = waiting.take(rows, watermark, at_once=self._may_be_too_many(waiting, rows))
        if found is None:
            return ()
        self._stage.push(found)
        return self._stage.advance(watermark, ahead)

    def _may_be_too_many(self, waiting: WaitingRows, rows: SolutionBatch) -> bool:
        """Whether rows must not wait, as a query may exceed the limit on partial matches."""
        if not self._is_limited:
            return False
        count = len(waiting) + len(rows)
        return not self._stage.has_room(count, lambda: waiting.most_of_member(rows))

    def _catch_up(self) -> None:
        """Let the evaluator have the rows that wait. No answers come of them."""
        if self._waiting is not None and self._waiting.is_ahead:
            self._wake()
            rows, watermark = self._waiting.release()
            if self._made is not None or len(rows):
                self._stage.push(rows)
                self._stage.advance(watermark, ahead=True)

    def close(self, open_end: int | None = None) -> Sequence[Answer]:
        """The remaining answers; all streams have ended. `open_end` is as for `SequenceStage`."""
        if open_end is not None and self._waiting is None:
            return () if self._made is None else self._made.close(open_end)
        if open_end is not None:
            return self.advance(open_end - 1, ahead=True)
        if not self._buffer:
            return () if self._made is None else self._made.close()
        answers = self.advance(self._buffer.last_time())
        rest = () if self._made is None else self._made.close()
        return [*answers, *rest] if rest else answers

    def partials(self) -> list[PartialAnswer]:
        """The partial matches whose windows have closed since the last call, in order."""
        return [] if self._made is None else self._made.partials()

    @property
    def exceeded(self) -> Mapping[Member, Excess]:
        """Where the query has had too many partial matches, or members of the family."""
        return {} if self._made is None else self._made.exceeded

    @property
    def suppressed(self) -> int:
        """The number of answers beyond the limit so far."""
        return 0 if self._made is None else self._made.suppressed

    @property
    def muted(self) -> Mapping[str, int]:
        """By the title of a query: the number of answers that MUTE has left out so far."""
        return {} if self._made is None else self._made.muted

    def live_runs(self) -> int:
        """The number of partial matches that wait."""
        self._catch_up()
        return 0 if self._made is None else self._made.live_runs()

    def waits(self) -> bool:
        """Whether what was pushed so far may give answers, or state may leave, as time passes."""
        if self._buffer or (self._waiting is not None and len(self._waiting)):
            return True
        return self._made is not None and self._made.waits()

    def waits_after(self, watermark: int) -> bool:
        """Whether answers may come, or state may leave, as time passes after a watermark (ms).

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

    def foreseen(self, until: int) -> Sequence[Answer]:
        """The answers by a watermark (ms), if nothing further comes; nothing changes."""
        return self.copied_into(self._again()).advance(until)

    def copied_into(self, other: LateSequence) -> LateSequence:
        """Another stage of the same plan, which goes on from the state of this one."""
        if self._knowledge is not None:
            other.use(self._knowledge)
        other.use_values(self._values)
        other.restore(self.snapshot())
        return other

    def live_states(self, wanted: Wanted | None = None) -> LiveStates:
        """Where the partial matches are now."""
        self._catch_up()
        return self._stage.live_states(wanted)

    def snapshot(self) -> bytes:
        """The state, for `restore`."""
        waiting = [] if self._waiting is None else self._waiting.waiting()
        rows = [*waiting, *self._buffer.batches()]
        return self._stage.snapshot(rows) if rows or self._made is not None else EMPTY_STATE

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot.

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
