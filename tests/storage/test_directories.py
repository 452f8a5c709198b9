"""One run at a time uses a checkpoint; the lock dies with its process. Directories for files that
processes load as code.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from spaseq.errors import RunError
from spaseq.runtime.spark.following.checkpoint import Checkpoint
from spaseq.storage import directories
from spaseq.storage.directories import (
    NAME,
    NotPrivate,
    check_private,
    hold,
    private_directory,
    release,
)
from tests.runtime.spark.following.test_checkpoint import job_of

HOLD = """
import sys, time
from pathlib import Path
from spaseq.storage.directories import hold
hold(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


@contextmanager
def another_process(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    command = [sys.executable, "-c", HOLD, str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def no_flock(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: object, kind: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(directories.fcntl, "flock", refuse)


@pytest.mark.parametrize("has_locks", [True, False])
def test_a_second_run_is_refused_until_the_first_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_locks: bool
) -> None:
    Checkpoint.open(tmp_path, job_of(), 0).release()
    with another_process(tmp_path) as process:
        if not has_locks:
            no_flock(monkeypatch)
        match = rf"checkpoint {tmp_path} is in use by process {process.pid} on .*: stop that run"
        with pytest.raises(RunError, match=match):
            Checkpoint.open(tmp_path, job_of(), 0)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert Checkpoint.open(tmp_path, job_of(), 0).resumed
        release(tmp_path)


def test_the_command_ends_with_status_4_before_it_touches_an_output(tmp_path: Path) -> None:
    for name in ("in", "state"):
        (tmp_path / name).mkdir()
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "out.jsonl").write_text("the answers so far\n")
    options = ["--follow", "--checkpoint", "state", "--out", "out.jsonl", "--stream", "S=in"]
    with another_process(tmp_path / "state"):
        done = subprocess.run(
            [sys.executable, "-m", "spaseq", "run", "q.rq", *options],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.returncode == 4, done.stderr
    assert "is in use by process" in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "out.jsonl").read_text() == "the answers so far\n"


QUERY = """
SELECT ?x WITHIN 1 MINUTES FROM STREAM S <http://e/s>
WHERE { SEQ (A) DEFINE GPM A ON S { ?x <http://e/p> ?y } }
"""


def test_one_process_may_take_it_again_and_gives_it_back(tmp_path: Path) -> None:
    hold(tmp_path)
    hold(tmp_path / "x" / "..")
    release(tmp_path)
    assert json.loads((tmp_path / NAME).read_text())["pid"] == os.getpid()
    release(tmp_path)
    assert (tmp_path / NAME).read_text() == ""
    with another_process(tmp_path):
        pass


def test_a_refused_checkpoint_is_given_back(tmp_path: Path) -> None:
    Checkpoint.open(tmp_path, job_of(), 0).release()
    with pytest.raises(Exception, match="the watermark was"):
        Checkpoint.open(tmp_path, job_of(), 1)
    with another_process(tmp_path):
        pass


@pytest.mark.parametrize(
    ("content", "free"),
    [
        ("", True),
        ("no owner", True),
        ({"pid": 2**22 + 1, "host": None, "started": "1"}, True),
        ({"pid": os.getpid(), "host": None, "started": "long ago"}, True),
        ({"pid": 1, "host": "another.example", "started": ""}, False),
    ],
)
def test_without_locks_of_the_system_the_file_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: Any, free: bool
) -> None:
    no_flock(monkeypatch)
    if isinstance(content, dict):
        here = directories.LockOwner.here().host
        content = json.dumps({**content, "host": content["host"] or here})
    (tmp_path / NAME).write_text(content)
    if free:
        hold(tmp_path)
        release(tmp_path)
    else:
        with pytest.raises(RunError, match=r"process 1 on another\.example"):
            hold(tmp_path)


def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / ".precious").write_text("kept")
    (tmp_path / NAME).symlink_to(tmp_path / ".precious")
    with pytest.raises(RunError, match=f"checkpoint {tmp_path}"):
        Checkpoint.open(tmp_path, job_of(), 0)
    assert (tmp_path / ".precious").read_text() == "kept"


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
