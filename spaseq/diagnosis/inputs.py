"""The causes of the input: streams that bring no events."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from spaseq.diagnosis.observed import Observed, StreamSeen
from spaseq.diagnosis.report import Cause, plural
from spaseq.diagnosis.time_predicates import time_predicate
from spaseq.lang import ast
from spaseq.rdf.events.graph_times import NO_TIME


def input_causes(
    observed: Observed, needed: Collection[str], made: Collection[str]
) -> Iterator[Cause]:
    """The streams without events, where a GPM that the sequence needs has no other stream.

    Args:
        observed: what was read.
        needed: the names of the GPMs without which there are no answers.
        made: the IRIs of the streams that other queries register.
    """
    question = observed.question
    seen = {stream.name: stream for stream in observed.streams}
    empty = set()
    for name in needed:
        streams = question.streams_of(name)
        if not any(seen[stream].events for stream in streams):
            empty |= streams
    for node in question.resolved.query.streams:
        if node.name in empty:
            yield _cause(observed, node, seen[node.name], made)


def _cause(
    observed: Observed, node: ast.FromStream, stream: StreamSeen, made: Collection[str]
) -> Cause:
    """The cause in a stream without events."""
    question = observed.question
    kind, text, example = _reason(stream, made)
    line, column = question.place(node.span)
    cause = Cause(
        kind=kind,
        line=line,
        column=column,
        count=_main_reason(stream)[1] if stream.bad else 0,
        term=node.name,
        example=example,
        text=text,
        shown=question.text(node.span),
        stream=node.name,
    )
    return cause if kind != "all-bad" else _with_time_predicate(cause, stream)


def _with_time_predicate(cause: Cause, stream: StreamSeen) -> Cause:
    """The cause with the option that may help, if the events only lack a time."""
    reason, _ = _main_reason(stream)
    predicate = time_predicate(stream.example[reason].file) if reason == NO_TIME else None
    if predicate is None:
        return cause
    suggestion = f"--time-predicate {predicate}"
    text = f"{cause.text}; did you mean {suggestion}?"
    return replace(cause, suggestion=suggestion, text=text)


def _reason(stream: StreamSeen, made: Collection[str]) -> tuple[str, str, str | None]:
    """(kind, text, example) of a stream without events."""
    if stream.iri in made:
        return "no-input-from-query", "the query that registers this stream has no answers", None
    if not stream.bad:
        return "no-events", "the input has no event", None
    reason, count = _main_reason(stream)
    first = stream.example[reason]
    example = f"{first.file}:{first.line}" if first.line is not None else first.file
    example += f": {first.text}" if first.text else ""
    text = f"all input is bad: {reason} ({plural(count, 'time')}), for example {example}"
    return "all-bad", text, example


def _main_reason(stream: StreamSeen) -> tuple[str, int]:
    """The reason of most bad inputs and their number.

    Events without a time count first: with another predicate, their times are bad input, too.
    """
    reason, count = stream.bad.most_common(1)[0]
    untimed = stream.bad[NO_TIME]
    return (NO_TIME, untimed) if 2 * untimed >= count else (reason, count)
