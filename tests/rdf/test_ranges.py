"""Ranges of a file, each read separately, give the same events as the whole file."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.limits import Limits
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.files import resolve_paths
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from spaseq.rdf.ranges import ArrivalClock, FileRange, divide, last_place, read_range, scan_times
from tests.rdf.streams import STREAM, TIME, XSD, Event, at, events_of, read

GRAPHS = ["<http://e/1>", "<http://e/2>", "<http://e/3>"]
QUADS = st.one_of(
    st.builds(
        lambda o, g: f'<http://e/s> <http://e/p> "{o}" {g} .\n',
        st.integers(0, 3),
        st.sampled_from([*GRAPHS, ""]),
    ),
    st.builds(
        lambda s, t, g: f"{s} {TIME} {t} {g} .\n",
        st.sampled_from(GRAPHS),
        st.sampled_from([at(1), at(2), f'"3000"^^<{XSD}long>', '"noon"']),
        st.sampled_from(["", "", *GRAPHS]),
    ),
    st.sampled_from(["\n", "# note\n", "broken\n"]),
)
TRIPLES = st.one_of(
    st.builds(lambda o: f'<http://e/s> <http://e/p> "{o}" .\n', st.integers(0, 3)),
    st.builds(lambda t: f"<http://e/s> {TIME} {t} .\n", st.sampled_from([at(1), at(2), '"noon"'])),
    st.sampled_from(["\n", "# note\n", "broken\n"]),
)


def in_ranges(path: Path, options: StreamOptions, step: int) -> tuple[list[Event], list[BadInput]]:
    """The events of a file's ranges; each range gets the time scans of the ranges before it."""
    [file] = resolve_paths(options)
    bad: list[BadInput] = []
    events: list[Event] = []
    counter, line = InstantCounter(), 1
    for part in divide(file, options, 0, path.stat().st_size, step):
        found = scan_times(part, options)
        own = InstantCounter.after(*counter.skip(found.times))
        placed = FileRange(file, part.begin, part.end, line)
        before = len(events)
        batches = read_range(placed, options, bad.append, own, ArrivalClock())
        events += events_of(batches)
        assert [e.time for e in events[before:]] == found.times.tolist()
        line += found.lines
    return in_order(events, bad)


def in_order(events: list[Event], bad: list[BadInput]) -> tuple[list[Event], list[BadInput]]:
    """Sort bad inputs by line, because the ends of ranges change the order of reports."""
    return events, sorted(bad, key=lambda b: (b.line or 0, b.reason))


@given(st.lists(QUADS, max_size=40).map("".join), st.integers(1, 400))
def test_ranges_of_quads_give_what_the_file_gives(text: str, step: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "s.nq")
        path.write_text(text)
        options = StreamOptions(STREAM, (str(path),))
        assert in_ranges(path, options, step) == in_order(*read(path))


@given(st.lists(TRIPLES, max_size=40).map("".join), st.integers(1, 400), st.integers(1, 4))
def test_ranges_of_triples_give_what_the_file_gives(text: str, step: int, size: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "s.nt")
        path.write_text(text)
        options = StreamOptions(
            STREAM, (str(path),), triples_per_event=size, time_predicate=TIME[1:-1]
        )
        whole = in_order(*read(path, triples_per_event=size))
        assert in_ranges(path, options, step) == whole


def event(number: int, time_first: bool) -> str:
    graph = f"<http://e/{number}>"
    lines = [
        f"{graph} {TIME} {at(number)} .\n",
        f'<http://e/s> <http://e/p> "{number}" {graph} .\n',
    ]
    return "".join(lines if time_first else reversed(lines))


