"""What a followed run says while no batch has come."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from spaseq.runtime.spark.following.handover import Handover


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
