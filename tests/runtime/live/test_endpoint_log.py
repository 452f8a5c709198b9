"""Endpoints that answer otherwise each time, in live runs that are killed."""

from __future__ import annotations

import itertools
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from spaseq.errors import RunError, UsageError
from spaseq.kb.service_address import ServiceFailure
from spaseq.logs.segment_log import LogNotWritten
from spaseq.options import ServiceOptions
from spaseq.runtime.live import live_loop
from spaseq.runtime.live.endpoint_log import AskingBatch, EndpointPauses
from tests.kb.sparql_server import JSON, Handler, SparqlServer, serving, slow, status
from tests.runtime.live.asking_run import AskingRun, pair
from tests.runtime.live.live_jobs import QUERY, event, events, expected_lines

NOT_KEPT = ServiceOptions(cache=0, retries=0)


@pytest.fixture
def endpoint() -> Iterator[SparqlServer]:
    """An endpoint that says another number of a thing at each request."""
    numbers = itertools.count()

    def counting(handler: Handler, answer: bytes) -> None:
        answer = answer.replace(b'"N"', b'"%d"' % next(numbers))
        handler.reply(200, JSON, answer)

    with serving("".join(f'<http://example/x{n}> <http://example/v> "N" .' for n in range(9))) as s:
        s.always = counting
        yield s


