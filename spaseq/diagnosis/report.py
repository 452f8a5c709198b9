"""The report of `spaseq why`: counts from events to answers, and the causes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any

from spaseq.message_text import visible, without_passwords
from spaseq.rdf.terms.times import format_time
from spaseq.records import record

_LABEL = 13
"""Width of the column of names, without the indentation."""

_COUNT = 5
"""Width of the column of counts."""

_PLACE = 22
"""Width of the column of places under a GPM."""

OF_GPM = frozenset(
    {
        "wrong-stream",
        "predicate-never-occurs",
        "constant-never-occurs",
        "pattern-never-matches",
        "kb-empty",
        "filter-false",
        "filter-error",
        "window-empty",
        "having-never",
        "gone-never",
    }
)
"""The kinds that a GPM has by itself; the report shows them below the GPM."""


@record
class Cause:
    """One reason why a query has no answers.

    Attributes:
        kind: a stable, hyphenated name such as `predicate-never-occurs` (docs/why.md).
        gpm: the GPM that the cause is in; None if it is in none.
        step: the number of the top-level step from 1, negated ones counted; None if it is in none.
        line, column: the place in the query, from 1.
        count: number of events, solutions or candidates that the cause removed.
        term: the predicate, constant or variable in question, as the query would write it.
        suggestion: a replacement, as the query would write it.
        example: a term or an event that shows the cause.
        text: the cause as a sentence, for people.
        shown: the text of the query at the place.
        stream: the name of the stream that a cause of the input is in.
    """

    kind: str
    gpm: str | None = None
    step: int | None = None
    line: int | None = None
    column: int | None = None
    count: int = 0
    term: str | None = None
    suggestion: str | None = None
    example: str | None = None
    text: str = ""
    shown: str = ""
    stream: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The cause without the parts for people."""
        names = ("kind", "gpm", "step", "line", "column", "count", "term", "suggestion", "example")
        return {name: getattr(self, name) for name in names}


@record
class StreamCount:
    """The counts of a stream. `first` and `last` are the least and greatest time (ms)."""

    name: str
    iri: str
    events: int
    triples: int
    first: int | None = None
    last: int | None = None
    bad: int = 0

    def as_json(self) -> dict[str, Any]:
        """The counts of the stream."""
        return {
            "stream": self.name,
            "iri": self.iri,
            "events": self.events,
            "triples": self.triples,
            "first": None if self.first is None else format_time(self.first),
            "last": None if self.last is None else format_time(self.last),
            "bad": self.bad,
        }


@record
class WindowCount:
    """The window events of a window, and how many of them hold events."""

    name: str
    events: int
    full: int


@record
class GpmCount:
    """The solutions of a GPM by itself.

    `streams` are the names of the streams and windows that it stands on.
    """

    name: str
    streams: tuple[str, ...]
    solutions: int
    events: int


@record
class StepCount:
    """The number of matches of the first `step` top-level steps of the sequence.

    `name` is the step's text. `at_least` says that the count stopped there.
    """

    step: int
    name: str
    reached: int
    at_least: bool = False


