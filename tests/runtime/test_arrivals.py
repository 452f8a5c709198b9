"""Which files a followed stream takes, when, and only once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spaseq.errors import InputError
from spaseq.rdf.readers import StreamOptions
from spaseq.runtime import arrivals
from spaseq.runtime.arrivals import ArrivalLog


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


def log_of(tmp_path: Path, *paths: object, max_bytes: int = 1000) -> ArrivalLog:
    streams = [StreamOptions(f"http://s/{i}", (str(p),)) for i, p in enumerate(paths)]
    return ArrivalLog(tmp_path / "log", streams, max_bytes)


def test_files_found_together_come_in_order_of_time_then_name(
    tmp_path: Path, incoming: Path
) -> None:
    c, b, a = put(incoming, "c.nq", 1), put(incoming, "b.nq", 1), put(incoming, "a.nq", 2)
    log = log_of(tmp_path, incoming)
    assert log.take(0) == 1
    assert log.batch(1).files == ((b, c, a),)


def test_unfinished_and_foreign_files_are_left_alone(tmp_path: Path, incoming: Path) -> None:
    for name in (".a.nq", "_b.nq", "c.txt"):
        put(incoming, name)
    assert log_of(tmp_path, incoming).take(0) == 0
    assert log_of(tmp_path, incoming / "*.nq").take(0) == 0


def test_a_glob_may_have_no_match_yet_but_a_directory_must_exist(tmp_path: Path) -> None:
    assert log_of(tmp_path, tmp_path / "*.nq").take(0) == 0
    with pytest.raises(InputError, match="no such file or directory"):
        log_of(tmp_path, tmp_path / "nowhere").take(0)


def test_a_file_is_taken_once(tmp_path: Path, incoming: Path) -> None:
    put(incoming, "a.nq")
    log = log_of(tmp_path, incoming)
    assert log.take(0) == 1
    assert log.take(1) == 1
    later = put(incoming, "b.nq")
    assert log.take(1) == 2
    assert log.batch(2).files == ((later,),)


def test_a_batch_that_was_planned_stays_as_it_was(tmp_path: Path, incoming: Path) -> None:
    first = put(incoming, "a.nq")
    log_of(tmp_path, incoming).take(0)
    put(incoming, "b.nq")
    resumed = log_of(tmp_path, incoming)
    assert resumed.take(0) == 1
    assert resumed.batch(1).files == ((first,),)


def test_a_batch_is_bounded_but_takes_a_larger_file(tmp_path: Path, incoming: Path) -> None:
    a, b, c = (put(incoming, f"{n}.nq", i, size=60) for i, n in enumerate("abc"))
    log = log_of(tmp_path, incoming, max_bytes=120)
    assert [log.take(0), log.take(1), log.take(2)] == [1, 2, 2]
    assert (log.batch(1).files, log.batch(2).files) == (((a, b),), ((c,),))
    assert log_of(tmp_path / "small", incoming, max_bytes=10).take(0) == 1


def test_what_was_taken_is_known_after_old_batches_are_forgotten(
    tmp_path: Path, incoming: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "COMPACT_EVERY", 3)
    log = log_of(tmp_path, incoming)
    for number in range(8):
        put(incoming, f"{number}.nq")
        assert log.take(number) == number + 1
        log.forget(number)
    assert not (tmp_path / "log" / "1.json").exists()
    assert log_of(tmp_path, incoming).take(8) == 8


def test_streams_of_one_log_are_told_apart(tmp_path: Path, incoming: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    a, b = put(incoming, "a.nq"), put(other, "b.nq")
    log = log_of(tmp_path, incoming, other)
    log.take(0)
    assert log.batch(1).files == ((a,), (b,))
