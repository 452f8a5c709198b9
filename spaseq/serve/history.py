"""The records of a server: log lines with time and level, as text or JSON; the audit trail; query
versions.

The audit trail and the versions are files of the data directory.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from spaseq.message_text import one_line, without_passwords
from spaseq.rdf.terms.times import format_time
from spaseq.sinks.base import append_line

FORMATS = ("text", "json")

_LOGGERS = ("spaseq", "uvicorn")

What: TypeAlias = Literal[
    "put", "delete", "edit", "rollback", "pause", "enable", "start", "kb", "acknowledge"
]
"""The kinds of lines of the audit trail."""

BY_FILE, BY_SERVER = "file", "server"
"""Who it was, if it was no request."""

_LARGEST, _KEPT = 64_000_000, 10
_VERSIONS = 100


class LogLine(logging.Formatter):
    """Formats records as lines; `form` is one of `FORMATS`."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        """A record as a line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        at = at.replace("+00:00", "Z")
        text = without_passwords(record.getMessage())
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        if self._form == "json":
            level = record.levelname.lower()
            return json.dumps({"time": at, "level": level, "message": text}, ensure_ascii=True)
        return f"{at} {record.levelname:<7} {one_line(text)}"


def log_to_stderr(form: str) -> None:
    """Send the records of this package and of its HTTP server to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLine(form))
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.propagate = False
        logger.setLevel(logging.INFO if name == "spaseq" else logging.WARNING)


def digest_of(text: str | None) -> str | None:
    """The hash of a line's text; None if there was none."""
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()


class Audit:
    """`audit.jsonl`: at 64 MB a new file begins, and the last ten stay. Any thread may write."""

    def __init__(self, directory: Path) -> None:
        self._path, self._lock = directory / "audit.jsonl", threading.Lock()

    def note(
        self, who: str, what: What, target: str, before: str | None, after: str | None
    ) -> None:
        """Write a line; it is on disk when this returns.

        Args:
            who: the name of the actor.
            what: the kind of the action.
            target: its object.
            before: the text that was there.
            after: the text that is there now.

        Raises:
            RunError: the disk is full, or fails.
        """
        line = {"time": now_text(), "who": who, "what": what, "target": target}
        line_text = json.dumps({**line, "before": digest_of(before), "after": digest_of(after)})
        with self._lock:
            self._turn()
            append_line(self._path, line_text)

    def _turn(self) -> None:
        if not self._path.exists() or self._path.stat().st_size < _LARGEST:
            return
        for number in range(_KEPT - 1, 0, -1):
            older = self._path.with_name(f"audit.{number}.jsonl")
            if older.exists():
                older.replace(self._path.with_name(f"audit.{number + 1}.jsonl"))
        self._path.replace(self._path.with_name("audit.1.jsonl"))


class Versions:
    """The texts that each query has had, the newest hundred; any thread may use it."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._lock = directory / "versions", threading.Lock()

    def of(self, name: str) -> list[dict[str, Any]]:
        """The versions of a query, the oldest first; empty if there never was one."""
        try:
            lines = self._path(name).read_text("utf-8").splitlines()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines if line.endswith("}")][-_VERSIONS:]

    def text(self, name: str, version: int) -> str | None:
        """The text of a version; None if it is unknown."""
        texts = [entry["text"] for entry in self.of(name) if entry["version"] == version]
        return str(texts[0]) if texts else None

    def add(self, name: str, who: str, text: str) -> None:
        """Keep a text, unless it is the newest; RunError if the disk is full."""
        with self._lock:
            known = self.of(name)
            if known and known[-1]["text"] == text:
                return
            number = known[-1]["version"] + 1 if known else 1
            line = {"version": number, "time": now_text(), "who": who, "text": text}
            append_line(self._path(name), json.dumps(line))

    def _path(self, name: str) -> Path:
        return self._directory / f"{name}.jsonl"


class Acknowledgements:
    """The acknowledged answers, in `acknowledged.jsonl`; any thread may use it."""

    def __init__(self, directory: Path) -> None:
        self._path, self._lock = directory / "acknowledged.jsonl", threading.Lock()
        self._known: dict[str, dict[str, str]] = {}
        if self._path.exists():
            for line in self._path.read_text("utf-8").splitlines():
                if line.endswith("}"):  # else a killed server has written half of it
                    entry = json.loads(line)
                    self._known[entry.pop("id")] = entry

    def of(self, answer: str) -> dict[str, str] | None:
        """When and by whom an answer was acknowledged; None if it was not."""
        return self._known.get(answer)

    def add(self, answer: str, who: str, note: str) -> dict[str, str]:
        """Acknowledge an answer; RunError if the disk is full."""
        entry = {"time": now_text(), "who": who, "note": note}
        with self._lock:
            append_line(self._path, json.dumps({"id": answer, **entry}))
            self._known[answer] = entry
        return entry


def now_text() -> str:
    """The time now, as `xsd:dateTime` in UTC."""
    return format_time(int(time.time() * 1000))
