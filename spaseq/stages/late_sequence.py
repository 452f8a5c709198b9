"""Stage 2 of one of many queries: it is made when its rows may be a match."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.automaton.run.event_rows import EventRows
from spaseq.automaton.run.live_states import LiveStates, Wanted
from spaseq.automaton.run.waiting_limit import Excess, Member
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import StageOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.inputs.bad_input import OnBad, warn
from spaseq.stages.answer_filters import Answering, Consecutive
from spaseq.stages.reorder_buffer import ReorderBuffer
from spaseq.stages.sequence import EVER, SequenceStage
from spaseq.stages.waiting_rows import WaitingRows

NOTHING_CAME = b""
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
        filters: Callable[[int | None, Consecutive], Answering] | None = None,
    ) -> None:
        self._make = partial(SequenceStage, plan, options, knowledge, on_bad, filters)
        self._made: SequenceStage | None = None
        self._knowledge: KnowledgeBase | None = None  # given by `use`
        self._is_limited = options.most_waiting is not None
        self._waiting = WaitingRows.of(plan)
        self._buffer = ReorderBuffer(plan.patterns.columns)  # empty if no rows wait

    @property
    def _stage(self) -> SequenceStage:
        if self._made is None:
            self._made = self._make()
            if self._knowledge is not None:
                self._made.use(self._knowledge)
        return self._made

    def use(self, knowledge: KnowledgeBase) -> None:
        """From now on evaluate with this knowledge base."""
        self._knowledge = knowledge
        if self._made is not None:
            self._made.use(knowledge)

    def push(self, rows: SolutionBatch | EventRows) -> None:
        """Take rows into the reorder buffer."""
        if isinstance(rows, EventRows):
            self._wait_no_longer()
            self._stage.push(rows)
        elif self._waiting is not None:
            self._buffer.push(rows)
        elif len(rows):
            self._stage.push(rows)

    def _wait_no_longer(self) -> None:
        """Let the evaluator have all rows from now on; it takes single events in less time."""
        if self._waiting is not None:
            self._catch_up()
            for rows in self._buffer.take_all():
                self._stage.push(rows)
            self._waiting = None

    def advance(self, watermark: int, ahead: bool = False) -> Sequence[Answer]:
        """The answers that are certain by a watermark (ms)."""
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
            rows, watermark = self._waiting.release()
            if self._made is not None or len(rows):
                self._stage.push(rows)
                self._stage.advance(watermark, ahead=True)

    def close(self) -> Sequence[Answer]:
        """The remaining answers; all streams have ended."""
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

    def live_runs(self) -> int:
        """The number of partial matches that wait."""
        self._catch_up()
        return 0 if self._made is None else self._made.live_runs()

    def waits(self) -> bool:
        """Whether what was pushed so far may give answers, or state may leave, as time passes."""
        if self._buffer or (self._waiting is not None and len(self._waiting)):
            return True
        return self._made is not None and self._made.waits()

    def live_states(self, wanted: Wanted | None = None) -> LiveStates:
        """Where the partial matches are now."""
        self._catch_up()
        return self._stage.live_states(wanted)

    def snapshot(self) -> bytes:
        """The state, for `restore`."""
        waiting = [] if self._waiting is None else self._waiting.waiting()
        rows = [*waiting, *self._buffer.batches()]
        return self._stage.snapshot(rows) if rows or self._made is not None else NOTHING_CAME

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot.

        Raises:
            RunError: as `SequenceStage.restore`.
        """
        if snapshot == NOTHING_CAME:
            return
        self._stage.restore(snapshot)
        if self._waiting is not None:
            self._waiting.restored()
            for rows in self._stage.take_buffer():
                self._buffer.push(rows)
