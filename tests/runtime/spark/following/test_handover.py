"""Batches between Spark's thread and the caller's: notes while none has come, and the end."""

from __future__ import annotations

import signal
import threading
import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest.mock import ANY

import pytest

from spaseq.runtime.spark.following.handover import Batch, Handover, batches


@dataclass
class Repeating:
    """A checkpoint with some batches to repeat."""

    left: int | None = None
    offset_checks: Any = field(default_factory=lambda: SimpleNamespace(note=lambda number: None))

    @property
    def lacks_state(self) -> bool:
        return self.left is not None

    def left_to_repeat(self, number: int) -> int | None:
        return self.left


def handover_of(checkpoint: Any, available: bool = False, active: bool = False) -> Handover:
    handover = Handover(checkpoint)
    status = {"isDataAvailable": available, "isTriggerActive": active}
    handover.query = SimpleNamespace(status=status)
    return handover


def begin_of(handover: Handover) -> str:
    text = handover.doing()
    assert text is not None
    return text.partition(";")[0]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            {"checkpoint": Repeating(), "available": True, "active": True},
            "the first batch is running",
        ),
        ({"checkpoint": Repeating(), "active": True}, "Spark plans the first batch"),
        ({"checkpoint": Repeating()}, "no input has come"),
        ({"checkpoint": Repeating(3), "available": True}, "the state is being rebuilt"),
    ],
)
def test_the_user_hears_what_the_run_does(given: dict[str, Any], text: str) -> None:
    assert begin_of(handover_of(**given)) == text
    assert begin_of(Handover(given["checkpoint"])) == "Spark prepares the queries"


@pytest.mark.parametrize("left", [None, 0])
def test_there_is_nothing_more_to_say_once_a_new_batch_has_come(left: int | None) -> None:
    handover = handover_of(Repeating(left))
    frame = SimpleNamespace(collect=list)
    taking = threading.Thread(target=handover.take, args=(frame, 7))
    taking.start()
    batch = handover.waiting.get(timeout=30)
    assert (handover.doing() is None) == (left is None)
    batch.done.set()
    taking.join()


@dataclass
class Busy:
    """A query that computes a batch for ever; it has reported a few."""

    reported: int
    failure: Exception | None = None
    isActive: bool = True
    asked: int = 0

    @property
    def status(self) -> dict[str, bool]:
        return {"isDataAvailable": True, "isTriggerActive": True}

    @property
    def lastProgress(self) -> dict[str, int]:
        self.asked += 1
        return {"batchId": self.reported + self.asked // 3}

    def exception(self) -> Exception | None:
        return self.failure


def test_a_stopped_run_waits_for_the_commit_of_its_last_batch_alone() -> None:
    handover, stop, query = Handover(Repeating()), threading.Event(), Busy(reported=4)
    handover.waiting.put(Batch(5, []))
    coming = batches(query, handover, stop)
    assert next(coming) == Batch(5, [], done=ANY)
    stop.set()
    assert [*coming] == []
    assert query.asked == 3


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_batch_that_fails_after_the_stop_is_left_to_the_next_run(is_stopped: bool) -> None:
    handover, stop = Handover(Repeating()), threading.Event()
    coming = batches(Busy(0, ValueError("lost"), isActive=False), handover, stop)
    if is_stopped:
        stop.set()
        assert [*coming] == []
    else:
        with pytest.raises(ValueError, match="lost"):
            next(coming)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers")
def test_a_signal_that_comes_as_the_wait_ends_does_not_stop_the_run() -> None:
    handover, stop = Handover(Repeating()), threading.Event()

    def slow(*_given: object) -> None:
        time.sleep(0.5)  # longer than a wait for a batch

    rescue = threading.Timer(20, handover.waiting.put, [Batch(1, [])])
    rescue.start()
    before = signal.signal(signal.SIGALRM, slow)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        assert next(batches(Busy(0), handover, stop)) is None
    finally:
        signal.signal(signal.SIGALRM, before)
        rescue.cancel()
