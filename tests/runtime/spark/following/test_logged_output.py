"""Answers of followed runs on their way to a webhook: batches that are run again are sent once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spaseq.algebra.answers import Answer
from spaseq.compile import compile_query
from spaseq.errors import UsageError
from spaseq.options import FileSourceSettings, FollowOptions
from spaseq.runtime.spark.following.follow import run
from spaseq.runtime.spark.following.logged_output import LoggedOutput
from spaseq.sinks.answer_json import answer_json
from tests.connectors.hook import Hook
from tests.connectors.nats_server import free_port
from tests.runtime.live.live_jobs import QUERY
from tests.runtime.machines import NORTH, SOUTH, Row, answers_in_process, job_of, nquads, put

AFTER: tuple[Row, ...] = ((900_000, "m9", "starts", 0),)


@pytest.fixture
def hook() -> Iterator[Hook]:
    hook = Hook()
    yield hook
    hook.close()


def ends(hook: Hook) -> list[int]:
    """The seconds of the posted answers' ends."""
    return [int(json.loads(body)["end"][17:19]) for _, _, body in hook.requests]


class Run:
    """An output that gets batches as Spark gives them."""

    def __init__(self, directory: Path, to: str) -> None:
        directory.mkdir(exist_ok=True)
        self.notes: list[str] = []
        self.output = LoggedOutput(directory, to, "jsonl", {}, self.notes.append)
        self._plan = compile_query(QUERY, "q")

    def batch(self, number: int, *seconds: int, is_whole: bool = True) -> None:
        self.output.begin(number)
        for second in seconds:
            answer = Answer((0, 0), (second * 1000, 0), (), (("x", f'"{second}"'),))
            self.output.write(self._plan, answer)
        if is_whole:
            self.output.end(number)

    def end(self) -> None:
        self.output.__exit__(None, None, None)


def test_a_batch_that_is_run_again_is_sent_once(tmp_path: Path, hook: Hook) -> None:
    url = f"http://127.0.0.1:{hook.port}/"
    first = Run(tmp_path / "state", url)
    first.batch(0, 1, 2)
    first.batch(1)
    first.batch(2, 3, is_whole=False)  # killed before its end
    first.end()
    second = Run(tmp_path / "state", url)
    second.batch(2, 3, 4)
    second.end()
    third = Run(tmp_path / "state", url)  # killed before Spark knew that the batch had ended
    third.batch(2, 3, 4)
    third.batch(3, 5)
    third.batch(4)
    third.end()
    fourth = Run(tmp_path / "state", url)
    fourth.batch(4)
    fourth.batch(5, 6)
    fourth.end()
    assert ends(hook) == [1, 2, 3, 4, 5, 6]


def test_answers_wait_for_an_output_that_is_away(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://me:secret@127.0.0.1:{port}/"
    first = Run(tmp_path / "state", url)
    first.batch(0, 1)
    first.batch(1, 2)
    first.output._deliveries.close(0.1)
    first.end()
    assert "no answer from" in first.notes[0]
    hook = Hook(port)
    second = Run(tmp_path / "state", url)
    second.batch(2, 3)
    second.end()
    hook.close()
    assert ends(hook) == [1, 2, 3]


def test_a_wrong_address_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="batch is a number"):
        LoggedOutput(tmp_path, "http://127.0.0.1/?batch=x", "jsonl", {}, print)
    with pytest.raises(UsageError, match="a broker gets JSON"):
        LoggedOutput(tmp_path, "http://127.0.0.1/", "csv", {}, print)
    assert not [*tmp_path.iterdir()]


@pytest.mark.spark
@pytest.mark.thorough
def test_followed_runs_send_each_answer_once(spark: Any, tmp_path: Path, hook: Hook) -> None:
    incoming = tmp_path / "north", tmp_path / "south"
    for directory in incoming:
        directory.mkdir()
    north, south = incoming
    options = FollowOptions(tmp_path / "state", FileSourceSettings(), until_done=True)
    parts = ((NORTH[:2], SOUTH[:3]), ((*NORTH[2:], *AFTER), (*SOUTH[3:], *AFTER)))
    for number, (left, right) in enumerate(parts):
        put(north / f"{number}.nq", nquads(left, f"n{number}"))
        put(south / f"{number}.nq", nquads(right, f"s{number}"))
        job = job_of(incoming)
        run(job, options, out=f"http://127.0.0.1:{hook.port}/", form="jsonl")
    job = job_of(incoming)
    whole = [
        json.loads(answer_json(job.plans[query].identity.name, answer))
        for query, answer in answers_in_process(job)
    ]
    found = [json.loads(body) for _, _, body in hook.requests]
    assert len({answer.pop("id") for answer in found}) == len(whole) == 9
    assert sorted(map(repr, found)) == sorted(map(repr, whole))
