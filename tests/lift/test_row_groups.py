"""Row groups of Parquet that no query needs are not read; that changes no answer and no count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

import spaseq
from spaseq.compile import compile_query
from spaseq.errors import InputError, QueryError
from spaseq.lift.lift_checks import compiled_lift
from spaseq.lift.row_groups import AskedRows, Bound, asked_rows
from spaseq.plan.predicates import stream_patterns
from tests.lift.lifting import PREFIXES
from tests.sizes import sizes

NAME = "BIND(IRI(CONCAT('http://e/n/', STR(?id))) AS ?e)"
KIND = "BIND(IRI(CONCAT('http://e/', ?kind)) AS ?k)"
LIFT = f"""{PREFIXES}CONSTRUCT {{ GRAPH ?e {{ ?e :id ?id ; a ?k ; :kind ?kind ; :v ?v ; :d ?d }}
  ?e prov:generatedAtTime ?t }} WHERE {{ {NAME} {KIND} }}"""


def outcome(query: str, data: Any, lift: str, **more: Any) -> tuple[Any, spaseq.Stats]:
    """Answers with instants, bad rows and counts; and the counts of the run."""
    bad: list[Any] = []
    stats = spaseq.Stats()
    streams = {"http://e/s": spaseq.Lifted(data, lift)}
    found = spaseq.run(query, streams, runtime="local", on_bad=bad.append, stats=stats, **more)
    answers = [
        (sorted(m.answer.bindings), [(i.gpm, i.event, i.time, i.k) for i in m.answer.trace])
        for m in found
    ]
    counts = stats.events, stats.filtered, stats.bad, stats.solutions
    return (answers, [(b.line, b.reason) for b in bad], counts), stats


NUMBERS = st.one_of(st.integers(-2, 4), st.just(2**53 + 1))
DOUBLES = st.sampled_from([-1.0, -0.0, 0.0, 1.0, 2.5, 4.0, float("nan"), float("inf"), 2.0**53])


KINDS = ("a", "a", "b", "b-1", "b-1", "", "ä", "a/../b", "q q", "x" * 70)


@st.composite
def tables(draw: Any) -> Any:
    """Rows in which neighbours are alike, so that row groups differ."""
    runs = draw(st.lists(st.integers(1, 5), min_size=3, max_size=8))
    columns: dict[str, list[Any]] = {name: [] for name in ("kind", "v", "d", "t")}
    nulls = draw(st.sets(st.sampled_from(["kind", "v", "d"]), max_size=2))
    nulls |= draw(st.sampled_from([set(), set(), set(), {"t"}]))
    for size in runs:
        ways = {
            "kind": draw(st.sampled_from(KINDS)),
            "v": draw(NUMBERS),
            "d": draw(DOUBLES),
            "t": draw(st.integers(0, 6)) * 1000,
        }
        for _ in range(size):
            for name, value in ways.items():
                missing = name in nulls and draw(st.integers(0, 3)) == 0
                own = draw(NUMBERS) if name == "v" and draw(st.integers(0, 5)) == 0 else value
                columns[name].append(None if missing else own)
    types = {
        "kind": draw(st.sampled_from([pa.string(), pa.dictionary(pa.int32(), pa.string())])),
        "v": pa.int64(),
        "d": pa.float64(),
        "t": pa.timestamp(draw(st.sampled_from(["us", "ms", "ns"])), "UTC"),
    }
    arrays = {name: pa.array(values, types[name]) for name, values in columns.items()}
    return pa.table({"id": pa.array(range(sum(runs)), pa.int64()), **arrays})


TESTS = (
    "?v > 1",
    "3 > ?v",
    "?v = 2",
    "?v != 2",
    "?v <= 9007199254740992",
    "?d >= 1",
    "?d = 0",
    "?d < 1 && ?v >= 0",
    "?v > 1 || ?d > 1",
    "?w = 'a'",
    "?w = 'ä'",
    "?w != 'a'",
    "'b-1' = ?w && ?v < 3",
    "STRLEN(?w) > 1",
    "?v > ?d",
    "EXISTS { ?e :v 1 }",
)
TRIPLES = (
    "?e :v ?v",
    "?e :d ?d",
    "?e :kind ?w",
    "?e a ?k",
    "?e a :a",
    "?e a <http://e/b-1>",
    "?e a <http://e/a/../b>",
    "?e a <http://other/a>",
    "?e :kind 'a'",
    "?e :kind 'x'@en",
    "?e :v 2",
    "?e :v '02'^^xsd:integer",
    "?e :v 2.0",
    "?e :d 1",
    "?e ?p ?v",
    "<http://e/n/3> :v ?v",
    "<http://e/n/03> :v ?v",
    "<http://e/n/x> :v ?v",
    "?e :other ?v",
    "OPTIONAL { ?e :v ?v }",
    "{ ?e :v 1 } UNION { ?e :v 2 }",
    "BIND(?v AS ?z)",
)
CORES = (
    ("?e a :a", "?e :v ?v"),
    ("?e a <http://e/b-1>",),
    ("?e :kind 'a'", "?e :d ?d"),
    ("?e :kind ?w", "FILTER(?w = 'a')"),
    ("?e :v ?v", "FILTER(?v > 1)"),
    ("?e :v ?v", "FILTER(1 >= ?v)", "?e a ?k"),
    ("?e :d ?d", "?e :v ?v", "FILTER(?d < 1 && ?v >= 0)"),
    ("?e :d ?d", "FILTER(?d = 0)"),
    ("?e :v 2", "?e :kind ?w"),
    ("<http://e/n/3> :v ?v",),
)
SEQUENCES = ("A", "A", "A", "A; B", "A: B", "A, B", "A; B!", "A+; B")
WINDOWS = ("WITHIN 4 SECONDS", "WITHIN 100 DAYS", "WITHIN 100 DAYS", "WITHIN 3 EVENTS")


@st.composite
def queries(draw: Any) -> str:
    sequence = draw(st.sampled_from(SEQUENCES))
    gpms = ""
    for name in [name for name in "AB" if name in sequence]:
        parts = [*draw(st.sampled_from(CORES))]
        if draw(st.integers(0, 2)) == 0:
            parts = draw(st.lists(st.sampled_from(TRIPLES), min_size=1, max_size=2))
        parts += draw(st.sampled_from([(), (), (draw(st.sampled_from(TRIPLES)),)]))
        tests = draw(st.sampled_from([(), (), (draw(st.sampled_from(TESTS)),)]))
        parts += [f"FILTER({test})" for test in tests]
        gpms += (
            f"DEFINE GPM {name} ON S {{ {' . '.join(parts).replace('. OPTIONAL', ' OPTIONAL')} }}\n"
        )
    strict = draw(st.sampled_from(["", "", "", "", "STRICT "]))
    window = draw(st.sampled_from(WINDOWS))
    return f"""{PREFIXES}SELECT {strict}* {window} FROM STREAM S <http://e/s>
