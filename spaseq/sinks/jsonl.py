"""JSON lines: one answer per line, with its trace."""

from __future__ import annotations

import json

from spaseq.algebra.answers import Answer
from spaseq.sinks.base import Sink
from spaseq.sinks.rendering import render_answer

_ENCODED = json.JSONEncoder(ensure_ascii=False).encode


class JsonLines(Sink):
    """Answers of any number of queries, each line one JSON object (see `render_answer`)."""

    def write(self, query: str, answer: Answer) -> None:
        self.out.write(_ENCODED(render_answer(query, answer)) + "\n")
