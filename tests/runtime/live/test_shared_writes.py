"""Who posts writes the log: at once, or together with what comes while a write is under way."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from spaseq.logs.messages import UNNUMBERED, Message
from spaseq.logs.segment_log import LogNotWritten, SegmentLog
from tests.runtime.live.live_jobs import events
from tests.runtime.live.test_standing_run import Server, until


def test_what_comes_while_a_write_is_under_way_shares_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, given = Server(tmp_path), events(9)
    plain, begun, goes_on = SegmentLog._write, threading.Event(), threading.Event()
    writes = 0

    def write(log: SegmentLog, data: bytes) -> None:
        nonlocal writes
        writes += 1
        begun.set()
        goes_on.wait()
        plain(log, data)

    monkeypatch.setattr(SegmentLog, "_write", write)
    posts = [threading.Thread(target=server.feed, args=([each],)) for each in given]
    posts[0].start()
    begun.wait()
    for post in posts[1:]:
        post.start()
    until(lambda: len(server.run._loop.acceptance._posted) == len(given) - 1)
    goes_on.set()
    for post in posts:
        post.join()
    assert writes == 2
    assert sorted(message.payload for message in server.run.records("S")) == sorted(given)
    server.run.stop()


def test_a_write_that_fails_is_told_to_all_who_wait_and_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, given = Server(tmp_path), events(3)

    def full(_: SegmentLog, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(SegmentLog, "_write", full)
        with pytest.raises(LogNotWritten, match="No space left"):
            server.run.accept("S", [Message(given[0], 0, UNNUMBERED)])
    assert any("No space left" in problem for problem in server.run.problems())
    until(lambda: any("No space left" in note for note in server.notes))
    server.feed(given[1:])
    assert [message.payload for message in server.run.records("S")] == given[1:]
    assert server.run.problems() == []
    server.run.stop()


def test_nobody_is_accepted_after_the_end(tmp_path: Path) -> None:
    server, given = Server(tmp_path), events(200)
    accepted, refused = list[bytes](), threading.Event()

    def post() -> None:
        try:
            for each in given:
                server.feed([each])
                accepted.append(each)
        except Exception:
            refused.set()

    thread = threading.Thread(target=post)
    thread.start()
    until(lambda: len(accepted) > 20)
    server.run.stop()
    thread.join()
    again = Server(tmp_path)
    found = [message.payload for message in again.run.records("S")]
    again.run.stop()
    assert found == accepted
    assert refused.is_set() or len(accepted) == len(given)
