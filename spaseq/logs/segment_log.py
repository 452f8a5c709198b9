"""A log of records, numbered from 0, in segments that can be dropped one by one.

A record is there for good once `commit` has returned: after a SIGKILL or a power failure the log
has all committed records, and none that was not handed to a commit. Each segment is a file with the
index of its first record as its name.
"""

from __future__ import annotations

import errno
import os
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import IO

from spaseq.errors import RunError
from spaseq.logs.frames import (
    NOTES,
    DamagedLog,
    Frame,
    TornFrame,
    frame_of,
    framed_record,
    notes_frame,
    read_frame,
)
from spaseq.storage.checksums import sync_data, write_durably

SEGMENT_BYTES = 64 * 2**20
"""A segment of this size is complete; the next commit begins another one."""

_SUFFIX = ".log"
_MARK_BYTES = 2**17


class LogNotWritten(RunError):
    """A commit failed, on a full disk for instance. Nothing of it is in the log."""


@dataclass(slots=True)
class _Segment:
    """A segment; `size` is how many of its bytes are committed, `begin` where its records begin.

    `marks` are the indexes of some records and the places of their frames, for readers.
    """

    first: int
    path: Path
    begin: int
    size: int
    marks: list[tuple[int, int]] = field(default_factory=list)

    def mark(self, index: int, at: int) -> None:
        """Note the place of the frame of a record, if it is well behind the last note."""
        last = self.marks[-1][1] if self.marks else self.begin
        if at >= last + _MARK_BYTES:
            self.marks.append((index, at))

    def mark_before(self, index: int) -> tuple[int, int]:
        """The last noted record at or before an index, and the place of its frame."""
        number = bisect_right(self.marks, index, key=itemgetter(0))
        return self.marks[number - 1] if number else (self.first, self.begin)


