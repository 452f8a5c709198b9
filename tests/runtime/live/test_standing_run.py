"""A standing run: each query sees the events from the point where it came, killed or not."""

from __future__ import annotations

import errno
import os
import random
import re
import time
from collections.abc import Callable, Iterator
from itertools import accumulate, chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from spaseq.api.prepare import StandingPlanner
from spaseq.api.run import answers_of
from spaseq.compile import compile_query
from spaseq.errors import QueryError, RunError, UsageError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.logs.messages import UNNUMBERED, Message
from spaseq.logs.segment_log import SegmentLog
from spaseq.logs.stream_log import StreamLog
from spaseq.options import FileSourceSettings, PlanningOptions, RuntimeOptions, StateLimits
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.job.job import Job
from spaseq.runtime.live import live_loop
from spaseq.runtime.live.deliveries import SinkSettings
from spaseq.runtime.live.intakes import LiveStream
from spaseq.runtime.live.live_directory import StandingOptions
from spaseq.runtime.live.log_points import HistoryGone
from spaseq.runtime.live.partition_clocks import GivenEvents
from spaseq.runtime.live.standing_run import StandingRun, UnknownQuery
from spaseq.sinks.answer_json import answer_json
from spaseq.sources.broker_stream import BrokerStream
from spaseq.sources.files import FileSource
from tests.runtime.live.live_jobs import IRI, QUERY, events, expected_lines, job_of, lines
from tests.sizes import SLOW, first_of, first_rows_of
from tests.thresholds import Force

OTHER = "http://example/other"
NAMES = "abc"
ARRIVAL = 1_767_225_600_000  # 2026-01-01
AT_ONCE = StandingOptions(sync_ms=0)
MAKER = QUERY.replace(
    "SELECT ?x",
    f"REGISTER STREAM <{OTHER}/made> AS CONSTRUCT {{ ?x <http://example/is> 1 }}",
)

planned = StandingPlanner(PlanningOptions(), KnowledgeBase.empty())


def stream(name: str = "S", iri: str = IRI, delay_ms: int = 500) -> LiveStream:
    settings = FileSourceSettings(delay_ms=delay_ms, max_ahead_ms=10**12)
    return LiveStream(name, BrokerStream(StreamOptions(iri, ()), ""), settings)


