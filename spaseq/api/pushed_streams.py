"""What a program pushes, before a query sees it: its stream, its time, and a graph or a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spaseq.errors import SpaseqError, UsageError
from spaseq.limits import Limits
from spaseq.rdf.in_memory.program_events import triples_of
from spaseq.rdf.terms.program_times import Time, time_ms
from spaseq.rdf.terms.term import Triple
from spaseq.rdf.terms.times import LIMIT_MS
from spaseq.records import record
from spaseq.sources.iterables import Event

if TYPE_CHECKING:
    from spaseq.lift.pushed_rows import LiftedMany, RowLifter

FEW = 16
"""Up to this many events of a stream are handled one by one, which is faster than as columns."""


@record
class PushedEvent:
    """An event of a batch; `triples` is its graph, if that has been read."""

    stream: str  # IRI
    time: int  # ms
    name: str | None
    graph: Any
    triples: list[Triple] | None

    @property
    def is_text(self) -> bool:
        """Whether the kernel can read the graph."""
        return self.triples is None and isinstance(self.graph, str)


class PushedStreams:
    """The streams of an engine: their names, their lifts, and the checks of what is pushed.

    `names` has the IRI of each stream by its names. A time must be at least a `floor` (ms). What
    raises an error has changed nothing.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.names: dict[str, str] = {}
        self._lifters: dict[str, RowLifter] = {}  # by IRI

    def lift(self, lifts: Mapping[str, str | Path]) -> None:
        """Take rows for some streams: by the stream's name, the text or the path of its lift.

        Raises:
            UsageError: there is no such stream.
            QueryError: a lift has errors.
            InputError: a lift's file cannot be read.
        """
        if not lifts:
            return
        from spaseq.lift.pushed_rows import RowLifter  # other engines do not import lifts

        for name, lift in lifts.items():
            iri = self.iri(name)
            self._lifters[iri] = RowLifter(iri, lift, self._limits)

    def iri(self, name: str) -> str:
        """The IRI of the stream with a name; UsageError if there is none."""
        iri = self.names.get(name)
        if iri is None:
            known = ", ".join(sorted(self.names))
            raise UsageError(f"the query reads no stream {name}; streams: {known}")
        return iri

    @property
    def filtered(self) -> int:
        """How many rows were no events, because their lift had no solution for them."""
        return sum(lifter.filtered for lifter in self._lifters.values())

    def event(
        self, iri: str, given: Any, time: Time | None, floor: int
    ) -> tuple[int, str | None, list[Triple]] | None:
        """The time, name and triples of one event; None if a lift leaves it out."""
        lifter = self._lifters.get(iri)
        if lifter is not None:
            event = lifter.event(given, None if time is None else time_ms(time))
            if event is not None:
                _not_before(floor, event[0])
            lifter.rows += 1
            return event
        if time is None:
            raise UsageError("an event needs a time: push(stream, graph, time)")
        return _not_before(floor, time), None, triples_of(given, self._limits)

    def lifted(self, given: Sequence[Any]) -> dict[str, LiftedMany] | None:
        """The events of all rows among the items, by stream; None if one needs a closer look."""
        rows: dict[str, list[Any]] = {}
        if self._lifters:
            for item in given:
                iri = self.names.get(item[0]) if _is_pair(item) else None
                if iri in self._lifters:
                    rows.setdefault(iri, []).append(item[1])
        found = {}
        for iri, own in rows.items():
            many = self._lifters[iri].events(own) if len(given) > FEW else None
            if many is None:
                return None
            found[iri] = many
        return found

    def taken(
        self, given: Sequence[Any], floor: int, parsed: bool, lifted: Mapping[str, LiftedMany]
    ) -> tuple[list[PushedEvent], list[tuple[int, SpaseqError]]]:
        """The good events of a batch, at or after `floor`; place and error of each bad one.

        With `parsed`, graphs become triples, so that bad ones are found. Of streams that are
        `lifted` already, the times of the rows are known.
        """
        times = {iri: iter(many.times) for iri, many in lifted.items()}
        taken: list[PushedEvent] = []
        bad: list[tuple[int, SpaseqError]] = []
        for place, item in enumerate(given):
            try:
                stream, event = _pair(item)
                iri = self.iri(stream)
                if iri in self._lifters:
                    pushed = self._row(iri, event, floor, times.get(iri))
                elif isinstance(event, Event):
                    time = _not_before(floor, event.time)
                    triples = triples_of(event.graph, self._limits) if parsed else None
                    pushed = PushedEvent(iri, time, event.iri, event.graph, triples)
                else:
                    raise UsageError(f"stream {stream} has no lift, so it takes no rows")
            except SpaseqError as error:
                bad.append((place, error))
            else:
                if pushed is not None:
                    floor = pushed.time
                    taken.append(pushed)
        return taken, bad

    def _row(
        self, iri: str, given: Any, floor: int, times: Iterator[int | None] | None
    ) -> PushedEvent | None:
        """The event of a row; None if it has no solution."""
        if times is not None:
            time = next(times)
            known = None if time is None else _not_before(floor, time)
            return None if known is None else PushedEvent(iri, known, None, None, [])
        lifter, own = self._lifters[iri], None
        position = lifter.position
        if isinstance(given, Event):
            given, own = given.graph, time_ms(given.time)
        try:
            event = lifter.event(given, own)
            if event is not None:
                _not_before(floor, event[0])
        except SpaseqError:
            lifter.return_to(position)
            raise
        lifter.rows += 1
        return None if event is None else PushedEvent(iri, event[0], event[1], None, event[2])

    @property
    def positions(self) -> list[tuple[int, int]]:
        """Where the lifters stand, for `return_to`."""
        return [lifter.position for lifter in self._lifters.values()]

    def return_to(self, positions: Sequence[tuple[int, int]]) -> None:
        """Forget the rows since the lifters stood there."""
        for lifter, position in zip(self._lifters.values(), positions, strict=True):
            lifter.return_to(position)

    @contextmanager
    def rows_counted(self) -> Iterator[None]:
        """If the context raises, its rows have not been counted."""
        before = self.positions
        try:
            yield
        except BaseException:
            self.return_to(before)
            raise


def _is_pair(item: object) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)


def _pair(item: object) -> tuple[str, Event | Mapping[str, Any]]:
    """The (stream, event) pair that an item of a batch is."""
    match item:
        case (str() as stream, Event() as event) if event.iri is None or isinstance(event.iri, str):
            return stream, event
        case (str() as stream, Mapping() as row):
            return stream, row
    raise UsageError(f"a batch has (stream, spaseq.Event) pairs, not {repr(item)[:100]}")


def _not_before(floor: int, when: Time) -> int:
    """A time in ms; UsageError if it is none, or before `floor`."""
    if type(when) is int and floor <= when < LIMIT_MS:  # the usual case
        return when
    time = time_ms(when)
    if time < floor:
        raise UsageError(f"time {time} ms goes back: the engine stands at {floor} ms")
    return time
