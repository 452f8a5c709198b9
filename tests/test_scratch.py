"""Temporary directories of runs are removed, by a later run if their process was killed."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from spaseq.scratch import ScratchDirectory, sweep


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_directory_lasts_as_long_as_its_context(place: Path) -> None:
    with ScratchDirectory("sort") as directory:
        assert Path(directory).parent == place
        assert Path(directory).name.startswith(f"spaseq-run-sort-{os.getpid()}-")
        sweep(place, new_seconds=0)
        assert Path(directory).exists()  # its process lives
    assert list(place.iterdir()) == []


def test_the_directory_of_a_killed_process_is_swept(place: Path) -> None:
    code = """
import sys, time
from spaseq.scratch import ScratchDirectory
directory = ScratchDirectory("sort")
open(directory.name + "/run", "w").write("x")
print("ready", flush=True)
time.sleep(60)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env=os.environ | {"TMPDIR": str(place)},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    (left,) = place.iterdir()
    sweep(place, new_seconds=0)
    assert left.exists()  # its process lives
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    sweep(place)
    assert left.exists()  # it is young
    os.utime(left, (0, 0))
    with ScratchDirectory("sort") as directory:
        assert [str(path) for path in place.iterdir()] == [directory]


def test_other_directories_and_links_stay(place: Path) -> None:
    (place / "spaseq-other").mkdir()
    (place / "target").mkdir()
    (place / "spaseq-run-link").symlink_to(place / "target")
    sweep(place, new_seconds=-10)
    assert len(list(place.iterdir())) == 3


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # it is removed when it is deleted
@pytest.mark.parametrize("part", ["mkdtemp", "rmtree"])
def test_an_interrupt_while_it_is_made_or_removed_leaves_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    owner = tempfile if part == "mkdtemp" else shutil
    real = getattr(owner, part)

    def interrupted(*args: Any, **options: Any) -> Any:
        if part == "rmtree":
            signal.raise_signal(signal.SIGINT)
        result = real(*args, **options)
        signal.raise_signal(signal.SIGINT)
        return result

    monkeypatch.setattr(owner, part, interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), ScratchDirectory("sort"):
            assert part == "rmtree"
    finally:
        signal.signal(signal.SIGINT, before)
    monkeypatch.undo()
    gc.collect()
    assert list(place.iterdir()) == []
