"""Replies to events by POST say how many of them are late."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from spaseq.logs.segment_log import LogNotWritten, SegmentLog
from tests.serve import servers
from tests.serve.servers import NQUADS, Served, event, served, wait

DAY = "2026-01-01T00:00:"


def late(server: Served, text: str, **headers: str) -> int:
    """How many events of a body are late, by the reply."""
    found = server.post(text, **headers).json()["late"]
    assert isinstance(found, int)
    return found


def shown(server: Served, accepted: int) -> int:
    """How many events were late, by the engine, once it has read so many."""
    wait(lambda: server.http.get("/streams").json()[0]["accepted"] == accepted)
    return int(server.http.get("/streams").json()[0]["late"])


def lates_by_hand(posts: list[list[int]], delay: int) -> list[int]:
    """How many events of each body are more than `delay` s behind the greatest time before."""
    greatest, found = -(10**9), []
    for numbers in posts:
        found.append(0)
        for number in numbers:
            found[-1] += number < greatest - delay
            greatest = max(greatest, number)
    return found


@pytest.mark.parametrize("delay", [0, 3])
def test_the_order_of_the_body_decides_also_after_restarts(tmp_path: Path, delay: int) -> None:
    chance = random.Random(delay)
    posts = [[chance.randrange(40) + n for _ in range(chance.randrange(1, 6))] for n in range(40)]
    found = []
    for first in range(0, len(posts), 20):
        with served(tmp_path, stream=f'watermark = "{delay} SECONDS"') as server:
            for numbers in posts[first : first + 20]:
                found.append(late(server, "".join(map(event, numbers))))
            accepted = sum(map(len, posts[: first + 20]))
            assert shown(server, accepted) == sum(found)
    assert found == lates_by_hand(posts, delay)
    assert sum(found) > 20


def test_a_reply_that_comes_again_has_the_late_ones_of_the_first_time(tmp_path: Path) -> None:
    text = event(9) + event(3) + event(10)
    first = {"accepted": 3, "bad": [], "late": 1}
    with served(tmp_path) as server:
        assert server.post(text, Idempotency_Key="k").json() == first
        assert server.post(text, Idempotency_Key="k").json() == first
        assert server.post(text).json() == {**first, "late": 2}
    with served(tmp_path) as server:
        assert server.post(text, Idempotency_Key="k").json() == first


def test_an_event_behind_a_heartbeat_is_late(tmp_path: Path) -> None:
    for restarted in (False, True):
        with served(tmp_path) as server:
            if not restarted:
                body = json.dumps({"time": f"{DAY}05Z"})
                assert server.http.post("/streams/S/heartbeat", content=body).status_code == 200
            assert late(server, event(5) + event(6)) == 1  # 6 is the first one, or of equal time


def test_events_that_are_no_news_to_the_stream_move_no_clock(tmp_path: Path) -> None:
    """Duplicates, and events too far ahead, as if the engine had read them."""
    again = event(1).replace(":01Z", ":30Z")
    with served(tmp_path, stream='dedup = "1 HOURS"\nmax_ahead = "1 HOURS"') as server:
        assert late(server, event(1) + event(2)) == 0
        assert late(server, again + event(3)) == 0  # a duplicate with another time
        assert late(server, event(1) + event(2)) == 0  # duplicates are not late, but dropped
        future = event(4).replace("2026-", "2999-")
        assert late(server, future + event(5)) == 0
        assert late(server, event(6) + event(7).replace(":07Z", ":01Z")) == 1
        assert shown(server, 7) == 1


def test_streams_of_the_clock(tmp_path: Path) -> None:
    """An event without a time is never late; one from the past is."""
    untimed = event(1).partition("\n")[0] + "\n"
    with served(tmp_path, stream='time = "arrival"') as server:
        assert late(server, untimed) == 0
        assert late(server, event(2) + untimed.replace("g1", "g3")) == 1
        assert shown(server, 3) == 1


def test_many_at_once_are_judged_in_the_order_of_the_log(tmp_path: Path) -> None:
    chance, found = random.Random(1), list[int]()

    def post(url: str, text: str) -> None:
        reply = httpx.post(f"{url}/streams/S", content=text, headers=NQUADS, timeout=30)
        found.append(reply.json()["late"])

    with served(tmp_path) as server:
        texts = ["".join(event(chance.randrange(99)) for _ in range(5)) for _ in range(24)]
        threads = [threading.Thread(target=post, args=(server.url, text)) for text in texts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 24
        assert sum(found) == shown(server, 120)


def test_what_a_full_disk_refused_has_moved_no_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, refused = SegmentLog.commit, list[int]()

    def commit(log: SegmentLog) -> int:
        if "streams" in log.directory.parts and not refused:
            refused.append(1)
            raise LogNotWritten("cannot write: No space left on device")
        return real(log)

    with served(tmp_path, stream='dedup = "1 HOURS"') as server:
        assert late(server, event(1)) == 0
        monkeypatch.setattr(SegmentLog, "commit", commit)
        assert server.post(event(9)).status_code == 503
        assert late(server, event(5) + event(9) + event(4)) == 1


def test_a_post_is_no_heartbeat(tmp_path: Path) -> None:
    (tmp_path / "lift.rq").write_text("CONSTRUCT { ?id <http://e/p> ?v } WHERE {}")
    with served(tmp_path, stream='lift = "lift.rq"\ntime = "message"') as server:
        given: dict[str, Any] = {
            "headers": {"Content-Type": "application/x-spaseq-heartbeat; time=5"}
        }
        assert server.http.post("/streams/S", content=b"{}", **given).status_code == 415


def test_thousands_of_arrivals_in_one_post(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is accepted, answered once, and in the order of the body."""
    larger = servers.CONFIGURATION.replace("100 KB", "2 MB")
    monkeypatch.setattr(servers, "CONFIGURATION", larger)
    text = "".join(f'<http://e/x> <http://e/p> "{i}" <http://e/g{i}> .\n' for i in range(12_000))
    with served(tmp_path, stream='time = "arrival"\nheartbeat = "50 MILLISECONDS"') as server:
        query = (
            "SELECT ?v FROM STREAM S <http://e/s> WHERE { SEQ(A) "
            "DEFINE GPM A ON S { ?x <http://e/p> ?v } }"
        )
        assert server.http.put("/queries/each", content=query).status_code == 201
        reply = server.post(text).json()
        assert (reply["accepted"], reply["bad"]) == (12_000, [])
        wait(lambda: server.http.get("/queries/each").json()["answers"] == 12_000)
        last = server.http.get("/queries/each/answers?last=1000")
        found = [json.loads(line)["bindings"]["v"]["value"] for line in last.text.splitlines()]
        assert found == [str(i) for i in range(11_000, 12_000)]
