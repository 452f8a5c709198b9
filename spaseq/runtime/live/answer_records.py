"""Answers as records of an answer log, and as lines of JSON; the file of failed answers."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, NamedTuple

from spaseq.algebra.answers import Answer, TraceItem
from spaseq.plan.query_plan import QueryPlan
from spaseq.sinks.answer_json import answer_id, answer_json
from spaseq.sinks.base import append_line

_encoded = json.JSONEncoder(separators=(",", ":")).encode
_decoder = json.JSONDecoder()


class LoggedAnswer(NamedTuple):
    """An answer with its query's title and name, its id, and its time of logging (ms).

    It is of the past if all of its events were logged before its query was put.

    The title is the name of the query's file. The name is the query's name in answers: the IRI of
    the stream that the query registers, or else the title.
    """

    title: str
    query: str
    id: str
    answer: Answer
    logged_ms: int
    is_past: bool = False

    @classmethod
    def of(cls, plan: QueryPlan, answer: Answer, is_past: bool = False) -> LoggedAnswer:
        """An answer of a query, logged now."""
        identity = plan.identity
        name = answer_id(identity.name, plan.signature.canonical, answer)
        return cls(identity.title, identity.name, name, answer, int(time.time() * 1000), is_past)

    def to_bytes(self) -> bytes:
        """The record; `of_bytes` is the inverse."""
        parts = [self.title, self.query, self.id, *self.answer, self.logged_ms]
        text = _encoded([*parts, True] if self.is_past else parts)
        return text.encode("ascii")  # JSON escapes all other characters

    @staticmethod
    def title_of(record: bytes) -> str:
        """The title of the query alone, without reading the rest of the record."""
        return str(_decoder.raw_decode(record.decode("ascii"), 1)[0])

    @classmethod
    def of_bytes(cls, record: bytes) -> LoggedAnswer:
        """The inverse of `to_bytes`."""
        title, query, name, *parts, at = json.loads(record)
        is_past = at is True
        if is_past:
            at = parts.pop()
        first, end, trace, bindings, singles, lists, graph, event = parts
        answer = Answer(
            tuple(first),
            tuple(end),
            tuple(TraceItem(*item) for item in trace),
            _pairs(bindings),
            _pairs(singles),
            tuple((variable, tuple(values)) for variable, values in lists),
            None if graph is None else tuple((s, p, o) for s, p, o in graph),
            event,
        )
        return cls(title, query, name, answer, at, is_past)


def _pairs(values: list[Any]) -> tuple[tuple[str, str], ...]:
    return tuple((variable, value) for variable, value in values)


def json_with_id(logged: LoggedAnswer) -> str:
    """The answer as a line of JSON that begins with its id."""
    return f'{{"id": "{logged.id}", {answer_json(logged.query, logged.answer)[1:]}'


def keep_failed(path: Path, answer: LoggedAnswer, reason: str) -> None:
    """Append an answer and the reason of its failure; it is on disk when this returns.

    Raises:
        RunError: the disk is full, or fails.
    """
    text = json.dumps(reason, ensure_ascii=False)
    append_line(path, f'{{"reason": {text}, "answer": {json_with_id(answer)}}}')