WHERE {{ SEQ({sequence})
{gpms} }}"""


@st.composite
def lifts(draw: Any) -> str:
    """Lifts that may be pushed, and some that may not."""
    lift = LIFT
    lift = draw(st.sampled_from([lift] * 6 + [lift.replace("GRAPH ?e", "GRAPH ?k")]))
    lift = draw(st.sampled_from([lift] * 6 + [lift.replace("?e :id ?id ; ", "?e ")]))
    test = draw(st.sampled_from([*[""] * 8, "FILTER(?v > 0)", "FILTER(?kind = 'a')"]))
    return lift.replace(" }}", f" {test} }}") if test else lift


@sizes(8, 24, 6000)
def test_row_groups_change_nothing(examples: int, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"

    @settings(max_examples=examples, deadline=None, database=None)
    @given(tables(), queries(), lifts(), st.integers(1, 4), st.integers(0, 4))
    def check(table: Any, query: str, lift: str, size: int, kept: int) -> None:
        pq.write_table(table, path, row_group_size=size, write_statistics=kept > 0 or ["id", "t"])
        try:
            expected, _ = outcome(query, table, lift)
        except (QueryError, InputError):
            assume(False)
        got, stats = outcome(query, path, lift)
        assert got == expected
        event(f"{min(stats.skipped_groups, 1)} skipped, {min(len(expected[0]), 1)} answers")
        assert outcome(query, path, lift, disable=["virtual-triples"])[0] == expected

    check()


def rows(groups: int, size: int) -> Any:
    """Row groups with the kinds a, b, c, ... and times that the next group repeats."""
    ids = [*range(groups * size)]
    moments = pa.array([(i - i // size) * 1000 for i in ids], pa.timestamp("ms", "UTC"))
    kinds = [chr(ord("a") + i // size) for i in ids]
    return pa.table(
        {
            "id": ids,
            "kind": kinds,
            "v": [i // size for i in ids],
            "d": [0.5] * len(ids),
            "t": moments,
        }
    )


def query(pattern: str, sequence: str = "A", window: str = "WITHIN 1 HOURS") -> str:
    return f"""{PREFIXES}SELECT * {window} FROM STREAM S <http://e/s> WHERE {{ SEQ({sequence})
      DEFINE GPM A ON S {{ {pattern} }} }}"""


@pytest.mark.parametrize(
    ("pattern", "skipped"),
    [
        ("?e a :c", 9),
        ("?e :kind 'c'", 9),
        ("?e :v 2", 9),
        ("?e :v ?v FILTER(?v > 7)", 8),
        ("<http://e/n/12> :v ?v", 9),
        ("?e a :other", 10),
        ("?e :other ?v", 10),
        ("?e a ?k", 0),
        ("?e :v ?v FILTER(?v > 7 || ?v < 2)", 0),
        ("?e ?p 2", 0),
        ("?e :v ?v OPTIONAL { ?e a :c }", 0),
    ],
)
def test_what_is_skipped(pattern: str, skipped: int, tmp_path: Path) -> None:
    path, table = tmp_path / "t.parquet", rows(10, 5)
    pq.write_table(table, path, row_group_size=5)
    got, stats = outcome(query(pattern), path, LIFT)
    assert got == outcome(query(pattern), table, LIFT)[0]
    assert (stats.skipped_groups, stats.events) == (skipped, 50)


@pytest.mark.parametrize(
    ("given", "lift"),
    [
        (query("?e a :c", "A+", "WITHIN 3 EVENTS"), LIFT),
        (query("?e a :c", "A, A"), LIFT),
        (query("?e a :c"), LIFT.replace("GRAPH ?e", "GRAPH ?k")),  # a name may be no IRI
        (query("?e a :c"), LIFT.replace(KIND, f"{KIND} FILTER(?v >= 0)")),
        (query("?e a :c"), LIFT.replace("?e :id ?id ;", "?e").replace(":v ?v ;", "")),
    ],
)
def test_when_nothing_is_skipped(given: str, lift: str, tmp_path: Path) -> None:
    path, table = tmp_path / "t.parquet", rows(10, 5)
    pq.write_table(table, path, row_group_size=5)
    got, stats = outcome(given, path, lift)
    assert got == outcome(given, table, lift)[0]
    assert stats.skipped_groups == 0


def test_times_of_skipped_rows_count(tmp_path: Path) -> None:
    """The first row of a group has the time of the last one before it."""
    path = tmp_path / "t.parquet"
    pq.write_table(rows(4, 5), path, row_group_size=5)
    (answers, _, _), stats = outcome(query("<http://e/n/15> :v ?v"), path, LIFT)
    assert [trace for _, trace in answers] == [[("A", "http://e/n/15", 12_000, 1)]]
    assert stats.skipped_groups == 3


def asked(pattern: str, lift: str = LIFT) -> AskedRows | None:
    patterns = stream_patterns([compile_query(query(pattern))], "http://e/s")
    assert patterns is not None
    return asked_rows(patterns, compiled_lift(lift))


def test_bounds_of_patterns() -> None:
    assert asked("?e a :c ; :v ?x FILTER(5 > ?x && ?x != 2)") == (
        (Bound("kind", "=", "c"), Bound("v", "<", 5)),
    )
    assert asked("<http://e/n/7> :kind 'x'") == (
        (Bound("id", "=", "7", spelled=True), Bound("kind", "=", "x")),
    )
    assert asked("?e :v '07'^^xsd:integer") is None
    assert asked("?e :other 7") == ()


@pytest.mark.parametrize(
    ("bound", "least", "most", "may_pass"),
    [
        (Bound("v", "=", 7), 7, 7, True),
        (Bound("v", "=", 7), 8, 9, False),
        (Bound("v", ">", 7), float("nan"), 1.0, True),
        (Bound("v", "<", 7), 9.0, float("nan"), True),
        (Bound("v", "=", "b"), "a", "c", True),
        (Bound("v", "=", "b"), "ba", "c", False),
        (Bound("v", "=", "7", spelled=True), 6, 8, True),
        (Bound("v", "=", "7", spelled=True), "6", "6z", False),
        (Bound("v", "=", "\U0001f600"), "\uffee", "\U0001f601", True),
    ],
)
def test_bounds_and_statistics(bound: Bound, least: Any, most: Any, may_pass: bool) -> None:
    assert bound.may_pass(least, most) is may_pass


def test_statistics_bound_only_what_is_compared_alike() -> None:
    number, text = Bound("v", "=", 7), Bound("v", "=", "7")
    assert number.suits("int64") and number.suits("double") and not number.suits("string")
    assert not Bound("v", "=", 2**53 + 1).suits("double")
    assert text.suits("string") and not text.suits("int64")
    assert text.suits("dictionary<values=string, indices=int32, ordered=0>")
    assert Bound("v", "=", "7", spelled=True).suits("int64")
