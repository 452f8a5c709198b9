"""What an intake says of a source that is away, or fails."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from pathlib import Path

from spaseq.connectors.address import Address
from spaseq.connectors.base import Intake, MessageSource
from spaseq.errors import InputError
from spaseq.logs.messages import UNNUMBERED, Message
from spaseq.logs.stream_log import StreamLog
from spaseq.runtime.live.acceptance import MessageAcceptance
from spaseq.runtime.live.heartbeats import Heartbeats, RunClock
from spaseq.runtime.live.intakes import StreamIntake


class Flaky(MessageSource):
    """Fails at first; then it is away for a while, twice."""

    attempts = 0

    def __init__(self, steps: list[threading.Event]) -> None:
        super().__init__(Address("flaky", "h", "x"))
        self._steps = steps

    def read(self, intake: Intake) -> None:
        Flaky.attempts += 1
        if Flaky.attempts == 1:
            raise InputError("nobody answers")
        intake.lost()
        self._steps[0].wait(20)
        intake.connected()
        self._steps[1].wait(20)
        intake.lost()
        self._steps[2].wait(20)
        intake.connected()
        intake.offer([Message(b"", 0, UNNUMBERED)])
        while not intake.stopped:
            time.sleep(0.01)


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_source_that_fails_or_is_away_is_a_problem_until_it_is_back(tmp_path: Path) -> None:
    steps, notes = [threading.Event() for _ in range(3)], list[str]()
    log = StreamLog(tmp_path / "log")
    Flaky.attempts = 0
    intake = StreamIntake(Flaky(steps), log, lambda: None, notes.append, again=lambda: Flaky(steps))
    until(lambda: "nobody answers" in intake.problem)
    until(lambda: "connection lost" in intake.problem)
    before = time.monotonic()
    steps[0].set()
    until(lambda: "connected again" in notes[-1])
    until(lambda: intake.problem == "")
    assert intake.since is not None
    assert before < intake.since <= time.monotonic()
    steps[1].set()
    until(lambda: "connection lost" in intake.problem)
    assert intake.since is None
    steps[2].set()
    until(lambda: intake.problem == "")
    intake.stop()
    intake.join()
    log.close()


class Faulty(MessageSource):
    """Has a fault that nobody expected, at first; then it brings a message."""

    attempts = 0

    def __init__(self) -> None:
        super().__init__(Address("faulty", "h", "x"))

    def read(self, intake: Intake) -> None:
        Faulty.attempts += 1
        if Faulty.attempts == 1:
            raise UnicodeEncodeError("latin-1", "ł", 0, 1, "ordinal not in range(256)")
        intake.connected()
        intake.offer([Message(b"m", 0, UNNUMBERED)])
        while not intake.stopped:
            time.sleep(0.01)


def test_a_fault_of_a_source_stops_this_source_for_a_while(tmp_path: Path) -> None:
    notes, log = list[str](), StreamLog(tmp_path / "log")
    Faulty.attempts = 0
    intake = StreamIntake(Faulty(), log, lambda: None, notes.append, again=Faulty)
    until(lambda: "UnicodeEncodeError" in intake.problem)
    assert intake.drain() == []
    until(lambda: Faulty.attempts == 2 and intake.problem == "")
    assert [message.payload for block in intake.drain() for message in block] == [b"m"]
    (note,) = notes
    assert note.startswith("faulty://h/x: a fault: UnicodeEncodeError(")
    assert note.endswith("; trying again")
    intake.stop()
    intake.join()
    log.close()


def test_no_source_is_there_before_all_have_begun() -> None:
    """They begin after the queries of a directory, which may take longer than `idle`."""
    clock = RunClock()
    given = {}, Heartbeats([], clock), clock, (0, True), lambda: None, lambda _: None
    acceptance = MessageAcceptance([], *given)
    assert acceptance.reads_since("http://example/posted") is None
    acceptance.start()
    assert acceptance.reads_since("http://example/posted") == -math.inf


class Slow(MessageSource):
    """It takes a while until it is connected, and until it has given what its broker kept."""

    def __init__(self, steps: list[threading.Event]) -> None:
        super().__init__(Address("slow", "h", "x"))
        self._steps = steps

    def read(self, intake: Intake) -> None:
        self._steps[0].wait(20)
        intake.connected(is_behind=True)
        intake.offer([Message(b"m", 0, UNNUMBERED)])
        self._steps[1].wait(20)
        intake.connected()
        while not intake.stopped:
            time.sleep(0.01)


def test_a_source_is_not_there_before_it_has_given_what_its_broker_kept(tmp_path: Path) -> None:
    """Its stream must not become idle meanwhile: that makes late what is still to come."""
    steps, log = [threading.Event(), threading.Event()], StreamLog(tmp_path / "log")
    intake = StreamIntake(Slow(steps), log, lambda: None, lambda _: None)
    assert intake.since is None
    steps[0].set()
    until(lambda: intake.has_more)
    assert intake.since is None
    connecting = time.monotonic()
    steps[1].set()
    until(lambda: intake.since is not None)
    assert intake.since is not None and intake.since >= connecting
    before = intake.since
    intake.connected()  # a source that polls may say so each time
    assert intake.since == before
    intake.stop()
    intake.join()
    log.close()
