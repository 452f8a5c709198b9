"""The graph of a run's units: which unit reads the streams of others, and how far each may advance.

The events of a registered stream are the answers of its query (docs/meaning.md#register-stream), in
their order, which also numbers events of equal time. An event exists as soon as its answer is
final. Drivers have nodes of different kinds, but the same edges.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import chain, pairwise
from typing import Generic, Protocol, TypeVar

from spaseq.algebra.answers import Answer
from spaseq.errors import UsageError
from spaseq.plan.changing_graphs import connected
from spaseq.plan.families import EventReader, QueryUnits
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.program_events import batch_from_events
from spaseq.rdf.terms.term import Triple
from spaseq.records import record


class RegisteredStream:
    """The answers of a CONSTRUCT query as events of the stream that it registers.

    `counter` numbers the events of equal time. `give` passes the events to the `readers`.
    """

    def __init__(self, iri: str, counter: InstantCounter | None = None) -> None:
        self.iri, self.readers = iri, list[EventReader]()
        self._counter = InstantCounter(ordered=True) if counter is None else counter

    def events(self, answers: Sequence[Answer]) -> EventBatch:
        """The next answers as a batch of events."""
        from spaseq.algebra.change_batch import ChangeBatch  # few runs register streams
        from spaseq.algebra.graph_batch import GraphBatch

        if isinstance(answers, ChangeBatch):
            return answers.events(self.iri, self._counter)
        if isinstance(answers, GraphBatch):
            return answers.batch(self.iri, self._counter)
        return batch_from_events(self.iri, [_event(a) for a in answers], self._counter)

    def give(self, answers: Sequence[Answer]) -> None:
        """Match the next answers for the readers."""
        if answers and self.readers:
            events = self.events(answers)
            for reader in self.readers:
                reader.push(reader.match_batch(events))


def stream_of(plan: QueryPlan, counter: InstantCounter | None = None) -> RegisteredStream | None:
    """The stream whose events a query's answers are: a registered stream, or a graph's changes."""
    iri = plan.identity.register
    return None if iri is None else RegisteredStream(iri, counter)


def _event(answer: Answer) -> tuple[int, str | None, Sequence[Triple]]:
    return answer.end[0], answer.event, answer.graph or ()


def registered(plans: Sequence[QueryPlan]) -> dict[str, int]:
    """The number of the query that registers a stream, by the stream's IRI.

    Raises:
        UsageError: two queries register one stream.
    """
    by_stream: dict[str, int] = {}
    for number, plan in enumerate(plans):
        if plan.identity.register is None or plan.maintained is not None:
            continue
        other = by_stream.setdefault(plan.identity.register, number)
        if other != number:
            raise UsageError(
                f"two queries register the stream <{plan.identity.register}>: "
                f"{plans[other].identity.title} and {plan.identity.title}"
            )
    return by_stream


def queries_read(plans: Sequence[QueryPlan]) -> list[frozenset[int]]:
    """For each query: the numbers of the queries whose streams or graphs it reads.

    Raises:
        UsageError: a query reads the stream of a SELECT query, whose answers are not events.
    """
    known = registered(plans)
    for plan in plans:
        for iri in plan.inputs.streams:
            if iri in known and plans[known[iri]].answers.template is None:
                raise UsageError(
                    f"query {plan.identity.title} reads the stream <{iri}> of query "
                    f"{plans[known[iri]].identity.title}, whose answers are no events: "
                    "use CONSTRUCT there instead of SELECT"
                )
    made: dict[str, list[int]] = {}
    for number, plan in enumerate(plans):
        if plan.identity.register is not None:
            made.setdefault(plan.identity.register, []).append(number)
    return [
        frozenset(n for iri in plan.inputs.streams for n in made.get(iri, ())) for plan in plans
    ]


def reading_order(
    plans: Sequence[QueryPlan], changing: Collection[str] = ()
) -> tuple[QueryPlan, ...]:
    """The queries in reading order: each comes after the queries whose streams it reads.

    Otherwise their order stays. Graphs that queries maintain become changing graphs, and so do the
    graphs in `changing` (IRIs).

    Raises:
        UsageError: queries read each other's streams in a circle.
    """
    plans = connected(plans, changing)
    if all(plan.identity.register is None for plan in plans):
        return plans
    reads = queries_read(plans)
    readers: dict[int, list[int]] = {}
    for number, read in enumerate(reads):
        for maker in read:
            readers.setdefault(maker, []).append(number)
    missing = [len(read) for read in reads]
    ready = [number for number, count in enumerate(missing) if not count]  # a heap
    ordered: list[int] = []
    while ready:
        ordered.append(heappop(ready))
        for number in readers.get(ordered[-1], ()):
            missing[number] -= 1
            if not missing[number]:
                heappush(ready, number)
    if len(ordered) < len(plans):
        waiting = sorted({*range(len(plans))}.difference(ordered))
        raise UsageError(_circle(plans, reads, waiting))
    return tuple(plans[n] for n in ordered)


def order_with(
    others: Sequence[QueryPlan], plan: QueryPlan
) -> tuple[Sequence[QueryPlan], QueryPlan]:
    """The plans in reading order, and the last plan with the graphs of the others as changing
    graphs.

    Raises:
        UsageError: as from `reading_order`; or the kind of a graph would change for another query.
    """
    plans = reading_order([*others, plan])
    known = {id(other) for other in others}
    new = [each for each in plans if id(each) not in known]
    late = [each.identity.title for each in new if each.identity.title != plan.identity.title]
    if late:
        raise UsageError(
            f"{plan.identity.title} maintains <{plan.maintained}>, which {', '.join(late)} reads "
            "as a graph that does not change: begin with the query that maintains it"
        )
    return plans, new[0]


def _circle(plans: Sequence[QueryPlan], reads: list[frozenset[int]], waiting: list[int]) -> str:
    """The message that names a circle of queries."""
    path = [waiting[0]]
    while (following := min(reads[path[-1]].intersection(waiting))) not in path:
        path.append(following)
    titles = [plan.identity.title for plan in plans]
    circle = [*path[path.index(following) :], following]
    steps = (
        f"{titles[reader]} reads <{plans[source].made}> of {titles[source]}"
        for reader, source in pairwise(circle)
    )
    return f"queries read each other's streams in a circle: {', '.join(steps)}"


@record
class QueryGroup:
    """Units of queries that are connected by registered streams; any other unit is a group alone.

    Attributes:
        members: the numbers of the units, in reading order.
        streams: the IRIs of the streams from outside the group.
    """

    members: tuple[int, ...]
    streams: tuple[str, ...]

    @property
    def first(self) -> int:
        """The unit that identifies the group."""
        return self.members[0]

    def key(self, units: QueryUnits) -> tuple[str, ...] | None:
        """The variables by which stage 2 is split: the key of a single unit, else None."""
        return units.key(self.first) if len(self.members) == 1 else None

    def title(self, units: QueryUnits) -> str:
        """The group's name in messages."""
        return ", ".join(units.plans[n].identity.name for n in self.members)


