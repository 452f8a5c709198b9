"""Bytes of a file as blocks of whole lines, numbered, whatever ends them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from spaseq.rdf.batches import BadInput
from spaseq.rdf.blocks import OnBad

BLOCK_BYTES = 1 << 20
_BOM = b"\xef\xbb\xbf"

READ_ERRORS = (OSError, EOFError, zlib.error)
"""What reading a file that could be opened may raise: a failing disk, a damaged .gz."""


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Consecutive lines of a file without their ends; `first` is the number of the first, from 1.

    A byte that is not UTF-8 is a lone surrogate in its line. `cut` says that the file could not be
    read beyond these lines.
    """

    first: int
    lines: list[str]
    cut: bool = False


def line_blocks(data: IO[bytes], file: str, on_bad: OnBad) -> Iterator[LineBlock]:
    """All lines of a file, about a MB at a time; LF, CR LF and CR end a line.

    If reading fails on the way, that is reported and what was read whole is the last block.
    """
    number = 1
    left = b""
    more = True
    while more:
        fault: Exception | None = None
        try:
            chunk = data.read(BLOCK_BYTES)
        except READ_ERRORS as error:
            fault, chunk = error, b""
        more = bool(chunk)
        whole, left = _whole_lines(left + chunk, more or fault is not None)
        if number == 1:
            whole = whole.removeprefix(_BOM)
        lines = _lines(whole)
        if fault is not None:
            at = number + len(lines)
            on_bad(BadInput(file, at, f"the rest of the file cannot be read: {fault}"))
        if lines or fault is not None:
            yield LineBlock(number, lines, fault is not None)
        number += len(lines)


def _whole_lines(data: bytes, more: bool) -> tuple[bytes, bytes]:
    """`data` up to its last line feed, and what is after it; all of it if no more follows."""
    if not more:
        return data, b""
    end = data.rfind(b"\n") + 1
    return data[:end], data[end:]


def _lines(whole: bytes) -> list[str]:
    text = whole.decode(errors="surrogateescape")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines
