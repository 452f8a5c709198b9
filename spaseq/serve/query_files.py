"""The directory of queries: all queries in it run."""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from spaseq.api.prepare import StandingPlanner
from spaseq.api.queries import read_query
from spaseq.compile import Checked, check_query
from spaseq.errors import Diagnostic, QueryError, RunError, SpaseqError, UsageError
from spaseq.lang.spelling import suggested
from spaseq.plan.query_plan import CompileOptions, QueryPlan
from spaseq.runtime.live.standing_run import StandingRun, UnknownQuery
from spaseq.serve.history import BY_FILE, Audit, Versions, What
from spaseq.storage.checksums import sync_directory, write_durably

SUFFIX = ".rq"

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_LOG = logging.getLogger("spaseq")

_LIKELY = 0.8
"""Minimum similarity of a suggested IRI: the IRIs of a server mostly begin alike."""

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


def missing_streams(checked: Checked, given: Collection[str]) -> list[Diagnostic]:
    """A warning for each stream of a query that is not among the given ones (IRIs)."""
    plan = checked.plan
    if plan is not None and {*plan.inputs.streams} <= {*given}:
        return []
    streams = () if checked.query is None else checked.query.streams
    return [
        Diagnostic(
            "warning",
            "no-stream",
            f"no stream and no query gives <{stream.iri.value}>: the query waits until one does",
            stream.iri.span,
            checked.source,
            suggestion=suggested(stream.iri.value, given, _LIKELY),
        )
        for stream in streams
        if stream.iri.value not in given
    ]


