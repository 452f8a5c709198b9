"""A server over silent streams: alerts come when a silence is over, not when it ends."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spaseq.cli.main import cli
from spaseq.logs.segment_log import LogReader, SegmentLog
from spaseq.logs.stream_log import StreamLog
from spaseq.runtime.live.answer_records import LoggedAnswer
from spaseq.sinks.answer_json import answer_json
from tests.serve.servers import NQUADS, Served, served, subscribed, wait

SILENT = """
PREFIX : <http://e/>
SELECT ?v WITHIN 300 MILLISECONDS FROM STREAM S <http://e/s>
WHERE { SEQ(H; N!) DEFINE GPM H ON S { :x :p ?v } DEFINE GPM N ON S { :x :p ?w } }
"""
"""A device that has stopped sending."""

JOINED = """
PREFIX : <http://e/>
SELECT ?v WITHIN 1 HOURS FROM STREAM S <http://e/s> FROM STREAM T <http://e/t>
WHERE { SEQ(A) DEFINE GPM A ON S, T { :x :p ?v } }
"""
"""An answer for each event, once both streams have come so far."""

BEAT = '<http://e/x> <http://e/p> "1" <http://e/g1> .\n'
AT = (
    '<http://e/x> <http://e/p> "{0}" <http://e/g{0}> .\n<http://e/g{0}> '
    '<http://www.w3.org/ns/prov#generatedAtTime> "{0}"^^<http://www.w3.org/2001/XMLSchema#long> .\n'
)
HEARTBEAT = "/streams/S/heartbeat"


@contextmanager
def standing(directory: Path, query: str, stream: str) -> Iterator[Served]:
    """A server with one query; `stream` goes behind the IRI of the stream S."""
    (directory / "queries").mkdir(exist_ok=True)
    (directory / "queries" / "q.rq").write_text(query)
    with served(directory, stream=stream) as server:
        yield server


def answers(server: Served) -> list[Any]:
    """The answers so far."""
    return [*map(json.loads, server.http.get("/queries/q/answers").text.splitlines())]


def times(server: Served) -> list[int]:
    """The values of ?v, which are the times of events in ms."""
    return [int(answer["bindings"]["v"]["value"]) for answer in answers(server)]


def test_a_device_that_has_stopped_sending_is_told_without_another_event(tmp_path: Path) -> None:
    fast = 'time = "arrival"\nheartbeat = "100 MILLISECONDS"\n'
    with (
        standing(tmp_path, SILENT, fast) as server,
        subscribed(server.url, "q") as events,
    ):
        server.post(BEAT)
        told = json.loads(next(events)["data"])
        (item,) = told["trace"]
        assert item["event"] == "http://e/g1"
        assert told["start"] == item["time"]
        assert answers(server) == [told]


def test_a_stream_that_never_had_an_event_holds_nobody_back(tmp_path: Path) -> None:
    fast = 'time = "arrival"\nheartbeat = "100 MILLISECONDS"\n'
    other = f'[streams.T]\niri = "http://e/t"\n{fast}'
    with standing(tmp_path, JOINED, fast + other) as server:
        server.post(BEAT)
        wait(lambda: answers(server))


def test_an_idle_stream_goes_on_in_event_time(tmp_path: Path) -> None:
    with standing(
        tmp_path, SILENT, 'idle = "200 MILLISECONDS"\nheartbeat = "50 MILLISECONDS"\n'
    ) as server:
        server.post(AT.format(1000))
        wait(lambda: answers(server))
        assert answers(server)[0]["end"] == "1970-01-01T00:00:01.300Z"
        assert server.post(AT.format(1300)).status_code == 200  # behind the heartbeat
        wait(lambda: server.http.get("/streams").json()[0]["late"] == 1)


def test_heartbeats_that_are_given_close_windows(tmp_path: Path) -> None:
    with standing(tmp_path, SILENT, "") as server:
        server.post(AT.format(1000))
        assert server.http.post(HEARTBEAT, json={"time": 1299}).status_code == 200
        assert times(server) == []
        assert server.http.post(HEARTBEAT, json={"time": "1970-01-01T00:00:01.3Z"}).is_success
        wait(lambda: times(server) == [1000])
        server.post(AT.format(1301) + AT.format(1300))
        wait(lambda: server.http.get("/streams").json()[0]["late"] == 1)


def test_a_query_that_begins_in_the_past_sees_the_same_heartbeats(tmp_path: Path) -> None:
    """Windows that heartbeats closed, and an event that was late behind one."""
    with standing(tmp_path, SILENT, "") as server:
        server.post(AT.format(1000))
        server.http.post(HEARTBEAT, json={"time": 1300})
        server.post(AT.format(1200))  # late
        server.post(AT.format(2000) + AT.format(2100))
        server.http.post(HEARTBEAT, json={"time": 2400})
        wait(lambda: times(server) == [1000, 2100])
        text = SILENT.replace("300 MILLISECONDS", "299 MILLISECONDS")
        assert server.http.put("/queries/again?from=0", content=text).status_code == 201
        again = "/queries/again/answers"
        wait(lambda: server.http.get(again).text.count("\n") == 2)
        found = [json.loads(line)["bindings"] for line in server.http.get(again).text.splitlines()]
        assert [values["v"]["value"] for values in found] == ["1000", "2100"]


def test_heartbeats_that_are_refused(tmp_path: Path) -> None:
    clocked = '[streams.T]\niri = "http://e/t"\ntime = "arrival"\n'
    with standing(tmp_path, SILENT, f'max_ahead = "1 HOURS"\n{clocked}') as server:
        server.post(AT.format(5000))

        def status(time: object, stream: str = "S") -> int:
            response = server.http.post(f"/streams/{stream}/heartbeat", json={"time": time})
            assert response.is_success or response.json()["error"]
            return response.status_code

        assert status(4999) == 409
        assert status(5000) == 200
        assert status("4026-01-01T00:00:00Z") == 400
        assert status("soon") == status(True) == status(None) == 400
        assert status(9000, "T") == 409
        assert status(9000, "U") == 404
        assert server.http.post(HEARTBEAT, content="[9000]").status_code == 400


def replayed(directory: Path, *arguments: str) -> list[Any]:
    """What `spaseq run --logs` answers over the server's logs."""
    data = str(directory / "state")
    command = ["run", "--logs", data, "--runtime", "local", "--bad", str(directory / "bad")]
    result = CliRunner().invoke(cli, [*command, *arguments], prog_name="spaseq")
    assert result.exit_code == 0, result.output
    return [*map(json.loads, result.stdout.splitlines())]


