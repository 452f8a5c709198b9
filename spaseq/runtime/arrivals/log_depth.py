"""How far back in the logs of its streams the state of a query reaches.

A partial match is no older than its query's window. So the state can be rebuilt from the events of
the longest window before the watermark, and all later events.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from spaseq.automaton.program.window import Counted
from spaseq.plan.pattern_plan import EachEventExtent, SessionExtent
from spaseq.plan.query_plan import QueryPlan
from spaseq.records import record
from spaseq.windows.window_runs import longest_wait


class Reach(NamedTuple):
    """How far back the state of a query reaches.

    Attributes:
        since: the state depends on no event before this time (ms); None if it may depend on all.
        events: under WITHIN n EVENTS, the state also depends on this number of last events.
        accepted: number of events so far of each stream that the query reads, by IRI.
    """

    since: int | None
    events: int | None
    accepted: Mapping[str, int]

    def is_after(self, latest: Mapping[str, int | None], accepted: Mapping[str, int]) -> bool:
        """Whether the state depends only on events after a point of the logs.

        Args:
            latest: the greatest time (ms) of each stream before the point, by IRI.
            accepted: number of events of each stream before the point, by IRI.
        """
        since, events, counts = self.since, self.events or 0, self.accepted.items()
        if since is None or any(count - accepted.get(iri, 0) < events for iri, count in counts):
            return False
        times = [latest.get(iri) for iri in self.accepted]
        return all(time is None or time < since for time in times)


@record
class Depth:
    """The maximum distance from the watermark of an event on which the state of a query depends.

    Attributes:
        streams: the IRIs of the streams of the query.
        length_ms: the distance in time before the watermark.
        events: under WITHIN n EVENTS, the number of events.
        is_chained: whether AFTER MATCH makes each answer depend on the answer before. Two windows
            nearly always suffice; more are safer.
        is_endless: whether there is no maximum.
    """

    streams: tuple[str, ...]
    length_ms: int
    events: int | None = None
    is_chained: bool = False
    is_endless: bool = False

    def reach(self, watermarks: Mapping[str, int | None], accepted: Mapping[str, int]) -> Reach:
        """The present reach of the state.

        Args:
            watermarks: of the streams, by IRI (ms); None before the first event.
            accepted: number of events of each stream so far, by IRI.
        """
        marks = [watermarks[iri] for iri in self.streams]
        known = [mark for mark in marks if mark is not None]
        whole = bool(known) and len(known) == len(marks)
        since = min(known) - 1 - self.length_ms if whole else None
        return Reach(since, self.events, {iri: accepted.get(iri, 0) for iri in self.streams})

    def as_json(self) -> list[Any]:
        """The depth as JSON values; `of_json` is the inverse."""
        flags = self.is_chained, self.is_endless
        return [list(self.streams), self.length_ms, self.events, *flags]

    @classmethod
    def of_json(cls, value: Sequence[Any]) -> Depth:
        """The inverse of `as_json`."""
        streams, *others = value
        return cls(tuple(streams), *others)


def depths(plans: Sequence[QueryPlan], iris: Collection[str]) -> list[Depth]:
    """The depths of queries, without duplicates; `iris` are the streams of the run."""
    iris_read = [frozenset(plan.inputs.streams) & {*iris} for plan in plans]
    lengths = [_length_ms(plan) for plan in plans]
    if any(frozenset(plan.inputs.streams) - {*iris} for plan in plans):
        # A query of a stream that another query makes needs that query's events, too.
        iris_read = [frozenset[str]().union(*iris_read)] * len(plans)
        lengths = [sum(lengths)] * len(plans)
    made = [
        Depth(tuple(sorted(iris)), length, _events(plan), _is_chained(plan), _is_endless(plan))
        for plan, iris, length in zip(plans, iris_read, lengths, strict=True)
    ]
    return [*dict.fromkeys(made)]


def _length_ms(plan: QueryPlan) -> int:
    """The maximum distance (ms) from the watermark of an event on which the state of a query
    depends.
    """
    window = plan.sequence.window
    length = 0 if isinstance(window, Counted) else window.length_ms
    # The matches that AFTER MATCH leaves out depend on the match before.
    skip = plan.answers.after_match
    matches = length + skip.mute_ms if skip.kind == "NO SKIP" else 2 * length + skip.mute_ms
    extents = [each.extent for each in plan.inputs.windows]
    ranges = [each.range_ms or 0 for each in extents if isinstance(each, EachEventExtent)]
    return matches + max([longest_wait(plan.inputs.windows), *ranges])


def _events(plan: QueryPlan) -> int | None:
    window = plan.sequence.window
    if not isinstance(window, Counted):
        return None
    return window.events if plan.answers.after_match.kind == "NO SKIP" else 2 * window.events


def _is_chained(plan: QueryPlan) -> bool:
    skip = plan.answers.after_match
    return skip.kind != "NO SKIP" or skip.mute_ms > 0


def _is_endless(plan: QueryPlan) -> bool:
    """Whether the state may depend on all events: on a graph that they change, or in a window."""
    return plan.changing is not None or plan.maintained is not None or has_endless_windows(plan)


def has_endless_windows(plan: QueryPlan) -> bool:
    """Whether an open window may have begun at any event.

    This holds for a session, and for the last events of a stream or of each partition.
    """
    if isinstance(plan.sequence.window, Counted) and plan.sequence.own_partition:
        return True
    extents = [each.extent for each in plan.inputs.windows]
    return any(
        isinstance(each, SessionExtent)
        or (isinstance(each, EachEventExtent) and each.events is not None)
        for each in extents
    )