class SegmentLog:
    """A log in a directory, which must not be open twice; the caller locks it.

    One thread appends and commits. Any thread may read what is committed, by a `LogReader`.

    Args:
        directory: the log's directory, which is created.
        segment_bytes: the size at which a segment is complete.
        notes: called when a segment begins; returns bytes to keep in it, the state after all
            earlier records.

    Attributes:
        cut: number of bytes of a torn commit that were cut off at the opening of the log.

    Raises:
        DamagedLog: a segment is missing, or the last one is damaged. Damage in an earlier one is
            found when it is read.
        RunError: the directory cannot be read or written.
    """

    def __init__(
        self,
        directory: Path,
        segment_bytes: int = SEGMENT_BYTES,
        notes: Callable[[], bytes] = bytes,
    ) -> None:
        self.directory, self._segment_bytes, self._notes = directory, segment_bytes, notes
        self._lock = threading.Lock()  # over `_segments` and `_end`
        self._pending: list[bytes] = []  # framed records
        self._pending_count = 0  # the indexes that they take
        self._broken = False
        self.cut = 0
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._segments = self._found()
            self._end = self._last_end() if self._segments else 0
            if not self._segments:
                self._begin_segment()
            self._file = self._segments[-1].path.open("r+b", buffering=0)
        except OSError as error:
            raise RunError(f"cannot use the log {directory}: {error}") from error

    # --- opening ----------------------------------------------------------------------------------

    def _found(self) -> list[_Segment]:
        """The segments in the directory, without the remains of an interrupted begin."""
        segments = []
        for path in sorted(self.directory.iterdir()):
            if path.name.startswith("."):
                path.unlink()
            elif path.suffix == _SUFFIX and path.stem.isdigit():
                segments.append(_Segment(int(path.stem), path, *_sizes(path)))
        return segments

    def _last_end(self) -> int:
        """The index after the last record; a torn frame is cut."""
        last = self._segments[-1]
        end, size = last.first, last.begin
        with last.path.open("rb") as file:
            try:
                for frame in _frames(file, last.first, last.begin, last.size):
                    end, size = frame.index + frame.count, frame.end
            except TornFrame:
                self.cut = last.size - size
        if self.cut:
            os.truncate(last.path, size)
            last.size = size
        return end

    # --- writing ----------------------------------------------------------------------------------

    @property
    def end(self) -> int:
        """The index that follows the last committed record."""
        return self._end

    @property
    def first(self) -> int:
        """The index of the first record that is still there."""
        return self._segments[0].first

    def append(self, records: Sequence[bytes], width: int = 1) -> int:
        """Hand in records, which the next `commit` writes all or none of; the first one's index.

        Each takes `width` indexes: a record may hold several things that are to be counted.
        """
        index = self._end + self._pending_count
        self._pending.extend(framed_record(record, width) for record in records)
        self._pending_count += width * len(records)
        return index

    def commit(self) -> int:
        """Write the appended records; they are on disk when this returns.

        Returns:
            The index that follows the last record.

        Raises:
            LogNotWritten: the disk is full or fails, or the log was deleted. Nothing of the commit
                is in the log. The records stay appended: a later commit writes them.
        """
        if not self._pending:
            return self._end
        if self._broken:
            raise LogNotWritten(f"{self.directory} failed earlier; start again")
        try:
            last = self._segments[-1]
            if last.size >= self._segment_bytes and last.first < self._end:
                self._begin_segment()
                self._file.close()
                self._file = self._segments[-1].path.open("r+b", buffering=0)
            self._write(frame_of(self._end, self._pending_count, self._pending))
        except OSError as error:
            raise LogNotWritten(f"cannot write {self.directory}: {error.strerror}") from error
        with self._lock:
            self._end += self._pending_count
        self.discard()
        return self._end

    def write(self, records: Sequence[bytes]) -> int:
        """Append records and commit them; the index of the first.

        Raises:
            LogNotWritten: the disk is full. Nothing is in the log.
        """
        first = self.append(records)
        try:
            self.commit()
        except LogNotWritten:
            self.discard()
            raise
        return first

    def records(self, first: int = 0) -> Iterator[tuple[int, bytes]]:
        """The committed records from an index on that have not been dropped, with their indexes."""
        reader = LogReader(self, max(first, self.first))
        while some := reader.read():
            yield from some
        reader.close()

    def discard(self) -> None:
        """Drop the records appended since the last commit."""
        self._pending.clear()
        self._pending_count = 0

    def _write(self, data: bytes) -> None:
        segment, descriptor = self._segments[-1], self._file.fileno()
        view, done = memoryview(data), 0
        try:
            os.lseek(descriptor, segment.size, os.SEEK_SET)
            while done < len(view):
                done += os.write(descriptor, view[done:])
            sync_data(descriptor)
            if not os.path.samestat(os.fstat(descriptor), segment.path.stat()):
                raise OSError(errno.ESTALE, f"another file has the place of {segment.path.name}")
        except OSError:
            try:
                os.ftruncate(descriptor, segment.size)
            except OSError:
                self._broken = True  # the next start cuts it
            raise
        segment.size += len(view)
        segment.mark(self._end + self._pending_count, segment.size)

    def _begin_segment(self) -> None:
        path = self.directory / f"{self._end:020}{_SUFFIX}"
        data = notes_frame(self._end, self._notes())
        write_durably(path, data)
        with self._lock:
            self._segments.append(_Segment(self._end, path, len(data), len(data)))

    def close(self) -> None:
        """Close the files; uncommitted records are lost."""
        self.discard()
        self._file.close()

    # --- retention --------------------------------------------------------------------------------

    def drop_before(self, index: int, written_before: float | None = None) -> None:
        """Remove the segments that have no record from `index` on, but never the last segment.

        With `written_before` (s since the epoch), younger segments stay.
        """
        while len(self._segments) > 1 and self._segments[1].first <= index:
            path = self._segments[0].path
            written = path.stat().st_mtime if path.exists() else 0.0
            if written_before is not None and written >= written_before:
                return
            with self._lock:
                dropped = self._segments.pop(0)
            dropped.path.unlink(missing_ok=True)

    def whole_before(self, index: int) -> tuple[int, int]:
        """The effect of `drop_before`: the index after the last removed record, and the bytes."""
        with self._lock:
            number = bisect_right(self._segments, index, key=lambda each: each.first) - 1
            dropped = self._segments[: max(number, 0)]
            return self._segments[len(dropped)].first, sum(each.size for each in dropped)

    # --- reading ----------------------------------------------------------------------------------

    def last_notes(self) -> tuple[bytes, int]:
        """The notes of the last segment, and the index of its first record."""
        last = self._segments[-1]
        with last.path.open("rb") as file:
            return read_frame(file, 0, last.size, NOTES).body, last.first

    def segment_of(self, index: int) -> tuple[_Segment, int]:
        """The segment with a record, or that it will come to, and its committed size.

        Raises:
            RunError: the record has been dropped.
        """
        with self._lock:
            for segment in reversed(self._segments):
                if segment.first <= index:
                    return segment, segment.size
        raise RunError(
            f"record {index} of {self.directory} has been dropped; the first one is {self.first}"
        )


