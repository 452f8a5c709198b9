"""An event that has lost a quad to a line that cannot be read is bad as a whole."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from spaseq.rdf import ranges
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.graph_times import LOST_QUAD
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.files import InputFile
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from spaseq.rdf.lines import chunks
from spaseq.rdf.ranges import ArrivalClock, read_stream

TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
LONG = "<http://www.w3.org/2001/XMLSchema#long>"


def quad(graph: int, value: int = 0) -> str:
    return f'<s:{graph}> <p:a> "{value}" <g:{graph}> .'


def time(graph: int) -> str:
    return f'<g:{graph}> {TIME} "{graph}"^^{LONG} .'


def of(graph: int) -> str:
    """A malformed line that names its graph."""
    return f'<s:{graph}> <p:a> "\\q" <g:{graph}> .'


NAMELESS = '<s:0> <p:a> "no end .'


def names(batch: EventBatch) -> list[str | None]:
    return list(batch.graph)


def read(
    path: Path, lines: Sequence[str], **options: object
) -> tuple[list[str | None], list[tuple[int | None, str]]]:
    """(the graphs of the events, (line, graph) of those that have lost a quad)."""
    path.write_text("\n".join([*lines, ""]))
    bad: list[BadInput] = []
    found = read_stream(StreamOptions("s:", (str(path),), **options), bad.append)
    events = [graph for batch in found for graph in names(batch)]
    lost = [(own.line, own.text) for own in bad if own.reason == LOST_QUAD]
    assert sum(own.reason != LOST_QUAD for own in bad) == sum(map(is_malformed, lines))
    return events, lost


def is_malformed(line: str) -> bool:
    return "\\q" in line or line == NAMELESS


CASES = {
    "first line": ([of(1), quad(1), time(1), quad(2), time(2)], [2]),
    "within": ([quad(1), of(1), quad(1, 1), time(1), quad(2), time(2)], [2]),
    "last line": ([quad(1), time(1), quad(2), time(2), of(2)], [1]),
    "after the time": ([quad(1), time(1), of(1), quad(2), time(2)], [2]),
    "before the next": ([quad(1), time(1), of(2), quad(2), time(2)], [1]),
    "time before the event": ([time(1), of(1), quad(1), time(2), quad(2)], [2]),
    "a third event's only quad": ([quad(1), time(1), of(9), quad(2), time(2)], [1, 2]),
    "without a name, between": (
        [quad(1), time(1), NAMELESS, quad(2), time(2), quad(3), time(3)],
        [3],
    ),
    "without a name, within": ([quad(1), NAMELESS, quad(1), time(1), quad(2), time(2)], [2]),
    "without a name, first": ([NAMELESS, quad(1), time(1), quad(2), time(2)], [2]),
    "without a name, last": ([quad(1), time(1), quad(2), time(2), NAMELESS], [1]),
    "a readable time and another": (
        [quad(1), f'<g:1> {TIME} "\\q" .', time(1), quad(2), time(2)],
        [2],
    ),
}


@pytest.mark.parametrize(("lines", "good"), CASES.values(), ids=list(CASES))
def test_whose_a_malformed_line_is(tmp_path: Path, lines: list[str], good: list[int]) -> None:
    events, lost = read(tmp_path / "s.nq", lines)
    assert events == [f"g:{i}" for i in good]
    graphs = {line.rsplit("<g:")[1][0] for line in lines if line.startswith("<s") and "<g:" in line}
    assert {text for _, text in lost} == {
        f"<g:{i}>" for i in graphs - {str(i) for i in good} - {"9"}
    }


def test_an_event_of_n_triples_that_lost_one_is_bad(tmp_path: Path) -> None:
    triple = '<s:> <p:> "1" .'
    stamp = f'<s:> {TIME} "1"^^{LONG} .'
    lines = [triple, stamp, NAMELESS, stamp, NAMELESS, NAMELESS, stamp, triple]
    events, lost = read(tmp_path / "s.nt", lines, triples_per_event=2)
    assert (len(events), lost) == (2, [(3, "")])


def drawn(seed: int) -> tuple[list[str], list[str], int]:
    """(lines, good graphs, malformed lines) of a stream, by the rule as a loop."""
    draw = random.Random(seed)
    lines: list[str] = []
    owners: list[int] = []  # the graph of each line
    for graph in range(1, 40):
        before = draw.random() < 0.3
        own = [time(graph)] * before + [quad(graph, i) for i in range(draw.randint(1, 4))]
        lines += own + [time(graph)] * (not before)
        owners += [graph] * (len(own) + (not before))
    malformed = sorted(draw.sample(range(1, len(lines)), 6))
    bad: set[int] = set()
    for at in reversed(malformed):
        around = {owners[at - 1], owners[at]}
        graph = draw.choice([0, owners[at - 1], owners[at], 99])
        lines.insert(at, of(graph) if graph else NAMELESS)
        bad |= around & {graph} if graph else around
    return lines, [f"g:{i}" for i in range(1, 40) if i not in bad], len(malformed)


@pytest.mark.parametrize("chunk", [100, 1 << 23])
@pytest.mark.parametrize("threads", [1, 2])
def test_chunks_make_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, threads: int
) -> None:
    monkeypatch.setattr(chunks, "CHUNK_BYTES", chunk)
    for seed in range(20):
        lines, good, _ = drawn(seed)
        assert read(tmp_path / "s.nq", lines, threads=threads)[0] == good


@pytest.mark.parametrize("step", [1, 150, 700])
def test_a_malformed_line_at_the_edge_of_a_split(tmp_path: Path, step: int) -> None:
    """Ranges of a file, each read by itself, give the events of the whole file."""
    path = tmp_path / "s.nq"
    options = StreamOptions("s:", (str(path),))
    for seed in range(20):
        lines, good, malformed = drawn(seed)
        path.write_text("\n".join([*lines, ""]))
        file = InputFile(str(path), Format.NQUADS)
        parts = ranges.divide(file, options, 0, path.stat().st_size, step)
        assert step == 700 or len(parts) > 5
        bad: list[BadInput] = []
        events = []
        for part in parts:
            read = ranges.read_range(part, options, bad.append, InstantCounter(), ArrivalClock())
            events += [name for batch in read for name in names(batch)]
        assert events == good
        assert sum(own.reason != LOST_QUAD for own in bad) == malformed
