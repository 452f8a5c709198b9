"""Input files: paths, directories, globs and standard input as files with formats; unpacking of
.gz.

Unpacking gives all bytes before any damage, and limits the inflation. Standard input may announce
RDF Messages in its first line.
"""

from __future__ import annotations

import io
import os
import sys
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from difflib import get_close_matches
from glob import glob, has_magic
from pathlib import Path
from stat import S_ISFIFO, S_ISREG
from typing import IO, Any, cast

from spaseq.errors import InputError, UsageError
from spaseq.extras import missing
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.rdf.inputs.formats import (
    AS_MESSAGES,
    EXTENSIONS,
    Format,
    announces_messages,
    format_named,
    format_of,
)
from spaseq.rdf.inputs.stream_options import BadInput, OnBad, StreamOptions
from spaseq.records import record

_PACKED_STEP = 1 << 16
"""Bytes of the packed file per read."""

_FREE_BYTES = 1 << 26
"""Unpacked bytes before the inflation is checked: a small file may hold one line many times."""

GZIP_MAGIC = b"\x1f\x8b"
"""The first bytes of a member."""

_GZIP = 31  # zlib's sign for the gzip format, with its check sum

STDIN = "-"

_ROWS = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".arrow", ".feather")
"""Extensions of tables and of JSON lines."""

HEAD_BYTES = 1 << 12
"""Maximum position of the announcement of messages in a document."""

_MOST_HEADS = 1 << 16

READ_ERRORS = (OSError, EOFError, zlib.error)
"""Errors while reading a file that could be opened: a failing disk, a damaged .gz."""

_BEGINS = b"VERSION", b"@version"


class UnpackedFile(io.RawIOBase):
    """The unpacked bytes of a .gz file, which may have several members.

    Reading gives every byte that can be unpacked. Then it raises an OSError with the place of the
    damage in the packed file. Other bytes after the end of a member are no damage: `after_end` is
    their position.
    """

    def __init__(self, packed: IO[bytes], limits: Limits) -> None:
        """Unpack the file `packed`, which is closed with this one."""
        self._packed = packed
        self._most = limits.inflation
        self._unpacker = zlib.decompressobj(_GZIP)
        self._waiting = b""  # packed bytes that wait
        self._taken = 0  # packed bytes that are unpacked
        self._given = 0  # unpacked bytes
        self._in_member = False
        self._fault: OSError | None = None
        self.after_end: int | None = None

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._packed.close()
        super().close()

    def readinto(self, room: memoryview) -> int:  # type: ignore[override]
        size = len(room)
        while size and self._fault is None and self._has_packed():
            text = self._unpacked(size)
            if text and self._given > max(_FREE_BYTES, self._most * self._taken):
                self._fault = OSError(
                    f"the .gz unpacks to more than {self._most} times its size (--max-inflation)"
                )
            elif text:
                room[: len(text)] = text
                self._given += len(text)
                return len(text)
        if size and self._fault is not None:
            raise self._fault
        return 0

    def _has_packed(self) -> bool:
        """Whether packed bytes of a member wait. Zeros between two members are padding."""
        while True:
            if not self._in_member and self._taken:
                size = len(self._waiting)
                self._waiting = self._waiting.lstrip(b"\0")
                self._taken += size - len(self._waiting)
            if self._waiting and self._taken and not self._in_member and not self._begins():
                self.after_end = self._taken
                return False
            if self._waiting:
                self._in_member = True
                return True
            self._waiting = self._packed.read(_PACKED_STEP)
            if not self._waiting:
                if self._in_member:
                    self._fault = OSError(f"the .gz ends at byte {self._taken}, within its data")
                return False

    def _begins(self) -> bool:
        """Whether another member begins with the waiting bytes."""
        if len(self._waiting) < len(GZIP_MAGIC):
            self._waiting += self._packed.read(_PACKED_STEP)
        return self._waiting.startswith(GZIP_MAGIC)

    def _unpacked(self, most: int) -> bytes:
        """The next bytes, at most `most`; possibly none."""
        unpacker, waiting = self._unpacker, self._waiting
        before = unpacker.copy()
        try:
            text = unpacker.decompress(waiting, most)
        except zlib.error as error:
            return self._before_damage(before, str(error))
        self._waiting = unpacker.unconsumed_tail
        if unpacker.eof:
            self._waiting = unpacker.unused_data
            self._unpacker, self._in_member = zlib.decompressobj(_GZIP), False
        self._taken += len(waiting) - len(self._waiting)
        return text

    def _before_damage(self, unpacker: zlib._Decompress, error: str) -> bytes:
        """The bytes before the damage, byte by byte, because a failed call of zlib gives none."""
        texts = []
        try:
            for i in range(len(self._waiting)):
                texts.append(unpacker.decompress(self._waiting[i : i + 1]))
                self._taken += 1
        except zlib.error:
            pass
        reason = error.rpartition(": ")[2]
        self._fault = OSError(f"the .gz is damaged at about byte {self._taken}: {reason}")
        return b"".join(texts)


