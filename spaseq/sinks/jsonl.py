"""JSON lines: one answer in each line, with its trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spaseq.algebra.answers import Answer
from spaseq.sinks.answer_json import answer_json
from spaseq.sinks.base import Sink

if TYPE_CHECKING:
    from spaseq.algebra.answer_batch import AnswerBatch
    from spaseq.algebra.graph_batch import GraphBatch
    from spaseq.algebra.shared_answers import SharedPart


class JsonLines(Sink):
    """Each line is one JSON object; `answer_json` describes it."""

    form = suffix = "jsonl"
    about = "one answer in each line, with its trace"

    def write(self, query: str, answer: Answer) -> None:
        self.out.write(answer_json(query, answer) + "\n")

    def write_batch(self, query: str, answers: AnswerBatch) -> None:
        from spaseq.sinks.text_columns import json_lines  # Arrow's functions

        self.write_lines(json_lines(query, answers))

    def write_part(self, query: str, answers: SharedPart) -> None:
        from spaseq.sinks.text_columns import of_query, rests_of_json_lines

        rests = answers.whole.once(rests_of_json_lines)
        part_rests = rests.slice(answers.begin, len(answers))
        self.write_lines(of_query(query, part_rests, size=len(part_rests)))

    def write_graphs(self, query: str, answers: GraphBatch) -> None:
        from spaseq.sinks.text_columns import graph_lines

        self.write_lines(graph_lines(query, answers))
