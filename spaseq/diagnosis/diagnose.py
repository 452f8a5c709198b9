"""The order of a diagnosis: the input, with the predicate that may hold the time of events without
one, then every GPM by itself, then the steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field, replace

import numpy as np
import pyoxigraph

from spaseq.diagnosis.event_question import EventQuestion, Outcome
from spaseq.diagnosis.observed import Observed, Observer, StreamSeen
from spaseq.diagnosis.patterns import GpmQuestion
from spaseq.diagnosis.probes import run_probes
from spaseq.diagnosis.question import Question
from spaseq.diagnosis.report import (
    Cause,
    GpmCount,
    Report,
    StreamCount,
    WindowCount,
    plural,
)
from spaseq.diagnosis.search import answer_count
from spaseq.diagnosis.steps import step_report
from spaseq.diagnosis.watched_event import AskedEvent, EventWatch, WatchedSource
from spaseq.errors import InputError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.lang import ast
from spaseq.lang.sequence import needed_gpms
from spaseq.options import StageOptions
from spaseq.rdf.events.graph_times import NO_TIME
from spaseq.rdf.inputs.files import READ_ERRORS, InputFile
from spaseq.rdf.inputs.formats import Format, format_of
from spaseq.rdf.terms.term import XSD_DATE_TIME, XSD_DATE_TIME_STAMP
from spaseq.records import record
from spaseq.sources.base import Source

_READ = 2**20
"""Number of bytes of the file that are read."""

_TIMES = (XSD_DATE_TIME, XSD_DATE_TIME_STAMP)


def time_predicate(path: str) -> str | None:
    """The predicate that gives most named graphs one `xsd:dateTime`, at the start of a file.

    If there is none, the one that most often describes a graph by a literal.
    """
    times: dict[tuple[str, str], set[str]] = {}  # by predicate and graph
    numbers = Counter[str]()
    for quad in _quads(path):
        in_default = isinstance(quad.graph_name, pyoxigraph.DefaultGraph)
        if _is_time(quad) and (in_default or quad.subject == quad.graph_name):
            values = times.setdefault((quad.predicate.value, str(quad.subject)), set())
            values.add(str(quad.object))
        elif in_default and isinstance(quad.object, pyoxigraph.Literal):
            numbers[quad.predicate.value] += 1
    single = Counter(predicate for (predicate, _), values in times.items() if len(values) == 1)
    for counts in (single, numbers):
        if counts:
            return counts.most_common(1)[0][0]
    return None


def misplaced_time(path: str) -> str | None:
    """A message, if the times in a file belong to things in the graphs; else None."""
    for quad in _quads(path):
        if _is_time(quad) and isinstance(quad.graph_name, pyoxigraph.NamedNode):
            return (
                f"{quad.predicate} is a time of {quad.subject}, and the time of an event must be "
                f"of its graph, {quad.graph_name}"
            )
    return None


def _is_time(quad: pyoxigraph.Quad) -> bool:
    return isinstance(quad.object, pyoxigraph.Literal) and quad.object.datatype.value in _TIMES


def _quads(path: str) -> Iterator[pyoxigraph.Quad]:
    """The quads at the start of a file, up to the first that cannot be read."""
    form = format_of(path)
    if form not in _FORMATS:
        return
    try:
        with InputFile(path, form).open() as file:
            start = file.read(_READ)
        yield from pyoxigraph.parse(start, _FORMATS[form])
    except (InputError, *READ_ERRORS, SyntaxError, ValueError):
        return


_FORMATS = {
    Format.NQUADS: pyoxigraph.RdfFormat.N_QUADS,
    Format.TRIG: pyoxigraph.RdfFormat.TRIG,
    Format.JSONLD: pyoxigraph.RdfFormat.JSON_LD,
}


def input_causes(
    observed: Observed, needed: Collection[str], made: Collection[str]
) -> Iterator[Cause]:
    """The streams without events, where a GPM that the sequence needs has no other stream.

    Args:
        observed: the observed streams.
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


