"""A standing run: each query sees the events from the point where it came, killed or not."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator
from itertools import accumulate, chain
from pathlib import Path

import pytest

from spaseq.api.prepare import plan_standing
from spaseq.api.run import answers_of
from spaseq.compile import compile_query
from spaseq.errors import QueryError, UsageError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.logs.stream_log import UNNUMBERED, Message
from spaseq.options import FileSourceSettings, PlanningOptions, RuntimeOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.live import live_loop
from spaseq.runtime.live.deliveries import SinkSettings
from spaseq.runtime.live.live_engine import LiveStream
from spaseq.runtime.live.standing_run import StandingRun, UnknownQuery
from spaseq.sinks.answer_json import answer_json
from spaseq.sources.broker_stream import BrokerStream
from spaseq.sources.files import FileSource
from tests.runtime.live.live_jobs import IRI, QUERY, events, expected_lines, job_of, lines

OTHER = "http://example/other"
ARRIVAL = 1_767_225_600_000  # 2026-01-01


def planned(name: str, text: str) -> QueryPlan:
    return plan_standing(text, name, PlanningOptions(), KnowledgeBase.empty())


def stream(name: str = "S", iri: str = IRI, delay_ms: int = 500) -> LiveStream:
    settings = FileSourceSettings(delay_ms=delay_ms, max_ahead_ms=10**12)
    return LiveStream(name, BrokerStream(StreamOptions(iri, ()), ""), settings)


class Server:
    """A standing run in this process; `kill` leaves its directory as SIGKILL would."""

    def __init__(self, directory: Path, streams: list[LiveStream] | None = None) -> None:
        self.notes: list[str] = []
        self.out = directory / "out.jsonl"
        self.run = StandingRun(
            directory / "state",
            streams or [stream(), stream("T", OTHER)],
            KnowledgeBase.empty(),
            planned,
            {"out": SinkSettings(str(self.out))},
            on_note=self.notes.append,
        )
        self.run.start()

    def feed(self, payloads: list[bytes], name: str = "S") -> None:
        for payload in payloads:
            self.run.accept(name, [Message(payload, 0, UNNUMBERED)])

    def lines(self, name: str) -> list[str]:
        self.settle()
        found = self.run.answers.read(name, None, 10**6)
        return [answer_json(a.query, a.answer) for a in found]

    def settle(self) -> None:
        until(lambda: all(view.lag == 0 for view in self.run.streams()))
        self.run.queries()  # after the answers of the last batch

    def kill(self) -> None:
        self.run._loop._save = lambda: None  # type: ignore[method-assign]
        self.run.stop()


def until(done: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    found = Server(tmp_path)
    yield found
    found.run.stop()


def test_a_query_sees_the_events_from_its_point_on(tmp_path: Path, server: Server) -> None:
    given = events(200)
    assert server.run.put("a", QUERY) == "added"
    server.feed(given[:80])
    assert server.run.put("b", QUERY) == "added"
    assert server.run.put("b", f"# the same\n{QUERY}") == "unchanged"
    server.feed(given[80:])
    (tmp_path / "b").mkdir()
    whole = expected_lines(tmp_path, given)
    rest = expected_lines(tmp_path / "b", given[80:])
    assert server.lines("a") == [line.replace('"q"', '"a"') for line in whole]
    assert server.lines("b") == [line.replace('"q"', '"b"') for line in rest]
    assert 0 < len(rest) < len(whole)
    view = server.run.query("b")
    assert (view.state, view.answers, view.streams) == ("running", len(rest), (IRI,))


def test_a_query_that_goes_leaves_its_answers(server: Server) -> None:
    server.run.put("a", QUERY)
    server.feed(events(50))
    before = server.lines("a")
    server.run.remove("a")
    assert server.run.queries() == []
    assert server.lines("a") == before
    for do in (server.run.remove, server.run.restart, server.run.query):
        with pytest.raises(UnknownQuery):
            do("a")


def test_mistakes_change_nothing(server: Server) -> None:
    maker = f"REGISTER STREAM <{OTHER}/made> AS CONSTRUCT {{ ?x <http://example/is> 1 }} " + (
        QUERY.partition("\n")[0].partition(" ?x ")[2] + QUERY.partition("\n")[2]
    ).replace("WITHIN 5 SECONDS", "WITHIN 5 SECONDS ").replace("WHERE", "\nWHERE")
    server.run.put("maker", maker)
    with pytest.raises(QueryError):
        server.run.put("a", "SELECT ?x")
    with pytest.raises(UsageError, match="two queries register the stream"):
        server.run.put("b", maker.replace('"hot"', '"warm"'))
    with pytest.raises(UsageError, match="runs"):
        server.run.restart("maker")
    with pytest.raises(UsageError, match="no stream U"):
        server.run.accept("U", [])
    assert [view.name for view in server.run.queries()] == ["maker"]


def test_a_silent_stream_holds_back_its_readers_only(server: Server) -> None:
    server.run.put("a", QUERY)
    server.run.put("b", QUERY.replace(f"<{IRI}>", f"<{OTHER}>"))
    server.feed(events(60))
    assert server.lines("a")
    assert server.lines("b") == []


@pytest.mark.parametrize("seed", range(3))
def test_kills_change_nothing(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries come, change and go at random; the run is killed now and then, before a save."""
    monkeypatch.setattr(live_loop, "SNAPSHOT_S", 0.05)
    chance, given = random.Random(seed), events(300, seed, disorder_ms=700)
    texts = {n: QUERY.replace('"cold"', f'"{w}"') for n, w in enumerate(("cold", "hot", "none"))}
    server = Server(tmp_path)
    runs: list[tuple[str, str, int, int]] = []  # name, text, from and to which event
    now: dict[str, tuple[str, int]] = {}
    for number, payload in enumerate(given):
        server.feed([payload])
        if chance.random() < 0.08:
            name, text = chance.choice("ab"), texts[chance.randrange(3)]
            old = now.pop(name, None)
            if chance.random() < 0.3 and old is not None:
                server.run.remove(name)
                runs.append((name, *old, number + 1))
            elif server.run.put(name, text) == "unchanged":
                assert old is not None
                now[name] = old
            else:
                if old is not None:
                    runs.append((name, *old, number + 1))
                now[name] = text, number + 1
        if chance.random() < 0.02:
            server.kill()
            server = Server(tmp_path)
    runs += [(name, *own, len(given)) for name, own in now.items()]
    assert len(runs) > 5
    found = {name: server.lines(name) for name in "ab"}
    unnumbered = {n: sorted(map(_without_k, own)) for n, own in found.items()}
    assert unnumbered == _answers_of(tmp_path, runs, given)
    until(lambda: len(lines(server.out)) == sum(map(len, found.values())))
    server.run.stop()
    assert sorted(lines(server.out)) == sorted(chain(*found.values()))


