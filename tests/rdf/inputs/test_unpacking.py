"""Reading a .gz gives all bytes before its damage, and bounds its inflation."""

from __future__ import annotations

import gzip
import io
import random
import zlib
from pathlib import Path

import pytest

from spaseq.limits import Limits
from spaseq.rdf.inputs.files import UnpackedFile
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from spaseq.rdf.ranges import read_stream

TEXT = b"".join(b"line %d of %d\n" % (i, i * i * 7919 % 104729) for i in range(20_000))
PACKED = gzip.compress(TEXT)


def unpacked(packed: bytes, step: int = 1 << 16, limits: Limits | None = None) -> tuple[bytes, str]:
    """The bytes that reading gives, and the error at which it ends."""
    found, room = [], memoryview(bytearray(step))
    with UnpackedFile(io.BytesIO(packed), limits or Limits()) as file:
        try:
            while count := file.readinto(room):
                found.append(bytes(room[:count]))
        except OSError as error:
            with pytest.raises(OSError, match=r"the \.gz"):  # it stays at the damage
                file.readinto(room)
            return b"".join(found), str(error)
    return b"".join(found), ""


@pytest.mark.parametrize("step", [1, 7, 1 << 12, 1 << 20])
@pytest.mark.parametrize(
    "packed",
    [
        b"",
        gzip.compress(b""),
        gzip.compress(TEXT[:500]),
        gzip.compress(TEXT[:300]) + gzip.compress(b"") + gzip.compress(TEXT[300:500]),
        gzip.compress(TEXT[:300]) + b"\0" * 70_000 + gzip.compress(TEXT[300:500]) + b"\0\0",
    ],
    ids=["nothing", "empty", "one member", "three members", "padding"],
)
def test_undamaged_files_are_read_as_gzip_reads_them(packed: bytes, step: int) -> None:
    assert unpacked(packed, step) == (gzip.decompress(packed), "")


def before_damage(packed: bytes) -> bytes:
    """What zlib gives byte by byte."""
    unpacker, found = zlib.decompressobj(31), bytearray()
    for i in range(len(packed)):
        try:
            found += unpacker.decompress(packed[i : i + 1])
        except zlib.error:
            break
    return bytes(found)


@pytest.mark.parametrize("seed", range(20))
def test_damage_loses_nothing_before_it(seed: int) -> None:
    draw = random.Random(seed)
    damaged = bytearray(PACKED)
    damaged[draw.randrange(20, len(PACKED))] ^= draw.randrange(1, 256)
    found, error = unpacked(bytes(damaged), 1 << draw.randrange(4, 20))
    assert found == before_damage(bytes(damaged))
    assert error.startswith("the .gz is damaged at about byte ")


@pytest.mark.parametrize("size", [1, 9, 11, 1000, len(PACKED) - 1])
def test_a_cut_file_loses_nothing_before_the_cut(size: int) -> None:
    found, error = unpacked(PACKED[:size])
    assert found == before_damage(PACKED[:size])
    assert error == f"the .gz ends at byte {size}, within its data"


@pytest.mark.parametrize("behind", [b"g", b"garbage", b"\0\0garbage"])
def test_bytes_behind_a_member_are_no_damage(behind: bytes) -> None:
    file = UnpackedFile(io.BytesIO(PACKED + behind), Limits())
    assert file.read() == TEXT
    assert file.after_end == len(PACKED) + behind.count(b"\0")


TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
LONG = "<http://www.w3.org/2001/XMLSchema#long>"
FORMATS = {
    "s.nq.gz": f'<g:{{0}}> {TIME} "{{0}}"^^{LONG} .\n<s:> <p:> "a" <g:{{0}}> .\n',
    "s.trig.gz": f'<g:{{0}}> {TIME} "{{0}}"^^{LONG} . <g:{{0}}> {{{{ <s:> <p:> "a" }}}}\n',
}


@pytest.mark.parametrize("name", FORMATS)
def test_bytes_behind_a_gz_lose_no_event(tmp_path: Path, name: str) -> None:
    text = "".join(FORMATS[name].format(i) for i in range(20))
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) + b"garbage")
    bad: list[BadInput] = []
    found = read_stream(StreamOptions("s:", (str(tmp_path / name),)), bad.append)
    assert sum(map(len, found)) == 20
    (only,) = bad
    assert "behind its end are not read" in only.reason


@pytest.mark.parametrize("name", FORMATS)
def test_the_bound_on_inflation_loses_no_event_that_it_lets_through(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text goes beyond the bound with its last bytes, so all of it is read."""
    monkeypatch.setattr("spaseq.rdf.inputs.files._FREE_BYTES", 1000)
    text = "".join(FORMATS[name].format(i) for i in range(20))
    (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    bad: list[BadInput] = []
    options = StreamOptions("s:", (str(tmp_path / name),), limits=Limits(inflation=1))
    assert sum(map(len, read_stream(options, bad.append))) == 20
    assert not bad


def test_inflation_is_bounded_after_64_mib() -> None:
    bomb = gzip.compress(b"\0" * (80 << 20))
    assert unpacked(bomb, limits=Limits(inflation=2000))[1] == ""
    found, error = unpacked(bomb)
    assert error == "the .gz unpacks to more than 500 times its size (--max-inflation)"
    assert 64 << 20 < len(found) < 66 << 20