@record
class QueryGroups:
    """The groups of a run's units, in order of their first units; `home` has the group of each."""

    units: QueryUnits
    every: tuple[QueryGroup, ...]
    home: Mapping[int, QueryGroup]

    def key(self, unit: int) -> tuple[str, ...] | None:
        """The variables by which stage 2 of a unit is split; None if its group is not split."""
        return self.home[unit].key(self.units)

    @classmethod
    def of(cls, units: QueryUnits) -> QueryGroups:
        """The groups of units whose queries are in reading order."""
        unit_of = {query: unit for unit in units.plans for query in units.members(unit)}
        home = {unit: [unit] for unit in units.plans}
        for query, reads in enumerate(queries_read(units.queries)):
            for maker in reads:
                one, other = home[unit_of[query]], home[unit_of[maker]]
                if one is not other:
                    other += one
                    home.update((unit, other) for unit in one)
        every = {id(some): _group(units, sorted(some)) for some in home.values()}
        return cls(units, tuple(every.values()), {n: every[id(each)] for n, each in home.items()})


def _group(units: QueryUnits, numbers: Sequence[int]) -> QueryGroup:
    plans = [units.plans[n] for n in numbers]
    made = {plan.identity.register for plan in plans}
    read = dict.fromkeys(iri for plan in plans for iri in plan.inputs.streams)
    return QueryGroup(tuple(numbers), tuple(iri for iri in read if iri not in made))


