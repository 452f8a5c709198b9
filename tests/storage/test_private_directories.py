"""Directories for files that processes load as code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spaseq.storage.private_directories import NotPrivate, check_private, private_directory


def test_a_directory_is_made_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = private_directory(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert {p.stat().st_mode & 0o777 for p in (made, made.parent)} == {0o700}
    assert private_directory(made, levels=2) == made


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777, 0o702])
def test_one_that_others_can_write_to_is_refused_with_the_remedy(tmp_path: Path, mode: int) -> None:
    place = tmp_path / "a"
    (place / "b").mkdir(parents=True)
    place.chmod(mode)
    with pytest.raises(NotPrivate, match=f"run: chmod go-w {place}"):
        check_private(place)
    with pytest.raises(NotPrivate):
        private_directory(place / "b", levels=2)
    private_directory(place / "b")


def test_links_files_and_directories_of_others_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = private_directory(tmp_path / "target")
    (tmp_path / "link").symlink_to(target)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("link", "dangling"):
        with pytest.raises(NotPrivate, match="is a link"):
            private_directory(tmp_path / name)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        private_directory(tmp_path / "file")
    os_lstat = os.lstat

    def of_somebody(path: Path) -> os.stat_result:
        found = list(os_lstat(path))
        found[4] = 4242
        return os.stat_result(found)

    monkeypatch.setattr("os.lstat", of_somebody)
    with pytest.raises(NotPrivate, match=r"belongs to another user \(uid 4242\)"):
        check_private(target)
