"""Side outputs: one JSON object per line."""

from __future__ import annotations

import io
import json

from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.sinks.jsonl import BadInputLines, LateEventLines


def test_bad_input() -> None:
    out = io.StringIO()
    lines = BadInputLines(out)
    lines.write(BadInput("s.nq", 3, "event without a timestamp", "<http://e/é>"))
    lines.write(BadInput("s.trig", None, "wrong"))
    assert [json.loads(line) for line in out.getvalue().splitlines()] == [
        {
            "file": "s.nq",
            "line": 3,
            "reason": "event without a timestamp",
            "text": "<http://e/é>",
        },
        {"file": "s.trig", "line": None, "reason": "wrong", "text": ""},
    ]


def test_late_events() -> None:
    out = io.StringIO()
    LateEventLines(out).write("http://e/s", None, 1500, 250)
    assert json.loads(out.getvalue()) == {
        "stream": "http://e/s",
        "event": None,
        "time": "1970-01-01T00:00:01.500Z",
        "lateness_ms": 250,
    }
