"""Damaged forms of a file: each with one wrong byte, or cut off somewhere."""

from __future__ import annotations

from collections.abc import Iterator


def damaged(good: bytes, step: int = 1) -> Iterator[bytes]:
    """Wrong bytes and cuts at every `step`-th place.

    A cut that leaves only the checksum away is left out: the content is whole.
    """
    ends = [i for i, byte in enumerate(good) if byte == ord("\n")]
    last = ends[-2] if len(ends) > 1 else len(good)
    for at in range(0, len(good), step):
        for flip in (1, 4, 128):
            yield good[:at] + bytes([good[at] ^ flip]) + good[at + 1 :]
        if at < last:
            yield good[:at]
