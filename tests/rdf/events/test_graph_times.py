"""Assembly of quads into events, and the times of events (docs/lookup.md#formats)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from spaseq.rdf.lines import chunks
from tests.rdf.streams import TIME, XSD, Event, at, read, write

G1, G2, G3 = ("<http://e/1>", "<http://e/2>", "<http://e/3>")
NO_TIME = "event without a timestamp"
NO_GRAPH = "timestamp of a graph without triples right before or after it"


def quad(graph: str, value: int = 0) -> str:
    return f'<http://e/s> <http://e/p> "{value}" {graph} .\n'


def stamp(graph: str, seconds: int) -> str:
    return f"{graph} {TIME} {at(seconds)} .\n"


def inside(graph: str, seconds: int) -> str:
    return f"{graph} {TIME} {at(seconds)} {graph} .\n"


def summary(tmp_path: Path, *lines: str) -> tuple[list[tuple[str | None, int]], list[object]]:
    """(graph, time in s) of each event, and (line, reason) of each bad input."""
    events, bad = read(write(tmp_path / "s.nq", "".join(lines)))
    return [(e.graph, e.time // 1000) for e in events], [(b.line, b.reason) for b in bad]


ONE, TWO = ("http://e/1", 1), ("http://e/2", 2)


def test_times_right_after_the_quads(tmp_path: Path) -> None:
    lines = quad(G1), quad(G1, 1), stamp(G1, 1), quad(G2), stamp(G2, 2)
    assert summary(tmp_path, *lines) == ([ONE, TWO], [])


def test_times_right_before_the_quads(tmp_path: Path) -> None:
    lines = stamp(G1, 1), quad(G1), quad(G1, 1), stamp(G2, 2), quad(G2)
    assert summary(tmp_path, *lines) == ([ONE, TWO], [])


def test_times_inside_the_graph_stay_triples_of_it(tmp_path: Path) -> None:
    events, bad = read(write(tmp_path / "s.nq", quad(G1) + inside(G1, 1) + inside(G2, 2)))
    assert bad == []
    assert events == [
        Event(1000, 0, G1[1:-1], (("<http://e/s>", "<http://e/p>", '"0"'), (G1, TIME, at(1)))),
        Event(2000, 0, G2[1:-1], ((G2, TIME, at(2)),)),
    ]


def test_a_time_in_the_default_graph_is_no_triple_of_the_event(tmp_path: Path) -> None:
    events, _ = read(write(tmp_path / "s.nq", quad(G1) + stamp(G1, 1)))
    assert events == [Event(1000, 0, G1[1:-1], (("<http://e/s>", "<http://e/p>", '"0"'),))]


def test_both_times_between_two_events(tmp_path: Path) -> None:
    assert summary(tmp_path, quad(G1), stamp(G1, 1), stamp(G2, 2), quad(G2)) == ([ONE, TWO], [])
    assert summary(tmp_path, quad(G1), stamp(G2, 2), stamp(G1, 1), quad(G2)) == ([ONE, TWO], [])


def test_a_graph_that_comes_back_is_a_new_event(tmp_path: Path) -> None:
    lines = quad(G1), stamp(G1, 1), quad(G2), stamp(G2, 2), quad(G1), stamp(G1, 3)
    assert summary(tmp_path, *lines) == ([ONE, TWO, ("http://e/1", 3)], [])


def test_a_graph_that_comes_back_at_once_with_times_before(tmp_path: Path) -> None:
    lines = stamp(G1, 1), quad(G1), stamp(G1, 2), quad(G1)
    assert summary(tmp_path, *lines) == ([ONE, ("http://e/1", 2)], [])


def test_a_graph_that_comes_back_at_once_with_times_after(tmp_path: Path) -> None:
    lines = quad(G1), stamp(G1, 1), quad(G1), stamp(G1, 2)
    assert summary(tmp_path, *lines) == ([ONE, ("http://e/1", 2)], [])


def test_a_time_in_the_middle_of_a_graph_is_that_of_the_first_half(tmp_path: Path) -> None:
    lines = quad(G1), stamp(G1, 1), quad(G1)
    assert summary(tmp_path, *lines) == ([ONE], [(3, NO_TIME)])


def test_an_event_without_a_time_costs_that_event_only(tmp_path: Path) -> None:
    lines = quad(G1), stamp(G1, 1), quad(G3), quad(G3, 1), quad(G2), stamp(G2, 2)
    assert summary(tmp_path, *lines) == ([ONE, TWO], [(3, NO_TIME)])


def test_an_unreadable_time_is_shown(tmp_path: Path) -> None:
    lines = quad(G1), f'{G1} {TIME} "noon" .\n', quad(G2), stamp(G2, 2)
    reason = 'event without a readable timestamp: "noon"'
    assert summary(tmp_path, *lines) == ([TWO], [(1, reason)])


def test_the_first_readable_time_counts(tmp_path: Path) -> None:
    lines = f'{G1} {TIME} "noon" .\n', quad(G1), stamp(G1, 1)
    assert summary(tmp_path, *lines) == ([ONE], [])


def test_a_time_that_is_not_right_beside_its_graph(tmp_path: Path) -> None:
    lines = stamp(G2, 2), quad(G1), stamp(G1, 1), quad(G2)
    assert summary(tmp_path, *lines) == ([ONE], [(1, NO_GRAPH), (4, NO_TIME)])


def test_a_time_of_a_graph_that_has_no_quads(tmp_path: Path) -> None:
    lines = quad(G1), stamp(G1, 1), stamp(G2, 2)
    assert summary(tmp_path, *lines) == ([ONE], [(3, NO_GRAPH)])


def test_a_second_time_that_differs_is_reported(tmp_path: Path) -> None:
    lines = quad(G1), stamp(G1, 1), stamp(G1, 2)
    reason = "second timestamp of an event, which has the first"
    assert summary(tmp_path, *lines) == ([ONE], [(3, reason)])


def test_the_same_time_twice_is_no_matter(tmp_path: Path) -> None:
    lines = stamp(G1, 1), stamp(G1, 1), quad(G1), stamp(G1, 1)
    assert summary(tmp_path, *lines) == ([ONE], [])


def test_stray_triples_of_the_default_graph_are_one_report_per_run(tmp_path: Path) -> None:
    stray = "<http://e/a> <http://e/b> <http://e/c> .\n"
    lines = stray, stray, quad(G1), stray, stamp(G1, 1), stray, quad(G2), stamp(G2, 2)
    events, bad = summary(tmp_path, *lines)
    assert events == [ONE, TWO]
    reason = "2 triples of the default graph that belong to no event"
    assert bad == [(1, reason), (4, reason)]


def test_another_predicate(tmp_path: Path) -> None:
    text = f"{quad(G1)}{G1} <http://e/at> {at(1)} .\n"
    events, bad = read(write(tmp_path / "s.nq", text), time_predicate="http://e/at")
    assert [e.time for e in events] == [1000]
    assert bad == []


def test_integer_times(tmp_path: Path) -> None:
    text = f'{quad(G1)}{G1} {TIME} "1500"^^<{XSD}long> .\n'
    events, _ = read(write(tmp_path / "s.nq", text))
    assert [e.time for e in events] == [1500]


def test_a_graph_named_by_a_blank_node_has_no_iri(tmp_path: Path) -> None:
    events, bad = read(write(tmp_path / "s.nq", quad("_:g") + stamp("_:g", 1)))
    assert [(e.graph, e.time) for e in events] == [(None, 1000)]
    assert bad == []


def test_ties_are_counted_per_stream_in_order_of_arrival(tmp_path: Path) -> None:
    lines = (quad(g) + stamp(g, s) for g, s in [(G1, 1), (G2, 1), (G3, 2), (G1, 1), (G2, 2)])
    events, _ = read(write(tmp_path / "s.nq", "".join(lines)))
    assert [(e.time // 1000, e.k) for e in events] == [(1, 0), (1, 1), (2, 0), (1, 2), (2, 1)]


def test_an_event_does_not_span_two_files(tmp_path: Path) -> None:
    first = write(tmp_path / "1.nq", quad(G1, 1) + stamp(G1, 1))
    second = write(tmp_path / "2.nq", quad(G1, 2) + stamp(G1, 1))
    events, bad = read(first, second)
    assert [(e.k, len(e.triples)) for e in events] == [(0, 1), (1, 1)]
    assert bad == []


@dataclass(frozen=True)
class Row:
    """A line of a generated stream: its kind, its graph and its time."""

    kind: str  # quad, stamp or inside
    graph: str
    seconds: int

    def line(self, number: int) -> str:
        match self.kind:
            case "quad":
                return quad(self.graph, number)
            case "stamp":
                return stamp(self.graph, self.seconds)
            case _:
                return inside(self.graph, self.seconds)


def by_definition(rows: list[Row]) -> list[tuple[str, int, int]]:
    """(graph, number of quads, time) of the events of a whole stream in memory."""
    runs: list[tuple[str | None, list[Row]]] = []
    for row in rows:
        graph = None if row.kind == "stamp" else row.graph
        if not runs or runs[-1][0] != graph:
            runs.append((graph, []))
        runs[-1][1].append(row)
    used: set[int] = set()
    events = []
    for i, (graph, run) in enumerate(runs):
        if graph is None:
            continue
        beside = [r for _, rs in runs[max(i - 1, 0) : i] for r in rs if r.kind == "stamp"]
        after = [r for _, rs in runs[i + 1 : i + 2] for r in rs if r.kind == "stamp"]
        own = [r for r in run if r.kind == "inside"]
        offers = [r for r in beside if r.graph == graph and id(r) not in used] + own
        offers += [r for r in after if r.graph == graph]
        if offers:
            used.add(id(offers[0]))
            triples = sum(r.kind == "quad" for r in run) + len({r.seconds for r in own})
            events.append((graph[1:-1], triples, offers[0].seconds * 1000))
    return events


ROWS = st.lists(
    st.builds(
        Row,
        st.sampled_from(["quad", "quad", "quad", "stamp", "stamp", "inside"]),
        st.sampled_from([G1, G1, G2, G3]),
        st.integers(0, 5),
    ),
    max_size=25,
)


@given(
    ROWS,
    st.sampled_from([1, 2, 16_384]),
    st.sampled_from([60, 200, 1 << 20]),
)
def test_batches_and_blocks_do_not_show(rows: list[Row], batch: int, block: int) -> None:
    text = "".join(row.line(i) for i, row in enumerate(rows))
    with TemporaryDirectory() as folder, patch.object(chunks, "CHUNK_BYTES", block):
        events, _ = read(write(Path(folder) / "s.nq", text), batch_events=batch)
    assert [(e.graph, len(e.triples), e.time) for e in events] == by_definition(rows)
    written = [row.line(i).split(" ")[2] for i, row in enumerate(rows) if row.kind == "quad"]
    kept = [o for e in events for _, p, o in e.triples if p == "<http://e/p>"]
    assert kept == [o for o in written if o in set(kept)]


def test_a_triple_written_twice_in_an_event_counts_once(tmp_path: Path) -> None:
    lines = quad(G1, 7), quad(G1, 8), quad(G1, 7), stamp(G1, 1), quad(G2, 7), stamp(G2, 2)
    events, bad = read(write(tmp_path / "s.nq", "".join(lines)))
    assert [[o for _, _, o in e.triples] for e in events] == [['"7"', '"8"'], ['"7"']]
    assert bad == []
