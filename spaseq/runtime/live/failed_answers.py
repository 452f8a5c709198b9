"""Answers that an output did not take, in a file of JSON lines with the reasons."""

from __future__ import annotations

import json
from pathlib import Path

from spaseq.runtime.live.answer_records import LoggedAnswer
from spaseq.sinks.answer_json import answer_json
from spaseq.sinks.line_file import append_line


def json_with_id(logged: LoggedAnswer) -> str:
    """The answer as a line of JSON that begins with its id."""
    return f'{{"id": "{logged.id}", {answer_json(logged.query, logged.answer)[1:]}'


def keep_failed(path: Path, answer: LoggedAnswer, reason: str) -> None:
    """Append an answer and why it failed; it is on disk when this returns.

    Raises:
        RunError: the disk is full, or fails.
    """
    text = json.dumps(reason, ensure_ascii=False)
    append_line(path, f'{{"reason": {text}, "answer": {json_with_id(answer)}}}')