def report_after_end(data: object, path: str, on_bad: OnBad) -> None:
    """Report bytes behind the intact end of a .gz whose text has been read."""
    if isinstance(data, UnpackedFile) and data.after_end is not None:
        reason = f"the .gz ends at byte {data.after_end}; the bytes behind its end are not read"
        on_bad(BadInput(path, None, reason))


@record
class InputFile:
    """One file, or `-` for standard input, with its format."""

    path: str
    format: Format

    def open(self, limits: Limits = DEFAULT_LIMITS) -> AbstractContextManager[IO[bytes]]:
        """A stream of the unpacked bytes; InputError if the file cannot be opened."""
        if self.path == STDIN:
            # The caller must not close it. A thread may wait for it when the process ends, so it is
            # read without a buffer, whose lock that would need.
            unbuffered = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
            return nullcontext(cast("IO[bytes]", unbuffered))
        try:
            if self.path.endswith(".gz"):
                return cast("IO[bytes]", UnpackedFile(open(self.path, "rb", 0), limits))
            is_pipe = S_ISFIFO(os.stat(self.path).st_mode)
            return cast("IO[bytes]", open(self.path, "rb", 0 if is_pipe else -1))
        except OSError as error:
            raise InputError(f"cannot read {self.path}: {error.strerror}") from error


def resolve_paths(
    options: StreamOptions, leave_out: Callable[[str], bool] = lambda path: False
) -> tuple[InputFile, ...]:
    """The files of a stream in reading order.

    The files of a directory or glob come in order of name. A directory may be empty.

    Args:
        options: of the stream.
        leave_out: which files of a directory are not looked at, by path. It may have many.

    Raises:
        InputError: a path does not exist; a glob matches nothing; a format is unknown; or a format
            has no graphs and `triples_per_event` is not set.
    """
    forced = format_named(options.format) if options.format is not None else None
    try:
        files = tuple(f for path in options.paths for f in files_at(path, forced, leave_out))
        for file in files:
            _check_reader(file, options)
    except InputError as error:
        raise InputError(f"stream <{options.iri}>: {error}") from None
    return files


def files_at(
    path: str,
    forced: Format | None = None,
    leave_out: Callable[[str], bool] = lambda path: False,
) -> Sequence[InputFile]:
    """The files at a path: one file, the files of a directory or glob in order of name, or `-`.

    Raises:
        InputError: the path does not exist or cannot be read; the glob matches nothing; or a
            format is unknown.
    """
    if path == STDIN:
        return [InputFile(STDIN, forced or Format.NQUADS)]
    try:
        return _files_at(path, forced, leave_out)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def _files_at(
    path: str, forced: Format | None, leave_out: Callable[[str], bool]
) -> Sequence[InputFile]:
    given_path = Path(path)
    if given_path.is_dir():
        return _directory(given_path, forced, leave_out)
    if given_path.exists():
        return [_file(path, forced)]
    if has_magic(path):
        matches = sorted(p for p in glob(path, recursive=True) if Path(p).is_file())
        if not matches:
            raise InputError(f"no file matches {path}")
        return [_file(p, forced) for p in matches]
    raise InputError(f"no such file or directory: {path}{_near_path(given_path)}")


