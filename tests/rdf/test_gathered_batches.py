"""Batches of live streams that are matched together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.program_events import FewEvents, batch_from_events, gathered

Event = tuple[int, int, str | None, list[tuple[str, str, str]]]


def batch(*sizes: int, first: int = 0) -> EventBatch:
    """Events with given numbers of triples, one a second; every second event has a name."""
    events = [
        (1000 * n, f"http://e/g{n}" if n % 2 else None, triples(n, size))
        for n, size in enumerate(sizes, first)
    ]
    return batch_from_events("http://e/s", events, InstantCounter())


def triples(event: int, size: int) -> list[tuple[str, str, str]]:
    return [(f"<http://e/x{event}>", "<http://e/p>", f'"{n}"') for n in range(size)]


def events_of(given: EventBatch) -> Iterator[Event]:
    names = given.names(np.arange(len(given))).texts()
    for n, (begin, end) in enumerate(zip(given.start[:-1], given.start[1:], strict=True)):
        codes = zip(given.s[begin:end], given.p[begin:end], given.o[begin:end], strict=True)
        found = [(given.terms[s], given.terms[p], given.terms[o]) for s, p, o in codes]
        yield int(given.time[n]), int(given.k[n]), names[n], found


def test_small_batches_in_a_row_are_one() -> None:
    batches = [batch(1), batch(2, 0, first=1), batch(9, first=3), batch(1, first=4), batch(first=5)]
    given = [*gathered(batches, 4)]
    found = [each.columns() if isinstance(each, FewEvents) else each for each in given]
    assert [len(each) for each in found] == [3, 1, 1]
    assert found[1] is batches[2]
    expected = [event for each in batches for event in events_of(each)]
    assert [event for each in found for event in events_of(each)] == expected
    assert [*gathered([], 4)] == []


def test_a_batch_is_read_before_the_next_one_is_asked_for() -> None:
    """The next one may be read into its arrays."""

    def overwritten() -> Iterator[EventBatch]:
        for number in range(3):
            made = batch(1, first=number)
            yield made
            for column in (made.time, made.k, made.start, made.s, made.p, made.o):
                column[:] = 0

    (few,) = gathered(overwritten(), 4)
    assert isinstance(few, FewEvents)
    found = few.columns()
    assert [event[0] for event in events_of(found)] == [0, 1000, 2000]
    assert [event[3] for event in events_of(found)] == [triples(n, 1) for n in range(3)]
