"""Log lines of a server: one for each event, with its time and level, as text or as JSON."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from spaseq.message_text import one_line, without_passwords

FORMATS = ("text", "json")

_LOGGERS = ("spaseq", "uvicorn")


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
