"""What an earlier run has left: logs older than the state are refused, others are rebuilt."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from spaseq.compile import compile_query
from spaseq.errors import RunError, UsageError
from spaseq.logs.segment_log import SegmentLog
from spaseq.logs.stream_log import StreamLog
from spaseq.plan.planner import STATE_FORMAT
from spaseq.runtime.live import live_directory
from spaseq.runtime.live.live_directory import StandingOptions
from spaseq.runtime.live.live_engine import LiveEngine
from spaseq.runtime.live.log_points import Reach, ReplayPoint, ReplayPoints, reaches
from tests.runtime.live.live_jobs import IRI, QUERY, events, expected_lines, lines
from tests.runtime.live.test_standing_run import Server, save_every
from tests.sizes import first_of, first_rows_of

EARLIER = Path(__file__).parent / "earlier"
REBUILD = StandingOptions(rebuilds=True)
BRIEF = StandingOptions(retain_ms=0)
BRIEFLY = QUERY.replace("5 SECONDS", "600 MILLISECONDS")
ABSENT = BRIEFLY.replace("SEQ(A; B)", "SEQ(A; B!)")
FIRST = BRIEFLY.replace("SEQ(A; B)", "SEQ(B!; A)")
WINDOWED = f"""SELECT ?n FROM STREAM S <{IRI}>
FROM WINDOW W ON S RANGE 3 SECONDS SLIDE 250 MILLISECONDS
WHERE {{ SEQ(A) DEFINE GPM A ON W {{
  {{ SELECT (COUNT(*) AS ?n) {{ EVENT {{ ?x <http://example/is> "hot" }} }} }} }} }}"""
SETS = {"a": QUERY, "absent": ABSENT, "first": FIRST}
WINDOWS = {"windowed": WINDOWED, "brief": BRIEFLY}


def run(directory: Path, given: list[bytes], options: StandingOptions = BRIEF) -> list[str]:
    """The answers in the output, after a run that got some events."""
    server = Server(directory, options)
    server.run.put("a", QUERY)
    server.feed(given)
    server.settle()
    server.run.stop()
    return lines(server.out)


@pytest.mark.parametrize(
    ("part", "is_older"),
    first_rows_of(
        [
            *(("streams", False), ("answers", True), ("streams", True), ("answers", False)),
            *(("queries", True), ("queries", False)),
        ],
        2,
    ),
)
def test_a_log_older_than_the_state_is_refused(tmp_path: Path, part: str, is_older: bool) -> None:
    given = events(120)
    data = tmp_path / "state" / part
    keeping = StandingOptions()
    run(tmp_path, given[:40], keeping)
    shutil.copytree(data, tmp_path / "older")
    server = Server(tmp_path, keeping)
    server.run.put("b", ABSENT)
    server.feed(given[40:])
    whole = server.lines("a")
    server.run.stop()
    shutil.rmtree(data)
    if is_older:
        shutil.copytree(tmp_path / "older", data)
    with pytest.raises(UsageError, match="--rebuild") as caught:
        Server(tmp_path, keeping)
    assert str(tmp_path / "state" / "state") in str(caught.value)
    assert str(data) in str(caught.value)
    server = Server(tmp_path, REBUILD)
    if part == "answers":
        assert server.lines("a") == whole
    elif part == "streams":
        server.feed(given[40:] if is_older else given)
        assert {*server.lines("a")} == {*whole}
    server.run.stop()
    Server(tmp_path, keeping).run.stop()


def test_a_damaged_state_names_its_file(tmp_path: Path) -> None:
    run(tmp_path, events(10))
    (tmp_path / "state" / "state").write_bytes(b"\x80")
    with pytest.raises(RunError, match="state is damaged"):
        Server(tmp_path)
    Server(tmp_path, REBUILD).run.stop()


def of_another_format(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let states that were saved so far be of another format."""
    monkeypatch.setattr(live_directory, "STATE_FORMAT", [number, number])


def of_another_evaluator(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the queries of states that were saved so far have been run otherwise."""
    monkeypatch.setattr("spaseq.plan.planner.STATE_FORMAT", f"{STATE_FORMAT} {number}")


@pytest.mark.parametrize("change", [of_another_format, of_another_evaluator])
@pytest.mark.parametrize("kills", first_of([True, False], 1))
@pytest.mark.parametrize("queries", [SETS, WINDOWS], ids=["windows of matches", "windows"])
def test_a_state_of_another_version_is_made_anew(
    tmp_path: Path,
    queries: dict[str, str],
    kills: bool,
    change: Callable[[int, pytest.MonkeyPatch], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No answer is lost or comes twice, with segments that are dropped behind the windows."""
    save_every(0.1, monkeypatch)
    small_segments(monkeypatch)
    given, order = events(400, disorder_ms=300), list[str]()
    for number, cut in enumerate(range(0, len(given), 100)):
        change(number, monkeypatch)
        server = Server(tmp_path, BRIEF)
        for name, text in queries.items():
            server.run.put(name, text)
        for at in range(cut, min(cut + 100, len(given)), 5):
            server.feed([b"".join(given[at : min(at + 5, cut + 100)])])
        server.settle()
        order += server.notes
        server.kill() if kills else server.run.stop()
    # A run that is killed may not have saved its state yet.
    assert 2 <= sum("was rebuilt" in note for note in order) < len(range(0, len(given), 100))
    assert StreamLog(server.run._loop.directory.stream(IRI)).log.first > 0
    found = [json.loads(line) for line in lines(server.out)]
    for name, text in queries.items():
        (tmp_path / name).mkdir()
        monkeypatch.setattr("tests.runtime.live.live_jobs.QUERY", text)
        wanted = [json.loads(line) for line in expected_lines(tmp_path / name, given)]
        # What ends with the last event, a minute after the others, or later is not final.
        wanted = [each for each in wanted if each["end"] < "2026-01-01T00:01:15"]
        own = [_plain(each) for each in found if each["query"] == name]
        assert own == [_plain({**each, "query": name}) for each in wanted]
        assert len(own) > 30


def _plain(answer: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in answer.items() if key != "id"}


def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each segment of a log have few records."""
    monkeypatch.setattr(SegmentLog.__init__, "__defaults__", (2000, bytes))
    monkeypatch.setattr(StreamLog.__init__, "__defaults__", (2000,))


def unpacked(directory: Path) -> list[str]:
    """Unpack what a run of an early version left in the middle; the ids of all that it answers.

    It got the first 60 of 120 events, with the queries a and absent (5 SECONDS), and kept no note
    about its state. The same version gave these ids for all 120 events.
    """
    with tarfile.open(EARLIER / "directory.tgz") as archive:
        archive.extractall(directory, filter="data")
    ids: list[str] = json.loads((EARLIER / "ids.json").read_text())
    return ids


def test_a_directory_of_an_early_version_goes_on(tmp_path: Path) -> None:
    """Its windows are open: no answer is lost or comes twice, and ids stay the same."""
    wanted = unpacked(tmp_path)
    server = Server(tmp_path)
    server.feed(events(120, disorder_ms=300)[60:])
    server.settle()
    found = [
        logged.id for name in ("a", "absent") for logged in server.run.answers.read(name, None, 999)
    ]
    server.run.stop()
    assert found == wanted
    assert [note for note in server.notes if "another version" in note] == [
        f"{tmp_path / 'state' / 'state'} is of another version of spaseq: the state is rebuilt "
        "from the logs as they are"
    ]


@pytest.mark.parametrize("change", [of_another_format, of_another_evaluator])
def test_lost_partial_matches_of_an_early_version_are_told(
    tmp_path: Path,
    change: Callable[[int, pytest.MonkeyPatch], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The state of a run without a note is needed, as the logs no longer have what it has."""
    save_every(0.0, monkeypatch)
    small_segments(monkeypatch)
    given = events(200)
    for some in (given[:100], given[100:]):
        server = Server(tmp_path, BRIEF)
        server.run.put("a", BRIEFLY)
        for at in range(0, len(some), 5):
            server.feed(some[at : at + 5])
            server.settle()
        server.run.stop()
        (tmp_path / "state" / "replay.json").unlink()
        change(0, monkeypatch)
    (told,) = (note for note in server.notes if "another version" in note)
    assert told.endswith("partial matches that begin there are lost")


def test_a_killed_run_goes_on_making_its_state_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while the state is rebuilt, the next run rebuilds it from the same point."""
    given = events(300)
    run(tmp_path, given[:200])
    monkeypatch.setattr(live_directory, "STATE_FORMAT", [0, 0])
    with monkeypatch.context() as broken:
        broken.setattr(LiveEngine, "take", _fail)
        server = Server(tmp_path, BRIEF)
        with pytest.raises(RunError, match="killed"):
            until_it_ends(server.run.stop, server)
    found = [_plain(json.loads(line)) for line in run(tmp_path, given[200:])]
    wanted = [json.loads(line) for line in expected_lines(tmp_path, given)]
    assert found == [_plain({**each, "query": "a"}) for each in wanted]


def _fail(*_: object) -> None:
    raise RunError("killed")


def until_it_ends(stop: Callable[[], None], server: Server) -> None:
    assert server.run.wait(30)
    stop()


def test_the_state_of_a_query_reaches_back_for_its_window() -> None:
    sliding = compile_query(QUERY, "q")
    counted = compile_query(QUERY.replace("5 SECONDS", "7 EVENTS"), "q")
    assert reaches([sliding], {IRI: 20_000}, {IRI: 9}) == [Reach(14_999, None, {IRI: 9})]
    assert reaches([counted], {IRI: 20_000}, {IRI: 9}) == [Reach(19_999, 7, {IRI: 9})]
    assert reaches([sliding], {IRI: None}, {IRI: 0}) == [Reach(None, None, {IRI: 0})]
    points = [ReplayPoint({}, [[], []], {IRI: n}, 0, 0, [], []) for n in (0, 2, 3)]
    kept = ReplayPoints(points)
    kept.drop(reaches([counted], {IRI: 20_000}, {IRI: 9}))
    assert kept.first == points[1]
    kept.drop(reaches([sliding], {IRI: None}, {IRI: 0}))
    assert kept.first == points[1]


SESSION = WINDOWED.replace("RANGE 3 SECONDS SLIDE 250 MILLISECONDS", "SESSION 1 SECONDS")
LAST_EVENTS = BRIEFLY.replace("600 MILLISECONDS", "5 EVENTS").replace(
    "FROM", "PARTITION BY (?x) FROM", 1
)


def counted(found: list[str]) -> list[int]:
    """What a query of one COUNT answers."""
    return [int(json.loads(line)["bindings"]["n"]["value"]) for line in found]


@pytest.mark.parametrize("is_cut", [True, False])
def test_windows_that_may_have_begun_before_the_logs_are_told(
    tmp_path: Path, is_cut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An open session has 200 events; of some logs, only the last ones are left."""
    save_every(0.0, monkeypatch)
    small_segments(monkeypatch)
    *given, end = events(200)
    hot = sum(b'"hot"' in each for each in given)
    queries = {"session": SESSION, "last": LAST_EVENTS, "plain": BRIEFLY}
    options = BRIEF if is_cut else StandingOptions(retain_ms=10**9)
    server = Server(tmp_path, options)
    for name, text in queries.items():
        server.run.put(name, text)
    for at in range(0, len(given), 5):
        server.feed(given[at : at + 5])
        if is_cut:
            server.settle()
    server.run.stop()
    of_another_format(0, monkeypatch)
    server = Server(tmp_path, options)
    server.feed([end])
    (count,) = counted(server.lines("session"))
    server.run.stop()
    told = [note.partition(":")[0] for note in server.notes if "may have begun" in note]
    assert told == (["query session", "query last"] if is_cut else [])
    assert count < hot if is_cut else count == hot
