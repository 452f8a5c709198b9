"""The kernels find the events that the rules of `GraphTimes` say, row by row."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.rdf.columns.event_batch import DEFAULT_GRAPH, QuadBlock
from spaseq.rdf.events.graph_times import GraphTimes, OpenEvent, TimeTerms
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.rdf.lines import chunks
from spaseq.rdf.lines.statements import parse_nquads_line
from spaseq.rdf.terms.term import GENERATED_AT_TIME
from tests.rdf.shared import SHARED, needs_data
from tests.rdf.streams import STREAM, TIME, XSD, Event, at, read, write
from tests.sizes import sizes

GRAPHS = ["<http://e/1>", "<http://e/1>", "<http://e/2>", "_:b"]
TIMES = [at(1), at(1), at(2), f'"3000"^^<{XSD}long>', '"noon"', "<http://e/x>"]


@dataclass(frozen=True)
class Reference:
    """The events and bad inputs of a text by `GraphTimes`."""

    events: list[Event]
    bad: list[BadInput]

    @classmethod
    def of(cls, text: str) -> Reference:
        bad: list[BadInput] = []
        closed: list[OpenEvent] = []
        terms = TimeTerms("http://e/s", "ms", pytest.fail)
        times = GraphTimes("s.nq", terms, bad.append, closed.append)
        rows: list[tuple[str, str, str]] = []
        graphs: list[str | None] = []
        lines: list[int] = []
        for number, line in enumerate(text.splitlines(), start=1):
            for s, p, o, g in parse_nquads_line(line.encode()):
                rows.append((s, p, o))
                graphs.append(g)
                lines.append(number)
        terms_of = list(dict.fromkeys([t for row in rows for t in row] + [g for g in graphs if g]))
        code = {None: DEFAULT_GRAPH, **{text: i for i, text in enumerate(terms_of)}}
        columns = (np.array([code[row[i]] for row in rows], np.int32) for i in range(3))
        named = np.array([code[g] for g in graphs], np.int32)
        block = QuadBlock(*columns, named, np.array(lines, np.int64), terms_of)
        timed = np.array([p == TIME for _, p, _ in rows], bool)
        for row, (s, p, o) in enumerate(rows):
            if block.g[row] == DEFAULT_GRAPH:
                times.default_run(block, timed, row, row + 1)
                continue
            graph = block.terms[block.g[row]]
            event = times.graph_run(graph, row, row + 1, int(block.line[row]))
            if p == TIME and s == graph:
                event.offer(o, terms)
        times.finish(False, len(rows))
        events, earlier = [], Counter[int]()
        for event in closed:
            assert event.time is not None
            triples = tuple(dict.fromkeys(rows[event.first : event.end]))
            events.append(Event(event.time, earlier[event.time], event.name, triples))
            earlier[event.time] += 1
        return cls(events, bad)


LINES = st.one_of(
    st.builds(
        lambda s, o, g: f'{s} <http://e/p> "{o}" {g} .\n',
        st.sampled_from(GRAPHS),
        st.integers(0, 3),
        st.sampled_from(GRAPHS),
    ),
    st.builds(
        lambda s, t, g: f"{s} {TIME} {t} {g} .\n",
        st.sampled_from(GRAPHS),
        st.sampled_from(TIMES),
        st.sampled_from(["", "", "", *GRAPHS]),
    ),
    st.just("<http://e/s> <http://e/p> <http://e/stray> .\n"),
)


@sizes(80, 200, 500)
def test_events_and_reports_are_those_of_the_rules(examples: int, tmp_path: Path) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(
        text=st.lists(LINES, max_size=30).map("".join),
        size=st.sampled_from([80, 200, 500, 1 << 20]),
        batch=st.sampled_from([1, 2, 1000]),
        threads=st.sampled_from([1, 1, 1, 2]),
    )
    def check(text: str, size: int, batch: int, threads: int) -> None:
        path = write(tmp_path / "s.nq", text)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chunks, "CHUNK_BYTES", size)
            patch.setattr(chunks, "_WINDOWS", (size // 2,))
            patch.setattr(chunks, "_PIECE", size // 3)
            events, bad = read(path, batch_events=batch, threads=threads)
        expected = Reference.of(text)
        assert events == expected.events
        assert [(b.line, b.reason, b.text) for b in bad] == [
            (b.line, b.reason, b.text) for b in expected.bad
        ]

    check()


@needs_data
@pytest.mark.parametrize("name", ["aarhus/weather.nq", "cards/transactions.nq"])
def test_real_events_are_those_of_the_rules(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 50_000)
    expected = Reference.of((SHARED / "data" / name).read_text())
    events, bad = read(SHARED / "data" / name, threads=2)
    assert bad == expected.bad == []
    assert events == expected.events


def quads(graph: int, count: int) -> str:
    return "".join(f'<http://e/s> <http://e/p> "{i}" <http://e/{graph}> .\n' for i in range(count))


def stamp(graph: int) -> str:
    return f"<http://e/{graph}> {TIME} {at(graph % 60)} .\n"


@pytest.mark.parametrize("before", [True, False])
def test_an_event_larger_than_a_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 1000)
    sizes = [3, 400, 2, 1, 70]
    text = "".join(
        stamp(g) + quads(g, n) if before else quads(g, n) + stamp(g) for g, n in enumerate(sizes)
    )
    events, bad = read(write(tmp_path / "s.nq", text))
    assert bad == []
    assert [len(e.triples) for e in events] == sizes


def test_a_time_that_comes_in_the_piece_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stray = "<http://e/a> <http://e/b> <http://e/c> .\n"
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 300)
    text = quads(1, 2) + stray * 50 + stamp(1) + stray * 50
    events, bad = read(write(tmp_path / "s.nq", text + quads(2, 1) + stamp(2)))
    assert [(e.graph, e.time, len(e.triples)) for e in events] == [
        ("http://e/1", 1000, 2),
        ("http://e/2", 2000, 1),
    ]
    reason = "100 triples of the default graph that belong to no event"
    assert [(b.line, b.reason) for b in bad] == [(3, reason)]


def test_repeated_triples_of_large_events(tmp_path: Path) -> None:
    dice = random.Random(1)
    values = [dice.randrange(200) for _ in range(300)]
    text = "".join(f'<http://e/s> <http://e/p> "{v}" <http://e/1> .\n' for v in values)
    events, _ = read(write(tmp_path / "s.nq", text + stamp(1)))
    assert [o for _, _, o in events[0].triples] == [f'"{v}"' for v in dict.fromkeys(values)]


def test_only_the_predicates_asked_for_are_kept(tmp_path: Path) -> None:
    lines = [
        '<http://e/s> <http://e/p> "1" <http://e/1> .',
        '<http://e/s> <http://e/q> "2" <http://e/1> .',
        f"<http://e/1> {TIME} {at(1)} <http://e/1> .",
        '<http://e/s> <http://e/q> "3" <http://e/2> .',
        '<http://e/s> <http://e/q> "\\x" <http://e/3> .',
        f"<http://e/2> {TIME} {at(2)} .",
    ]
    path = write(tmp_path / "s.nq", "\n".join(lines))
    events, bad = read(path, predicates=("http://e/p",))
    assert [(e.time, [o for _, _, o in e.triples]) for e in events] == [(1000, ['"1"']), (2000, [])]
    assert [b.line for b in bad] == [5]
    with_time, _ = read(path, predicates=("http://e/p", GENERATED_AT_TIME))
    assert [[p for _, p, _ in e.triples] for e in with_time] == [["<http://e/p>", TIME], []]


def test_what_is_not_kept_is_counted(tmp_path: Path) -> None:
    from spaseq.rdf.inputs.stream_options import StreamOptions
    from spaseq.rdf.ranges import read_stream

    text = "".join(quads(g, 3) + stamp(g) for g in range(5))
    path = str(write(tmp_path / "s.nq", text))
    options = StreamOptions(STREAM, (path,), predicates=(), batch_events=2)
    batches = list(read_stream(options, print))
    assert sum(b.triples for b in batches) == 15
    assert sum(len(b.s) for b in batches) == 0


@pytest.mark.parametrize("threads", [1, 2])
def test_events_of_statements_across_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    lines = [f"<http://e/{i}> {TIME} {at(i % 60)} ." for i in range(40)]
    lines[7] = "wrong"
    lines[20:20] = ["# comment", "", "  "]
    path = write(tmp_path / "s.nt", "\r\n".join(lines))
    whole = read(path, triples_per_event=3)
    assert len(whole[0]) == 12
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 300)
    assert read(path, triples_per_event=3, threads=threads) == whole
