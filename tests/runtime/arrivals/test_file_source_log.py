"""The log of a followed stream's files: each batch's files, each file only once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spaseq.errors import InputError
from spaseq.options import FileSourceSettings
from spaseq.rdf.inputs import files as input_files
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.arrivals import file_source_log
from spaseq.runtime.arrivals.file_source_log import FileSourceLog
from spaseq.runtime.arrivals.log_depth import Depth
from spaseq.sources.files import GrowingFiles


@pytest.fixture
def incoming(tmp_path: Path) -> Path:
    directory = tmp_path / "incoming"
    directory.mkdir()
    return directory


def put(directory: Path, name: str, modified: int = 0, size: int = 1) -> str:
    path = directory / name
    path.write_text("#" * size)
    os.utime(path, (modified, modified))
    return str(path)


def log_of(tmp_path: Path, *paths: object, max_bytes: int = 1000) -> FileSourceLog:
    streams = [
        GrowingFiles.at(StreamOptions(f"http://s/{i}", (str(p),))) for i, p in enumerate(paths)
    ]
    return FileSourceLog(tmp_path / "log", streams, FileSourceSettings(max_bytes=max_bytes))


def files(log: FileSourceLog, number: int) -> list[list[str]]:
    """The files of a batch, by stream."""
    return [[t.range.file.path for t in s.slices] for s in log.batch(number).streams]


def test_files_found_together_come_in_order_of_time_then_name(
    tmp_path: Path, incoming: Path
) -> None:
    c, b, a = put(incoming, "c.nq", 1), put(incoming, "b.nq", 1), put(incoming, "a.nq", 2)
    log = log_of(tmp_path, incoming)
    assert log.plan_batch(0) == 1
    assert files(log, 1) == [[b, c, a]]


def test_unfinished_and_foreign_files_are_left_alone(tmp_path: Path, incoming: Path) -> None:
    for name in (".a.nq", "_b.nq", "c.txt"):
        put(incoming, name)
    assert log_of(tmp_path, incoming).plan_batch(0) == 0
    assert log_of(tmp_path, incoming / "*.nq").plan_batch(0) == 0


def test_a_glob_may_have_no_match_yet_but_a_directory_must_exist(tmp_path: Path) -> None:
    assert log_of(tmp_path, tmp_path / "*.nq").plan_batch(0) == 0
    with pytest.raises(InputError, match="no such file or directory"):
        log_of(tmp_path, tmp_path / "nowhere").plan_batch(0)


def test_a_file_is_taken_once(tmp_path: Path, incoming: Path) -> None:
    put(incoming, "a.nq")
    log = log_of(tmp_path, incoming)
    assert log.plan_batch(0) == 1
    assert log.plan_batch(1) == 1
    later = put(incoming, "b.nq")
    assert log.plan_batch(1) == 2
    assert files(log, 2) == [[later]]


def test_a_batch_that_was_planned_stays_as_it_was(tmp_path: Path, incoming: Path) -> None:
    first = put(incoming, "a.nq")
    log_of(tmp_path, incoming).plan_batch(0)
    put(incoming, "b.nq")
    resumed = log_of(tmp_path, incoming)
    assert resumed.plan_batch(0) == 1
    assert files(resumed, 1) == [[first]]


def test_a_batch_is_bounded_but_takes_a_larger_file(tmp_path: Path, incoming: Path) -> None:
    a, b, c = (put(incoming, f"{n}.nq", i, size=60) for i, n in enumerate("abc"))
    log = log_of(tmp_path, incoming, max_bytes=120)
    assert [log.plan_batch(0), log.plan_batch(1), log.plan_batch(2)] == [1, 2, 2]
    assert (files(log, 1), files(log, 2)) == ([[a, b]], [[c]])
    assert log_of(tmp_path / "small", incoming, max_bytes=10).plan_batch(0) == 1


def test_what_was_taken_is_known_after_old_batches_are_forgotten(
    tmp_path: Path, incoming: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_source_log, "COMPACT_EVERY", 3)
    log = log_of(tmp_path, incoming)
    for number in range(8):
        put(incoming, f"{number}.nq")
        assert log.plan_batch(number) == number + 1
        log.forget(number)
    assert not (tmp_path / "log" / "1.json").exists()
    assert log_of(tmp_path, incoming).plan_batch(8) == 8


def test_what_comes_after_the_bounds_were_drawn_is_not_taken(
    tmp_path: Path, incoming: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_source_log, "COMPACT_EVERY", 2)
    log = log_of(tmp_path, incoming)
    for number in range(4):
        put(incoming, f"{number}.nq")
        log.plan_batch(number)
        log.forget(number)
    before = put(incoming, "4.nq")
    resumed = log_of(tmp_path, incoming)
    sizes = resumed.sizes()
    put(incoming, "5.nq")
    assert resumed.plan_batch(4, sizes) == 5
    assert files(resumed, 5) == [[before]]
    assert resumed.plan_batch(5, sizes) == 5


def test_streams_of_one_log_are_told_apart(tmp_path: Path, incoming: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    a, b = put(incoming, "a.nq"), put(other, "b.nq")
    log = log_of(tmp_path, incoming, other)
    log.plan_batch(0)
    assert files(log, 1) == [[a], [b]]


def event(number: int, seconds: int) -> str:
    graph = f"<http://e/{number}>"
    return (
        f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{seconds * 1000}"^^'
        "<http://www.w3.org/2001/XMLSchema#long> .\n"
        f'<http://e/s> <http://e/p> "{number}" {graph} .\n'
    )


def write(directory: Path, name: str, *seconds: int) -> None:
    (directory / name).write_text("".join(event(n, s) for n, s in enumerate(seconds)))


class Wall:
    """A manual clock."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    places = tmp_path / "one", tmp_path / "two"
    for place in places:
        place.mkdir()
    return places


