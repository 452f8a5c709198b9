"""Text that users write may begin with a byte order mark."""

from __future__ import annotations

from pathlib import Path

import pytest

from spaseq.storage.user_files import read_user_text


def test_a_mark_at_the_begin_is_no_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\xef\xbb\xbfa\xc3\xa9\xef\xbb\xbfb")
    assert read_user_text(path) == "aé\ufeffb"
    assert read_user_text(str(path), 2) == "aé"
    path.write_bytes(b"plain")
    assert read_user_text(path) == "plain"


def test_what_is_no_utf8_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\xff\xfea\x00")
    with pytest.raises(UnicodeDecodeError):
        read_user_text(path)
    with pytest.raises(FileNotFoundError):
        read_user_text(tmp_path / "none")