@record
class Diagnosis:
    """A question with all that answers it.

    `sources` are the inputs of its streams, by IRI; each may be opened several times. `made` are
    the IRIs of the streams that other queries register. With `event` the question is about the
    answers that hold this event. With `until` the streams have come to this time (ms), and have not
    ended: answers that are not certain by then do not count.
    """

    question: Question
    sources: Mapping[str, Source]
    knowledge: KnowledgeBase
    options: StageOptions = StageOptions()
    made: Collection[str] = field(default=())
    event: AskedEvent | None = None
    until: int | None = None

    def report(self) -> Report:
        """Read the streams and say where the way to answers ends.

        Raises:
            InputError: a stream cannot be read.
        """
        observer = Observer(self.question, self.knowledge, self.options.limits)
        watch = None
        if self.event is not None:
            iri = self.question.event_iri(self.event.name)
            watch = EventWatch(iri, self.event.watermark_ms)
        for source in self.sources.values():
            observer.read(source if watch is None else WatchedSource(source, watch))
        observed = observer.observed()
        if watch is not None:
            return self._of_event(observed, watch)
        answers, all_counted = answer_count(observed, self.options, until=self.until)
        steps = step_report(observed)
        causes = () if answers else tuple(self._causes(observed)) or steps.causes
        if not answers and not causes and self.until is not None:
            causes = tuple(self._waiting(observed))
        return self._report(observed, Outcome(answers, all_counted, causes, steps))

    def _of_event(self, observed: Observed, watch: EventWatch) -> Report:
        """The report on an event."""
        outcome = EventQuestion(observed, watch, self.sources, self.options).outcome()
        if not outcome.answers and not outcome.causes:  # no event helps where the query has a fault
            outcome = replace(outcome, causes=tuple(self._causes(observed)))
        return self._report(observed, outcome)

    def _report(self, observed: Observed, outcome: Outcome) -> Report:
        streams = (
            StreamCount(s.name, s.iri, s.events, s.triples, s.first, s.last, s.bad.total())
            for s in observed.streams
        )
        unsure = () if outcome.answers or outcome.causes else outcome.steps.notes
        return Report(
            outcome.answers,
            outcome.causes,
            tuple(streams),
            tuple(_gpm_counts(observed)),
            outcome.steps.steps,
            (*_failures(observed), *unsure),
            not outcome.complete and not outcome.steps.causes,
            outcome.event,
            _window_counts(observed),
        )

    def _waiting(self, observed: Observed) -> Iterator[Cause]:
        """Answers that the end of the streams would give."""
        count, _ = answer_count(observed, self.options)
        if count:
            text = f"{plural(count, 'answer')} would follow if the streams ended now, and may still"
            yield Cause("not-final-yet", count=count, text=f"{text} follow, or not.")

    def _causes(self, observed: Observed) -> Iterator[Cause]:
        chain = self.question.resolved.chain
        needed = needed_gpms(chain, lambda name: observed.counts(name)[0] > 0)
        causes = list(input_causes(observed, needed, self.made))
        if causes:
            yield from causes
            return
        questions = [GpmQuestion(observed, name) for name in needed]
        asked = [q for q in questions if q.is_open]
        if asked:
            run_probes(
                [probes for q in asked for probes in q.all_probes], self.sources, observed.windows
            )
            yield from (cause for q in asked for cause in q.causes())


def _failures(observed: Observed) -> Iterator[str]:
    """A line for each reason why events were left out."""
    for reason, count in observed.failed.items():
        yield f"left out: {plural(count, 'event')}, {reason}"


def _window_counts(observed: Observed) -> tuple[WindowCount, ...]:
    windows = observed.question.plan.inputs.windows
    if observed.windows is None:
        return ()
    counts = []
    for number, window in enumerate(windows):
        sizes = [
            int(np.bincount(part.owner, minlength=len(part.batch)).astype(bool).sum())
            for part in observed.windows.indices(number)
        ]
        events = sum(len(part.batch) for part in observed.windows.indices(number))
        counts.append(WindowCount(window.name, events, sum(sizes)))
    return tuple(counts)


def _gpm_counts(observed: Observed) -> Iterator[GpmCount]:
    for plan in observed.question.plan.patterns.gpms:
        windows = observed.question.plan.inputs.windows
        names = tuple(observed.streams[number].name for number in plan.streams)
        names += tuple(windows[source.window].name for source in plan.windows)
        yield GpmCount(plan.name, names, *observed.counts(plan.name))