def idle_log(tmp_path: Path, two: tuple[Path, Path], wall: Wall) -> FileSourceLog:
    streams = [
        GrowingFiles.at(StreamOptions(f"http://s/{i}", (str(p),))) for i, p in enumerate(two)
    ]
    return FileSourceLog(tmp_path / "log", streams, FileSourceSettings(idle_ms=10_000), wall)


def watermarks(log: FileSourceLog, number: int) -> list[int | None]:
    return [clock.watermark for clock in log.clocks(number)]


def test_a_silent_stream_follows_the_others_after_a_while(
    tmp_path: Path, two: tuple[Path, Path]
) -> None:
    wall = Wall()
    log = idle_log(tmp_path, two, wall)
    write(two[0], "1.nq", 5)
    write(two[1], "1.nq", 1)
    assert log.plan_batch(0) == 1
    assert watermarks(log, 1) == [5000, 1000]
    wall.seconds += 9
    write(two[0], "2.nq", 60)
    assert log.plan_batch(1) == 2
    assert watermarks(log, 2) == [60_000, 1000]
    wall.seconds += 1  # no new file, but the second stream has been idle for ten seconds
    assert log.plan_batch(2) == 3
    assert watermarks(log, 3) == [60_000, 60_000]
    assert log.plan_batch(3) == 3
    assert idle_log(tmp_path, two, wall).plan_batch(3) == 3


def test_a_stream_that_comes_back_is_late_behind_what_was_answered(
    tmp_path: Path, two: tuple[Path, Path]
) -> None:
    wall = Wall()
    log = idle_log(tmp_path, two, wall)
    wall.seconds += 10
    write(two[0], "1.nq", 60)
    assert log.plan_batch(0) == 1
    assert watermarks(log, 1) == [60_000, 60_000]
    write(two[1], "1.nq", 59, 60, 61)
    assert log.plan_batch(1) == 2
    [taken] = log.batch(2).streams[1].slices
    assert taken.clock.floor == 60_000
    assert watermarks(log, 2) == [60_000, 61_000]


def test_without_a_setting_a_silent_stream_is_waited_for(
    tmp_path: Path, two: tuple[Path, Path]
) -> None:
    log = log_of(tmp_path, *two)
    write(two[0], "1.nq", 60)
    assert log.plan_batch(0) == 1
    assert watermarks(log, 1) == [60_000, None]


