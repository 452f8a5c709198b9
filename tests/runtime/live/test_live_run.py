"""Live runs over a real broker: a restart goes on, nothing is lost or written twice."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spaseq.cli import main
from spaseq.compile import compile_query
from spaseq.errors import InputError, RunError, SpaseqError, UsageError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.logs.segment_log import SegmentLog
from spaseq.options import FileSourceSettings, FollowOptions
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.job.job import Job
from spaseq.runtime.live.live_run import LoggedRun
from spaseq.sources.broker_stream import BrokerStream
from tests.connectors.hook import Hook
from tests.connectors.nats_server import NatsServer, free_port, serving
from tests.runtime.live.live_jobs import (
    IRI,
    QUERY,
    events,
    expected_lines,
    job_of,
    lines,
    without_ids,
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    for server in serving(tmp_path):
        server.make_stream("ROAD", "road.>")
        server.make_stream("ALERTS", "alerts")
        yield server


def until(done: Callable[[], bool], seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


class Live:
    """A live run in a thread of this process."""

    def __init__(self, directory: Path, url: str, out: str = "", delay_ms: int = 500) -> None:
        self.out, self.notes = out or str(directory / "out.jsonl"), list[str]()
        settings = FileSourceSettings(delay_ms=delay_ms, max_ahead_ms=10**12)
        self.options = FollowOptions(directory / "state", settings)
        self.job = job_of(BrokerStream(StreamOptions(IRI, ()), url), on_note=self.notes.append)
        self._stop, self.failure = threading.Event(), None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            LoggedRun(stop=self._stop).run(
                self.job, self.options, out=self.out, form="jsonl", columns=["x"]
            )
        except SpaseqError as error:
            self.failure = error

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
        if self.failure is not None:
            raise self.failure


@contextmanager
def live(directory: Path, server: NatsServer, out: str = "") -> Iterator[Live]:
    run = Live(directory, f"nats://{server.host}/road.loops?stream=ROAD", out)
    try:
        yield run
    finally:
        run.stop()


def test_answers_come_and_later_runs_go_on(tmp_path: Path, server: NatsServer) -> None:
    given = events(300)
    expected = expected_lines(tmp_path, given)
    for begin, end in ((0, 100), (100, 100), (100, 301)):
        with live(tmp_path, server) as run:
            server.publish("road.loops", given[begin:end])
            until(lambda: run.job.stats.events == end - begin)  # noqa: B023
    assert lines(tmp_path / "out.jsonl") == expected
    assert len(expected) > 50


def test_answers_to_a_broker_have_ids(tmp_path: Path, server: NatsServer) -> None:
    given = events(100)
    server.publish("road.loops", given)
    with live(tmp_path, server, f"nats://{server.host}/alerts") as run:
        until(lambda: run.job.stats.events == 101)
    found = server.messages("alerts")
    assert len({name for name, _ in found}) == len(found)
    assert all(payload.startswith(b'{"id": "%s", ' % name.encode()) for name, payload in found)
    bounded = expected_lines(tmp_path, given)
    assert without_ids([payload for _, payload in found]) == [*map(json.loads, bounded)]


def test_an_output_that_is_away_holds_nobody_up(tmp_path: Path, server: NatsServer) -> None:
    (tmp_path / "other").mkdir()
    given = events(100)
    for other in serving(tmp_path / "other"):
        other.make_stream("ALERTS", "alerts")
        with live(tmp_path, server, f"nats://{other.host}/alerts") as run:
            server.publish("road.loops", given[:50])
            until(lambda: run.job.stats.events == 50)
            other.kill()
            server.publish("road.loops", given[50:])
            until(lambda: run.job.stats.events == 101)
            until(lambda: any("trying again" in note for note in run.notes))
            other.start()
            until(lambda: any("takes answers again" in note for note in run.notes))
        assert len(other.messages("alerts")) == len(expected_lines(tmp_path, given))


def test_a_webhook_gets_answers_and_its_refusals_are_kept(
    tmp_path: Path, server: NatsServer
) -> None:
    given, hook = events(100), Hook()
    hook.statuses = [204, 410, 503]
    server.publish("road.loops", given)
    expected = expected_lines(tmp_path, given)
    url = f"http://me:secret@127.0.0.1:{hook.port}/hook?token=hidden"
    with live(tmp_path, server, url):
        until(lambda: len(set(hook.keys)) == len(expected))
    hook.close()
    (failed,) = [json.loads(line) for line in lines(tmp_path / "state" / "failed" / "out.jsonl")]
    assert failed["answer"]["id"] == hook.keys[1]
    assert "410" in failed["reason"]
    bodies = dict(zip(hook.keys, (body for _, _, body in hook.requests), strict=True))
    assert without_ids([*bodies.values()]) == [json.loads(line) for line in expected]
    data = [path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert not any(b"secret" in one or b"hidden" in one for one in data)


def test_a_file_that_a_kill_left_too_long_is_cut(tmp_path: Path, server: NatsServer) -> None:
    given = events(100)
    server.publish("road.loops", given[:60])
    with live(tmp_path, server) as run:
        until(lambda: run.job.stats.events == 60)
    with (tmp_path / "out.jsonl").open("a") as file:
        file.write('{"query": "q", "half')
    server.publish("road.loops", given[60:])
    with live(tmp_path, server) as run:
        until(lambda: run.job.stats.events == 41)
    assert lines(tmp_path / "out.jsonl") == expected_lines(tmp_path, given)


@pytest.mark.parametrize("log", ["streams", "answers"])
def test_a_full_disk_ends_the_run_and_the_next_one_goes_on(
    tmp_path: Path, server: NatsServer, monkeypatch: pytest.MonkeyPatch, log: str
) -> None:
    given = events(100)
    plain = SegmentLog._write

    def write(self: SegmentLog, data: bytes) -> None:
        if log in self.directory.parts and run.job.stats.events >= 40:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        plain(self, data)

    run = Live(tmp_path, f"nats://{server.host}/road.loops?stream=ROAD")
    monkeypatch.setattr(SegmentLog, "_write", write)
    server.publish("road.loops", given[:40])
    until(lambda: run.job.stats.events == 40 or run.failure is not None)
    server.publish("road.loops", given[40:])
    until(lambda: run.failure is not None)
    with pytest.raises(RunError, match="No space left on device"):
        run.stop()
    monkeypatch.undo()
    expected = expected_lines(tmp_path, given)
    with live(tmp_path, server) as run:
        until(lambda: len(lines(tmp_path / "out.jsonl")) == len(expected))
    assert lines(tmp_path / "out.jsonl") == expected


def test_a_directory_has_one_run(tmp_path: Path, server: NatsServer) -> None:
    state = tmp_path / "state"
    with live(tmp_path, server):
        until(lambda: (state / "live.json").exists())
        code = "import sys, pathlib; from spaseq.storage.directories import hold; "
        code += "hold(pathlib.Path(sys.argv[1]))"
        other = subprocess.run(
            [sys.executable, "-c", code, str(state)], capture_output=True, text=True
        )
    assert f"in use by process {os.getpid()}" in other.stderr


@pytest.mark.parametrize(
    "part", ["streams/*/*.log", "answers/*.log", "state", "sent/out", "live.json"]
)
def test_damage_is_named_and_refused(tmp_path: Path, server: NatsServer, part: str) -> None:
    server.publish("road.loops", events(100))
    with live(tmp_path, server) as run:
        until(lambda: run.job.stats.events == 101)
    (path,) = (tmp_path / "state").glob(part)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises((RunError, UsageError), match="damaged") as caught:
        Live(tmp_path, f"nats://{server.host}/road.loops?stream=ROAD").stop()
    assert path.name in str(caught.value)


def test_another_run_with_the_same_directory_is_refused(tmp_path: Path, server: NatsServer) -> None:
    with live(tmp_path, server) as run:
        until(lambda: (tmp_path / "state" / "live.json").exists())
        del run
    with pytest.raises(UsageError, match="other than at its start are the streams"):
        Live(tmp_path, f"nats://{server.host}/road.other").stop()
    with pytest.raises(UsageError, match="other than at its start are the watermark"):
        Live(tmp_path, f"nats://{server.host}/road.loops?stream=ROAD", delay_ms=7).stop()
    (tmp_path / "x" / "state").mkdir(parents=True)
    (tmp_path / "x" / "state" / "notes.txt").touch()
    with pytest.raises(UsageError, match="is not empty"):
        Live(tmp_path / "x", f"nats://{server.host}/road.loops?stream=ROAD").stop()


def test_a_broker_that_is_not_there_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no NATS server answers"):
        run = Live(tmp_path, f"nats://127.0.0.1:{free_port()}/road.loops")
        run._thread.join(60)
        run.stop()


def test_an_idle_stream_no_longer_holds_answers_back(tmp_path: Path, server: NatsServer) -> None:
    """A stream of two answers late, once the other is idle; a restart gives the same answers."""
    given = events(50)
    text = QUERY.replace("WHERE", "FROM STREAM T <http://example/t>\nWHERE").replace(
        "{ SEQ(A; B)", "{ SEQ(A; B)\n  DEFINE GPM C ON T { ?y <http://example/is> ?z }"
    )
    plan = compile_query(text.replace("SEQ(A; B)", "SEQ(A; B; C!)"), "q")
    settings = FileSourceSettings(idle_ms=500, max_ahead_ms=10**12)
    server.publish("road.loops", given)

    def once(count: int) -> None:
        streams = [
            BrokerStream(StreamOptions(iri, ()), f"nats://{server.host}/{subject}?stream=ROAD")
            for iri, subject in ((IRI, "road.loops"), ("http://example/t", "road.other"))
        ]
        job, stop = Job((plan,), tuple(streams), KnowledgeBase.empty()), threading.Event()
        run = threading.Thread(
            target=LoggedRun(stop=stop).run,
            args=(job, FollowOptions(tmp_path / "state", settings)),
            kwargs={"out": str(out), "form": "jsonl", "columns": ["x"]},
        )
        run.start()
        until(lambda: len(lines(out)) >= count)
        stop.set()
        run.join()

    out = tmp_path / "out.jsonl"
    once(1)
    first = lines(out)
    assert first
    (tmp_path / "state" / "state").unlink()  # as if it was killed before it was saved
    once(len(first))
    assert lines(out)[: len(first)] == first
    assert len(set(lines(out))) == len(lines(out))


# --- the command line -----------------------------------------------------------------------------


def command(directory: Path, server: NatsServer, *more: str) -> list[str]:
    (directory / "q.rq").write_text(QUERY)
    return [
        *(sys.executable, "-m", "spaseq", "run", str(directory / "q.rq")),
        *("--runtime", "local", "--follow", "--checkpoint", str(directory / "state")),
        *("--stream", f"S=nats://{server.host}/road.loops?stream=ROAD"),
        *("--watermark", "500 MILLISECONDS", "--max-ahead", "99999 DAYS", *more),
    ]


def test_sigterm_ends_a_run_after_its_batch(tmp_path: Path, server: NatsServer) -> None:
    given = events(100)
    out = tmp_path / "out.jsonl"
    server.publish("road.loops", given)
    with subprocess.Popen(
        command(tmp_path, server, "--out", str(out)), stderr=subprocess.PIPE, text=True
    ) as run:
        expected = expected_lines(tmp_path, given)
        until(lambda: len(lines(out)) >= len(expected))
        run.send_signal(signal.SIGTERM)
        assert run.stderr is not None
        told = run.stderr.read()
    assert run.returncode == 143, told
    assert "Traceback" not in told
    assert lines(out) == expected


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1])
def test_kills_lose_and_repeat_nothing(tmp_path: Path, server: NatsServer, seed: int) -> None:
    """The run is killed at random moments, and so is the broker."""
    chance = random.Random(seed)
    given = events(4000, seed, disorder_ms=700)
    given[1000:1000] = [b"no RDF"]
    out, bad, late = (tmp_path / name for name in ("out.jsonl", "bad.jsonl", "late.jsonl"))
    more = ["--out", str(out), "--bad", str(bad), "--late", str(late)]
    for part in (given[n : n + 800] for n in range(0, len(given), 800)):
        before = len(lines(out))
        run = subprocess.Popen(command(tmp_path, server, *more), stderr=subprocess.DEVNULL)
        server.publish("road.loops", part)
        patience = time.monotonic() + chance.uniform(0, 20)
        while time.monotonic() < patience and len(lines(out)) == before:
            time.sleep(0.05)
        if chance.random() < 0.3:
            server.kill()
            server.start()
        time.sleep(chance.uniform(0, 0.3))
        assert run.poll() is None
        run.kill()
        run.wait()
    (undisturbed := tmp_path / "undisturbed").mkdir()
    once = ["--out", str(undisturbed / "out.jsonl"), "--bad", str(undisturbed / "bad.jsonl")]
    once += ["--late", str(undisturbed / "late.jsonl")]
    least = 1000
    for directory, options in ((undisturbed, once), (tmp_path, more)):
        with subprocess.Popen(command(directory, server, *options)) as run:
            until(lambda own=directory / "out.jsonl", n=least: len(lines(own)) >= n)
            size = -1
            while size != len(lines(directory / "out.jsonl")):  # nothing comes twice
                size = len(lines(directory / "out.jsonl"))
                time.sleep(3)
            run.terminate()
        least = size  # the broker gives again, when it likes, what a killed run has not confirmed
    assert lines(out) == lines(undisturbed / "out.jsonl")
    assert lines(late) == lines(undisturbed / "late.jsonl")
    assert lines(bad) == lines(undisturbed / "bad.jsonl")
    assert len(lines(bad)) == 1
    assert lines(late)
    assert _logged(tmp_path / "state") == _logged(undisturbed / "state")


def _logged(state: Path) -> dict[str, int]:
    """Index after the last record of each log."""
    from spaseq.logs.segment_log import SegmentLog

    found = {}
    for directory in [*(state / "streams").iterdir(), state / "answers"]:
        log = SegmentLog(directory)
        found[directory.name] = log.end
        log.close()
    return found


LOCAL = ("--runtime", "local", "--follow", "--checkpoint")
NATS = "S=nats://me:secret@127.0.0.1:1/road.loops"

SPARK = ("--follow", "--checkpoint", "c", "--stream")


@pytest.mark.parametrize(
    ("arguments", "status", "reason"),
    [
        ((*LOCAL, "c", "--stream", "S=nowhere.nq"), 3, "no such file or directory"),
        ((*LOCAL, "c", "--stream", NATS, "--growing"), 2, "--growing goes with --follow on Spark"),
        ((*LOCAL, "c", "--stream", NATS, "--buckets", "2"), 2, "--buckets goes with"),
        (("--runtime", "local", "--follow", "--stream", NATS), 2, "--follow needs --checkpoint"),
        ((*SPARK, NATS, "--buckets", "2"), 2, "other brokers out"),
        ((*SPARK, NATS, "--stream", "S=a.nq"), 2, "a stream has one broker"),
        (("--runtime", "local", "--stream", NATS), 2, "has no end"),
        ((*LOCAL, "c", "--stream", NATS, "--stream", "S=a.nq"), 2, "a stream has one broker"),
        ((*LOCAL, "c", "--stream", NATS, "--format", "json"), 2, "has an end"),
        (
            (*LOCAL, "c", "--stream", NATS, "--out", "nats://h/a", "--format", "csv"),
            2,
            "a broker gets JSON",
        ),
        (("--stream", "S=a.nq", "--out", "nats://me:secret@h/a"), 2, "answers go there with"),
        ((*LOCAL, "c", "--stream", NATS, "--message-format", "trigg"), 2, "did you mean 'trig'"),
        (("--stream", "S=a.nq", "--dedup", "5 SECONDS"), 2, "--dedup: it is for messages"),
        (("--follow", "--checkpoint", "c", "--stream", "S=.", "--max-message", "9"), 2, "at Kafka"),
        ((*SPARK, "S=kafka://h/a", "--dedup", "5 SECONDS", "--growing"), 2, "--growing goes with"),
        ((*SPARK, "S=kafka://me:secret@h/a?start=now"), 2, "start is earliest or latest"),
        ((*LOCAL, "c", "--stream", NATS), 3, "no NATS server answers at 127.0.0.1:1"),
        ((*LOCAL, "c", "--stream", "S=nats://me:secret@127.0.0.1:1"), 2, "give a subject"),
    ],
)
def test_what_does_not_go_together_is_said(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    status: int,
    reason: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "a.nq").touch()
    with pytest.raises(SystemExit) as ended:
        main(["run", "q.rq", *arguments])
    text = capsys.readouterr().err
    assert (ended.value.code, reason in text) == (status, True), text
    assert "secret" not in text
    files = {path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert not any(b"secret" in data for data in files)
