"""JSON lines: one answer per line, with its trace."""

from __future__ import annotations

from spaseq.algebra.answers import Answer
from spaseq.sinks.base import Sink
from spaseq.sinks.rendering import answer_json


class JsonLines(Sink):
    """Answers of any number of queries, each line one JSON object (see `answer_json`)."""

    def write(self, query: str, answer: Answer) -> None:
        self.out.write(answer_json(query, answer) + "\n")
