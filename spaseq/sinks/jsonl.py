"""JSON lines: one answer in each line, with its trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spaseq.algebra.answers import Answer
from spaseq.sinks.answer_json import answer_json
from spaseq.sinks.base import Sink

if TYPE_CHECKING:
    from spaseq.algebra.answer_batch import AnswerBatch


class JsonLines(Sink):
    """Each line is one JSON object; `answer_json` describes it."""

    form = suffix = "jsonl"
    about = "one answer in each line, with its trace"

    def write(self, query: str, answer: Answer) -> None:
        self.out.write(answer_json(query, answer) + "\n")

    def write_batch(self, query: str, answers: AnswerBatch) -> None:
        from spaseq.sinks.text_columns import json_lines  # Arrow's functions

        self.write_lines(json_lines(query, answers))
