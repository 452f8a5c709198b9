"""One event of the input: where it is, whether it is bad, and its stream without other events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.algebra.answers import Answer
from spaseq.automaton.program.window import Counted
from spaseq.compiled.arrays import Bools
from spaseq.diagnosis.nearest_terms import last_part
from spaseq.diagnosis.observed import Observed
from spaseq.diagnosis.relaxed import COPY
from spaseq.errors import Span
from spaseq.lang import sequence as seq
from spaseq.lang.sequence import Chain, Link, occurrences
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import BARE
from spaseq.rdf.inputs.stream_options import BadInput, OnBad, ignore
from spaseq.records import record
from spaseq.sources.base import Source, Split

MOST_NAMES = 10_000
"""Maximum number of events whose IRIs are candidates of a suggestion."""


@record
class AskedEvent:
    """The event that a question is about.

    `name` is as the user writes it. `watermark_ms` is the watermark of the followed run in
    question.
    """

    name: str
    watermark_ms: int = 0


@record
class SeenEvent:
    """An event: its instant, the IRI of its stream, and how late it is (ms).

    An event is late if a later one came before it in its stream.
    """

    time: int
    k: int
    stream: str
    late_ms: int = 0


@dataclass(slots=True)
class EventWatch:
    """Finds an event by its IRI while the streams are read.

    `seen` is the first event with the IRI; `bad` is the first bad input that names it. `names` are
    the IRIs of the first events, as N-Triples text, and of events whose IRIs end alike.
    """

    iri: str
    watermark_ms: int = 0
    seen: SeenEvent | None = None
    bad: BadInput | None = None
    names: dict[str, int] = field(default_factory=dict)
    _latest: dict[str, int] = field(default_factory=dict)

    def take(self, batch: EventBatch) -> None:
        """Look at a batch."""
        if self.seen is not None or not len(batch):
            return
        names = batch.names(np.arange(len(batch))).strings()
        place = _place(names, self.iri)
        latest = self._latest.get(batch.stream, int(batch.time[0]))
        if place is not None:
            time = int(batch.time[place])
            before = int(batch.time[: place + 1].max())
            late = max(before, latest) - time
            self.seen = SeenEvent(time, int(batch.k[place]), batch.stream, late)
        else:
            self._keep(names)
        self._latest[batch.stream] = max(latest, int(batch.time.max()))

    def _keep(self, names: pa.Array) -> None:
        """Keep the IRIs that a suggestion may need."""
        alike = names.filter(pc.ends_with(names, last_part(f"<{self.iri}>")))
        first = names.slice(0, max(0, MOST_NAMES - len(self.names)))
        for name in (*first.to_pylist(), *alike.slice(0, MOST_NAMES).to_pylist()):
            if name is not None and len(self.names) < 2 * MOST_NAMES:
                self.names[f"<{name}>"] = 1

    def take_bad(self, bad: BadInput) -> None:
        """Look at bad input."""
        if self.bad is None and (bad.text == self.iri or f"<{self.iri}>" in bad.text):
            self.bad = bad


def _place(names: pa.Array, iri: str) -> int | None:
    """The place of an event among the names of others."""
    place = int(pc.index(names, iri).as_py())
    return None if place < 0 else place


@record
class _Wrapped(Source):
    """A source that is read for one event."""

    source: Source
    watch: EventWatch

    @property
    def iri(self) -> str:
        return self.source.iri

    def describe(self) -> str:
        return self.source.describe()


@record
class WatchedSource(_Wrapped):
    """A source that shows all that it reads to a watch."""

    def open(self, on_bad: OnBad, split: Split | None = None) -> Iterator[EventBatch]:
        def both(bad: BadInput) -> None:
            self.watch.take_bad(bad)
            on_bad(bad)

        for batch in self.source.keeping(None).open(both, split):
            self.watch.take(batch)
            yield batch


@record
class OneEventSource(_Wrapped):
    """A source without all events but the first one of the watch's IRI."""

    def open(self, on_bad: OnBad, split: Split | None = None) -> Iterator[EventBatch]:
        for batch in self.source.keeping(None).open(ignore, split):
            place = _place(batch.names(np.arange(len(batch))).strings(), self.watch.iri)
            if place is not None:
                yield batch.take(np.array([place]))
                return


@record
class HeldEvent:
    """An event that matches must hold, as a solution of a GPM.

    Matches of sequences without the GPM's use at `span` need not hold it.
    """

    event: SeenEvent
    gpm: str
    span: Span

    def concerns(self, chain: Chain) -> bool:
        """Whether the matches of a sequence must hold the event."""
        return any(use.span == self.span for use in occurrences(chain))

    def is_in(self, match: Answer) -> bool:
        """Whether a match holds the event."""
        return holds(match, self.event, self.gpm)


def holds(match: Answer, event: SeenEvent, gpm: str | None = None) -> bool:
    """Whether a match holds an event, as a solution of a GPM if one is given."""
    return any(
        item.time == event.time
        and item.k == event.k
        and item.stream == event.stream
        and gpm in (None, item.gpm.removesuffix(COPY))
        for item in match.trace
    )


def rows_of(observed: Observed, event: SeenEvent) -> Bools:
    """The rows of an event."""
    rows = observed.rows
    stream = observed.question.plan.inputs.streams.index(event.stream)
    mask: Bools = (rows.time == event.time) & (rows.k == event.k) & (rows.stream == stream)
    return mask


def matched_gpms(observed: Observed, event: SeenEvent) -> list[str]:
    """The GPMs that have a solution on an event."""
    gpms = observed.question.watched.patterns.gpms
    numbers = np.unique(observed.rows.gpm[rows_of(observed, event)]).tolist()
    return [gpms[number].name for number in numbers if number != BARE]


def without_other_events(observed: Observed, link: Link, held: HeldEvent) -> Observed:
    """The observations, where the held GPM has no solution except on the event.

    The matches that hold it stay the same if the GPM stands in one place, is a step by itself, and
    no operator looks for the next of its events. Otherwise everything stays.
    """
    question = observed.question
    chain = question.resolved.chain
    uses = [use for use in occurrences(chain) if use.gpm == held.gpm]
    first = next(li for li in chain.links if not isinstance(li.step, seq.Negation))
    begins = first.step == link.step
    alone = isinstance(link.step, seq.GpmStep) and (begins or link.join.kind == ":")
    if len(uses) > 1 or not alone:
        return observed
    rows = observed.rows
    others = (rows.gpm == question.gpm_number(held.gpm)) & ~rows_of(observed, held.event)
    if question.plan.sequence.partition:  # each event has bare rows
        return replace(observed, rows=rows.take(np.flatnonzero(~others)))
    bare = np.where(others, np.int32(BARE), rows.gpm).astype(np.int32)
    return replace(observed, rows=replace(rows, gpm=bare))


def near_in_time(observed: Observed, event: SeenEvent) -> Observed:
    """The rows that decide which answers hold an event."""
    plan, rows = observed.question.plan, observed.rows
    window = plan.sequence.window
    if isinstance(window, Counted):
        return observed
    reach = 2 * window.length_ms
    keep = rows.time <= event.time + reach
    if plan.answers.after_match.keeps_all and not plan.answers.distinct:
        keep &= rows.time >= event.time - reach
    return replace(observed, rows=rows.take(np.flatnonzero(keep)))
