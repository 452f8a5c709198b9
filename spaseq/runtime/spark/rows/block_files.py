"""Files of answers and of messages, which tasks write and a driver on the same machine reads.

A file is a sequence of pickled blocks, in a directory that only its user can write.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

from spaseq import thresholds
from spaseq.runtime.spark.rows.run_files import disk_errors


class Blocks(NamedTuple):
    """The blocks of a file from byte `begin` to byte `end`."""

    file: str
    begin: int
    end: int

    def read(self) -> Iterator[Any]:
        """Each block. The file is open from the first one to the last one."""
        with disk_errors(Path(self.file)), open(self.file, "rb") as file:
            file.seek(self.begin)
            while file.tell() < self.end:
                yield pickle.load(file)


class StoredRow(NamedTuple):
    """A row of `OUTPUT`, whose payload is a block by itself."""

    query: int
    order: str
    payload: Blocks

    def read(self) -> tuple[int, str, bytes]:
        """The row."""
        (payload,) = self.payload.read()
        return self.query, self.order, payload


class RowRun(NamedTuple):
    """Rows of `OUTPUT` of one query, in order."""

    query: int
    blocks: Blocks

    def read(self) -> Iterator[tuple[str, bytes]]:
        """(order, payload) of each row."""
        for order, payload in self.blocks.read():
            yield from zip(order, payload, strict=True)


@dataclass(slots=True)
class BlockFile:
    """Appends blocks to a file, which is made with the first block."""

    path: Path
    _file: IO[bytes] | None = None

    def append(self, block: object) -> Blocks:
        """Append a block; its place."""
        with disk_errors(self.path):
            if self._file is None:
                self._file = self.path.open("wb")
            begin = self._file.tell()
            pickle.dump(block, self._file, pickle.HIGHEST_PROTOCOL)
            return Blocks(str(self.path), begin, self._file.tell())

    def close(self) -> None:
        """Write what is still in memory."""
        if self._file is not None:
            with disk_errors(self.path):
                self._file.close()


@dataclass(slots=True)
class RowFile:
    """Appends rows of `OUTPUT` to a file; `runs` are its rows in order."""

    file: BlockFile
    runs: list[RowRun] = field(default_factory=list)
    _last: str = ""  # the order of the last row

    def append(self, query: int, order: Sequence[str], payload: Sequence[bytes]) -> None:
        """Append rows of a query, in order."""
        rows = thresholds.current.answer_rows
        for start in range(0, len(order), rows):
            part = slice(start, start + rows)
            place = self.file.append((order[part], payload[part]))
            if self.runs and self.runs[-1].query == query and self._last <= order[start]:
                place = place._replace(begin=self.runs.pop().blocks.begin)
            self.runs.append(RowRun(query, place))
            self._last = order[part][-1]

    def close(self) -> None:
        """Write what is still in memory."""
        self.file.close()
