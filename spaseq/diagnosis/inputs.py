"""The causes of the input: streams that bring no events."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from spaseq.diagnosis.observed import Observed, StreamSeen
from spaseq.diagnosis.report import Cause, plural


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
        streams = {ref.name for ref in question.gpm(name).streams}
        if not any(seen[stream].events for stream in streams):
            empty |= streams
    for node in question.resolved.query.streams:
        if node.name in empty:
            kind, text, example = _reason(seen[node.name], made)
            at, shown = question.place(node.span), question.text(node.span)
            bad = seen[node.name].bad.total()
            yield Cause(
                kind,
                None,
                None,
                *at,
                bad,
                node.name,
                None,
                example,
                text,
                shown,
                node.name,
            )


def _reason(stream: StreamSeen, made: Collection[str]) -> tuple[str, str, str | None]:
    """(kind, text, example) of a stream without events."""
    if stream.iri in made:
        return "no-input-from-query", "the query that registers this stream has no answers", None
    if not stream.bad:
        return "no-events", "the input has no event", None
    reason, count = stream.bad.most_common(1)[0]
    first = stream.example[reason]
    example = f"{first.file}:{first.line}" if first.line is not None else first.file
    example += f": {first.text}" if first.text else ""
    text = f"all input is bad: {reason} ({plural(count, 'time')}), for example {example}"
    return "all-bad", text, example
