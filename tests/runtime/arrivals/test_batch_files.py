"""The files of the log's batches: packed or not, they are the same batches after any kill."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from spaseq.errors import RunError
from spaseq.runtime.arrivals import batch_files
from spaseq.runtime.arrivals.arrived_batch import ArrivedBatch
from spaseq.runtime.arrivals.batch_files import BatchFiles
from tests.thresholds import Force


def batch(number: int) -> ArrivedBatch:
    return ArrivedBatch(number * 1000, (), f"kb-{number // 10}")


def written(directory: Path, last: int, files: BatchFiles | None = None) -> BatchFiles:
    """A log of the batches from 1 on, each packed as soon as it is behind the present one."""
    files = files or BatchFiles(directory)
    for number in range(1, last + 1):
        files.write(number, batch(number))
        files.pack(number)
    return files


def names(directory: Path) -> list[str]:
    return sorted(os.listdir(directory))


def check_batches(directory: Path) -> BatchFiles:
    """A log has the batches that were written."""
    files = written(directory, 20)
    for reader in (files, BatchFiles(directory)):
        assert reader.first() == 1
        # Far from each other, and backwards, as the state is sought that is made anew.
        for number in range(20, 0, -1):
            pair = reader.batch(number), reader.batch(21 - number)
            assert pair == (batch(number), batch(21 - number))
        assert reader.knowledge() == {"kb-0", "kb-1", "kb-2"}
        with pytest.raises(RunError):
            reader.batch(21)
    return files


@pytest.mark.parametrize(
    ("words", "kept"), [("least", 15), ("never", 15), ("packed_batches=3", 13)]
)
def test_batches_are_the_same_packed_or_not(
    tmp_path: Path, force: Force, words: str, kept: int
) -> None:
    force(words)
    files = check_batches(tmp_path)
    files.remove(15)
    for reader in (files, BatchFiles(tmp_path)):
        assert reader.first() == kept
        assert [reader.batch(n) for n in range(kept, 21)] == [batch(n) for n in range(kept, 21)]


def test_a_long_log_has_few_files(tmp_path: Path, force: Force) -> None:
    force("packed_batches=5")
    written(tmp_path, 23)
    assert names(tmp_path) == [
        *("1-5.packed.json", "11-15.packed.json", "16-20.packed.json"),
        *("21.json", "22.json", "23.json", "6-10.packed.json"),
    ]


class Killed(BaseException):
    """The process ends here."""


@contextmanager
def killed_at(step: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The process ends before one of its changes in the file system, the first one being 0."""
    count = 0

    def ending(change: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*args: Any, **options: Any) -> Any:
            nonlocal count
            if count == step:
                raise Killed
            count += 1
            return change(*args, **options)

        return changed

    with monkeypatch.context() as patched:
        for owner, name in (
            *((Path, name) for name in ("unlink", "replace")),
            (batch_files, "write_durably"),
        ):
            patched.setattr(owner, name, ending(getattr(owner, name)))
        yield


def test_no_batch_is_lost_whenever_the_process_is_killed(
    tmp_path: Path, force: Force, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten batches are packed by five, and then those before the eighth are removed."""
    force("packed_batches=5")
    ended = 0
    for step in range(30):
        directory = tmp_path / str(step)
        directory.mkdir()
        files = BatchFiles(directory)
        for number in range(1, 13):
            files.write(number, batch(number))
        try:
            with killed_at(step, monkeypatch):
                files.pack(11)
                files.pack(11)
                files.remove(8)
            ended += 1
        except Killed:
            pass
        again = BatchFiles(directory)
        first = again.first()
        assert first in (1, 6)
        assert [again.batch(n) for n in range(first, 13)] == [batch(n) for n in range(first, 13)]
        assert again.knowledge() == {batch(n).knowledge for n in range(first, 13)}
        for _ in range(2):
            again.pack(11)
        again.remove(8)
        assert names(directory) == ["11.json", "12.json", "6-10.packed.json"]
    assert 5 < ended < 20


def test_who_reads_while_batches_are_packed_finds_them(tmp_path: Path, force: Force) -> None:
    force("packed_batches=4")
    writer, reader = BatchFiles(tmp_path), BatchFiles(tmp_path)
    for number in range(1, 10):
        writer.write(number, batch(number))
        assert reader.batch(1) == batch(1)
        writer.pack(number)
        assert reader.batch(number) == batch(number)
        assert reader.batch(1 + number // 2) == batch(1 + number // 2)
    assert reader.knowledge() == {"kb-0"}


def test_a_damaged_pack_is_named(tmp_path: Path, force: Force) -> None:
    force("packed_batches=4")
    written(tmp_path, 6)
    path = tmp_path / "1-4.packed.json"
    path.write_bytes(path.read_bytes().replace(b"1000", b"1001"))
    with pytest.raises(RunError, match=r"1-4\.packed\.json is damaged"):
        BatchFiles(tmp_path).batch(2)