def test_a_replay_of_the_logs_gives_the_same_answers_and_late_events(tmp_path: Path) -> None:
    own = 'idle = "200 MILLISECONDS"\nheartbeat = "50 MILLISECONDS"\n'
    with standing(tmp_path, SILENT, own) as server:
        for first in (1000, 1500, 9000):
            server.post(AT.format(first) + AT.format(first + 100))
            wait(lambda first=first: times(server)[-1:] == [first + 100])  # type: ignore[misc]
            server.post(AT.format(first + 50))  # behind the heartbeats
        server.post(AT.format(99_000))  # its window is open when the server ends
        wait(lambda: server.http.get("/streams").json()[0]["lag"] == 0)
    log = SegmentLog(tmp_path / "state" / "answers")
    logged = [LoggedAnswer.of_bytes(record) for _, record in LogReader(log, 0).read()]
    log.close()
    given = [json.loads(answer_json(each.query, each.answer)) for each in logged]
    assert len(given) >= 3
    late = tmp_path / "late.jsonl"
    assert replayed(tmp_path, "--late", str(late)) == given
    assert late.read_text() == (tmp_path / "state" / "late.jsonl").read_text()
    assert len(late.read_text().splitlines()) == 3
    query = tmp_path / "all.rq"
    query.write_text(SILENT)
    assert [{**each, "query": "q"} for each in replayed(tmp_path, str(query))] == given


def test_a_replay_names_what_is_not_in_the_logs(tmp_path: Path) -> None:
    with standing(tmp_path, SILENT, ""):
        pass
    query = tmp_path / "other.rq"
    query.write_text(JOINED)
    command = ["run", "--runtime", "local", str(query), "--logs"]
    result = CliRunner().invoke(cli, [*command, str(tmp_path / "state")], prog_name="spaseq")
    assert "<http://e/t>, which is not in the logs" in str(result.exception)
    result = CliRunner().invoke(cli, [*command, str(tmp_path)], prog_name="spaseq")
    assert "it is no data directory of spaseq serve" in str(result.exception)