def _directory(
    directory: Path, forced: Format | None, leave_out: Callable[[str], bool]
) -> list[InputFile]:
    """The files of a directory, without hidden files and, if no format is forced, other formats."""
    begin = str(directory / "_")[:-1]
    with os.scandir(directory) as entries:
        names = [
            e.name
            for e in entries
            if not (e.name[0] in "._" or leave_out(begin + e.name)) and _is_file(e)
        ]
    named = [(begin + name, forced or format_of(name)) for name in sorted(names)]
    files = [InputFile(path, form) for path, form in named if form is not None]
    return files if forced else [as_announced(file) for file in files]


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a file, or leads to one."""
    return entry.is_file(follow_symlinks=False) or (
        entry.is_symlink() and os.path.isfile(entry.path)
    )


def _file(path: str, forced: Format | None) -> InputFile:
    form = forced or format_of(path)
    if form is None:
        if Path(path.removesuffix(".gz")).suffix.lower() in _ROWS:
            raise InputError(f"{path}: rows need a lift (--lift FILE, or spaseq.Lifted in Python)")
        known = " ".join(EXTENSIONS)
        raise InputError(f"{path}: unknown format; a name ends in one of {known} (or .gz after it)")
    file = InputFile(path, form)
    return file if forced else as_announced(file)


_HEADS: dict[tuple[str, int, int, int], bool] = {}


def as_announced(file: InputFile) -> InputFile:
    """The file with the format of messages if its begin announces RDF Messages.

    The result is cached, since a followed run calls this often.
    """
    form = AS_MESSAGES.get(file.format)
    if form is None:
        return file
    try:
        status = os.stat(file.path)
        if not S_ISREG(status.st_mode):
            return file
        key = (file.path, status.st_dev, status.st_ino, min(status.st_size, HEAD_BYTES))
        if key not in _HEADS:
            if len(_HEADS) >= _MOST_HEADS:
                _HEADS.clear()
            with file.open() as data:
                _HEADS[key] = announces_messages(data.read(HEAD_BYTES))
    except (InputError, *READ_ERRORS):  # reading says what is wrong
        return file
    return InputFile(file.path, form) if _HEADS[key] else file


def _check_reader(file: InputFile, options: StreamOptions) -> None:
    if file.format is Format.JELLY and missing("jelly"):
        raise UsageError(f"{file.path}: Jelly needs {missing('jelly')}")
    n = options.triples_per_event
    if n is not None and n < 1:
        raise InputError(f"triples_per_event must be at least 1, not {n}")
    if n is None and not file.format.has_graphs:
        raise InputError(
            f"{file.path}: {file.format.value} has no graphs, so say how many triples are one event"
            " (--triples-per-event N, or triples_per_event in Python)"
        )


def _near_path(path: Path) -> str:
    """A hint at the nearest name in the deepest existing directory of the path."""
    missing = path
    while not missing.parent.is_dir() and missing.parent != missing:
        missing = missing.parent
    try:
        names = [p.name for p in missing.parent.iterdir()]
    except OSError:
        return ""
    close = get_close_matches(missing.name, names, n=1)
    return f"; did you mean {missing.parent / close[0]}?" if close else ""


def announced(data: IO[bytes], file: InputFile) -> tuple[IO[bytes], InputFile]:
    """The data and the file, with the format that standard input announces.

    While the first bytes could be an announcement, this waits for the whole line.
    """
    if file.path != STDIN or file.format not in AS_MESSAGES:
        return data, file
    head = b""
    while len(head) < HEAD_BYTES and b"\n" not in head:
        part = data.read(1 << 10)
        head += part
        begin = head.removeprefix(BOM_UTF8).lstrip()
        if not part or not any(b.startswith(begin[: len(b)]) for b in _BEGINS):
            break
    whole = cast("IO[bytes]", Headed(head, data))
    if announces_messages(head):
        return whole, InputFile(file.path, AS_MESSAGES[file.format])
    return whole, file


class Headed(io.RawIOBase):
    """A file whose first bytes have already been read."""

    def __init__(self, head: bytes, data: Any) -> None:
        super().__init__()
        self._head, self._data = head, data

    def readable(self) -> bool:
        return True

    def readinto(self, room: memoryview) -> int:  # type: ignore[override]
        if not self._head:
            count: int = self._data.readinto(room)
            return count
        part, self._head = self._head[: len(room)], self._head[len(room) :]
        room[: len(part)] = part
        return len(part)
