"""Opens text that users write."""

from __future__ import annotations

from pathlib import Path


def read_user_text(path: Path | str, most: int = -1) -> str:
    """The text of a UTF-8 file, at most `most` characters; a byte order mark is skipped.

    Raises:
        OSError: the file cannot be read.
        UnicodeDecodeError: it is no UTF-8.
    """
    with open(path, encoding="utf-8-sig") as file:
        return file.read(most)
