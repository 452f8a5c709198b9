"""A log has all committed records after a cut, a damaged byte, a full disk and a SIGKILL."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.errors import RunError
from spaseq.logs import segment_log
from spaseq.logs.frames import DamagedLog
from spaseq.logs.segment_log import LogNotWritten, LogReader, SegmentLog


def records(log: SegmentLog, index: int = 0) -> list[tuple[int, bytes]]:
    reader, found = LogReader(log, index), []
    while some := reader.read():
        found += some
    reader.close()
    return found


def written(directory: Path, commits: list[list[bytes]], segment_bytes: int = 2**26) -> list[int]:
    """A log with these commits; the size of its last segment after each one."""
    log, sizes = SegmentLog(directory, segment_bytes), []
    for commit in commits:
        log.append(commit)
        log.commit()
        sizes.append(sorted(directory.glob("*.log"))[-1].stat().st_size)
    log.close()
    return sizes


COMMITS = [[b"one", b"two"], [b""], [b"three" * 9, b"4", b"5"]]
ALL = [(i, record) for i, record in enumerate(r for commit in COMMITS for r in commit)]


def test_committed_records_are_there_after_a_restart(tmp_path: Path) -> None:
    written(tmp_path, COMMITS)
    log = SegmentLog(tmp_path)
    assert log.end == len(ALL)
    assert records(log) == ALL
    assert records(log, 3) == ALL[3:]
    assert log.append([b"next"]) == len(ALL)
    log.commit()
    assert records(log, len(ALL)) == [(len(ALL), b"next")]


def test_what_was_not_committed_is_not_there(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path)
    log.append([b"a"])
    assert records(log) == []
    log.discard()
    log.append([b"b"])
    log.commit()
    log.append([b"c"])
    log.close()
    assert records(SegmentLog(tmp_path)) == [(0, b"b")]


@given(
    commits=st.lists(st.lists(st.binary(max_size=40), min_size=1, max_size=4), max_size=8),
    segment_bytes=st.integers(1, 300),
    start=st.integers(0, 12),
)
@settings(deadline=None, max_examples=60)
def test_any_commits_in_segments_of_any_size_are_read_from_any_place(
    tmp_path_factory: pytest.TempPathFactory,
    commits: list[list[bytes]],
    segment_bytes: int,
    start: int,
) -> None:
    directory = tmp_path_factory.mktemp("log")
    written(directory, commits, segment_bytes)
    log = SegmentLog(directory, segment_bytes)
    every = list(enumerate(record for commit in commits for record in commit))
    assert log.end == len(every)
    assert records(log, min(start, log.end)) == every[start:]


def test_a_log_that_is_cut_at_any_byte_has_the_whole_commits_before(tmp_path: Path) -> None:
    sizes = written(tmp_path / "whole", COMMITS)
    (segment,) = (tmp_path / "whole").glob("*.log")
    data = segment.read_bytes()
    SegmentLog(tmp_path / "empty").close()
    start = next((tmp_path / "empty").glob("*.log")).stat().st_size
    for cut in range(start, len(data)):
        directory = tmp_path / f"cut-{cut}"
        directory.mkdir()
        (directory / segment.name).write_bytes(data[:cut])
        whole = sum(len(c) for c, size in zip(COMMITS, sizes, strict=True) if size <= cut)
        log = SegmentLog(directory)
        assert records(log) == ALL[:whole]
        assert log.cut == cut - max([start, *(size for size in sizes if size <= cut)])
        log.append([b"again"])
        log.commit()
        log.close()
        assert records(SegmentLog(directory)) == [*ALL[:whole], (whole, b"again")]


def test_every_damaged_byte_is_found_and_the_file_is_named(tmp_path: Path) -> None:
    written(tmp_path / "whole", COMMITS)
    (segment,) = (tmp_path / "whole").glob("*.log")
    data = segment.read_bytes()
    for place in range(len(data)):
        for change in (1, 0x80, 0xFF):
            directory = tmp_path / f"{place}-{change}"
            directory.mkdir()
            broken = bytearray(data)
            broken[place] ^= change
            (directory / segment.name).write_bytes(broken)
            with pytest.raises(DamagedLog, match=segment.name):
                SegmentLog(directory)


def test_damage_in_an_earlier_segment_is_found_when_it_is_read(tmp_path: Path) -> None:
    written(tmp_path, COMMITS, segment_bytes=1)
    earlier = sorted(tmp_path.glob("*.log"))[1]
    data = bytearray(earlier.read_bytes())
    data[-1] ^= 1
    earlier.write_bytes(data)
    log = SegmentLog(tmp_path)
    with pytest.raises(DamagedLog, match=earlier.name):
        records(log)
    assert records(log, 3) == ALL[3:]


@pytest.mark.parametrize("cut", [True, False])
def test_an_earlier_segment_that_is_short_or_missing_is_damage(tmp_path: Path, cut: bool) -> None:
    written(tmp_path, COMMITS, segment_bytes=1)
    earlier = sorted(tmp_path.glob("*.log"))[1]
    if cut:
        os.truncate(earlier, earlier.stat().st_size - 1)
    else:
        earlier.unlink()
    with pytest.raises(DamagedLog, match="damaged"):
        records(SegmentLog(tmp_path))


def test_sectors_that_were_never_written_end_the_log(tmp_path: Path) -> None:
    """A power failure can leave a commit whose size is on disk and whose bytes are not."""
    sizes = written(tmp_path, [[b"first"], [b"x" * 4000]])
    (segment,) = tmp_path.glob("*.log")
    data = bytearray(segment.read_bytes())
    data[1024:2048] = bytes(1024)
    segment.write_bytes(data)
    log = SegmentLog(tmp_path)
    assert records(log) == [(0, b"first")]
    assert log.cut == sizes[1] - sizes[0]
    log.close()
    segment.write_bytes(bytes(data[: sizes[0]]) + bytes(700))
    assert records(SegmentLog(tmp_path)) == [(0, b"first")]


def test_zeros_in_the_middle_are_damage(tmp_path: Path) -> None:
    written(tmp_path, [[b"x" * 4000], [b"last"]])
    (segment,) = tmp_path.glob("*.log")
    data = bytearray(segment.read_bytes())
    data[0 + 512 : 1024] = bytes(512)
    segment.write_bytes(data)
    with pytest.raises(DamagedLog):
        SegmentLog(tmp_path)
    data = bytearray(segment.read_bytes())
    data[24:1024] = bytes(1000)  # the head of the first frame, too
    segment.write_bytes(data)
    with pytest.raises(DamagedLog):
        SegmentLog(tmp_path)


def failing_write(monkeypatch: pytest.MonkeyPatch, at: int) -> Callable[[], None]:
    """Let writes fail as on a full disk, after `at` bytes; the result ends that."""
    plain, left = os.write, [at]

    def write(descriptor: int, data: bytes) -> int:
        if left[0] <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = plain(descriptor, bytes(data)[: left[0]])
        left[0] -= done
        return done

    monkeypatch.setattr(segment_log.os, "write", write)
    return lambda: left.__setitem__(0, 2**40)


@pytest.mark.parametrize("at", [0, 1, 27, 28, 40, 60])
def test_a_full_disk_is_named_and_nothing_half_written_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    log = SegmentLog(tmp_path)
    log.append([b"before"])
    log.commit()
    (segment,) = tmp_path.glob("*.log")
    size = segment.stat().st_size
    free = failing_write(monkeypatch, at)
    log.append([b"x" * 50])
    with pytest.raises(LogNotWritten, match="No space left"):
        log.commit()
    assert segment.stat().st_size == size
    assert log.end == 1
    assert records(log) == [(0, b"before")]
    free()
    assert log.commit() == 2
    log.close()
    assert records(SegmentLog(tmp_path)) == [(0, b"before"), (1, b"x" * 50)]


def test_a_sync_that_fails_takes_the_commit_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = SegmentLog(tmp_path)

    def fail(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(segment_log, "sync_data", fail)
    log.append([b"lost"])
    with pytest.raises(LogNotWritten, match="Input/output"):
        log.commit()
    monkeypatch.undo()
    log.discard()
    log.close()
    assert records(SegmentLog(tmp_path)) == []


@pytest.mark.parametrize("fate", ["deleted", "moved", "replaced"])
def test_a_log_that_is_gone_takes_no_records(tmp_path: Path, fate: str) -> None:
    place, elsewhere = tmp_path / "log", tmp_path / "elsewhere"
    log = SegmentLog(place)
    log.write([b"before"])
    place.rename(elsewhere)
    if fate == "deleted":
        shutil.rmtree(elsewhere)
    elif fate == "replaced":
        SegmentLog(place).write([b"of another server"])
    with pytest.raises(LogNotWritten, match="cannot write"):
        log.write([b"lost"])
    if fate == "moved":
        elsewhere.rename(place)
        log.write([b"after"])
        assert records(SegmentLog(place)) == [(0, b"before"), (1, b"after")]
    log.close()


def test_segments_are_dropped_when_no_record_of_them_is_needed(tmp_path: Path) -> None:
    written(tmp_path, COMMITS, segment_bytes=1)
    log = SegmentLog(tmp_path, segment_bytes=1)
    log.drop_before(2)
    assert log.first == 2
    assert records(log, 2) == ALL[2:]
    with pytest.raises(RunError, match=r"record 1 .* has been dropped; the first one is 2"):
        records(log, 1)
    log.drop_before(100)
    assert log.first == 3  # the last segment stays
    log.close()
    assert SegmentLog(tmp_path).end == len(ALL)


def test_a_segment_that_is_gone_already_is_dropped(tmp_path: Path) -> None:
    written(tmp_path, COMMITS, segment_bytes=1)
    log = SegmentLog(tmp_path, segment_bytes=1)
    min(tmp_path.glob("*.log")).unlink()
    log.drop_before(2, written_before=2.0**40)
    assert log.first == 2
    assert records(log, 2) == ALL[2:]


def test_a_reader_goes_on_while_the_log_grows_and_drops(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path, segment_bytes=60)
    reader, found = LogReader(log), []
    for number in range(50):
        log.append([b"%d" % number])
        log.commit()
        if number % 3 == 0:
            found += reader.read()
            assert reader.read() == []
            log.drop_before(reader.next)
    found += reader.read()
    assert found == [(n, b"%d" % n) for n in range(50)]


def test_a_begin_of_a_segment_that_was_interrupted_is_forgotten(tmp_path: Path) -> None:
    written(tmp_path, COMMITS)
    (tmp_path / ".00000000000000000006.log").write_bytes(b"half")
    assert records(SegmentLog(tmp_path)) == ALL
    assert [p.name[0] for p in tmp_path.iterdir()] == ["0"]


WRITER = """
import sys
from pathlib import Path
from spaseq.logs.segment_log import SegmentLog
log = SegmentLog(Path(sys.argv[1]), segment_bytes=20_000)
number = log.end
while True:
    log.append([b"%d " % (number + i) + b"x" * ((number + i) % 97) for i in range(number % 7 + 1)])
    number = log.commit()
    print(number, flush=True)
"""


@pytest.mark.thorough
def test_a_killed_writer_loses_no_commit(tmp_path: Path) -> None:
    end = 0
    for run in range(6):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(0.05 * (run + 1))
            writer.send_signal(signal.SIGKILL)
            told = [int(line) for line in writer.stdout.read().split("\n")[:-1]]
        log = SegmentLog(tmp_path, 20_000)
        assert log.end >= max(told, default=end) > end
        end = log.end
        expected = [(n, b"%d " % n + b"x" * (n % 97)) for n in range(end)]
        assert records(log) == expected
        log.close()