@pytest.mark.parametrize("time_first", [True, False])
def test_a_range_holds_whole_events(tmp_path: Path, time_first: bool) -> None:
    path = tmp_path / "s.nq"
    texts = [event(number, time_first) for number in range(10)]
    path.write_text("".join(texts))
    options = StreamOptions(STREAM, (str(path),))
    [file] = resolve_paths(options)
    edges = np.cumsum([0, *map(len, texts)]).tolist()
    ranges = divide(file, options, 0, edges[-1], 1)
    assert {r.begin for r in ranges} <= set(edges[:-1])
    assert [r.end for r in ranges] == [*(r.begin for r in ranges[1:]), edges[-1]]
    assert len(ranges) >= 5


@pytest.mark.parametrize("time_first", [True, False])
def test_the_last_event_of_a_growing_file_waits_for_the_next(
    tmp_path: Path, time_first: bool
) -> None:
    path = tmp_path / "s.nq"
    one, two = (event(number, time_first) for number in (1, 2))
    options = StreamOptions(STREAM, (str(path),))
    unfinished = 0 if time_first else len(one)  # a quad of the second event was read, or not yet
    for text, known in ((one, 0), (one + two[:-1], unfinished), (one + two, len(one))):
        path.write_text(text)
        [file] = resolve_paths(options)
        assert last_place(file, options, 0, len(text)) == known


def test_n_triples_that_are_not_complete_yet_wait(tmp_path: Path) -> None:
    path = tmp_path / "s.nt"
    line = f"<http://e/s> {TIME} {at(1)} .\n"
    options = StreamOptions(STREAM, (str(path),), triples_per_event=2)
    for count, known in ((1, 0), (2, 2), (3, 2), (4, 4)):
        path.write_text(line * count)
        [file] = resolve_paths(options)
        assert last_place(file, options, 0, count * len(line)) == known * len(line)
    path.write_text(line * 4 + line[:-1])
    assert last_place(file, options, 0, 5 * len(line) - 1) == 4 * len(line)


@pytest.mark.parametrize("name", ["s.nq", "s.nt"])
@pytest.mark.parametrize("step", [1000, 30_000])
def test_ranges_of_input_that_exceeds_the_limits(tmp_path: Path, name: str, step: int) -> None:
    graph = " <http://e/{}>" if name == "s.nq" else ""
    quad = "<http://e/s{:05}> <http://e/p> <http://e/o>" + graph + " .\n"
    given = [(quad * 2).format(1, "a", 2, "a"), f"<http://e/a> {TIME} {at(1)} .\n"]
    given += [quad.format(1, "y"), f"<http://e/y> {TIME} {at(2)} .\n"] * bool(graph)
    given += ["\0" * 200_000 + "\n", "# comment\n" * 20_000]
    given += [quad.format(1, "z"), f"<http://e/z> {TIME} {at(2)} .\n"] * bool(graph)
    given += [(quad * 2).format(1, "b", 2, "b"), f"<http://e/b> {TIME} {at(2)} .\n"]
    given += [f"<http://e/x> {TIME} {at(2)} .\n", *(quad.format(i, "x") for i in range(3000))]
    given += [(quad * 2).format(1, "c", 2, "c"), f"<http://e/c> {TIME} {at(3)} .\n"]
    path = tmp_path / name
    path.write_text("".join(given))
    options = StreamOptions(
        STREAM,
        (str(path),),
        triples_per_event=3 if name == "s.nt" else None,
        limits=Limits(line_bytes=1000, event_bytes=50_000),
    )
    [file] = resolve_paths(options)
    ranges = divide(file, options, 0, path.stat().st_size, step)
    assert len(ranges) > 1
    bad: list[BadInput] = []
    events: list[Event] = []
    for part in ranges:
        events += events_of(read_range(part, options, bad.append, InstantCounter(), ArrivalClock()))
    assert {e.graph for e in events} >= ({f"http://e/{g}" for g in "abc"} if graph else {None})
    assert [b.reason for b in bad if b.reason.startswith("a line of 200000 bytes")]
    long = [b.reason for b in bad if b.reason.startswith("an event of more than 50000 bytes")]
    assert len(long) == (1 if graph else 0)  # N-Triples: the events are short
    assert not graph or len(bad) == 4
