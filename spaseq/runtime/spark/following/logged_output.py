"""The answers of a followed run on their way to a broker, a database or a webhook.

A batch that Spark runs again gives the same answers. So the answers of a batch go into a log, by
one commit, unless the log has them; from there they are delivered. This module also cuts the last
batch of a run in which a query exceeds the limit on partial matches.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO, cast

from spaseq.algebra.answers import Answer
from spaseq.errors import RunError, TooManyWaiting
from spaseq.logs.segment_log import SegmentLog
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.live.answer_records import LoggedAnswer
from spaseq.runtime.live.deliveries import Deliveries, SinkSettings
from spaseq.runtime.live.delivery import Terms
from spaseq.runtime.spark.following.checkpoint import OutputPositions
from spaseq.runtime.spark.rows.stage_rows import Item
from spaseq.storage.checksums import read_json, with_checksum_line, write_durably

_LAST_ANSWERS_S = 10.0  # how long the end of a run waits for its output


class LoggedOutput:
    """Takes the answers of batches, and delivers them in a separate thread.

    Args:
        checkpoint: the directory of the run.
        sink: the output.
        sides: further output files; see `OutputPositions`.
        on_note: called when the output goes away, and comes back.

    Raises:
        UsageError: the address has an unknown part.
    """

    def __init__(
        self,
        checkpoint: Path,
        to: str,
        form: str,
        sides: Mapping[str, TextIO],
        on_note: Callable[[str], None],
    ) -> None:
        sink = SinkSettings(to, Terms(patient=False), form)
        sink.outlet()  # finds errors before anything is made
        self._sides, self._on_note = OutputPositions(checkpoint, sides), on_note
        self._notes: deque[str] = deque()
        self._records: list[bytes] = []
        self._place = checkpoint / "logged.json"
        self._log = SegmentLog(checkpoint / "answers")
        try:
            self._deliveries = Deliveries(checkpoint, self._log, {"out": sink}, self._notes.append)
        except BaseException:
            self._log.close()
            raise

    def begin(self, batch: int) -> None:
        """Before the first answer of a batch."""
        self._sides.begin(batch)
        self._records.clear()

    def write(self, plan: QueryPlan, answer: Answer) -> None:
        """Add an answer of a batch."""
        self._records.append(LoggedAnswer.of(plan, answer).to_bytes())

    def end(self, batch: int) -> None:
        """After the last answer of a batch. Returns when the answers are on disk.

        Raises:
            RunError: the output has failed, or the disk is full.
        """
        self._sides.end(batch)
        if self._records and not self._has(batch):
            self._note(batch)
            self._log.append(self._records)
            self._log.commit()
            self._deliveries.wake()
        self._log.drop_before(self._deliveries.next)
        self._tell()
        self._deliveries.check()

    def _has(self, batch: int) -> bool:
        """Whether the log has the answers of a batch, which is the last one or a new one."""
        if not self._place.exists():
            return False
        known, before = read_json(self._place, _pair)
        return known == batch and self._log.end > before

    def _note(self, batch: int) -> None:
        """Record where the answers of a batch begin in the log."""
        text = with_checksum_line(json.dumps([batch, self._log.end]))
        try:
            write_durably(self._place, text.encode())
        except OSError as error:
            raise RunError(f"cannot write {self._place}: {error.strerror}") from error

    def _tell(self) -> None:
        while self._notes:
            self._on_note(self._notes.popleft())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._deliveries.close(_LAST_ANSWERS_S)
        self._log.close()
        self._tell()
        if kind is None:
            self._deliveries.check()


def _pair(value: list[Any]) -> tuple[int, int]:
    batch, before = value
    return int(batch), int(before)


def until_failure(
    items: Sequence[tuple[int, Item]],
) -> tuple[Sequence[tuple[int, Item]], TooManyWaiting | None]:
    """(the items of a batch by query, without failures; the first failure).

    A query fails in each of its buckets by itself. No bucket gives an answer that ends at the first
    failure or later.
    """
    failures: dict[int, TooManyWaiting] = {}
    for _, item in items:
        if isinstance(item, TooManyWaiting):
            known = failures.setdefault(item.query, item)
            if item.instant < known.instant:
                failures[item.query] = item
    if not failures:
        return items, None
    kept = [(query, _before(failures.get(query), item)) for query, item in items]
    left = [each for each in kept if not isinstance(each[1], TooManyWaiting)]
    return left, min(failures.values(), key=lambda failure: failure.instant)


def _before(failure: TooManyWaiting | None, item: Item) -> Item:
    """The answers of a failed query that ended before its failure."""
    if failure is None:
        return item
    return [answer for answer in cast("Sequence[Answer]", item) if answer.end < failure.instant]
