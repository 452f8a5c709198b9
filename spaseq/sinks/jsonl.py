"""JSON lines: an answer with its trace in each; and side outputs: bad input and late events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TextIO

from spaseq.algebra.answers import Answer
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.rdf.terms.times import format_time
from spaseq.sinks.answer_json import answer_json
from spaseq.sinks.base import Sink

if TYPE_CHECKING:
    from spaseq.algebra.answer_batch import AnswerBatch, SharedPart
    from spaseq.algebra.graph_batch import GraphBatch


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
            lateness_ms: the delay of the event behind the watermark.
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