class QueryFiles:
    """The files of a directory and the queries of a run, kept in agreement.

    Requests change both, from any thread. `look` takes other changes of the directory.

    Args:
        directory: has the files; it is created.
        run: has the queries.
        planner: plans them, like the planner of the run.
        on_end: called when a query has been removed, in the removing thread.
        history: records changes of the queries; None: no record.
    """

    def __init__(
        self,
        directory: Path,
        run: StandingRun,
        planner: StandingPlanner,
        on_end: Callable[[str], None],
        history: tuple[Audit, Versions] | None = None,
    ) -> None:
        self._history = history
        directory.mkdir(parents=True, exist_ok=True)
        self._directory, self._run, self._planner = directory, run, planner
        self._on_end = on_end
        self._lock = threading.Lock()
        self._known: dict[str, FileState] = {}
        self._latest: dict[str, FileState] = {}
        self._refused = set[str]()  # files whose queries were not taken
        self._graphs: Collection[str] = ()  # those that queries maintained at the last look
        self._unchanged = 0  # files of this look whose queries run as they say
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    # --- requests ---------------------------------------------------------------------------------

    def put(
        self, name: str, text: str, since_ms: int | None, who: str, what: What = "put"
    ) -> tuple[str, Checked]:
        """Let a query run, and write its file; return the change, and the checked query.

        Raises:
            SpaseqError: it cannot run. Nothing has changed.
        """
        checked, plan = self._checked(name, text)
        path, fresh = self._path(name), self._directory / f".{name}.put"
        with self._lock:
            before = self._text(name)
            try:
                write_durably(fresh, text.encode())  # so that a full disk changes nothing
                change = self._run.put(name, text, since_ms, plan)
                if change != "unchanged" or not path.exists():
                    fresh.replace(path)
                    sync_directory(self._directory)
                    self._known[path.name] = self._latest[path.name] = _state(path)
            except OSError as error:
                raise RunError(f"cannot write {path}: {error.strerror}") from error
            finally:
                fresh.unlink(missing_ok=True)
            if change != "unchanged":
                self._note(who, what, name, before, text)
        return change, checked

    def _checked(self, name: str, text: str) -> tuple[Checked, QueryPlan]:
        return self._planner.checked(name, text, self._run.maintained, f"{name}{SUFFIX}")

    def _text(self, name: str) -> str | None:
        """The text of a query now; None if there is none."""
        return self._run.texts().get(name)

    def _note(self, who: str, what: What, name: str, before: str | None, after: str | None) -> None:
        """Record a change of a query: its text before and after, and the actor."""
        if self._history is None:
            return
        audit, versions = self._history
        if before is not None:
            versions.add(name, BY_FILE, before)  # of a server that kept no versions
        if after is not None:
            versions.add(name, who, after)
        audit.note(who, what, name, before, after)

    def enable(self, name: str, is_enabled: bool, who: str) -> None:
        """Pause or restart a query; UnknownQuery if there is none."""
        if self._run.enable(name, is_enabled):
            text = self._text(name)
            self._note(who, "enable" if is_enabled else "pause", name, text, text)

    def remove(self, name: str, who: str) -> None:
        """Remove a query and its file; UnknownQuery if there is none."""
        path = self._path(name)
        with self._lock:
            before = self._text(name)
            try:
                self._run.remove(name)
            except UnknownQuery:
                if not path.exists():  # else it has mistakes, and never ran
                    raise
            path.unlink(missing_ok=True)
            sync_directory(self._directory)
            self._known.pop(path.name, None)
            self._note(who, "delete", name, before, None)
        self._on_end(name)

    def _path(self, name: str) -> Path:
        return self._directory / f"{name}{SUFFIX}"

    # --- changes of files -------------------------------------------------------------------------

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
            has_graphs = self._refused and self._graphs != self._run.maintained
            if before == self._latest == self._known and not has_graphs:  # nothing has changed
                return
            changed = {
                file: state
                for file, state in self._latest.items()
                if before.get(file) == state != self._known.get(file)
                or (has_graphs and file in self._refused)
            }
            if changed:
                self._known.update(changed)
                self._warn_of_streams(self._take_all(changed))
                if self._unchanged:
                    _LOG.info("%d queries are unchanged", self._unchanged)
                    self._unchanged = 0
            for file in list(self._known):
                if file not in self._latest and file not in before:
                    del self._known[file]
                    self._remove_quietly(file.removesuffix(SUFFIX))

    def _found(self) -> dict[str, FileState]:
        states = {}
        with os.scandir(self._directory) as entries:
            for entry in entries:
                try:
                    if _is_query(entry.name) and entry.is_file():
                        states[entry.name] = _state(entry)
                except FileNotFoundError:  # removed meanwhile
                    continue
        return dict(sorted(states.items()))

    def _warn_of_streams(self, names: Sequence[str]) -> None:
        """Warn of streams without a source; a query may come before the one that makes them."""
        plans, given = self._run.plans(), self._run.given_streams()
        for name in names:
            plan = plans.get(name)
            if plan is None or {*plan.inputs.streams} <= given:
                continue
            for finding in missing_streams(checked_query(name, self._text(name) or ""), given):
                _LOG.warning("%s", finding.render())

    def _take_all(self, files: Collection[str]) -> list[str]:
        """Let the queries of files run; return the names of those that do.

        A query that reads a graph may come before the one that maintains it, so refused ones are
        tried again once there are more such graphs. A query whose file has mistakes keeps running.
        """
        plans = self._run.plans()
        texts = {n: text for n, text in self._run.texts().items() if n in plans}
        taken, refused = list[str](), dict[str, SpaseqError]()
        left = list(files)
        while left:
            graphs, refused = self._run.maintained, {}
            for file in left:
                try:
                    taken.append(self._take(self._directory / file, texts))
                except SpaseqError as error:
                    refused[file] = error
            left = [*refused] if graphs != self._run.maintained else []
        for file, reason in refused.items():
            _LOG.error("%s is not used: %s", self._directory / file, reason)
        self._refused = (self._refused - {*files}) | {*refused}
        self._graphs = self._run.maintained
        return taken

    def _take(self, path: Path, texts: Mapping[str, str]) -> str:
        """Let the query of a file run; its name.

        Args:
            path: of the file.
            texts: of the queries that run, by name.

        Raises:
            SpaseqError: it cannot run.
        """
        name = path.name.removesuffix(SUFFIX)
        if not is_name(name):
            raise UsageError("a query's name has letters, digits, _ . and -, at most 100")
        text = read_query(path)
        before, change = texts.get(name), "unchanged"
        if text != before:
            _, plan = self._checked(name, text)
            change = self._run.put(name, text, plan=plan)
        if change == "unchanged":
            self._unchanged += 1
        else:
            self._note(BY_FILE, "edit", name, before, text)
            _LOG.info("query %s: %s", name, change)
        return name

    def _remove_quietly(self, name: str) -> None:
        before = self._text(name)
        try:
            self._run.remove(name)
        except UnknownQuery:
            return
        self._note(BY_FILE, "delete", name, before, None)
        _LOG.info("query %s: removed", name)
        self._on_end(name)


def _is_query(name: str) -> bool:
    return name.endswith(SUFFIX) and not name.startswith(".")


def _state(path: Path | os.DirEntry[str]) -> FileState:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino
