"""The directory of a live run: what an earlier version of spaseq has left is refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spaseq.errors import RunError, UsageError
from spaseq.runtime.live.live_directory import FORMAT_VERSION, LiveDirectory, SavedRun
from spaseq.storage.checksums import with_checksum_line


def test_a_directory_of_another_version_is_refused(tmp_path: Path) -> None:
    earlier = json.dumps({"version": FORMAT_VERSION - 2, "queries": "a set that changes"})
    (tmp_path / "live.json").write_text(with_checksum_line(earlier))
    with pytest.raises(UsageError, match=f"version {FORMAT_VERSION - 2}; .* {FORMAT_VERSION}$"):
        LiveDirectory.open(tmp_path, {"queries": "a set that changes"})


def test_a_directory_whose_settings_name_evaluators_goes_on(tmp_path: Path) -> None:
    """The version before kept what else than its text a query's state depends on."""
    earlier = json.dumps({"version": FORMAT_VERSION - 1, "queries": [["q", "5e1f"]], "delay": 7})
    (tmp_path / "live.json").write_text(with_checksum_line(earlier))
    for name, delay, what in (("p", 7, "queries"), ("q", 8, "delay")):
        with pytest.raises(UsageError, match=f"are the {what}"):
            LiveDirectory.open(tmp_path, {"queries": [[name, "ca40"]], "delay": delay})
    for _ in range(2):
        directory = LiveDirectory.open(tmp_path, {"queries": [["q", "ca40"]], "delay": 7})
        assert directory.resumed
        directory.release()
    with pytest.raises(UsageError, match="are the queries"):
        LiveDirectory.open(tmp_path, {"queries": [["q", "0ther"]], "delay": 7})


def test_a_state_has_the_fields_that_it_was_saved_with(tmp_path: Path) -> None:
    directory = LiveDirectory.open(tmp_path, {})
    saved = SavedRun([], {"http://e/s": 7}, 3, 1, {}, 0, [], {"q": 3}, [], [], "hash", 0)
    directory.save_state(saved.as_value())
    directory.release()
    assert SavedRun.of_value(directory.state()) == saved
    for other in ([1, 2, 3], {"engine": []}, {**saved.as_value(), "more": 1}):
        with pytest.raises(RunError, match="not one that this version"):
            SavedRun.of_value(other)


def test_a_note_holds_bytes(tmp_path: Path) -> None:
    directory = LiveDirectory.open(tmp_path / "state", {})
    note = {"points": [[b"\xff", {"a": b"", "b": [b"\xff", None]}]], "saved": {"n": 1}}
    directory.save_note(note)
    assert directory.note() == note
    directory.release()