@pytest.mark.parametrize(
    ("part", "name"),
    [("streams", "stream S"), ("queries", "queries"), ("endpoints", "answers of endpoints")],
)
def test_a_replay_is_refused_where_records_have_been_dropped(
    tmp_path: Path, part: str, name: str
) -> None:
    with standing(tmp_path, SILENT, "") as server:
        server.post(AT.format(1000))
        wait(lambda: server.http.get("/streams").json()[0]["lag"] == 0)
    (first,) = (tmp_path / "state" / part).rglob("*.log")
    is_stream = part == "streams"
    log = StreamLog(first.parent, 1).log if is_stream else SegmentLog(first.parent, 1)
    records = [record for _, record in LogReader(log, 0).read()] or [b"[{}, {}, {}]"]
    log.append(records[-1:])
    log.commit()
    end = log.end
    log.append(records[-1:])
    log.commit()
    log.drop_before(end)
    dropped = log.first
    log.close()
    command = ["run", "--logs", str(tmp_path / "state"), "--runtime", "local"]
    result = CliRunner().invoke(cli, command, prog_name="spaseq")
    assert dropped > 0
    assert result.exit_code
    said = str(result.exception)
    assert said.startswith(f"{first.parent}: the first {dropped} records of the ")
    assert name in said
    assert "a larger retain under [server]" in said


def test_a_restart_goes_on_with_the_same_time(tmp_path: Path) -> None:
    with standing(tmp_path, JOINED, '[streams.T]\niri = "http://e/t"\n') as server:
        server.post(AT.format(1000))
        for stream in "ST":
            given = server.http.post(f"/streams/{stream}/heartbeat", json={"time": 2000})
            assert given.status_code == 200
        wait(lambda: times(server) == [1000])
    with standing(tmp_path, JOINED, '[streams.T]\niri = "http://e/t"\n') as server:
        assert times(server) == [1000]
        late = AT.format(1500) + AT.format(2001)
        server.http.post("/streams/T", content=late, headers=NQUADS)
        wait(lambda: [s["late"] for s in server.http.get("/streams").json()] == [0, 1])


def test_a_clock_that_goes_back_is_told(tmp_path: Path) -> None:
    with standing(tmp_path, SILENT, 'time = "arrival"\nheartbeat = "50 MILLISECONDS"\n') as server:
        server.post(BEAT)
        wait(lambda: answers(server))
        clock = server.run._loop.clock
        wall = clock._wall
        clock._wall = lambda: wall() - 3600
        health = server.http.get("/health")
        assert health.status_code == 503
        assert health.json()["problems"][0].startswith("clock: the clock has gone back by 3")
        server.post(BEAT)
        clock._wall = lambda: wall() + 3600
        wait(lambda: len(answers(server)) == 2)
        clock._wall = wall
        server.post(BEAT)
        assert server.http.get("/streams").json()[0]["late"] == 0
        clock._wall = lambda: wall() + 3700
        wait(lambda: len(answers(server)) == 3)
        assert server.http.get("/health").status_code == 200


def test_a_query_says_what_it_waits_for(tmp_path: Path) -> None:
    other = '[streams.T]\niri = "http://e/t"\n'
    with standing(tmp_path, JOINED, other) as server:

        def waiting() -> Any:
            return server.http.get("/queries/q").json()["waiting"]

        assert waiting() == {"windows": [], "held": 0, "streams": []}
        server.post(AT.format(1000) + AT.format(2000) + AT.format(3000))
        wait(lambda: waiting()["held"] == 2)  # S itself has not passed 3000
        assert waiting()["streams"] == ["http://e/s", "http://e/t"]
        server.http.post("/streams/T/heartbeat", json={"time": 1500})
        wait(lambda: waiting()["held"] == 1)
        assert server.http.get("/health").json()["waiting"] == []
        known = server.run._loop.stream_waits
        wait(lambda: [iri for _, iri in known._since] == ["http://e/t"])
        known._monotonic = lambda: time.monotonic() + 70
        wait(lambda: server.http.get("/health").json()["waiting"])
        (held,) = server.http.get("/health").json()["waiting"]
        assert (held["query"], held["stream"]) == ("q", "http://e/t")


def test_a_query_says_when_its_windows_close(tmp_path: Path) -> None:
    with standing(tmp_path, SILENT, "") as server:
        server.post(AT.format(1000))
        wait(lambda: server.http.get("/queries/q").json()["waiting"]["windows"])
        assert server.http.get("/queries/q").json()["waiting"] == {
            "windows": [{"closes": "1970-01-01T00:00:01.300Z"}],
            "held": 0,
            "streams": ["http://e/s"],
        }
        server.http.post(HEARTBEAT, json={"time": 1300})
        wait(lambda: times(server) == [1000])
        assert server.http.get("/queries/q").json()["waiting"]["windows"] == []
