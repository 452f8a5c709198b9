"""Checksums of bytes, texts and large files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spaseq.storage.checksums import (
    BLOCK_BYTES,
    Damaged,
    append_checksums,
    checked_size,
    sealed,
    unsealed,
    with_checksum_line,
    without_checksum_line,
)


@pytest.mark.parametrize("size", [0, 1, 7, 8, BLOCK_BYTES - 1, BLOCK_BYTES, 2 * BLOCK_BYTES + 9])
def test_a_file_of_any_size_is_checked(tmp_path: Path, size: int) -> None:
    path, content = tmp_path / "file", np.random.default_rng(1).bytes(size)
    path.write_bytes(content)
    append_checksums(path)
    good = path.read_bytes()
    assert good.startswith(content)
    assert checked_size(np.frombuffer(good, np.uint8)) == size
    places = {0, size // 2, max(size - 1, 0), *range(size, len(good))}
    flipped = [good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :] for at in places]
    for bad in (*flipped, good[:-1], good[1:], good[:size], b"", good + b"\0"):
        with pytest.raises(Damaged):
            checked_size(np.frombuffer(bad, np.uint8))


def test_bytes_and_texts_without_a_checksum_are_told_apart() -> None:
    assert (unsealed(b""), unsealed(b"no checksum at all")) == (None, None)
    assert unsealed(sealed(b"")) == b""
    with pytest.raises(Damaged, match="checksum is wrong"):
        unsealed(b"x" + sealed(b"state"))
    assert without_checksum_line("[1]\n") is None
    for text in ("", "[1]", "line\nline\n", "é"):
        assert without_checksum_line(with_checksum_line(text)) == text
    with pytest.raises(Damaged):
        without_checksum_line(with_checksum_line("[1]").replace("1", "2", 1))
