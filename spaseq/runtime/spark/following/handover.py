"""Micro-batches on their way from Spark's thread to the caller's.

Spark waits until the caller is done with a batch: only then it is committed.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from spaseq.runtime.spark.following.checkpoint import Checkpoint
from spaseq.runtime.spark.rows.stage_rows import Item, items_of

_POLL_SECONDS = 0.2
_SETTLE_POLLS = 200


@dataclass(slots=True)
class Batch:
    """A micro-batch that the caller receives."""

    number: int
    items: list[tuple[int, Item]]  # by query, then in their order
    left: int | None = None  # see `Checkpoint.left_to_repeat`
    done: threading.Event = field(default_factory=threading.Event)


class _Stopped(Exception):
    """The caller has stopped; the present batch is not committed."""


class Handover:
    """Passes batches from Spark's thread to the caller's; Spark waits until they are done."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._begun = time.monotonic()
        self._has_given = False  # whether a batch has come that repeats none
        self.query: Any = None  # the StreamingQuery, once there is one
        # Not a SimpleQueue: CPython 3.11's waits for ever if a signal comes as its time is up.
        self.waiting: queue.Queue[Batch] = queue.Queue()
        self._stopped = threading.Event()

    def take(self, frame: Any, number: int) -> None:
        """For `foreachBatch`: returns when the batch may be committed."""
        self._checkpoint.offset_checks.note(number)
        rows = sorted(frame.collect(), key=lambda row: (row.query, row.order))
        items = [*items_of((r.query, r.order, r.payload) for r in rows)]
        batch = Batch(number, items, self._checkpoint.left_to_repeat(number))
        self._has_given |= batch.left is None
        self.waiting.put(batch)
        while not batch.done.wait(_POLL_SECONDS):
            # A caller that ends without closing the iterator must not wait for this thread.
            if self._stopped.is_set() or not threading.main_thread().is_alive():
                raise _Stopped

    def doing(self) -> str | None:
        """What Spark does before the first batch has come, for the user; None after that."""
        if self._has_given:
            return None
        status = self.query and self.query.status
        if status is None:
            what = "Spark prepares the queries"
        elif self._checkpoint.lacks_state:
            what = "the state is being rebuilt"
        elif status["isDataAvailable"]:
            what = "the first batch is running"
        elif status["isTriggerActive"]:
            what = "Spark plans the first batch"
        else:
            what = "no input has come"
        return f"{what}; no answer for {time.monotonic() - self._begun:.0f} s"

    def stop(self) -> None:
        """Stop waiting: further batches are not committed."""
        self._stopped.set()


def batches(query: Any, handover: Handover, stop: threading.Event) -> Iterator[Batch | None]:
    """Batches as they come; None while waiting. Asking for the next one commits the last one.

    A batch that is being computed when `stop` is set does not come, even if it fails (its workers
    may have got the same signal); the next run repeats it.
    """
    last = -1
    while not stop.is_set():
        try:
            batch = handover.waiting.get(timeout=_POLL_SECONDS)
        except queue.Empty:
            if not query.isActive:
                break
            yield None
            continue
        yield batch
        batch.done.set()
        last = batch.number
    _settle(query, last)
    error = query.exception()
    if error is not None and not stop.is_set():
        raise error


def _settle(query: Any, last: int) -> None:
    """Wait until Spark has committed and reported the batch with the number `last`."""
    for _ in range(_SETTLE_POLLS):
        if not query.isActive or not query.status["isTriggerActive"]:
            return
        progress = query.lastProgress
        if last < 0 or (progress is not None and progress["batchId"] >= last):
            return
        time.sleep(_POLL_SECONDS / 4)
