"""Several outputs of one answer log: each its own place, queries and patience."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from spaseq import back_off
from spaseq.algebra.answers import Answer
from spaseq.errors import RunError, UsageError
from spaseq.logs.segment_log import SegmentLog
from spaseq.runtime.live import outlets
from spaseq.runtime.live.answer_records import LoggedAnswer
from spaseq.runtime.live.deliveries import Deliveries, SinkSettings
from spaseq.runtime.live.delivery import DeliveryView, Terms
from tests.connectors.hook import Hook
from tests.connectors.nats_server import free_port
from tests.runtime.live.live_jobs import lines


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(back_off, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(back_off, "MOST_PAUSE", 0.1)


@pytest.fixture
def hook() -> Iterator[Hook]:
    hook = Hook()
    yield hook
    hook.close()


class Outputs:
    """An answer log and its deliveries; answers are numbered by their ids."""

    def __init__(self, directory: Path, **sinks: SinkSettings) -> None:
        directory.mkdir(exist_ok=True)
        self.log, self.notes = SegmentLog(directory / "answers"), list[str]()
        self.deliveries = Deliveries(directory, self.log, sinks, self.notes.append)

    def add(self, query: str, count: int, value: str = "<http://e/x>", age_ms: int = 0) -> None:
        first, logged = self.log.end, int(time.time() * 1000) - age_ms
        answers = [Answer((0, 0), (1000, 0), (), (("x", value),)) for _ in range(count)]
        records = [
            LoggedAnswer(query, query, f"{n:032}", answer, logged).to_bytes()
            for n, answer in enumerate(answers, first)
        ]
        self.log.append(records)
        self.log.commit()
        self.deliveries.wake()

    def view(self, name: str) -> DeliveryView:
        (found,) = [view for view in self.deliveries.views() if view.name == name]
        return found

    def wait(self, done: Callable[[], bool]) -> None:
        end = time.monotonic() + 30
        while not done():
            assert time.monotonic() < end, self.deliveries.views()
            time.sleep(0.01)

    def settle(self) -> None:
        """Wait until all outputs have all answers."""
        self.wait(lambda: self.deliveries.next == self.log.end)

    def close(self, seconds: float = 5.0) -> None:
        self.deliveries.close(seconds)
        self.log.close()


def numbers(ids: Sequence[str]) -> list[int]:
    return [int(name) for name in ids]


def queries(path: Path) -> list[str]:
    return [json.loads(line)["query"] for line in lines(path)]


def test_each_output_gets_the_answers_of_its_queries_in_order(tmp_path: Path, hook: Hook) -> None:
    url = f"http://127.0.0.1:{hook.port}/"
    outputs = Outputs(
        tmp_path / "data",
        all=SinkSettings(str(tmp_path / "all.jsonl")),
        jams=SinkSettings(str(tmp_path / "jams.jsonl"), Terms(("jam*",))),
        two=SinkSettings(url, Terms(("ice", "fog-[ab]"))),
    )
    for query in ("jam1", "ice", "jam2", "fog-a", "fog-c", "jam1"):
        outputs.add(query, 2)
    outputs.settle()
    outputs.close()
    assert queries(tmp_path / "all.jsonl") == [
        query for query in ("jam1", "ice", "jam2", "fog-a", "fog-c", "jam1") for _ in range(2)
    ]
    assert queries(tmp_path / "jams.jsonl") == ["jam1", "jam1", "jam2", "jam2", "jam1", "jam1"]
    assert numbers(hook.keys) == [2, 3, 6, 7]
    assert outputs.view("two") == DeliveryView("two", url, 0, 4, 0, "")


def test_an_output_that_is_away_holds_nobody_up(tmp_path: Path) -> None:
    port = free_port()
    outputs = Outputs(
        tmp_path / "data",
        away=SinkSettings(f"http://me:secret@127.0.0.1:{port}/"),
        file=SinkSettings(str(tmp_path / "all.jsonl")),
    )
    outputs.add("q", 5)
    outputs.wait(lambda: len(lines(tmp_path / "all.jsonl")) == 5)
    outputs.wait(lambda: outputs.view("away").problem != "")
    assert outputs.view("away").behind == 5
    assert outputs.view("file").problem == ""
    assert outputs.deliveries.next == 0
    outputs.deliveries.check()
    hook = Hook(port)
    outputs.settle()
    outputs.close()
    hook.close()
    assert numbers(hook.keys) == [0, 1, 2, 3, 4]
    assert outputs.view("away").problem == ""
    assert [note.split()[-1] for note in outputs.notes] == ["again", "again"]
    told = "".join(outputs.notes) + "".join(path.read_text() for path in tmp_path.rglob("sent/*"))
    assert "secret" not in told


def test_what_has_waited_too_long_goes_to_the_failed_answers(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    outputs = Outputs(tmp_path / "data", away=SinkSettings(url, Terms(("q",), keep_ms=3_600_000)))
    outputs.add("q", 1, age_ms=4_000_000)
    outputs.add("other", 1, age_ms=4_000_000)
    outputs.add("q", 1, age_ms=4_000_000)
    outputs.add("q", 2, age_ms=3_000_000)
    failed = tmp_path / "data" / "failed" / "away.jsonl"
    outputs.wait(lambda: outputs.deliveries.next == 3)
    found = [json.loads(line) for line in lines(failed)]
    assert numbers([one["answer"]["id"] for one in found]) == [0, 2]
    assert all("not taken in time" in one["reason"] for one in found)
    hook = Hook(port)
    outputs.settle()
    outputs.close()
    hook.close()
    assert numbers(hook.keys) == [3, 4]
    assert (outputs.view("away").sent, outputs.view("away").failed) == (2, 2)
    assert len(lines(failed)) == 2


def test_what_is_refused_for_good_goes_to_the_failed_answers(tmp_path: Path, hook: Hook) -> None:
    hook.statuses = [204, 422, 204]
    url = f"http://me:secret@127.0.0.1:{hook.port}/"
    outputs = Outputs(tmp_path / "data", ops=SinkSettings(url))
    outputs.add("q", 3)
    outputs.settle()
    outputs.close()
    (text,) = lines(tmp_path / "data" / "failed" / "ops.jsonl")
    assert int(json.loads(text)["answer"]["id"]) == 1
    assert "422" in json.loads(text)["reason"]
    assert "secret" not in text
    assert (outputs.view("ops").sent, outputs.view("ops").failed) == (2, 1)
    assert "failed/ops.jsonl" in outputs.notes[0]


def test_a_format_that_cannot_hold_an_answer_refuses_it(tmp_path: Path) -> None:
    outputs = Outputs(tmp_path / "data", graphs=SinkSettings(str(tmp_path / "out.nq")))
    outputs.add("select", 1)
    outputs.settle()
    graph = (("<http://e/s>", "<http://e/p>", "<http://e/o>"),)
    made = Answer((0, 0), (1000, 0), (), (), graph=graph, event="http://e/g")
    outputs.log.append([LoggedAnswer("construct", "construct", "0" * 32, made, 0).to_bytes()])
    outputs.log.commit()
    outputs.deliveries.wake()
    outputs.settle()
    outputs.close()
    assert lines(tmp_path / "out.nq")[0] == (
        "<http://e/s> <http://e/p> <http://e/o> <http://e/g> ."
    )
    (text,) = lines(tmp_path / "data" / "failed" / "graphs.jsonl")
    assert "select is a SELECT query" in json.loads(text)["reason"]


def test_a_later_run_goes_on_at_each_place(tmp_path: Path, hook: Hook) -> None:
    port = free_port()
    sinks = {
        "here": SinkSettings(f"http://127.0.0.1:{hook.port}/"),
        "away": SinkSettings(f"http://127.0.0.1:{port}/"),
    }
    first = Outputs(tmp_path / "data", **sinks)
    first.add("q", 3)
    first.wait(lambda: first.view("here").sent == 3)
    first.close(0.1)
    other = Hook(port)
    second = Outputs(tmp_path / "data", **sinks, new=SinkSettings(str(tmp_path / "new.jsonl")))
    second.settle()
    second.add("q", 1)
    second.settle()
    second.close()
    other.close()
    assert numbers(hook.keys) == [0, 1, 2, 3]
    assert numbers(other.keys) == [0, 1, 2, 3]
    assert len(lines(tmp_path / "new.jsonl")) == 1  # what was logged after it was there
    assert (second.view("here").sent, second.view("here").behind) == (4, 0)


@pytest.mark.parametrize("before", ["", '{"of": "an earlier run"}\n'])
def test_what_a_killed_run_wrote_to_a_file_is_written_once(tmp_path: Path, before: str) -> None:
    """Killed before its first note: the file is longer than what was noted when it began."""
    path, data = tmp_path / "out.jsonl", tmp_path / "data"
    path.write_text(before)
    first = Outputs(data, out=SinkSettings(str(path)))
    begun = (data / "sent" / "out").read_text()
    first.add("q", 3)
    first.settle()
    first.close()
    (data / "sent" / "out").write_text(begun)
    with path.open("a") as file:
        file.write('{"half')
    second = Outputs(data, out=SinkSettings(str(path)))
    second.settle()
    second.close()
    text = path.read_text()
    assert text.startswith(before)
    assert [json.loads(line)["query"] for line in text[len(before) :].splitlines()] == ["q"] * 3


def test_a_file_that_was_moved_away_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    for count in (3, 2):
        outputs = Outputs(tmp_path / "data", out=SinkSettings(str(path)))
        outputs.add("q", count)
        outputs.settle()
        outputs.close()
        path.rename(tmp_path / f"moved{count}")
    assert len(lines(tmp_path / "moved3")) == 3
    assert len(lines(tmp_path / "moved2")) == 2


@pytest.mark.parametrize("patient", [True, False])
def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patient: bool) -> None:
    path = tmp_path / "out.jsonl"
    settings = SinkSettings(str(path), Terms(patient=patient))
    outputs = Outputs(tmp_path / "data", out=settings)
    outputs.add("q", 2)
    outputs.settle()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as context:
        context.setattr(outlets.os, "fsync", full)
        outputs.add("q", 2)
        outputs.wait(lambda: "No space left" in outputs.view("out").problem)
    if patient:
        outputs.settle()
        assert len(lines(path)) == 4
    else:
        with pytest.raises(RunError, match="No space left"):
            outputs.deliveries.check()
    outputs.close()


def test_answers_are_needed_until_their_place_is_noted(tmp_path: Path, hook: Hook) -> None:
    """A restart begins at the noted place, so the log may not be dropped behind it."""
    outputs = Outputs(tmp_path / "data", ops=SinkSettings(f"http://127.0.0.1:{hook.port}/"))
    place = tmp_path / "data" / "sent" / "ops"
    while outputs.log.end < 300:
        outputs.add("q", 1)
        needed = outputs.deliveries.next
        assert json.loads(place.read_text().splitlines()[0])["next"] >= needed
        time.sleep(0.002)
    outputs.settle()
    outputs.close()
    assert json.loads(place.read_text().splitlines()[0])["next"] == 300


def test_large_answers_wait_on_disk(tmp_path: Path) -> None:
    port = free_port()
    outputs = Outputs(tmp_path / "data", away=SinkSettings(f"http://127.0.0.1:{port}/"))
    for _ in range(20):
        outputs.add("q", 1, f'"{"x" * 2_000_000}"')
    outputs.wait(lambda: outputs.view("away").problem != "")
    (delivery,) = outputs.deliveries._deliveries
    assert sum(len(record) for _, record in delivery._waiting) < 5_000_000
    hook = Hook(port)
    outputs.settle()
    outputs.close()
    hook.close()
    assert numbers(hook.keys) == [*range(20)]


def test_two_outputs_are_not_one_file(tmp_path: Path) -> None:
    log, path = SegmentLog(tmp_path / "answers"), str(tmp_path / "out.jsonl")
    sinks = {"a": SinkSettings(path), "b": SinkSettings(f"{tmp_path}/./out.jsonl")}
    with pytest.raises(UsageError, match="sinks a and b are one file"):
        Deliveries(tmp_path, log, sinks, print)


@pytest.mark.parametrize(
    ("name", "to", "reason"),
    [
        ("a/b", "out.jsonl", "a name has letters"),
        ("ops", "out.txt", r"ends with \.jsonl"),
        ("ops", "out.csv", r"ends with \.jsonl"),
        ("ops", "nats://me:secret@h", "give a subject"),
        ("ops", "kafak://me:secret@h/t", "kafak:// is no output: kafka"),
    ],
)
def test_a_wrong_output_is_named(tmp_path: Path, name: str, to: str, reason: str) -> None:
    log = SegmentLog(tmp_path / "answers")
    with pytest.raises(UsageError, match=reason) as caught:
        Deliveries(tmp_path, log, {name: SinkSettings(to)}, print)
    assert "secret" not in str(caught.value)


def test_the_title_of_a_query_is_read_from_its_records() -> None:
    answer = Answer((0, 0), (1000, 0), (), (("x", '"é"'),))
    for query in ("q", 'a",\\"b', "é\n"):
        logged = LoggedAnswer(query, "name", "0" * 32, answer, 7)
        assert LoggedAnswer.title_of(logged.to_bytes()) == query
        assert LoggedAnswer.of_bytes(logged.to_bytes()) == logged