class Server:
    """A standing run in this process; `kill` leaves its directory as SIGKILL would."""

    def __init__(self, directory: Path, options: StandingOptions = AT_ONCE) -> None:
        self.notes: list[str] = []
        self.out = directory / "out.jsonl"
        self.run = StandingRun(
            directory / "state",
            [stream(), stream("T", OTHER)],
            Job((), (), KnowledgeBase.empty(), on_note=self.notes.append),
            planned,
            {"out": SinkSettings(str(self.out))},
            options,
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


def save_every(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Save the state so often, however long that takes."""
    monkeypatch.setattr(live_loop, "SNAPSHOT_S", seconds)
    monkeypatch.setattr(live_loop, "_SHARE", 0)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    found = Server(tmp_path)
    yield found
    found.run.stop()


def test_accepted_counts_the_events_in_the_log(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counted() -> list[tuple[int, bool]]:
        return [(view.accepted, view.lag > 0) for view in server.run.streams()]

    def post(payloads: list[bytes]) -> None:
        for payload in payloads:
            times = GivenEvents(np.array([ARRIVAL], np.int64))
            server.run.accept("S", [Message(payload, 0, UNNUMBERED)], times)

    given = events(9)
    post(given[:3])
    server.settle()
    assert counted() == [(3, False), (0, False)]
    with monkeypatch.context() as patch:
        patch.setattr(live_loop.LiveLoop, "_advance", lambda *_: False)
        post(given[3:5])
        assert counted() == [(5, True), (0, False)]
    post(given[5:])
    server.settle()
    assert counted() == [(10, False), (0, False)]


@pytest.mark.parametrize(("share", "saves"), [(0, True), (10**9, False)])
def test_the_state_is_saved_once_a_restart_would_repeat_enough(
    share: int, saves: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_every(0.0, monkeypatch)
    monkeypatch.setattr(live_loop, "_SHARE", share)
    count, save = list[int](), live_loop.LiveLoop._save
    monkeypatch.setattr(live_loop.LiveLoop, "_save", lambda loop: count.append(1) or save(loop))
    server = Server(tmp_path)
    server.run.put("a", QUERY)
    server.settle()
    before = len(count)
    server.feed(events(5))
    server.settle()
    assert (len(count) > before) == saves
    server.run.stop()
    assert len(count) > before  # a run that ends saves its state


def test_a_query_sees_the_events_from_its_point_on(tmp_path: Path, server: Server) -> None:
    given = events(200)
    assert server.run.put("a", QUERY) == "added"
    server.feed(given[:80])
    assert server.run.put("b", QUERY) == "added"
    assert server.run.put("b", f"# the same\n{QUERY}") == "told"
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
    server.run.put("maker", MAKER)
    with pytest.raises(QueryError):
        server.run.put("a", "SELECT ?x")
    with pytest.raises(UsageError, match="two queries register the stream"):
        server.run.put("b", MAKER.replace('"hot"', '"warm"'))
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


def test_a_query_can_begin_in_the_past(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = events(200)
    server.feed(given[:150])
    since = _time(given[100])
    assert server.run.put("a", QUERY, since) == "added"
    assert server.run.put("all", QUERY, 0) == "added"
    server.feed(given[150:])
    until(lambda: {view.state for view in server.run.queries()} == {"running"})
    (tmp_path / "all").mkdir()
    rest, whole = expected_lines(tmp_path, given[100:]), expected_lines(tmp_path / "all", given)
    assert server.lines("a") == [line.replace('"q"', '"a"') for line in rest]
    assert server.lines("all") == [line.replace('"q"', '"all"') for line in whole]
    assert 0 < len(rest) < len(whole)
    assert server.run.query("a").since == since
    assert server.run.put("all", QUERY.replace("5 SECONDS", "4 SECONDS"), since) == "replaced"
    until(lambda: server.run.query("all").state == "running")
    assert len(server.lines("all")) > len(whole)


def test_a_past_that_is_gone_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StreamLog.__init__, "__defaults__", (4000,))
    save_every(0.0, monkeypatch)
    server = Server(tmp_path, options=StandingOptions(sync_ms=0, retain_ms=0))
    given = events(200)
    server.feed(given)
    log = server.run._loop.logs[IRI].log
    until(lambda: log.first > 50)
    with pytest.raises(HistoryGone):
        server.run.put("a", QUERY, _time(given[10]))
    assert server.run.put("a", QUERY, _time(given[200]) + 1) == "added"
    server.run.put("maker", MAKER)
    with pytest.raises(UsageError, match="cannot begin in the past"):
        server.run.put("b", QUERY.replace(f"<{IRI}>", f"<{OTHER}/made>"), 0)
    server.run.stop()


def test_a_query_of_a_maintained_graph_cannot_begin_in_the_past(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.feed(events(20))
    server.run.put(
        "keeper",
        f"MAINTAIN GRAPH <{OTHER}/graph> AS INSERT {{ ?x <{OTHER}/is> ?y }} FROM STREAM S <{IRI}>\n"
        "WHERE { SEQ(A) DEFINE GPM A ON S { ?x ?p ?y } }",
    )
    asking = (
        f"SELECT * FROM STREAM S <{IRI}> FROM NAMED <{OTHER}/graph> WHERE {{ SEQ(A)\n"
        f"DEFINE GPM A ON S {{ ?x ?p ?y GRAPH <{OTHER}/graph> {{ ?x <{OTHER}/is> ?z }} }} }}"
    )
    with pytest.raises(UsageError, match=f"changed the graph <{OTHER}/graph>. Add it without"):
        server.run.put("c", asking, 0)
    with pytest.raises(UsageError, match="cannot begin in the past"):
        server.run.tried("c", asking, None, 10, 10.0)
    assert server.run.put("c", asking) == "added"
    server.run.stop()


@pytest.mark.parametrize("answers_ms", first_of([7 * 86_400_000, None], 1))
def test_answers_can_be_read_for_longer_than_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers_ms: int | None
) -> None:
    monkeypatch.setattr(StreamLog.__init__, "__defaults__", (4000,))
    usual = SegmentLog.__init__.__defaults__ or ()
    monkeypatch.setattr(SegmentLog.__init__, "__defaults__", (4000, *usual[1:]))
    save_every(0.0, monkeypatch)
    server = Server(
        tmp_path, options=StandingOptions(sync_ms=0, retain_ms=0, answers_ms=answers_ms)
    )
    server.run.put("a", QUERY)
    given = events(400)
    for begin in range(0, len(given), 50):
        server.feed(given[begin : begin + 50])
    until(lambda: server.run._loop.logs[IRI].log.first > 50)
    if answers_ms is None:
        until(lambda: server.run._loop.answers.log.first > 0)
    expected = expected_lines(tmp_path, given)
    found = server.lines("a")
    kept = [line.replace('"q"', '"a"') for line in expected]
    assert found == kept if answers_ms else 0 < len(found) < len(kept)
    server.run.stop()


def test_a_query_beyond_its_limit_fails_alone_and_can_begin_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_every(0.0, monkeypatch)
    server = Server(tmp_path, StandingOptions(limits=StateLimits(rows=3), sync_ms=0))
    server.run.put("a", QUERY)
    server.run.put("never", QUERY.replace('"hot"', '"none"'))
    server.feed(events(60)[:-1])
    until(lambda: server.run.query("a").state == "failed")
    assert "more than the limit of 3" in server.run.query("a").reason
    assert any("query a has failed" in problem for problem in server.run.problems())
    server.kill()
    server = Server(tmp_path, StandingOptions(sync_ms=0))
    until(lambda: [view.state for view in server.run.queries()] == ["failed", "running"])
    server.run.restart("a")
    assert server.run.problems() == []
    assert server.run.put("a", QUERY) == "unchanged"
    server.run.stop()


def test_a_full_disk_refuses_and_loses_nothing(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, plain, full = events(100), SegmentLog._write, True

    def write(self: SegmentLog, data: bytes) -> None:
        if full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        plain(self, data)

    server.run.put("a", QUERY)
    server.feed(given[:50])
    monkeypatch.setattr(SegmentLog, "_write", write)
    for _ in range(2):
        with pytest.raises(RunError, match="No space left"):
            server.feed(given[50:51])
    with pytest.raises(RunError, match="No space left"):
        server.run.put("b", QUERY)
    until(lambda: any("No space left" in problem for problem in server.run.problems()))
    full = False
    server.feed(given[50:])
    until(lambda: server.run.problems() == [])
    assert server.lines("a") == [
        line.replace('"q"', '"a"') for line in expected_lines(tmp_path, given)
    ]
    assert [view.name for view in server.run.queries()] == ["a"]


class Span(NamedTuple):
    """A query between its coming and its going, which are numbers of events."""

    name: str
    text: str
    begin: int
    since: int | None
    end: int = 0


@pytest.mark.parametrize(
    ("seed", "count", "fewest"),
    [
        *first_rows_of([(0, 150, 2), *((seed, 300, 2 + seed % 2 * 6) for seed in range(4))], 1),
        *(pytest.param(seed, 300, 8 - seed % 2 * 6, marks=SLOW) for seed in range(4)),
    ],
)
def test_kills_change_nothing(
    tmp_path: Path,
    seed: int,
    count: int,
    fewest: int,
    monkeypatch: pytest.MonkeyPatch,
    force: Force,
) -> None:
    """Queries run by themselves, or as a family of two or more."""
    force(f"family_queries={fewest}")
    save_every(0.05, monkeypatch)
    killed_at_random(tmp_path, seed, count, AT_ONCE)


def killed_at_random(tmp_path: Path, seed: int, count: int, options: StandingOptions) -> None:
    """Queries come, change and go at random; the run is killed now and then, before a save."""
    chance, given = random.Random(seed), events(count, seed, disorder_ms=700)
    texts = [QUERY.replace('"cold"', f'"{word}"') for word in ("cold", "hot", "none")]
    server = Server(tmp_path, options)
    spans: list[Span] = []
    now: dict[str, Span] = {}
    for number, payload in enumerate(given, 1):
        server.feed([payload])
        if chance.random() < 0.1:
            name, text = chance.choice(NAMES), chance.choice(texts)
            old = now.pop(name, None)
            until(lambda: old is None or server.run.query(name).state == "running")  # noqa: B023
            since = _time(given[chance.randrange(number)]) if chance.random() < 0.3 else None
            if chance.random() < 0.3 and old is not None:
                server.run.remove(name)
            elif server.run.put(name, text, since) == "unchanged":
                assert old is not None
                now[name], old = old, None
            else:
                now[name] = Span(name, text, number, since)
            if old is not None:
                spans.append(old._replace(end=number))
        if chance.random() < 0.03:
            server.kill()
            server = Server(tmp_path, options)
    spans += [own._replace(end=len(given)) for own in now.values()]
    assert len(spans) > 5
    until(lambda: all(view.state == "running" for view in server.run.queries()))
    found = {name: server.lines(name) for name in NAMES}
    unnumbered = {n: sorted(map(_without_k, own)) for n, own in found.items()}
    assert unnumbered == _answers_of(tmp_path, spans, given)
    until(lambda: len(lines(server.out)) == sum(map(len, found.values())))
    server.run.stop()
    assert sorted(lines(server.out)) == sorted(chain(*found.values()))


def _answers_of(directory: Path, spans: list[Span], given: list[bytes]) -> dict[str, list[str]]:
    """The answers of each query: those that the stream's watermark made final while it was there.

    They are computed by bounded runs over the events that were not late.
    """
    times = [_time(payload) for payload in given]
    marks = [latest - 500 for latest in accumulate(times, max)]  # after each event
    in_time = [n for n, t in enumerate(times) if n == 0 or t >= marks[n - 1]]
    found: dict[str, set[str]] = {name: set() for name in NAMES}
    for number, (name, text, begin, since, end) in enumerate(spans):
        place = directory / f"expected{number}"
        place.mkdir()
        path = place / "events.nq"
        seen = [n for n in in_time if n < end]
        seen = [n for n in seen if (n >= begin if since is None else times[n] >= since)]
        path.write_bytes(b"".join(given[n] for n in seen))
        job = job_of(FileSource(StreamOptions(IRI, (str(path),))))
        job.plans = (compile_query(text, name),)
        for _, answer in answers_of(job, RuntimeOptions("local")):
            if answer.end[0] < marks[end - 1]:
                found[name].add(_without_k(answer_json(name, answer)))
    return {name: sorted(own) for name, own in found.items()}


def _without_k(line: str) -> str:
    """An answer without the numbers of events of equal time, which count all of the stream."""
    return re.sub(r'"k": \d+', '"k": 0', line)


def _time(payload: bytes) -> int:
    found = re.search(rb"2026-01-01T00:(\d\d):(\d\d)\.(\d{3})Z", payload)
    assert found is not None
    minutes, seconds, ms = map(int, found.groups())
    return ARRIVAL + (60 * minutes + seconds) * 1000 + ms
