"""Side outputs as JSON lines: bad input and late events."""

from __future__ import annotations

import json
from typing import Any, TextIO

from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.rdf.terms.times import format_time


class BadInputLines:
    """Writes `{"file", "line", "reason", "text"}` for each piece of bad input."""

    def __init__(self, out: TextIO) -> None:
        self.out = out

    def write(self, bad: BadInput) -> None:
        """Write one line; its `line` is null where the format has no line numbers."""
        _write(
            self.out, {"file": bad.file, "line": bad.line, "reason": bad.reason, "text": bad.text}
        )


class LateEventLines:
    """Writes `{"stream", "event", "time", "lateness_ms"}` for each late event."""

    def __init__(self, out: TextIO) -> None:
        self.out = out

    def write(self, stream: str, event: str | None, time: int, lateness_ms: int) -> None:
        """Write one line.

        Args:
            stream: the IRI of the stream.
            event: the IRI of the event's graph, if it has one.
            time: the event's time (ms).
            lateness_ms: how far the event is behind the watermark.
        """
        _write(
            self.out,
            {
                "stream": stream,
                "event": event,
                "time": format_time(time),
                "lateness_ms": lateness_ms,
            },
        )


def _write(out: TextIO, record: dict[str, Any]) -> None:
    out.write(json.dumps(record, ensure_ascii=False) + "\n")
