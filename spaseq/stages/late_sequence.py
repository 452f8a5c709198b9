"""Stage 2 of one of many queries: it is made when the first rows come."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.automaton.run.event_rows import EventRows
from spaseq.automaton.run.live_states import LiveStates, Wanted
from spaseq.automaton.run.waiting_limit import Excess, Member
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.stages.sequence import SequenceStage

NOTHING_CAME = b""
"""The snapshot of a stage that no rows have come to."""


class LateSequence:
    """A `SequenceStage`, whose methods it has. Without rows there are no answers and no state.

    To make a stage takes a millisecond or two. Of a thousand standing queries many never get a row.
    """

    def __init__(self, make: Callable[[], SequenceStage]) -> None:
        self._make = make
        self._made: SequenceStage | None = None
        self._knowledge: KnowledgeBase | None = None  # given by `use`

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
        if self._made is not None:
            self._made.push(rows)
        elif isinstance(rows, EventRows) or len(rows):
            self._stage.push(rows)

    def advance(self, watermark: int, ahead: bool = False) -> Sequence[Answer]:
        """The answers that are certain by a watermark (ms)."""
        return () if self._made is None else self._made.advance(watermark, ahead)

    def close(self) -> Sequence[Answer]:
        """The remaining answers; all streams have ended."""
        return () if self._made is None else self._made.close()

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
        return 0 if self._made is None else self._made.live_runs()

    def waits(self) -> bool:
        """Whether what was pushed so far may give answers without further rows."""
        return self._made is not None and self._made.waits()

    def live_states(self, wanted: Wanted | None = None) -> LiveStates:
        """Where the partial matches are now."""
        return self._stage.live_states(wanted)

    def snapshot(self) -> bytes:
        """The state, for `restore`."""
        return NOTHING_CAME if self._made is None else self._made.snapshot()

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot.

        Raises:
            RunError: as `SequenceStage.restore`.
        """
        if snapshot != NOTHING_CAME:
            self._stage.restore(snapshot)
