"""An answer as a subscriber gets it: a line of JSON that begins with its id."""

from __future__ import annotations

from spaseq.runtime.live.answer_records import LoggedAnswer
from spaseq.sinks.answer_json import answer_json


def answer_line(logged: LoggedAnswer) -> str:
    """The answer as a line of JSON, without a line end."""
    return f'{{"id": "{logged.id}", {answer_json(logged.query, logged.answer)[1:]}'