class LogReader:
    """Reads the committed records of a log, from a place, while the log grows."""

    def __init__(self, log: SegmentLog, index: int = 0) -> None:
        self._log, self.next = log, index
        self._segment: _Segment | None = None
        self._file: IO[bytes] | None = None
        self._at = self._expected = 0  # the place in the file, and the index of its record

    def read(self, most_bytes: int = 2**20, until: int | None = None) -> list[tuple[int, bytes]]:
        """The next committed records with their indexes, whole commits of about `most_bytes`.

        There are none if the reader has come to the end of the log, or to the record `until`, which
        is the first one of a commit.

        Raises:
            DamagedLog: the log is damaged there.
            RunError: the records have been dropped.
        """
        records: list[tuple[int, bytes]] = []
        wanted, taken = self.next, 0
        end = self._log.end if until is None else min(until, self._log.end)
        while taken < most_bytes and self.next < end:
            file, size = self._opened()
            try:
                frame = next(_frames(file, self._expected, self._at, size))
            except (TornFrame, StopIteration):
                raise DamagedLog(f"{file.name} is damaged: it is too short") from None
            self._at, self._expected = frame.end, frame.index + frame.count
            if self._segment is not None:
                self._segment.mark(self._expected, self._at)
            if self._expected <= wanted:
                continue
            records += frame.records(wanted)
            self.next = self._expected
            taken += len(frame.body)
        return records

    def seek(self, index: int) -> None:
        """Go on with another record."""
        self.close()
        self.next, self._segment = index, None

    def _opened(self) -> tuple[IO[bytes], int]:
        """The open segment with the next record, and its committed size."""
        segment, size = self._log.segment_of(self.next)
        if segment is not self._segment or self._file is None:
            self.close()
            try:
                self._file = segment.path.open("rb")
            except FileNotFoundError:
                raise RunError(f"record {self.next} of {self._log.directory} was dropped") from None
            self._segment = segment
            self._expected, self._at = segment.mark_before(self.next)
        return self._file, size

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _sizes(path: Path) -> tuple[int, int]:
    """(where the records of a segment begin, its size)."""
    size = path.stat().st_size
    with path.open("rb") as file:
        try:
            notes = read_frame(file, 0, size, NOTES) if size else None
        except TornFrame:
            notes = None
    if notes is None or notes.index != int(path.stem):
        raise DamagedLog(
            f"{path} is damaged at its beginning. Restore its directory from a copy, or start "
            "again with an empty one"
        )
    return notes.end, size


def _frames(file: IO[bytes], index: int, at: int, size: int) -> Iterator[Frame]:
    """The frames of a segment from a place, whose first record has the index."""
    while at < size:
        frame = read_frame(file, at, size)
        if frame.index != index:
            raise DamagedLog(
                f"{file.name} is damaged at byte {at}: record {frame.index} stands where record "
                f"{index} should"
            )
        index, at = index + frame.count, frame.end
        yield frame
