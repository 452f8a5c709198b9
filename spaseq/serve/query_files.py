"""The directory of queries: what is in it runs, whoever puts it there."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable
from pathlib import Path

from spaseq.api.queries import read_query
from spaseq.compile import Checked, check_query
from spaseq.errors import QueryError, RunError, SpaseqError
from spaseq.plan.planning_options import CompileOptions
from spaseq.runtime.live.standing_run import StandingRun, UnknownQuery
from spaseq.storage.durable_files import sync_directory, write_durably

SUFFIX = ".rq"

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_LOG = logging.getLogger("spaseq")

FileState = tuple[int, int, int]
"""(modification time in ns, size, inode) of a file."""


def is_name(text: str) -> bool:
    """Whether a text can be the name of a query.

    >>> is_name("jam-2.v1"), is_name(".jam"), is_name("../jam")
    (True, False, False)
    """
    return _NAME.fullmatch(text) is not None


def checked_query(name: str, text: str) -> Checked:
    """A query as it would run.

    Raises:
        QueryError: it has errors.
    """
    checked = check_query(text, name, CompileOptions(file=f"{name}{SUFFIX}", several=True))
    if checked.plan is None:
        raise QueryError(checked.errors)
    return checked


class QueryFiles:
    """The files of a directory and the queries of a run, which it keeps alike.

    Requests change both, from any thread. `look` takes what others have changed in the directory.

    Args:
        directory: has the files; it is made.
        run: has the queries.
        on_end: called when a query has gone, in the thread that removed it.
    """

    def __init__(self, directory: Path, run: StandingRun, on_end: Callable[[str], None]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory, self._run, self._on_end = directory, run, on_end
        self._lock = threading.Lock()
        self._known: dict[str, FileState] = {}
        self._latest: dict[str, FileState] = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    # --- requests ---------------------------------------------------------------------------------

    def put(self, name: str, text: str, since_ms: int | None) -> tuple[str, Checked]:
        """Let a query run, and write its file; what has changed, and the checked query.

        Raises:
            SpaseqError: it cannot run. Nothing has changed.
        """
        checked = checked_query(name, text)
        path, fresh = self._path(name), self._directory / f".{name}.put"
        with self._lock:
            try:
                write_durably(fresh, text.encode())  # so that a full disk changes nothing
                change = self._run.put(name, text, since_ms)
                if change != "unchanged" or not path.exists():
                    fresh.replace(path)
                    sync_directory(self._directory)
                    self._known[path.name] = self._latest[path.name] = _state(path)
            except OSError as error:
                raise RunError(f"cannot write {path}: {error.strerror}") from error
            finally:
                fresh.unlink(missing_ok=True)
        return change, checked

    def remove(self, name: str) -> None:
        """Remove a query and its file; UnknownQuery if there is none."""
        path = self._path(name)
        with self._lock:
            try:
                self._run.remove(name)
            except UnknownQuery:
                if not path.exists():  # else it has mistakes, and never ran
                    raise
            path.unlink(missing_ok=True)
            sync_directory(self._directory)
            self._known.pop(path.name, None)
        self._on_end(name)

    def _path(self, name: str) -> Path:
        return self._directory / f"{name}{SUFFIX}"

    # --- what others change -----------------------------------------------------------------------

    def begin(self) -> None:
        """Bring the run's queries in line with the directory."""
        self._latest = self._found()
        self.look()
        for query in self._run.queries():
            if not self._path(query.name).exists():
                _LOG.info("query %s has no file any more: removed", query.name)
                self._remove_quietly(query.name)

    def watch(self, every_s: float) -> None:
        """Look at intervals, in a thread, until `close`."""

        def run() -> None:
            while not self._stop.wait(every_s):
                try:
                    self.look()
                except OSError as error:
                    _LOG.error("cannot read %s: %s", self._directory, error.strerror)

        self._thread = threading.Thread(target=run, name="query files", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def look(self) -> None:
        """Take the changes that two looks in a row have seen, so that no file is half written."""
        with self._lock:
            before, self._latest = self._latest, self._found()
            for file, state in self._latest.items():
                if before.get(file) == state != self._known.get(file):
                    self._known[file] = state
                    self._take(self._directory / file)
            for file in list(self._known):
                if file not in self._latest and file not in before:
                    del self._known[file]
                    self._remove_quietly(file.removesuffix(SUFFIX))

    def _found(self) -> dict[str, FileState]:
        found = {}
        for path in sorted(self._directory.glob(f"*{SUFFIX}")):
            try:
                if not path.name.startswith(".") and path.is_file():
                    found[path.name] = _state(path)
            except FileNotFoundError:  # removed meanwhile
                continue
        return found

    def _take(self, path: Path) -> None:
        """Let the query of a file run; one of that name goes on if the file has mistakes."""
        name = path.name.removesuffix(SUFFIX)
        if not is_name(name):
            _LOG.error("%s: a query's name has letters, digits, _ . and -, at most 100", path)
            return
        try:
            text = read_query(path)
            checked_query(name, text)
            change = self._run.put(name, text)
        except SpaseqError as error:
            _LOG.error("%s is not used: %s", path, error)
        else:
            _LOG.info("query %s: %s", name, change)

    def _remove_quietly(self, name: str) -> None:
        try:
            self._run.remove(name)
        except UnknownQuery:
            return
        _LOG.info("query %s: removed", name)
        self._on_end(name)


def _state(path: Path) -> FileState:
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino
