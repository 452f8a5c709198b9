"""Why no answer holds an event, or why a followed run may lack the answers that do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import TypeAlias

from spaseq.diagnosis.nearest_terms import as_written, nearest_term
from spaseq.diagnosis.observed import Observed, Observer
from spaseq.diagnosis.patterns import GpmQuestion
from spaseq.diagnosis.probes import run_probes
from spaseq.diagnosis.relaxed import all_first_steps
from spaseq.diagnosis.report import Cause, period, plural
from spaseq.diagnosis.search import RowSearch, SearchTime, answer_count
from spaseq.diagnosis.seen_matches import duration
from spaseq.diagnosis.steps import StepReport, step_report
from spaseq.diagnosis.watched_event import (
    EventWatch,
    HeldEvent,
    OneEventSource,
    SeenEvent,
    holds,
    matched_gpms,
    near_in_time,
    without_other_events,
)
from spaseq.lang.sequence import Chain, Link, occurrences
from spaseq.options import StageOptions
from spaseq.rdf.terms.times import duration_text, format_time
from spaseq.records import record
from spaseq.sources.base import Source

Place: TypeAlias = tuple[Link, HeldEvent]
"""A step of a sequence with the event that it should take."""


@record
class Outcome:
    """The number of answers, and the reason why there are none, or not yet.

    `complete` says that all answers were counted. `event` is the event in question, for people; the
    answers are then the answers that contain it.
    """

    answers: int
    complete: bool
    causes: tuple[Cause, ...] = ()
    steps: StepReport = field(default_factory=lambda: StepReport((), ()))
    event: str = ""


@record
class EventQuestion:
    """The question about an event that the watch looked for in all that was observed."""

    observed: Observed
    watch: EventWatch
    sources: Mapping[str, Source]
    options: StageOptions

    def outcome(self) -> Outcome:
        """The answer to the question."""
        event, name = self.watch.seen, self._name
        if event is None:
            return Outcome(0, True, (self._absent(),), event=name)
        stream = next(s.name for s in self.observed.streams if s.iri == event.stream)
        gpms = matched_gpms(self.observed, event)
        shown = f"{name} at {format_time(event.time).removesuffix('Z')} in {stream}, "
        shown += f"matches {', '.join(gpms)}" if gpms else "matches no GPM"
        if not gpms:
            return Outcome(0, True, tuple(self._unmatched(event, stream)), event=shown)
        places = self._places(event, gpms)
        count, complete, final = self._answers(event, places)
        if count:
            return Outcome(count, complete, tuple(self._later(event, final)), event=shown)
        steps = self._steps(places) or StepReport((), tuple(self._negated(gpms)))
        causes = steps.causes
        if not causes and complete and self.options.limit_per_event is not None:
            causes = tuple(self._limit(event))
        return Outcome(0, complete, causes, steps, shown)

    @property
    def _name(self) -> str:
        return self.observed.question.terms.iri(self.watch.iri)

    # --- the input and the GPMs -------------------------------------------------------------------

    def _absent(self) -> Cause:
        """The event was not read."""
        name, bad = self._name, self.watch.bad
        if bad is not None:
            where = f"{bad.file}:{bad.line}" if bad.line else bad.file
            text = f"event {name} is bad: {bad.reason} ({where})"
            return Cause("bad-event", count=1, term=name, example=where, text=text)
        known = sum(stream.events for stream in self.observed.streams)
        text = f"event {name} is not in the input ({plural(known, 'event')})"
        near = nearest_term(f"<{self.watch.iri}>", self.watch.names)
        suggestion = None if near is None else as_written(self.observed.question.terms, near)
        if suggestion is not None:
            text += f"; did you mean {suggestion}?"
        elif self.watch.names:
            text += "; an event's IRI is the name of its graph, such as "
            text += as_written(self.observed.question.terms, next(iter(self.watch.names)))
        elif known:
            text += "; no event has an IRI, because none is a named graph"
        return Cause("no-such-event", count=known, term=name, suggestion=suggestion, text=text)

    def _unmatched(self, event: SeenEvent, stream: str) -> Iterator[Cause]:
        """Why no GPM has a solution on the event."""
        question = self.observed.question
        if stream not in {ref.name for gpm in question.resolved.query.gpms for ref in gpm.streams}:
            yield from self._in_windows(event, stream)
            return
        sources = {s: OneEventSource(source, self.watch) for s, source in self.sources.items()}
        alone = Observer(question, self.observed.knowledge, self.observed.limits)
        alone.read(sources[event.stream])
        observed = alone.observed()
        uses = [u for u in occurrences(question.resolved.chain) if u.negation is None]
        names = [
            name
            for name in dict.fromkeys(use.gpm for use in uses)
            if stream in {ref.name for ref in question.gpm(name).streams}
        ]
        if not names:
            text = f"only negated GPMs read stream {stream}: no match holds its events"
            yield Cause("wrong-stream", count=1, term=stream, text=text)
        asked = [GpmQuestion(observed, name) for name in names]
        run_probes([q.probes for q in asked], {event.stream: sources[event.stream]})
        for cause in (cause for each in asked for cause in each.causes()):
            text = cause.text.replace(" is in no event", f" is not in {self._name}")
            yield replace(
                cause, text=text.replace("matches no event", f"does not match {self._name}")
            )

    def _in_windows(self, event: SeenEvent, stream: str) -> Iterator[Cause]:
        """The event counts only as a part of windows."""
        windows, streams = self.observed.windows, self.observed.question.plan.inputs.streams
        assert windows is not None  # else a GPM reads the stream
        by_window = windows.holding(streams.index(event.stream), event.time, event.k)
        text = f"only windows read stream {stream}: answers hold window events, not its events"
        for name, times in sorted(by_window.items()):
            text += f"; {self._name} is in {plural(len(times), 'window event')} of {name}, "
            text += f"at {period(min(times), max(times))}"
        if not by_window:
            text += f"; {self._name} is in none, as KEY has no solution on it"
        yield Cause("in-windows", count=len(by_window), term=stream, text=text)

    # --- answers ----------------------------------------------------------------------------------

    def _answers(self, event: SeenEvent, places: list[Place]) -> tuple[int, bool, bool]:
        """The number of answers with the event, whether it is complete, whether one is final."""
        seen = self._alone(*places[0]) if len(places) == 1 else self.observed
        observed = near_in_time(seen, event)
        count, complete = self._counted(observed, event, self.options)
        if not count:
            return 0, complete, True
        until = min(s.last for s in observed.streams if s.last is not None) - 1
        until -= self.watch.watermark_ms
        early, _ = self._counted(observed, event, self.options, until)
        return count, complete, early > 0

    def _counted(
        self,
        observed: Observed,
        event: SeenEvent,
        options: StageOptions,
        until: int | None = None,
    ) -> tuple[int, bool]:
        """The number of answers with the event, and whether it is complete."""
        return answer_count(observed, options, lambda answer: holds(answer, event), until)

    def _later(self, event: SeenEvent, final: bool) -> Iterator[Cause]:
        """Why a run with --follow may not have given the answers."""
        name = self._name
        watermark = self.watch.watermark_ms
        run = "a run with --follow"
        if watermark:
            run += f" --watermark '{duration_text(watermark)}'"
        if event.late_ms > watermark:
            text = f"event {name} came {duration(event.late_ms)} behind a later event of its stream"
            bound = f"--watermark '{duration_text(event.late_ms)}'"
            text += f"; {run} may leave it out: use {bound}"
            yield Cause("late", count=1, term=name, suggestion=bound, text=text)
        if not final:
            last = min(s.last for s in self.observed.streams if s.last is not None)
            text = f"no answer with event {name} is certain before the streams end at "
            text += format_time(last).removesuffix("Z")
            text += f"; {run} waits for later events of each stream, and with --open-end "
            text += "the end of the input closes no window that such an answer waits for"
            yield Cause("not-final-yet", count=1, term=name, text=text)

    # --- sequences --------------------------------------------------------------------------------

    def _places(self, event: SeenEvent, gpms: list[str]) -> list[Place]:
        """The places of the sequence that the event may have in a match."""
        question = self.observed.question
        return [
            (first.last, HeldEvent(event, use.gpm, use.span))
            for first in all_first_steps(question.resolved, question.watched)
            for use in occurrences(Chain((first.last,)))
            if use.negation is None and use.gpm in gpms
        ]

    def _alone(self, link: Link, held: HeldEvent) -> Observed:
        """The rows that decide which answers contain an event: without other events in its place.

        Where other answers matter, these are all rows.
        """
        answers = self.observed.question.plan.answers
        skips = not answers.after_match.keeps_all
        if skips or answers.distinct or answers.strategy != "ALL" or self.options.limit_per_event:
            return self.observed
        return without_other_events(self.observed, link, held)

    def _steps(self, places: list[Place]) -> StepReport | None:
        """The progress of sequences with the event, in the place where they get farthest."""
        time = SearchTime()
        best: StepReport | None = None
        for link, held in places:
            seen = without_other_events(self.observed, link, held)
            answering = near_in_time(self._alone(link, held), held.event)
            whole = RowSearch(answering, time, held)
            report = step_report(seen, time, RowSearch(seen, time, held), whole)
            if best is None or len(report.steps) > len(best.steps):
                best = report
        return best

    def _negated(self, gpms: list[str]) -> Iterator[Cause]:
        """The event matches negated GPMs only."""
        question = self.observed.question
        for name in gpms:
            use = next(u for u in occurrences(question.resolved.chain) if u.gpm == name)
            line, column = question.place(use.span)
            text = f"event {self._name} matches {name}, which is negated: no match holds it"
            step = question.step_of(name)
            yield Cause("negation", name, step, line, column, 1, name, text=text)

    def _limit(self, event: SeenEvent) -> Iterator[Cause]:
        """The limit leaves out the answers."""
        free = replace(self.options, limit_per_event=None)
        count, _ = self._counted(near_in_time(self.observed, event), event, free)
        if count:
            most = self.options.limit_per_event
            text = f"--limit-per-event {most} leaves out {plural(count, 'answer')} that hold "
            text += f"{self._name}: others end at the same event and come before them"
            yield Cause("limit", count=count, term="--limit-per-event", text=text)