def _answers_of(
    directory: Path, runs: list[tuple[str, str, int, int]], given: list[bytes]
) -> dict[str, list[str]]:
    """The answers of each query's runs: those that the stream's watermark made final by then.

    They are computed by bounded runs over the events that were not late.
    """
    times = [_time(payload) for payload in given]
    marks = [latest - 500 for latest in accumulate(times, max)]  # after each event
    in_time = [n for n, t in enumerate(times) if n == 0 or t >= marks[n - 1]]
    found: dict[str, list[str]] = {"a": [], "b": []}
    for number, (name, text, begin, end) in enumerate(runs):
        place = directory / f"expected{number}"
        place.mkdir()
        path = place / "events.nq"
        path.write_bytes(b"".join(given[n] for n in in_time if begin <= n < end))
        job = job_of(FileSource(StreamOptions(IRI, (str(path),))))
        job.plans = (compile_query(text, name),)
        for _, answer in answers_of(job, RuntimeOptions("local")):
            if answer.end[0] < marks[end - 1]:
                found[name].append(_without_k(answer_json(name, answer)))
    return {name: sorted(set(lines)) for name, lines in found.items()}


def _without_k(line: str) -> str:
    """An answer without the numbers of events of equal time, which count all of the stream."""
    return re.sub(r'"k": \d+', '"k": 0', line)


def _time(payload: bytes) -> int:
    found = re.search(rb"2026-01-01T00:(\d\d):(\d\d)\.(\d{3})Z", payload)
    assert found is not None
    minutes, seconds, ms = map(int, found.groups())
    return ARRIVAL + (60 * minutes + seconds) * 1000 + ms
