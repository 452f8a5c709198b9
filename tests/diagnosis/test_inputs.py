"""Streams without events, and GPMs that the sequence can do without."""

from __future__ import annotations

from pathlib import Path

import pytest

import spaseq
from spaseq.errors import UsageError
from spaseq.testing import letters

HEAD = """PREFIX : <http://e/>
SELECT ?x ?y WITHIN 1 HOURS
FROM STREAM S <http://e/s>
FROM STREAM T <http://e/t>
"""
QUERY = HEAD + "SEQ(A; B) { DEFINE GPM A ON S { ?x :a 1 } DEFINE GPM B ON T { ?y :b 1 } }"

EVENT = (
    '<http://e/x> <http://e/%s> "1"^^<http://www.w3.org/2001/XMLSchema#integer> <http://e/g%d> .\n'
)
TIME = '<http://e/g%d> <%s> "%d"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
GENERATED = "http://www.w3.org/ns/prov#generatedAtTime"


def stream(path: Path, *names: str, predicate: str = GENERATED, start: int = 0) -> Path:
    """A stream of one event a second, each with one triple; `names` are its predicates."""
    lines = [
        EVENT % (name, start + i) + TIME % (start + i, predicate, (start + i) * 1000)
        for i, name in enumerate(names)
    ]
    path.write_text("".join(lines))
    return path


def test_an_empty_stream(tmp_path: Path) -> None:
    s, t = stream(tmp_path / "s.nq", "a"), stream(tmp_path / "t.nq")
    report = spaseq.why(QUERY, {"S": s, "T": t})
    cause = report.causes[0]
    assert (cause.kind, cause.gpm, cause.step, cause.term) == ("no-events", None, None, "T")
    assert (cause.line, cause.column) == (4, 1)


def test_a_stream_of_bad_input(tmp_path: Path) -> None:
    s, t = stream(tmp_path / "s.nq", "a"), tmp_path / "t.nq"
    t.write_text("<http://e/x> :b 1 .\n" * 3)
    cause = spaseq.why(QUERY, {"S": s, "T": t}).causes[0]
    assert (cause.kind, cause.line, cause.count) == ("all-bad", 4, 3)
    assert cause.example is not None and "t.nq:1" in cause.example


def test_events_without_a_time(tmp_path: Path) -> None:
    s = stream(tmp_path / "s.nq", "a")
    t = stream(tmp_path / "t.nq", "b", "b", predicate="http://e/at")
    cause = spaseq.why(QUERY, {"S": s, "T": t}).causes[0]
    assert (cause.kind, cause.line, cause.count) == ("all-bad", 4, 2)
    assert "without a timestamp" in cause.text
    assert cause.suggestion == "--time-predicate http://e/at"


def test_streams_that_are_exchanged(tmp_path: Path) -> None:
    s, t = stream(tmp_path / "s.nq", "b"), stream(tmp_path / "t.nq", "a")
    report = spaseq.why(QUERY, {"S": s, "T": t})
    assert [(c.kind, c.gpm, c.step, c.suggestion) for c in report.causes] == [
        ("wrong-stream", "A", 1, "T"),
        ("wrong-stream", "B", 2, "S"),
    ]


FEED = """PREFIX : <http://e/>
REGISTER STREAM <http://e/t> AS CONSTRUCT { ?z :b 1 } WITHIN 1 HOURS
FROM STREAM R <http://e/r>
SEQ(C) { DEFINE GPM C ON R { ?z :c ?n } }"""


def test_another_query_makes_nothing(tmp_path: Path) -> None:
    s, r = stream(tmp_path / "s.nq", "a"), stream(tmp_path / "r.nq", "d")
    report = spaseq.why([QUERY, FEED], {"S": s, "R": r})
    cause = report.causes[0]
    assert (cause.kind, cause.gpm, cause.line) == ("no-input-from-query", None, 4)
    assert report.streams[1].events == 0


def test_another_query_makes_the_stream(tmp_path: Path) -> None:
    s, r = stream(tmp_path / "s.nq", "a"), stream(tmp_path / "r.nq", "d", "c", "c")
    report = spaseq.why([QUERY, FEED], {"S": s, "R": r})
    assert (
        report.answers
        == len(list(spaseq.run([QUERY, FEED], {"S": s, "R": r}, runtime="local"))) - 2
    )
    assert [(c.name, c.solutions) for c in report.gpms] == [("A", 1), ("B", 2)]
    asked = spaseq.why([FEED, QUERY], {"S": s, "R": r})
    assert (asked.answers, asked.causes) == (2, ())


def test_a_stream_without_input_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no input for stream T"):
        spaseq.why(QUERY, {"S": stream(tmp_path / "s.nq", "a")})


@pytest.mark.parametrize(
    ("sequence", "found"),
    [
        ("A; B?; C", ["A"]),
        ("(A | B); C", ["A", "B"]),
        ("(A | C); C", []),
        ("A*; C", []),
        ("A!; C", []),
        ("C; A{2}", ["A"]),
        ("C; (A AND C)", ["A"]),
    ],
)
def test_the_gpms_that_a_sequence_needs(sequence: str, found: list[str], tmp_path: Path) -> None:
    gpms = "".join(f"DEFINE GPM {g} ON S {{ ?{g} :{g.lower()} ?n{g} }} " for g in "ABC")
    used = [g for g in "ABC" if g in sequence]
    text = (
        f"PREFIX : <http://e/> SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ({sequence})"
    )
    report = spaseq.why(f"{text} {{ {gpms} }}", {"S": stream(tmp_path / "s.nq", "c")})
    kinds = [c.gpm for c in report.causes if c.kind == "predicate-never-occurs"]
    assert kinds == found
    assert {g.name for g in report.gpms} == set(used)


def test_events_of_a_program_are_read_once() -> None:
    events = iter(letters("a1 b1"))
    text = """SELECT * WITHIN 1 HOURS FROM STREAM S <http://example/letters>
        SEQ(A) { DEFINE GPM A ON S { ?a <http://example/wrod> ?w } }"""
    cause = spaseq.why(text, {"S": events}).causes[0]
    assert (cause.kind, cause.suggestion) == ("predicate-never-occurs", "<http://example/word>")


def test_events_beyond_a_limit(tmp_path: Path) -> None:
    s, t = stream(tmp_path / "s.nq", "a"), stream(tmp_path / "t.nq", "b")
    report = spaseq.why(QUERY, {"S": s, "T": t}, limits=spaseq.Limits(timeout_s=1e-9))
    assert "left out: 2 events, exceeds a limit" in report.as_text()
    assert report.causes[0].text == "the events that might match exceed a limit"