@record
class Report:
    """The counts of a run and, if it has no answers, its causes, the most telling one first.

    `at_least` says that the count of answers was stopped. `event` is the event of the report, for
    people; then it counts the answers and sequences with this event.
    """

    answers: int
    causes: tuple[Cause, ...] = ()
    streams: tuple[StreamCount, ...] = ()
    gpms: tuple[GpmCount, ...] = ()
    steps: tuple[StepCount, ...] = ()
    notes: tuple[str, ...] = field(default=())
    at_least: bool = False
    event: str = ""
    windows: tuple[WindowCount, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The report as one JSON object."""
        windows = [{"window": w.name, "events": w.events, "full": w.full} for w in self.windows]
        return {
            "answers": self.answers,
            "causes": [cause.as_json() for cause in self.causes],
            "streams": [stream.as_json() for stream in self.streams],
            **({"windows": windows} if windows else {}),
            "gpms": [
                {"gpm": gpm.name, "solutions": gpm.solutions, "events": gpm.events}
                for gpm in self.gpms
            ],
            "steps": [{"step": s.step, "name": s.name, "reached": s.reached} for s in self.steps],
            **({"at_least": True} if self.at_least else {}),
        }

    def as_text(self) -> str:
        """The report as lines for people, with each cause below what it is a cause of."""
        return visible(without_passwords("\n".join(self._lines())))

    def _lines(self) -> Iterator[str]:
        shown: set[str] = set()
        for stream in self.streams:
            yield _labelled(f"stream {stream.name}", _extent(stream))
            yield from self._of_stream(stream.name)
            yield from self._on(stream.name, shown)
        for window in self.windows:
            text = f"{window.events:{_COUNT},} window event{'' if window.events == 1 else 's'}"
            yield _labelled(f"window {window.name}", f"{text}, {window.full:,} of them not empty")
            yield from self._on(window.name, shown)
        if self.event:
            yield _labelled("event", self.event)
        if self.steps:
            yield _labelled("sequence", _progress(self.steps))
        for cause in self.causes:
            if cause.stream is None and (cause.kind not in OF_GPM or cause.gpm not in shown):
                yield from _caused(cause, "  ")
        if self.at_least:
            yield _labelled("answers", f"at least {self.answers:,}")
        else:
            yield _labelled("answers", f"{self.answers:{_COUNT},}")
        yield from self.notes

    def _on(self, source: str, shown: set[str]) -> Iterator[str]:
        """The GPMs on a stream or window that have not been shown."""
        for gpm in self.gpms:
            if source in gpm.streams and gpm.name not in shown:
                shown.add(gpm.name)
                yield _labelled(f"  {gpm.name}", _solutions(gpm))
                yield from self._of_gpm(gpm.name)

    def _of_stream(self, name: str) -> Iterator[str]:
        for cause in self.causes:
            if cause.stream == name and cause.kind not in OF_GPM:
                yield from _caused(cause, "  ")

    def _of_gpm(self, name: str) -> Iterator[str]:
        for cause in self.causes:
            if cause.gpm == name and cause.kind in OF_GPM:
                yield from _caused(cause, "    ")


def _caused(cause: Cause, indent: str) -> Iterator[str]:
    at = "" if cause.line is None else f"{cause.line}:{cause.column}"
    if not cause.shown:
        yield f"{indent}{cause.text}" + (f" ({at})" if at else "")
        return
    yield f"{indent}{' '.join(cause.shown.split()):{_PLACE}}  {cause.text} ({at})"


def _labelled(label: str, text: str) -> str:
    return f"{label:{_LABEL}}{text}"


def _extent(stream: StreamCount) -> str:
    noun = "event" if stream.events == 1 else "events"
    text = f"{stream.events:{_COUNT},} {noun}, {plural(stream.triples, 'triple')}"
    if stream.first is not None and stream.last is not None:
        text += f", {period(stream.first, stream.last)}"
    return text + (f"; {plural(stream.bad, 'bad input')}" if stream.bad else "")


def _solutions(gpm: GpmCount) -> str:
    noun = "solution" if gpm.solutions == 1 else "solutions"
    text = f"{gpm.solutions:{_COUNT},} {noun}"
    return f"{text} in {plural(gpm.events, 'event')}" if gpm.solutions else text


def _progress(steps: tuple[StepCount, ...]) -> str:
    parts: list[str] = []
    for step in steps:
        count = f"{'at least ' if step.at_least else ''}{step.reached:,}"
        if not parts:
            count = f"{count:>{_COUNT}}"
        parts.append(f"{count} reached {step.name}" if parts else f"{count} begun")
    return ", ".join(parts)


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "event"), plural(3998, "event"), plural(2, "match")
    ('1 event', '3,998 events', '2 matches')
    """
    ending = "es" if noun.endswith("ch") else "s"
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}{ending}"


def period(first: int, last: int) -> str:
    """Two times (ms), the second without the parts of the date that it shares.

    >>> period(1406879400000, 1408147200000)
    '2014-08-01T07:50 to 08-16T00:00'
    """
    begin, end = _moment(first), _moment(last)
    if first == last:
        return begin
    if begin[:11] == end[:11]:
        return f"{begin} to {end[11:]}"
    return f"{begin} to {end[5:] if begin[:5] == end[:5] else end}"


def _moment(ms: int) -> str:
    """A time (ms) in UTC without its zone, and without seconds where they are zero."""
    return format_time(ms).removesuffix("Z").removesuffix(":00")
