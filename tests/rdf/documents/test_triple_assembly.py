"""In formats without graphs, n consecutive triples are one event."""

from __future__ import annotations

from pathlib import Path

from spaseq.rdf.events.graph_times import LOST_QUAD
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.rdf.ranges import ArrivalClock, read_stream
from tests.rdf.streams import STREAM, TIME, at, events_of, read, write


def stamp(seconds: int) -> str:
    return f"<http://e/s> {TIME} {at(seconds)} .\n"


def triple(value: int) -> str:
    return f'<http://e/s> <http://e/p> "{value}" .\n'


def test_pairs(tmp_path: Path) -> None:
    text = stamp(1) + triple(1) + "# comment\n\n" + triple(2) + stamp(2)
    events, bad = read(write(tmp_path / "s.nt", text), triples_per_event=2)
    assert [(e.graph, e.time) for e in events] == [(None, 1000), (None, 2000)]
    assert [len(e.triples) for e in events] == [2, 2]
    assert bad == []


def test_any_subject_may_carry_the_time(tmp_path: Path) -> None:
    text = f"_:x {TIME} {at(3)} .\n" + triple(1)
    events, _ = read(write(tmp_path / "s.nt", text), triples_per_event=2)
    assert [e.time for e in events] == [3000]


def test_what_is_left_at_the_end_of_a_file_is_reported(tmp_path: Path) -> None:
    text = stamp(1) + triple(1) + triple(2)
    events, bad = read(write(tmp_path / "s.nt", text), triples_per_event=2)
    assert len(events) == 1
    assert [(b.line, b.reason) for b in bad] == [
        (3, "1 triple is left at the end of the file; 2 make an event")
    ]


def test_an_event_without_a_time_is_reported(tmp_path: Path) -> None:
    text = stamp(1) + triple(1) + triple(2) + triple(3) + stamp(4) + triple(4)
    events, bad = read(write(tmp_path / "s.nt", text), triples_per_event=2)
    assert [e.time for e in events] == [1000, 4000]
    assert [(b.line, b.reason) for b in bad] == [(3, "event without a timestamp")]


def test_a_malformed_line_keeps_its_place(tmp_path: Path) -> None:
    text = stamp(1) + "wrong\n" + stamp(2) + triple(2)
    events, bad = read(write(tmp_path / "s.nt", text), triples_per_event=2)
    assert [(e.time, len(e.triples)) for e in events] == [(2000, 2)]
    assert [(b.line, b.reason) for b in bad if b.line == 1] == [(1, LOST_QUAD)]
    assert [b.line for b in bad if b.line != 1] == [2]


def test_an_event_of_malformed_lines_is_no_event(tmp_path: Path) -> None:
    text = "wrong\n" + stamp(2)
    events, bad = read(write(tmp_path / "s.nt", text), triples_per_event=1, arrival_time=True)
    assert [len(e.triples) for e in events] == [1]
    assert [b.line for b in bad] == [1]


def test_small_batches_do_not_show(tmp_path: Path) -> None:
    text = "".join(stamp(i) + triple(i) + triple(i + 1) for i in range(20))
    path = write(tmp_path / "s.nt", text)
    whole = read(path, triples_per_event=3)
    assert len(whole[0]) == 20
    assert read(path, triples_per_event=3, batch_events=3) == whole


def test_times_of_arrival_never_decrease(tmp_path: Path) -> None:
    wall = iter([5.0, 4.0, 6.25])
    path = write(tmp_path / "s.nt", triple(1) + triple(2) + triple(3))
    options = StreamOptions(STREAM, (str(path),), triples_per_event=1, arrival_time=True)
    batches = read_stream(options, print, arrival=ArrivalClock(lambda: next(wall)))
    assert [(e.time, e.k) for e in events_of(batches)] == [(5000, 0), (5000, 1), (6250, 0)]