def test_a_file_that_grows_is_taken_on_from_where_it_was(tmp_path: Path, incoming: Path) -> None:
    streams = [GrowingFiles.at(StreamOptions("http://s", (str(incoming),)))]
    wall = Wall()
    log = FileSourceLog(tmp_path / "log", streams, FileSourceSettings(growing=True), wall)
    one, two, three = (event(n, n) for n in (1, 2, 3))
    taken = []
    for number, text in enumerate((one, one + two, one + two + three, one + two + three)):
        (incoming / "a.nq").write_text(text)
        os.utime(incoming / "a.nq", (wall.seconds, wall.seconds))
        wall.seconds += 1
        if log.plan_batch(len(taken)) > len(taken):
            [part] = log.batch(len(taken) + 1).streams[0].slices
            taken.append((number, part.range.begin, part.range.end, part.range.line))
    ends = [0, len(one), len(one + two), len(one + two + three)]
    assert taken == [(1, 0, ends[1], 1), (2, ends[1], ends[2], 3)]
    wall.seconds += 60
    assert log.plan_batch(2) == 3
    [part] = log.batch(3).streams[0].slices
    assert (part.range.begin, part.range.end, part.range.line) == (ends[2], ends[3], 5)


@pytest.mark.parametrize("growing", [True, False])
def test_a_large_file_is_taken_in_several_batches(
    tmp_path: Path, incoming: Path, growing: bool
) -> None:
    write(incoming, "a.nq", *range(20))
    size = (incoming / "a.nq").stat().st_size
    log = FileSourceLog(
        tmp_path / "log",
        [GrowingFiles.at(StreamOptions("http://s/0", (str(incoming),)))],
        FileSourceSettings(max_bytes=size // 4, growing=growing, settle_ms=0),
    )
    ends = []
    while log.plan_batch(len(ends)) > len(ends):
        [part] = log.batch(len(ends) + 1).streams[0].slices
        ends.append(part.range.end)
    assert ends[-1] == size
    assert 4 <= len(ends) <= 6


def test_batches_are_kept_as_long_as_the_state_depends_on_their_events(
    tmp_path: Path, incoming: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events 2 s apart, windows of 5 s: of ten batches, the state depends on the last three."""
    monkeypatch.setattr(file_source_log, "COMPACT_EVERY", 1)
    streams = [GrowingFiles.at(StreamOptions("http://s", (str(incoming),)))]

    def resumed() -> FileSourceLog:
        return FileSourceLog(tmp_path / "log", streams, depths=[Depth(("http://s",), 5000)])

    log = resumed()
    for number in range(10):
        put_event(incoming, f"{number}.nq", number * 2000)
        assert log.plan_batch(number) == number + 1
        log.forget(number + 1)
        if number == 5:
            log = resumed()
    assert resumed().begin() == 7  # the event before it came 12 s after the first one, 6 s ago
    assert resumed().reaches_back(7, 10)
    assert not resumed().reaches_back(8, 10)
    assert [p.name for p in (tmp_path / "log").glob("*.taken.json")] == ["9.taken.json"]


def test_batches_that_are_repeated_together_have_one_knowledge_base_and_a_bounded_size(
    tmp_path: Path, incoming: Path
) -> None:
    log = log_of(tmp_path, incoming)
    for number in range(8):
        log.use_knowledge("old" if number < 5 else "new")
        put_event(incoming, f"{number}.nq", number)
        log.plan_batch(number)
    size = (incoming / "0.nq").stat().st_size
    assert [log.repeated(n, 7, 100 * size) for n in (0, 4, 5)] == [5, 5, 7]
    assert [log.repeated(n, 7, 2 * size) for n in (0, 3)] == [2, 5]
    assert log.repeated(0, 7, 1) == 1


def put_event(directory: Path, name: str, time: int) -> None:
    """A file with an event."""
    (directory / name).write_text(
        f'<http://s/e> <http://www.w3.org/ns/prov#generatedAtTime> "{time:09}"'
        "^^<http://www.w3.org/2001/XMLSchema#long> <http://s/e> .\n"
    )


def test_files_that_were_read_are_not_looked_at_again(
    tmp_path: Path, incoming: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory may keep the files of a day."""
    for number in range(3):
        put_event(incoming, f"{number}.nq", number)
    (incoming / "link.nq").symlink_to(incoming / "0.nq")
    (incoming / "loop.nq").symlink_to(incoming / "loop.nq")
    (incoming / "directory.nq").mkdir()
    log = log_of(tmp_path, incoming)
    assert log.plan_batch(0) == 1
    assert sorted(Path(path).name for path in files(log, 1)[0]) == [
        *("0.nq", "1.nq", "2.nq", "link.nq")
    ]
    seen = []
    later = put(incoming, "later.nq")
    of_file = input_files.as_announced
    monkeypatch.setattr(
        input_files, "as_announced", lambda file: [of_file(file), seen.append(file.path)][0]
    )
    assert log.plan_batch(1) == 2
    assert files(log, 2) == [[later]] == [seen]
