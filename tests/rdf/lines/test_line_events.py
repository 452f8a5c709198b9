"""N-Quads line by line: the quads, and the reports on bad lines."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.limits import Limits
from spaseq.rdf.events.graph_times import LOST_QUAD
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.rdf.lines.arenas import ArenaPool
from spaseq.rdf.lines.chunks import AfterSizedEvents, BeforeGraphs
from spaseq.rdf.lines.line_events import line_statements
from spaseq.rdf.lines.statements import StatementReader
from tests.rdf.streams import TIME, XSD, at, read, write

Quad = tuple[str, str, str, str | None]

GOOD = "<http://e/s> <http://e/p> <http://e/o> <http://e/g> .\n"


def parse(text: str | bytes, graphs: bool = True) -> tuple[list[Quad], list[BadInput]]:
    """The quads of a text, and the bad inputs."""
    bad: list[BadInput] = []
    quads: list[Quad] = []
    data = io.BytesIO(text.encode() if isinstance(text, str) else text)
    reader = StatementReader(graphs, ArenaPool(2))
    cut = BeforeGraphs(reader) if graphs else AfterSizedEvents(1)
    for b, _, _ in line_statements(data, "f", reader, cut, 1, bad.append):
        assert len(set(b.terms)) == len(b.terms)
        for s, p, o, g in zip(b.s, b.p, b.o, b.g, strict=True):
            if s >= 0:
                quads.append((b.terms[s], b.terms[p], b.terms[o], b.terms[g] if g >= 0 else None))
    return quads, bad


def theirs(text: str | bytes) -> list[Quad]:
    """The quads of a text by pyoxigraph."""
    return [
        (str(q.subject), str(q.predicate), str(q.object), graph_text(q))
        for q in ox.parse(text, ox.RdfFormat.N_QUADS)
    ]


def graph_text(quad: ox.Quad) -> str | None:
    return None if isinstance(quad.graph_name, ox.DefaultGraph) else str(quad.graph_name)


IRI = st.sampled_from(
    ["<http://e/a>", "<http://e/é>", "<http://e/a%20b?x#y>", "<urn:x:1>", r"<http://e/\u00E9>"]
)
NODE = IRI | st.sampled_from(["_:b", "_:b1.x", "_:0"])
OBJECT = NODE | st.sampled_from(
    [
        '"a b"',
        '"a"@EN-gb',
        '"1"^^<http://www.w3.org/2001/XMLSchema#integer>',
        '"1"^^<http://www.w3.org/2001/XMLSchema#string>',
        r'"\"\\ \u0041\U00000042\t\'"',
        '"é . <http://e/g> ."',
        '""',
        '"x> ."',
    ]
)
GRAPH = st.none() | NODE
SPACE = st.sampled_from([" ", " ", " ", "\t", "", "  "])
TAIL = st.sampled_from(["", "", "", " # comment", "#c", " "])


@st.composite
def lines(draw: st.DrawFn) -> str:
    s, p, o, g = draw(NODE), draw(IRI), draw(OBJECT), draw(GRAPH)
    gaps = [draw(SPACE) for _ in range(4)]
    terms = s, p, o, g or ""
    # a label may continue into the next term or dot, so it needs a space after it
    safe = [gap or (" " if t[:1] == "_" else "") for gap, t in zip(gaps, terms, strict=True)]
    graph = "" if g is None else g
    return f"{s}{safe[0]}{p}{safe[1]}{o}{safe[2]}{graph}{safe[3]}.{draw(TAIL)}"


@given(st.lists(lines() | st.sampled_from(["", "# comment", "  "]), max_size=6))
def test_quads_are_pyoxigraphs(text: list[str]) -> None:
    document = "\n".join(text)
    assert parse(document) == (theirs(document), [])


@given(st.lists(lines(), max_size=4), st.sampled_from(["\n", "\r\n", "\r"]))
def test_any_line_end_will_do(text: list[str], end: str) -> None:
    wrong = [*text, "wrong"]
    quads, bad = parse(end.join(wrong))
    assert quads == theirs("\n".join(text))
    assert [b.line for b in bad] == [len(wrong)]


MALFORMED = [
    "wrong",
    "<http://e/s> <http://e/p> <http://e/o>",
    "<http://e/s> <http://e/p> <http://e/o> <http://e/g> <http://e/x> .",
    '"s" <http://e/p> <http://e/o> <http://e/g> .',
    "<http://e/s> _:p <http://e/o> <http://e/g> .",
    '<http://e/s> "p" <http://e/o> <http://e/g> .',
    '<http://e/s> <http://e/p> <http://e/o> "g" .',
    "<http://e/s> <http://e/p> <http://e/o> <http://e/g> ,",
    "<http://e/s> <http://e/p> <http://e/a b> <http://e/g> .",
    "<s> <http://e/p> <http://e/o> <http://e/g> .",
    '<http://e/s> <http://e/p> "a" b" <http://e/g> .',
    r'<http://e/s> <http://e/p> "\x" <http://e/g> .',
    "<http://e/s> <http://e/p> <http://e/%zz> <http://e/g> .",
    GOOD.strip() + " " + GOOD.strip(),
]


@pytest.mark.parametrize("line", MALFORMED)
def test_a_malformed_line_costs_that_line_only(line: str) -> None:
    known = '<http://e/s> <http://e/p> "p" <http://e/g> .\n<http://e/s> <http://e/p> "g" .\n'
    text = known + '<http://e/s> <http://e/p> "s" .\n' + GOOD + line + "\n" + GOOD
    quads, bad = parse(text)
    assert quads == theirs(known + '<http://e/s> <http://e/p> "s" .\n' + GOOD + GOOD)
    assert [(b.file, b.line, b.text) for b in bad] == [("f", 5, line)]
    assert bad[0].reason


def test_a_line_that_is_not_utf8() -> None:
    quads, bad = parse(GOOD.encode() + b'<http://e/s> <http://e/p> "\xff" .\n' + GOOD.encode())
    assert quads == theirs(GOOD + GOOD)
    assert [(b.line, b.reason) for b in bad] == [(2, "not UTF-8 (column 28)")]
    assert bad[0].text == '<http://e/s> <http://e/p> "�" .'


def test_a_byte_order_mark_is_skipped() -> None:
    assert parse(b"\xef\xbb\xbf" + GOOD.encode()) == (theirs(GOOD), [])


def test_the_last_line_needs_no_end() -> None:
    assert parse(GOOD + GOOD.strip()) == (theirs(GOOD + GOOD), [])


def test_ntriples_have_no_graphs() -> None:
    quads, bad = parse(GOOD + "<http://e/s> <http://e/p> <http://e/o> .\n", graphs=False)
    assert len(quads) == 1
    assert [b.line for b in bad] == [1]


@pytest.mark.parametrize("size", [7, 100, 1000])
def test_lines_are_numbered_across_chunks(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr("spaseq.rdf.lines.chunks.CHUNK_BYTES", size)
    good = [f"<http://e/s> <http://e/p> <http://e/o> <http://e/{i}> .\n" for i in range(9)]
    quads, bad = parse("one\r\n" + "".join(good[:4]) + "six\r\r" + "".join(good[4:]) + "thirteen")
    assert quads == theirs("".join(good))
    assert [(b.line, b.text) for b in bad] == [(1, "one"), (6, "six"), (13, "thirteen")]


@pytest.mark.parametrize("graphs", [True, False])
@pytest.mark.parametrize("text", ["# comment\n", "\n", "wrong\n"])
def test_chunks_without_a_statement(
    monkeypatch: pytest.MonkeyPatch, text: str, graphs: bool
) -> None:
    monkeypatch.setattr("spaseq.rdf.lines.chunks.CHUNK_BYTES", 100)
    monkeypatch.setattr("spaseq.rdf.lines.chunks.MAX_CHUNK_BYTES", 200)
    quad = "<http://e/s> <http://e/p> <http://e/o> .\n"
    quads, bad = parse(text * 100 + quad + text * 100, graphs)
    assert quads == theirs(quad)
    assert len(bad) == (200 if text == "wrong\n" else 0)


SIZES = pytest.mark.parametrize("size", [100, 250, 1 << 20])
"""Sizes of chunks: smaller and larger than the limits of the tests."""


def quads(name: str, count: int) -> str:
    """An event of `count` quads, 49 bytes each."""
    stamp = f"<http://e/{name}> {TIME} {at(1)} .\n"
    quad = "<http://e/s{:03}> <http://e/p> <a:o> <http://e/{}> .\n"
    return "".join(quad.format(i, name) for i in range(count)) + stamp


def limited(directory: Path, text: str, **limits: int) -> tuple[list[str], list[tuple[int, str]]]:
    """The names and sizes of the events, and the lines and reasons of bad input."""
    events, bad = read(write(directory / "s.nq", text), limits=Limits(**limits))
    found = [f"{(e.graph or '')[9:]}:{len(e.triples)}" for e in events]
    return found, [(b.line or 0, b.reason) for b in bad]


@SIZES
@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_event_that_is_too_long_is_one_bad_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, place: int
) -> None:
    monkeypatch.setattr("spaseq.rdf.lines.chunks.CHUNK_BYTES", size)
    monkeypatch.setattr("spaseq.rdf.lines.chunks._PIECE", size)
    events = [quads("a", 3), quads("b", 2)]
    events.insert(place, quads("x", 20))
    lines = sum(event.count("\n") for event in events[:place])
    found, bad = limited(tmp_path, "".join(events), event_bytes=500)
    assert found == ["a:3", "b:2"]
    reason = "an event of more than 500 bytes, the limit (--max-event)"
    assert bad == [(lines + 1, reason)]


@SIZES
@pytest.mark.parametrize("junk", ["# comment\n", "\n", " \n"])
@pytest.mark.parametrize("stamp_first", [True, False])
def test_an_event_before_many_lines_without_a_statement_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, junk: str, stamp_first: bool
) -> None:
    monkeypatch.setattr("spaseq.rdf.lines.chunks.CHUNK_BYTES", size)
    *given, stamp = quads("a", 3).splitlines(keepends=True)
    first = "".join([stamp, *given] if stamp_first else [*given, stamp])
    wrong = "<http://e/s> wrong <a:o> <a:g> .\n"
    text = first + junk * 1000 + quads("b", 2) + wrong
    found, bad = limited(tmp_path, text, event_bytes=500)
    assert found == ["a:3", "b:2"]
    assert [line for line, _ in bad] == [1008]
    text = "".join(given) + junk * 1000 + stamp + junk * 1000 + quads("b", 2) + wrong
    found, bad = limited(tmp_path, text, event_bytes=500)
    assert found == ["a:3", "b:2"]
    assert [line for line, _ in bad] == [2008]


@SIZES
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("text", ["\0", "# ", " ", "<a:s> <a:p> <a:o> <a:g> . #"])
def test_a_line_that_is_too_long_is_one_bad_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, end: str, text: str
) -> None:
    monkeypatch.setattr("spaseq.rdf.lines.chunks.CHUNK_BYTES", size)
    long = (text * 2000)[:2000]
    before, after = quads("a", 3), quads("b", 2)
    wrong = "<http://e/s> wrong <a:o> <a:g> .\n"
    found, bad = limited(tmp_path, before + long + end + after + wrong, line_bytes=400)
    is_lost = text[0] in "\0<"  # it is no comment, and no blank line
    kept = [] if is_lost else ["a:3"]
    assert found == (kept and [*kept, "b:2"])
    lines = [line for line, reason in bad if reason.startswith("a line of 2000 bytes")]
    assert lines == ([] if size > 2000 and not is_lost else [5])
    lost = sorted(line for line, reason in bad if reason == LOST_QUAD)
    assert lost == ([1, 6] if is_lost else [])
    assert [line for line, _ in bad if line not in (5, *lost)] == [9]
    place = before.index("\n") + 1
    among = before[:place] + long + end + before[place:] + after
    assert limited(tmp_path, among, line_bytes=400)[0] == [*kept, "b:2"]
    assert limited(tmp_path, before + long, line_bytes=400)[0] == kept
    assert limited(tmp_path, "\ufeff" + long + end + before, line_bytes=400)[0] == kept


@SIZES
def test_statements_of_an_event_that_is_too_long_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr("spaseq.rdf.lines.chunks.CHUNK_BYTES", size)
    triple = '<http://e/s> <http://e/p> "{}" .\n'
    texts = [f"{i:04}" for i in range(12)]
    texts[4] = "x" * 600
    lines = "".join(map(triple.format, texts))
    options = {"triples_per_event": 3, "arrival_time": True}
    events, bad = read(write(tmp_path / "s.nt", lines), limits=Limits(event_bytes=500), **options)
    assert [[o[1:-1] for _, _, o in e.triples] for e in events] == [
        texts[:3], texts[6:9], texts[9:]
    ]  # fmt: skip
    assert [(b.line, b.reason[:27]) for b in bad] == [(4, "an event of more than 500 b")]


@pytest.mark.parametrize("size", [10, 1000, 100_000])
@pytest.mark.parametrize("literal", ['"{}"@EN', '"{}\\u00e9"', '"{}"^^<' + XSD + "string>"])
def test_a_long_literal_that_is_not_canonical(size: int, literal: str) -> None:
    line = f"<a:s> <a:p> {literal.format('x' * size)} .\n"
    assert parse(line) == (theirs(line), [])
    assert parse(line * 3 + line.replace("x", "y")) == (
        theirs(line * 3 + line.replace("x", "y")),
        [],
    )


@pytest.mark.parametrize("name", ["s.nq", "s.nq.gz"])
def test_line_numbers_of_reports(tmp_path: Path, name: str) -> None:
    stamp = f"<http://e/g> {TIME} {at(1)} .\n"
    text = "# comment\n\n" + GOOD + "wrong\n" + stamp + "wrong too\n"
    events, bad = read(write(tmp_path / name, text))
    assert not events
    lines = [(4, "wrong"), (6, "wrong too"), (3, "<http://e/g>")]
    assert [(b.line, b.text) for b in bad] == lines


def test_a_damaged_gz_keeps_the_events_before_the_damage(tmp_path: Path) -> None:
    graphs = [f"<http://e/{i}>" for i in range(20_000)]
    text = "".join(
        f"<http://e/s> <http://e/p> <http://e/o> {g} .\n{g} {TIME} {at(1)} .\n" for g in graphs
    )
    packed = gzip.compress(text.encode())
    events, bad = read(
        write(tmp_path / "s.nq", ""), write_raw(tmp_path / "t.nq.gz", packed[:-3000])
    )
    assert 0 < len(events) < len(graphs)
    assert [e.graph for e in events] == [g[1:-1] for g in graphs[: len(events)]]
    assert len(bad) == 1
    assert bad[0].line is not None
    assert bad[0].line > 2 * len(events)
    assert "the rest of the file is not read" in bad[0].reason


def write_raw(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path
