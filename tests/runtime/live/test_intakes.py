"""An intake tells its source what is on disk; a source that has failed goes on behind that."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import chain, repeat
from pathlib import Path

from spaseq.connectors.address import Address
from spaseq.connectors.base import Intake, MessageSource
from spaseq.connectors.reconnecting import offer
from spaseq.errors import InputError
from spaseq.logs.stream_log import UNNUMBERED, Message, StreamLog
from spaseq.runtime.live.intakes import StreamIntake


class CountingSource(MessageSource):
    """Gives messages with the numbers that follow its mark; fails after `fails_after` of them."""

    def __init__(self, fails_after: int, told: list[int]) -> None:
        super().__init__(Address("", "", "numbers"))
        self._fails_after, self._told = fails_after, told

    def read(self, intake: Intake) -> None:
        self._told.append(0)

        def tell(count: int) -> None:
            self._told[-1] = count

        intake.tell_committed(tell)
        first = int(intake.marks.get("last", "0")) + 1
        numbers = range(first, first + self._fails_after)
        marked = [(b"%d" % n, (("last", str(n)),)) for n in numbers]
        offer(intake, [Message(text, 0, UNNUMBERED, marks=marks) for text, marks in marked])
        raise InputError("it has failed")


def drained(intake: StreamIntake, log: StreamLog, count: int) -> Sequence[bytes]:
    """The messages of an intake that go into a log, when there are so many."""
    end = time.monotonic() + 30
    found: list[Message] = []
    while len(found) < count:
        assert time.monotonic() < end
        some = intake.drain()
        if some:
            time.sleep(0.1)  # what is drained is not on disk yet
            log.append(some, 0)
            log.commit()
            intake.committed()
        found += some
        time.sleep(0.01)
    return [message.payload for message in found]


def test_a_source_that_fails_goes_on_behind_what_is_on_disk(tmp_path: Path) -> None:
    log, told, notes = StreamLog(tmp_path), list[int](), list[str]()
    made = [CountingSource(count, told) for count in (5, 4, 3)]
    rest = chain(made[1:], repeat(CountingSource(0, told)))
    intake = StreamIntake(made[0], log, lambda: None, notes.append, lambda: next(rest))
    assert drained(intake, log, 12) == [b"%d" % n for n in range(1, 13)]
    intake.stop()
    intake.join()
    assert told[:3] == [5, 4, 3]
    assert notes[0] == "it has failed; trying again"
    log.close()