def test_an_answer_comes_again_after_a_kill_between_the_logs(
    tmp_path: Path, endpoint: SparqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = AskingRun(tmp_path, endpoint.url, NOT_KEPT)

    def no_power() -> int:
        raise RunError("the power is gone")

    monkeypatch.setattr(before.run._loop.answers.log, "commit", no_power)
    monkeypatch.setattr(before.run._loop.reports, "_endures", False)
    before.feed([event(1, 0, "x1", "hot"), event(2, 9000, "end", "none")])
    assert before.run.wait(20)
    with pytest.raises(RunError, match="power"):
        before.run.stop()
    asked = len(endpoint.queries)
    assert asked in (1, 2)  # in a batch, or in two
    after = AskingRun(tmp_path, endpoint.url, NOT_KEPT)
    after.settle()
    assert [found[1:] for found in after.answers("single")] == [("<http://example/x1>", '"0"')]
    assert len(endpoint.queries) == asked  # nobody was asked again
    after.feed([event(3, 10_000, "x1", "hot"), event(4, 20_000, "end", "none")])
    after.settle()
    assert [number for _, _, number in after.answers("single")] == ['"0"', f'"{asked}"']
    after.run.stop()


@pytest.mark.parametrize(("refresh_s", "is_asked"), [(0.01, True), (3600, False)])
def test_an_endpoint_is_asked_again_and_a_restart_repeats_what_each_event_saw(
    tmp_path: Path, endpoint: SparqlServer, refresh_s: float, is_asked: bool
) -> None:
    options = ServiceOptions(retries=0, refresh={endpoint.url: refresh_s})
    running = AskingRun(tmp_path, endpoint.url, options)
    running.feed([event(1, 0, "x1", "hot"), event(2, 9000, "end", "none")])
    running.settle()
    time.sleep(0.05)
    running.feed([event(3, 10_000, "x1", "hot"), event(4, 20_000, "end", "none")])
    running.settle()
    asked = len(endpoint.queries)
    running.kill()
    again = AskingRun(tmp_path, endpoint.url, options)
    again.settle()
    given = [found for _, thing, found in again.answers("single") if thing.endswith("x1>")]
    assert given[0] == '"0"' and (given[1] != '"0"') == is_asked
    assert len(endpoint.queries) == asked
    again.run.stop()


@pytest.mark.thorough
def test_sigkill_between_the_logs(tmp_path: Path, endpoint: SparqlServer) -> None:
    given = events(30)
    command = [sys.executable, "-m", "tests.runtime.live.asking_run", str(tmp_path), endpoint.url]
    killed = subprocess.run([*command, "30"], timeout=120)
    assert killed.returncode == -signal.SIGKILL
    assert endpoint.queries
    replies, asked = itertools.count(10**6), len(endpoint.queries)

    def otherwise(handler: Handler, answer: bytes) -> None:
        handler.reply(200, JSON, answer.replace(b'"N"', b'"%d"' % next(replies)))

    endpoint.always = otherwise
    again = AskingRun(tmp_path, endpoint.url, NOT_KEPT)
    again.settle()
    accepted = sum(view.accepted for view in again.run.streams())
    first, *_ = again.answers("single")
    assert int(first[2].strip('"')) < asked  # what the endpoint had said before the kill
    again.feed(given[accepted:])
    again.settle()
    assert [thing for _, thing, _ in again.answers("single")] == [_thing(e) for e in given[:-1]]
    assert any(int(n.strip('"')) >= 10**6 for _, _, n in again.answers("single"))
    again.run.stop()


def killed_again_and_again(
    directory: Path,
    endpoint: SparqlServer,
    given: Sequence[bytes],
    options: ServiceOptions,
    chance: random.Random,
    failing: float,
) -> AskingRun:
    """A run that has got all events, after kills; no answer has changed since it was given."""
    seen: dict[str, list[tuple[str, str, str]]] = {"single": [], "pair": []}
    at = 0
    while at < len(given):
        running = AskingRun(directory, endpoint.url, options)
        for _ in range(chance.randrange(1, 4)):
            size = chance.randrange(1, 20)
            running.feed(given[at : at + size])
            at = min(at + size, len(given))
            if chance.random() < failing:
                endpoint.replies.append(status(500))
            time.sleep(chance.random() * 0.02)
        for name, earlier in seen.items():
            now = running.answers(name)
            assert now[: len(earlier)] == earlier
            seen[name] = now
        running.kill()
    endpoint.replies.clear()
    running = AskingRun(directory, endpoint.url, options)
    running.settle()
    for name, earlier in seen.items():
        now = running.answers(name)
        assert now[: len(earlier)] == earlier
        assert len({id_ for id_, _, _ in now}) == len(now)
    return running


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(2))
def test_kills_while_an_endpoint_is_asked_again_and_again(
    tmp_path: Path, endpoint: SparqlServer, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """What it said may be asked again at once, which changes no answer that was given."""
    monkeypatch.setattr(live_loop, "SNAPSHOT_S", 0.02)
    chance, given = random.Random(seed), events(80, seed)
    options = ServiceOptions(retries=0, timeout_s=30, refresh={endpoint.url: 0.01})
    running = killed_again_and_again(tmp_path, endpoint, given, options, chance, 0)
    found = running.answers("single")
    assert [thing for _, thing, _ in found] == [_thing(e) for e in given[:-1]]
    assert len({said for _, _, said in found}) > len({thing for _, thing, _ in found})
    running.run.stop()


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kept", [0, 5])
def test_kills_at_any_moment_change_no_answer(
    tmp_path: Path, endpoint: SparqlServer, monkeypatch: pytest.MonkeyPatch, seed: int, kept: int
) -> None:
    chance, given = random.Random(seed), events(80, seed)
    monkeypatch.setattr(live_loop, "SNAPSHOT_S", chance.choice([0.0, 0.02, 1.0]))
    monkeypatch.setattr(live_loop, "_SHARE", 0)
    options = ServiceOptions(cache=kept, ttl_s=0.01, retries=0, timeout_s=5)
    running = killed_again_and_again(tmp_path, endpoint, given, options, chance, 0.2)
    things = [thing for _, thing, _ in running.answers("single")]
    assert _is_part(things, [_thing(e) for e in given[:-1]])  # a failure costs an event its answer
    whole = [json.loads(line)["bindings"]["x"] for line in expected_lines(tmp_path, given)]
    assert len(running.answers("pair")) <= len(whole)
    assert len(things) > len(given) // 5  # after a failure nobody asks for a while
    running.run.stop()


@pytest.mark.thorough
def test_pairs_are_those_of_a_run_without_kills(tmp_path: Path, endpoint: SparqlServer) -> None:
    given = events(60)
    running = AskingRun(tmp_path, endpoint.url, NOT_KEPT)
    running.feed(given[:30])
    running.settle()
    running.kill()
    running = AskingRun(tmp_path, endpoint.url, NOT_KEPT)
    running.feed(given[30:])
    running.settle()
    expected = [json.loads(line) for line in expected_lines(tmp_path, given)]
    found = running.run.answers.read("pair", None, 1000)
    assert [a.answer.end[0] for a in found] == [_ms(line["end"]) for line in expected]
    assert expected
    running.run.stop()


# --- failures -------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_query_that_needs_its_endpoint_fails_and_others_go_on(
    tmp_path: Path, endpoint: SparqlServer
) -> None:
    running = AskingRun(tmp_path, endpoint.url, ServiceOptions(required=True, retries=0))
    running.run.put("other", QUERY)
    endpoint.always = status(503)
    given = events(50)
    running.feed(given)
    running.settle()
    views = {view.name: view for view in running.run.queries()}
    assert views["single"].state == "failed"
    assert "503" in views["single"].reason
    assert views["other"].state == "running"
    assert len(running.run.answers.read("other", None, 1000)) == len(
        expected_lines(tmp_path, given)
    )
    running.kill()
    running = AskingRun(tmp_path, endpoint.url, ServiceOptions(required=True, retries=0))
    running.settle()
    assert running.run.query("other").state == "running"
    running.run.stop()