class UnitNode(EventReader, Protocol):
    """A unit: a single query, or a family of queries.

    `feed` is the edge to the readers of the stream that the query registers, or of the graph that
    it maintains. A family has none.
    """

    @property
    def plan(self) -> QueryPlan: ...

    @property
    def feed(self) -> RegisteredStream | None: ...


UnitT = TypeVar("UnitT", bound=UnitNode)


class UnitGraph(Generic[UnitT]):
    """Units in reading order, each after those whose streams it reads.

    `made` are the IRIs of the streams, and of the changes of graphs, that units make.
    """

    def __init__(self, units: Iterable[UnitT]) -> None:
        self.made = set[str]()
        self._units: list[UnitT] = []
        self._readers: dict[str, list[UnitT]] = {}
        self._sources: dict[UnitT, frozenset[str]] | None = None  # see `sources`
        self._groups: dict[frozenset[str], list[UnitT]] | None = None  # see `groups`
        for unit in units:
            self.add(unit)
        for unit in self:
            if unit.feed is not None:
                unit.feed.readers = [*self.readers(unit.feed.iri)]

    def __len__(self) -> int:
        return len(self._units)

    def __iter__(self) -> Iterator[UnitT]:
        return iter(self._units)

    def add(self, unit: UnitT) -> None:
        """Add a unit after all others; none of these has an edge to it."""
        self._units.append(unit)
        self._sources = self._groups = None
        if unit.feed is not None:
            self.made.add(unit.feed.iri)
        for iri in unit.plan.inputs.streams:
            self._readers.setdefault(iri, []).append(unit)

    def readers(self, iri: str) -> Sequence[UnitT]:
        """The readers of a stream."""
        return [*self._readers.get(iri, ())]

    # --- time -------------------------------------------------------------------------------------

    def sources(self) -> Mapping[UnitT, frozenset[str]]:
        """The streams that each unit reads, directly or through registered streams."""
        if self._sources is None:
            made: dict[str, frozenset[str]] = {}  # of registered streams
            self._sources = {}
            for unit in self._units:
                streams = (made.get(iri, {iri}) for iri in unit.plan.inputs.streams)
                self._sources[unit] = streams_read = frozenset(chain.from_iterable(streams))
                if unit.feed is not None:  # several units may maintain one graph
                    made[unit.feed.iri] = streams_read | made.get(unit.feed.iri, frozenset())
        return self._sources

    def groups(self) -> Mapping[frozenset[str], Sequence[UnitT]]:
        """The units with the same `sources`, in reading order."""
        if self._groups is None:
            self._groups = {}
            for unit, sources in self.sources().items():
                self._groups.setdefault(sources, []).append(unit)
        return self._groups

    def watermarks(self, marks: Mapping[str, int]) -> dict[frozenset[str], int]:
        """The watermark (ms) of the units of each group.

        A unit waits only for the streams that it reads. A stream without a producer has the least
        watermark of all streams.

        Args:
            marks: by stream IRI the time (ms) at or before which no event follows.
        """
        least = min(marks.values())
        return {sources: min(marks.get(iri, least) for iri in sources) for sources in self.groups()}

    def due(self, marks: Mapping[str, int]) -> dict[UnitT, int]:
        """The watermark (ms) of each unit, in reading order; `marks` are as for `watermarks`."""
        of_sources = self.watermarks(marks)
        return {unit: of_sources[sources] for unit, sources in self.sources().items()}
