"""Events with equal times, within a stream and across streams (docs/meaning.md#instants)."""

from __future__ import annotations

import pytest

import spaseq
from spaseq import Event
from tests.language.test_tables import RUNTIMES


def event(name: str, time: int) -> Event:
    return Event(f'<http://example/{name}> <http://example/is> "{name}" .', time)


def run(sequence: str, streams: dict[str, list[Event]], runtime: str) -> list[str]:
    clauses = "\n".join(f"FROM STREAM {s} <http://example/{s}>" for s in streams)
    names = ", ".join(streams)
    gpms = "\n".join(
        f"DEFINE GPM {x} ON {names} {{ ?{x} <http://example/is> ?v{x}"
        f' FILTER(STRSTARTS(?v{x}, "{x.lower()}")) }}'
        for x in "ABC"
    )
    query = f"SELECT * WITHIN 1 MINUTES {clauses} WHERE {{ SEQ({sequence}) {gpms} }}"
    matches = spaseq.run(query, streams, runtime=runtime)
    return [" ".join(str(m.bindings[f"v{t.gpm}"].to_python()) for t in m.trace) for m in matches]


ONE_STREAM = {"S": [event(n, 5000) for n in ("a1", "b1", "a2", "b2", "c1")]}
"""Instants (5 s, 0) to (5 s, 4): the events follow each other although their times are equal."""

TWO_STREAMS = {
    "S": [event("a1", 5000), event("b1", 5000)],
    "T": [event("b2", 5000), event("c1", 5000), event("c2", 6000)],
}
"""a1 and b2 share (5 s, 0); b1 and c1 share (5 s, 1); c2 stands at (6 s, 0)."""


@pytest.mark.each_once
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(
    ("streams", "sequence", "answers"),
    [
        (ONE_STREAM, "A; B", ["a1 b1", "a2 b2"]),
        (ONE_STREAM, "A, B, A", []),
        (ONE_STREAM, "B, A", ["b1 a2"]),
        (ONE_STREAM, "(A & C)", ["a1 c1", "a2 c1"]),
        # b2 has the instant of a1, so it does not come after a1; b1 does.
        (TWO_STREAMS, "A; B", ["a1 b1"]),
        (TWO_STREAMS, "A; C", ["a1 c1"]),
        (TWO_STREAMS, "B; C", ["b2 c1", "b1 c2"]),
        (TWO_STREAMS, "A, B", ["a1 b1"]),
        (TWO_STREAMS, "(B & C)", ["b1 c1", "b2 c1"]),
    ],
)
def test_ties(
    streams: dict[str, list[Event]], sequence: str, answers: list[str], runtime: str
) -> None:
    assert sorted(run(sequence, streams, runtime)) == sorted(answers)


@pytest.mark.parametrize("order", [("S", "T"), ("T", "S")])
def test_answers_do_not_depend_on_how_streams_interleave(order: tuple[str, str]) -> None:
    streams = {name: TWO_STREAMS[name] for name in order}
    assert sorted(run("B; C", streams, "local")) == ["b1 c2", "b2 c1"]
