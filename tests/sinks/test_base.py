"""Answers that a thread writes: all of them, in order, and what goes wrong is not lost."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from threading import Event, Timer

import pytest

from spaseq.algebra.answers import Answer
from spaseq.errors import RunError
from spaseq.sinks import base
from spaseq.sinks.base import Sink, WriteBehind, open_lines

GIVEN = [Answer((time, 0), (time, 0), (), (), ()) for time in range(50)]


class Noted(Sink):
    """Notes the times of answers; fails at one of them, and waits until it may go on."""

    def __init__(self, failing: int | None = None, waiting: bool = False) -> None:
        super().__init__(StringIO())
        self.times: list[int] = []
        self.may_go_on = Event()
        self._failing = failing
        if not waiting:
            self.may_go_on.set()

    def write(self, query: str, answer: Answer) -> None:
        self.may_go_on.wait()
        if answer.end[0] == self._failing:
            raise RunError("cannot write: no space left on device")
        self.times.append(answer.end[0])


def write(sink: Noted, answers: Sequence[Answer] = GIVEN) -> None:
    with WriteBehind(sink) as writer:
        for answer in answers:
            writer.write_all("q", [answer])


def test_all_are_written_in_order() -> None:
    sink = Noted()
    write(sink)
    assert sink.times == [*range(50)]


@pytest.mark.parametrize("failing", [0, 20, 49])
def test_a_failure_ends_the_run_and_nothing_is_written_behind_it(failing: int) -> None:
    sink = Noted(failing)
    with pytest.raises(RunError, match="no space left"):
        write(sink)
    assert sink.times == [*range(failing)]


def test_what_was_given_before_an_error_is_written_however_long_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(base, "_JOIN_SECONDS", 0.01)
    sink = Noted(waiting=True)
    later = Timer(0.2, sink.may_go_on.set)
    with pytest.raises(RuntimeError, match="the run"), WriteBehind(sink) as writer:
        writer.write_all("q", GIVEN[:7])
        later.start()
        raise RuntimeError("the run")
    assert sink.times == [*range(7)]


def test_an_interrupted_run_does_not_wait_for_a_reader_that_keeps_it_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(base, "_JOIN_SECONDS", 0.01)
    sink = Noted(waiting=True)
    with pytest.raises(KeyboardInterrupt), WriteBehind(sink) as writer:
        for answer in GIVEN[:3]:
            writer.write_all("q", [answer])
        raise KeyboardInterrupt
    assert sink.times == []
    sink.may_go_on.set()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("name", ["full", "full.gz"])
def test_a_file_that_cannot_be_written_is_closed_once(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to("/dev/full")
    file = open_lines(str(tmp_path / name))
    file.write("lost\n")
    with pytest.raises(RunError, match="No space left"):
        file.close()
    assert file.closed
    with (tmp_path / "other").open("wb", buffering=0) as other:  # it gets the same descriptor
        file.close()
        del file
        other.write(b"kept")
