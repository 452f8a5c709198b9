"""Lifts with several GRAPHs: several events a row, each with its own time."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spaseq
from spaseq.errors import BadEvents, InputError, UsageError
from spaseq.query_tests.case_file import read_test_file
from spaseq.query_tests.case_run import outcomes
from spaseq.testing import Harness
from tests.lift.lifting import PREFIXES, lifted, typed

WHERE = """WHERE {
  BIND (IRI(CONCAT("http://e/t", STR(?id))) AS ?a) BIND (IRI(CONCAT("http://e/h", STR(?id))) AS ?b)
  BIND (xsd:dateTime(?ta) AS ?at) BIND (xsd:dateTime(?tb) AS ?bt) }"""
OWN = f"""{PREFIXES}CONSTRUCT {{
  GRAPH ?a {{ :s :temperature ?x }} ?a prov:generatedAtTime ?at .
  GRAPH ?b {{ :s :humidity ?y ; prov:generatedAtTime ?bt }} }} {WHERE}"""
SHARED = f"""{PREFIXES}CONSTRUCT {{
  GRAPH ?a {{ :s :temperature ?x }} GRAPH ?b {{ :s :humidity ?y }} :s prov:generatedAtTime ?at }}
  {WHERE}"""
ONE = f"""{PREFIXES}CONSTRUCT {{
  GRAPH ?a {{ :s :temperature ?x }} ?a prov:generatedAtTime ?at .
  GRAPH ?b {{ :s :humidity ?y }} }} {WHERE}"""
TWO = ONE.replace("?a prov:generatedAtTime ?at .", "?a prov:generatedAtTime ?at . :s "
                  "prov:generatedAtTime ?bt .")  # fmt: skip
T1, T2 = "2026-01-01T10:00:00Z", "2026-01-01T09:00:00Z"
ROW = f'{{"id": 1, "x": 20, "y": 50, "ta": "{T1}", "tb": "{T2}"}}'


def events(lift: str, text: str, path: Path) -> tuple[list[tuple[str | None, str]], list[str]]:
    """(name, time) of each event, and the reasons of bad rows."""
    (path / "t.jsonl").write_text(text)
    found, bad = lifted(path / "t.jsonl", lift)
    return [(name, time) for name, time, _ in found], [one.reason for one in bad]


def at(text: str) -> str:
    return typed(text, "dateTime")


@pytest.mark.parametrize(
    ("lift", "second"),
    [(OWN, T2), (SHARED, T1), (ONE, T1)],
)
def test_each_graph_has_its_time_or_that_of_the_row(lift: str, second: str, tmp_path: Path) -> None:
    both = [("http://e/t1", at(T1)), ("http://e/h1", at(second))]
    assert events(lift, ROW, tmp_path) == (both, [])


def test_the_graphs_have_their_own_triples(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(ROW)
    (_, _, one), (_, _, other) = lifted(tmp_path / "t.jsonl", OWN)[0]
    assert one == {("<http://e/s>", "<http://e/temperature>", typed("20", "integer"))}
    assert ("<http://e/s>", "<http://e/humidity>", typed("50", "integer")) in other
    assert len(other) == 2  # its time, too


def test_a_time_that_is_ambiguous_makes_the_row_bad(tmp_path: Path) -> None:
    found, bad = events(TWO, ROW + "\n" + ROW.replace(T2, T1), tmp_path)
    assert ([name for name, _ in found], len(bad)) == (["http://e/t1", "http://e/h1"], 1)
    assert "two times of one event" in bad[0]


def test_a_graph_without_triples_is_no_event(tmp_path: Path) -> None:
    rows = [
        f'{{"id": 1, "x": 20, "ta": "{T1}"}}',
        f'{{"id": 2, "y": 50, "tb": "{T2}"}}',
        '{"id": 3}',
        f'{{"id": 4, "x": 20, "y": 50, "ta": "{T1}"}}',
    ]
    found, bad = events(OWN, "\n".join(rows), tmp_path)
    assert found == [("http://e/t1", at(T1)), ("http://e/h2", at(T2))]
    assert bad == [
        "no event of the row has a triple besides its time",
        "the event has no time: ?bt has no value, field tb is empty",
    ]


def test_two_graphs_of_one_name_are_one_event(tmp_path: Path) -> None:
    lift = OWN.replace("GRAPH ?b {", "GRAPH ?a {").replace("prov:generatedAtTime ?bt", ":z 1")
    assert events(lift, ROW, tmp_path) == ([("http://e/t1", at(T1))], [])
    equal = OWN.replace("http://e/h", "http://e/t")
    assert events(equal, ROW, tmp_path) == ([], ["two GRAPHs of the row have one name"])


def test_many_rows_keep_the_order_of_the_template(tmp_path: Path) -> None:
    rows = "\n".join(ROW.replace('"id": 1', f'"id": {n}') for n in range(3000))
    found, bad = events(OWN, rows, tmp_path)
    assert [name for name, _ in found] == [f"http://e/{k}{n}" for n in range(3000) for k in "th"]
    assert bad == []


SEQUENCE = """PREFIX : <http://e/> SELECT ?y ?x WITHIN 2 HOURS FROM STREAM S <http://e/stream>
WHERE { SEQ(H; T) DEFINE GPM H ON S { :s :humidity ?y }
 DEFINE GPM T ON S { :s :temperature ?x } }"""


@pytest.mark.parametrize("runtime", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_query_sees_them_in_the_order_of_their_times(
    runtime: Literal["local", "spark"], tmp_path: Path
) -> None:
    (tmp_path / "t.jsonl").write_text(ROW)
    rows = spaseq.Lifted(tmp_path / "t.jsonl", OWN)
    (match,) = spaseq.run(SEQUENCE, {"S": rows}, runtime=runtime)
    assert [match.bindings[name].to_python() for name in ("y", "x")] == [50, 20]


ANY = SEQUENCE.replace("H; T", "H: T").replace("SELECT ?y ?x", "SELECT ?x ?y")


def row(number: int, x: int | None, y: int | None, ta: int, tb: int) -> dict[str, object]:
    """A row whose events are at seconds of a minute."""
    times = {"ta": f"2026-01-01T10:00:{ta:02}Z", "tb": f"2026-01-01T10:00:{tb:02}Z"}
    values = {name: value for name, value in (("x", x), ("y", y)) if value is not None}
    return {"id": number, **values, **times}


values = st.none() | st.integers(0, 9)
seconds = st.integers(0, 9)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(values, values, seconds, seconds), max_size=8), st.booleans())
def test_pushed_rows_are_their_events_in_order_of_time(
    given_rows: list[tuple[int | None, int | None, int, int]], together: bool
) -> None:
    seen: list[tuple[str, int]] = []  # (kind, value) in order
    refused, taken, floor = [], [], 0
    for n, (x, y, ta, tb) in enumerate(given_rows):
        own = [(t, k, v) for t, k, v in ((ta, "x", x), (tb, "y", y)) if v is not None]
        own.sort(key=lambda event: event[0])
        if not own or own[0][0] < floor:
            refused.append(n)
            continue
        floor = own[-1][0]
        seen += [(kind, value) for _, kind, value in own]
        taken.append(row(n, x, y, ta, tb))
    expected = Counter(
        (x, y)
        for n, (kind, x) in enumerate(seen)
        for before, y in seen[:n]
        if kind == "x" and before == "y"
    )
    rows = [row(n, *values) for n, values in enumerate(given_rows)]
    engine, found, bad = spaseq.Engine(ANY, lifts={"S": OWN}), [], []
    for batch in [rows] if together else [[row] for row in rows]:
        try:
            if together:
                found += engine.push_many(("S", row) for row in batch)
            else:
                found += engine.push("S", batch[0])
        except BadEvents as error:
            found += error.matches
            bad += [place for place, _ in error.bad]
        except (InputError, UsageError):
            bad.append(rows.index(batch[0]))
    found += engine.close()
    pairs = Counter(tuple(m.bindings[v].to_python() for v in "xy") for m in found)
    assert (pairs, bad) == (expected, refused)
    if taken:
        replayed = spaseq.run(ANY, {"S": spaseq.Lifted(taken, OWN)}, runtime="local")
        assert sorted(map(str, replayed)) == sorted(map(str, found))


def test_the_bench_and_a_step_take_a_row_of_several_events(tmp_path: Path) -> None:
    with Harness(SEQUENCE, lifts={"S": OWN}) as bench:
        bench.push("S", json.loads(ROW))
    assert bench.answers == bench.replay() == [{"y": 50, "x": 20}]
    (tmp_path / "q.rq").write_text(SEQUENCE)
    (tmp_path / "l.rq").write_text(OWN)
    (tmp_path / "q.test.toml").write_text(f"""query = "q.rq"
lift = {{ S = "l.rq" }}
[[test]]
name = "one row"
[[test.step]]
stream = "S"
events = '''{ROW}'''
answers = []
[[test.step]]
wait = "1 SECONDS"
answers = [{{ y = 50, x = 20 }}]
""")
    (outcome,) = outcomes(read_test_file(tmp_path / "q.test.toml"))
    assert outcome.failure == ""
