"""512 MB without an event's end: bounded memory, one report, and the other events are answered."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from spaseq.rdf.events.graph_times import LOST_QUAD
from tests.rdf.lines.test_hostile_lines import answers, directory, event

__all__ = ["directory"]

pytestmark = pytest.mark.thorough

_MB = 1 << 20


def nuls(file: IO[bytes]) -> None:
    file.seek(512 * _MB, 1)  # a hole, which reads as NUL
    file.write(b"\n")


def comments(file: IO[bytes]) -> None:
    for _ in range(512):
        file.write(b"# comment\n" * (_MB // 10))


def comment(file: IO[bytes]) -> None:
    file.write(b"#" * _MB * 512 + b"\n")


def quads(file: IO[bytes]) -> None:
    for begin in range(0, 14_000_000, 20_000):
        lines = (b"<a:s%08d> <a:p> <a:o> <a:g> .\n" % i for i in range(begin, begin + 20_000))
        file.write(b"".join(lines))


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (nuls, "a line of 536870912 bytes; the limit is 33554432 (--max-line)"),
        (comment, "a line of 536870912 bytes; the limit is 33554432 (--max-line)"),
        (comments, None),
        (quads, "an event of more than 67108864 bytes, the limit (--max-event)"),
    ],
)
def test_512_mb_between_two_events(
    directory: Path, write: Callable[[IO[bytes]], None], reason: str | None
) -> None:
    with (directory / "in" / "a.nq").open("wb") as file:
        file.write(event("one", 1))
        write(file)
        file.write(event("two", 2))
    (directory / "in" / "b.nq").write_bytes(event("three", 3))
    found, bad = answers(directory)
    lost = [LOST_QUAD] * 2 if write is nuls else []  # no graph can be read in the line
    assert found == ["http://e/one", "http://e/two", "http://e/three"][len(lost) :]
    assert sorted(b["reason"] for b in bad) == sorted([*lost, *([reason] if reason else [])])
    assert sorted(b["line"] for b in bad) == ([1, 3, 4] if lost else [3] if reason else [])


@pytest.mark.parametrize("text", [b"\0", b"# comment\n"])
def test_a_gzip_bomb_of_10_mb(directory: Path, text: bytes) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    start = packer.compress(event("one", 1) + event("two", 2)) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(text * (_MB // len(text))) + packer.flush(zlib.Z_FULL_FLUSH)
    (directory / "in" / "a.nq.gz").write_bytes(start + block * (10 * _MB // len(block)))
    (directory / "in" / "b.nq").write_bytes(event("three", 3))
    found, bad = answers(directory)
    assert found == ["http://e/one", "http://e/two", "http://e/three"]
    reason = "the .gz unpacks to more than 500 times its size (--max-inflation)"
    assert [b["reason"] for b in bad] == [f"the rest of the file is not read: {reason}"]
