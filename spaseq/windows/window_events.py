"""Window events as a batch of graphs, and as literals."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.algebra.answers import extent_text
from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.gpm.evaluator import EventSolutions
from spaseq.gpm.graphs.vertical_partition import (
    ScopedTerms,
    VerticalPartition,
    WindowContent,
    WindowPartition,
    ranges,
)
from spaseq.gpm.solution_rows import event_triples
from spaseq.gpm.solutions.lazy_columns import Lexicon
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch, EventNames
from spaseq.rdf.columns.term_columns import distinct
from spaseq.rdf.terms.term import XSD_STRING, literal_text, split_literal
from spaseq.windows.lasting_solutions import ChangedSolutions
from spaseq.windows.window_runs import Closed, ContentEvent


class WindowEvent(NamedTuple):
    """A window event of a partition, whose values of the partition variables are `key`."""

    key: tuple[str, ...]
    closed: Closed


class WindowGraphs:
    """Makes graphs of the window events of one query."""

    def __init__(self, plan: QueryPlan) -> None:
        self._inputs, self._partition = plan.inputs, plan.sequence.partition

    def index(
        self, window: int, events: Sequence[WindowEvent], with_union: bool = True
    ) -> WindowPartition:
        """Some events of a window; without `with_union` their own graphs are empty."""
        codes: dict[str, int] = {}
        every = {id(e): e for window_event in events for e in window_event.closed.content}
        ordered = sorted(every.values(), key=self.order)
        places = {id(event): place for place, event in enumerate(ordered)}
        content = self._content(ordered, codes)
        sizes = [len(window_event.closed.content) for window_event in events]
        owner = np.repeat(np.arange(len(events), dtype=np.int64), sizes)
        member = np.array(
            [places[id(e)] for window_event in events for e in window_event.closed.content],
            np.int64,
        )
        start, rows = np.zeros(len(events) + 1, np.int64), np.empty(0, np.int64)
        if with_union:
            triples = np.diff(content.start)[member]
            rows = ranges(content.start[member], triples)
            per_event = np.bincount(owner, weights=triples, minlength=len(events))
            np.cumsum(per_event.astype(np.int64), out=start[1:])
        terms = ScopedTerms([*codes])
        lexicon = Lexicon(terms)
        closed = [window_event.closed for window_event in events]
        batch = EventBatch(
            self._inputs.windows[window].name,
            np.array([run.time for run in closed], np.int64),
            np.array([run.k for run in closed], np.int32),
            EventNames.of([extent_text(run.begin, len(run.content)) for run in closed]),
            start,
            np.ascontiguousarray(content.s[rows]),
            np.ascontiguousarray(content.p[rows]),
            np.ascontiguousarray(content.o[rows]),
            terms,
        )
        streams = np.array([event.stream for event in ordered], np.int32)
        source = VerticalPartition(_with_terms(content, terms), lexicon)
        names = WindowContent(source, streams, self._inputs.stream_names)
        return WindowPartition(batch, lexicon, names, owner, member)

    def of_solutions(
        self, window: int, changed: ChangedSolutions
    ) -> tuple[VerticalPartition, EventSolutions]:
        """Solutions on the events of a window, as if these had no triples."""
        closes, lexicon = changed.closes, changed.lexicon
        used = distinct(changed.event)
        places = np.searchsorted(used, changed.event)
        sizes = changed.sizes[np.searchsorted(changed.event, used)]
        names = extent_names(closes.begin[used], sizes)
        start, none = np.zeros(len(used) + 1, np.int64), np.empty(0, np.int32)
        time, k = closes.time[used], closes.k[used]
        name = self._inputs.windows[window].name
        batch = EventBatch(name, time, k, names, start, none, none, none, lexicon.base)
        return VerticalPartition(batch, lexicon), EventSolutions(places, changed.columns, lexicon)

    def order(self, event: ContentEvent) -> tuple[int, int, str]:
        """The sort key of an event in a window."""
        return event.time, event.k, self._inputs.streams[event.stream]

    def _content(self, events: Sequence[ContentEvent], codes: dict[str, int]) -> EventBatch:
        graphs = [event_triples(event.triples) for event in events]
        start = np.zeros(len(graphs) + 1, np.int64)
        np.cumsum([len(graph) for graph in graphs], out=start[1:])
        flat = [codes.setdefault(t, len(codes)) for g in graphs for triple in g for t in triple]
        s, p, o = _columns(flat)
        times = np.array([event.time for event in events], np.int64)
        ks = np.array([event.k for event in events], np.int32)
        names = EventNames.of([event.name for event in events])
        return EventBatch("", times, ks, names, start, s, p, o, [])

    # --- window events as literals ---------------------------------------------------------------

    def text(self, window: int, event: WindowEvent) -> str:
        """A window event as a literal, for patterns that need the bindings of earlier steps."""
        return literal_text(json.dumps([window, event.key, event.closed]), XSD_STRING)

    def event_of(self, text: str) -> tuple[VerticalPartition, Mapping[str, str]] | None:
        """The window event of a literal, and its partition; None if it is none."""
        lexical = split_literal(text)[0]
        if not lexical.startswith("["):  # no term begins like that
            return None
        window, key, (time, k, begin, content) = json.loads(lexical)
        closed = Closed(time, k, begin, tuple(ContentEvent(*event) for event in content))
        known = dict(zip(self._partition, key, strict=True))
        return self.index(window, [WindowEvent(tuple(key), closed)]), known


def extent_names(begin: Int64s, events: Int64s) -> EventNames:
    """The result of `extent_text` for each begin (ms) and number of events."""
    texts = [pa.array(column).cast(pa.large_string()) for column in (begin, events)]
    return EventNames(pc.binary_join_element_wise(*texts, pa.scalar(" ", pa.large_string())))


def _columns(flat: Iterable[int]) -> tuple[Int32s, Int32s, Int32s]:
    table = np.array(flat, np.int32).reshape(-1, 3)
    s, p, o = (np.ascontiguousarray(table[:, i]) for i in range(3))
    return s, p, o


def _with_terms(batch: EventBatch, terms: Sequence[str]) -> EventBatch:
    start: Int64s = batch.start
    return EventBatch(
        batch.stream, batch.time, batch.k, batch.graph, start, batch.s, batch.p, batch.o, terms
    )