def test_an_endpoint_that_hangs_does_not_stop_the_others(
    tmp_path: Path, endpoint: SparqlServer
) -> None:
    options = ServiceOptions(timeout_s=0.2, retries=3, cache=0)
    running = AskingRun(tmp_path, endpoint.url, options)
    running.run.put("other", QUERY)
    endpoint.always = slow(1)
    begun = time.monotonic()
    for payload in events(40):
        running.feed([payload])
        running.settle()  # a batch for each event
    assert time.monotonic() - begun < 10  # 40 batches at 0.2 s, and more with repetitions
    assert 1 <= len(endpoint.queries) <= 8
    assert running.answers("single") == []
    assert running.run.answers.read("other", None, 10)
    running.run.stop()
    bad = (tmp_path / "state" / "bad.jsonl").read_text()
    assert "it has failed a moment ago" in bad


def test_an_endpoint_that_has_failed_is_left_alone_for_longer_each_time() -> None:
    now = 100.0
    pauses = EndpointPauses(lambda: now)

    def asked() -> bool:
        try:
            pauses.check("http://e/")
        except ServiceFailure:
            return False
        return True

    for pause in (0.5, 1, 2, 4, 8, 16, 30, 30):
        assert asked()
        with pytest.raises(ServiceFailure), pauses.watching("http://e/"):
            raise ServiceFailure("it hangs", True)
        now += pause - 0.01
        assert not asked()
        now += 0.02
    with pytest.raises(ServiceFailure), pauses.watching("http://e/"):
        now += 70
        raise ServiceFailure("it hangs for more than a minute", True)
    now += 69
    assert not asked()
    now += 2
    with pauses.watching("http://e/"):
        assert asked()
    with pytest.raises(ServiceFailure), pauses.watching("http://e/"):
        raise ServiceFailure("it is not allowed", False)
    assert asked()  # another question may be


def test_a_query_that_asks_cannot_begin_in_the_past(tmp_path: Path, endpoint: SparqlServer) -> None:
    running = AskingRun(tmp_path, endpoint.url)
    running.feed(events(10))
    with pytest.raises(
        UsageError, match="query past cannot begin in the past: it asks an endpoint"
    ):
        running.run.put("past", pair(endpoint.url), 0)
    running.run.stop()


@pytest.mark.thorough
def test_a_full_disk_delays_answers_and_asks_nobody_again(
    tmp_path: Path, endpoint: SparqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = AskingRun(tmp_path, endpoint.url, NOT_KEPT)
    log, full = running.run._loop.endpoints.log, [True]
    commit = log.commit

    def limited() -> int:
        if full[0]:
            raise LogNotWritten("the disk is full")
        return commit()

    monkeypatch.setattr(log, "commit", limited)
    running.feed([event(1, 0, "x1", "hot"), event(2, 9000, "end", "none")])
    end = time.monotonic() + 20
    while not any("the disk is full" in problem for problem in running.run.problems()):
        assert time.monotonic() < end
    assert running.answers("single") == []
    full[0] = False
    while not running.answers("single"):
        assert time.monotonic() < end
    asked = len(endpoint.queries)
    assert asked in (1, 2)
    running.kill()
    running = AskingRun(tmp_path, endpoint.url, NOT_KEPT)
    running.settle()
    assert [number for _, _, number in running.answers("single")] == ['"0"']
    assert len(endpoint.queries) == asked
    running.run.stop()


def test_a_batch_is_a_record_without_addresses() -> None:
    answers = {"a": [('"1"', None)], "b": ServiceFailure("it is away", True)}
    batch = AskingBatch({"http://e/s": 1}, {"http://e/s": 3}, answers)
    found = AskingBatch.of_bytes(batch.to_bytes())
    assert (found.before, found.after, found.answers["a"]) == (
        batch.before,
        batch.after,
        [('"1"', None)],
    )
    failure = found.answers["b"]
    assert isinstance(failure, ServiceFailure)
    assert (str(failure), failure.again) == ("it is away", True)
    with pytest.raises(RunError, match="the log of endpoints"):
        AskingBatch.of_bytes(b"[1, 2]")


def _thing(payload: bytes) -> str:
    return payload.split(b" ")[0].decode()


def _is_part(some: list[str], whole: list[str]) -> bool:
    """Whether a list is another one without some elements."""
    rest = iter(whole)
    return all(thing in rest for thing in some)


def _ms(text: str) -> int:
    from spaseq.rdf.terms.times import parse_datetime

    found = parse_datetime(text)
    assert found is not None
    return found
