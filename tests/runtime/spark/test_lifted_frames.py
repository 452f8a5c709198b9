"""DataFrames of rows with lifts: the answers of the same rows in this process."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import spaseq
from spaseq.errors import InputError, QueryError, UsageError
from spaseq.spark import answers, errors
from tests.lift.lifting import PREFIXES

pytestmark = pytest.mark.spark

LIFT = f"""{PREFIXES}CONSTRUCT {{ GRAPH ?e {{ ?who :price ?price }} ?e prov:generatedAtTime ?at }}
WHERE {{
  BIND(IRI(CONCAT("http://e/n/", STR(?id))) AS ?e)
  BIND(IRI(CONCAT("http://e/", ?name)) AS ?who)
  FILTER(?price > 0)
}}"""
RISE = """PREFIX : <http://e/>
SELECT ?low ?high
WITHIN 1 HOURS
FROM STREAM S <http://e/s>
SEQ (A: B) {
  DEFINE GPM A ON S { ?who :price ?low }
  DEFINE GPM B ON S { ?who :price ?high FILTER (?high > ?low) }
}"""
START = datetime(2026, 1, 5, 9, tzinfo=UTC)


def at(seconds: int) -> datetime:
    return START + timedelta(seconds=seconds)


def rows_of(*prices: int) -> pa.Table:
    """Prices of one name, two in each second, given in reverse."""
    rows = [
        {"id": n, "name": "x", "price": price, "at": at(n // 2), "unused": [n]}
        for n, price in enumerate(prices)
    ]
    return pa.Table.from_pylist(rows[::-1])


Found = list[tuple[Any, ...]]


def on_spark(spark: Any, query: str, streams: Any, **options: Any) -> Found:
    return plain(answers(spark, query, streams, **options).collect())


def plain(rows: Any) -> Found:
    return sorted(
        (
            *(int(moment.timestamp() * 1000) for moment in (row.start, row.end)),
            tuple(sorted(row.bindings.items())),
            tuple((t.gpm, t.event, t.k) for t in row.trace),
        )
        for row in rows
    )


def here(query: str, streams: Any) -> Found:
    return sorted(
        (
            *(int(moment.timestamp() * 1000) for moment in (match.start, match.end)),
            tuple(sorted((v, term.n3()) for v, term in match.bindings.items())),
            tuple((t.gpm, t.event, t.k) for t in match.trace),
        )
        for match in spaseq.run(query, streams, runtime="local")
    )


def test_rows_of_equal_time_are_in_the_order_of_the_column(spark: Any) -> None:
    table = rows_of(1, 3, 2, 5, 0, 4)
    frame = spark.createDataFrame(table).repartition(3)
    found = on_spark(spark, RISE, {"S": frame}, lifts={"S": LIFT}, order={"S": "id"})
    assert found == here(RISE, {"S": spaseq.Lifted(table.sort_by("id"), LIFT)})
    # 1 rises to 3, 2, 5 and 4; 3 and 2 to what is higher after them: 5 and 4, 5 and 4
    assert len(found) == 8
    # The event 5, of the price 4, is alone at its time: row 4 has no solution.
    assert {t for match in found for t in match[3] if t[1] == "http://e/n/5"} == {
        ("B", "http://e/n/5", 0)
    }


SEVERAL = f"""{PREFIXES}CONSTRUCT {{
  GRAPH ?e {{ ?who :price ?low }} ?e prov:generatedAtTime ?at .
  GRAPH ?f {{ ?who :price ?price ; prov:generatedAtTime ?then }} }}
WHERE {{
  BIND(IRI(CONCAT("http://e/n/", STR(?id))) AS ?e) BIND(IRI(CONCAT("http://e/m/", STR(?id))) AS ?f)
  BIND(IRI(CONCAT("http://e/", ?name)) AS ?who)
  FILTER(?price > 0)
}}"""


def several_events() -> pa.Table:
    """Rows of two events each, many at equal times, given in reverse."""
    rows = [
        {"id": n, "name": "x", "low": n * 7 % 5, "price": n * 3 % 4, "at": at(n // 2 % 3),
         "then": at(n % 3)}
        for n in range(12)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows[::-1])


@pytest.mark.thorough
def test_rows_of_several_events(spark: Any, tmp_path: Path) -> None:
    table = several_events()
    ordered = {"S": spaseq.Lifted(table.sort_by("id"), SEVERAL)}
    frame = spark.createDataFrame(table).repartition(3)
    found = on_spark(spark, RISE, {"S": frame}, lifts={"S": SEVERAL}, order={"S": "id"})
    assert found == here(RISE, ordered)
    assert len(found) > 20
    pq.write_table(table.sort_by("id"), tmp_path / "t.parquet")
    scanned = spark.read.parquet(str(tmp_path / "t.parquet"))
    assert on_spark(spark, RISE, {"S": scanned}, lifts={"S": SEVERAL}) == found
    (tmp_path / "arriving").mkdir()
    for n, start in enumerate((0, 6)):
        pq.write_table(table.slice(start, 6), tmp_path / "arriving" / f"{n}.parquet")
    stream = spark.readStream.schema(frame.schema).parquet(str(tmp_path / "arriving"))
    given = {"lifts": {"S": SEVERAL}, "order": {"S": "id"}, "checkpoint": tmp_path / "state"}
    query = (
        answers(spark, RISE, {"S": stream}, **given)
        .writeStream.format("memory")
        .queryName("several_events")
        .option("checkpointLocation", str(tmp_path / "spark"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    final = [answer for answer in found if answer[1] < int(at(2).timestamp() * 1000)]
    assert plain(spark.table("several_events").collect()) == final
    assert final


EACH = """PREFIX : <http://e/>
SELECT ?price WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ (A) {
  DEFINE GPM A ON S { ?who :price ?price }
}"""


def test_without_an_order_events_of_equal_time_in_all_partitions_are_numbered(spark: Any) -> None:
    rows = [{"id": n, "name": "x", "price": 1 + n % 2, "at": at(n % 3)} for n in range(30)]
    frame = spark.createDataFrame(pa.Table.from_pylist(rows)).repartition(4)
    found = answers(spark, EACH, {"S": frame}, lifts={"S": LIFT}).collect()
    # 30 events at three times: ten at each, which have the numbers from 0 to 9
    assert sorted((row.start.timestamp(), row.trace[0].k) for row in found) == [
        (at(second).timestamp(), k) for second in range(3) for k in range(10)
    ]
    assert len({row.trace[0].event for row in found}) == 30


@pytest.mark.parametrize(
    ("test", "kept"),
    [
        ("?d > 1", [1.5, float("inf")]),
        ("2 > ?d", [-1.0, 1.5]),
        ("?i >= 2 && ?d < 2", [1.5]),
        ("?i = 1", [-1.0]),
        ("?d > -9007199254740993", [-1.0, 1.5, float("inf")]),
    ],
)
def test_filters_of_numbers_mean_the_same_in_spark(
    spark: Any, test: str, kept: list[float]
) -> None:
    table = pa.table(
        {
            "i": [1, 2, 3, 4, None],
            "d": [-1.0, 1.5, float("nan"), float("inf"), None],
            "at": [*range(5)],
        }
    )
    lift = f"{PREFIXES}CONSTRUCT {{ :s :price ?d ; prov:generatedAtTime ?at }} WHERE {{"
    frame = spark.createDataFrame(table)
    found = answers(spark, EACH, {"S": frame}, lifts={"S": f"{lift} FILTER ({test}) }}"})
    texts = {row.bindings["price"] for row in found.collect()}
    assert texts == {
        f'"{text}"^^<http://www.w3.org/2001/XMLSchema#double>'
        for text in ({-1.0: "-1.0E0", 1.5: "1.5E0", float("inf"): "INF"}[d] for d in kept)
    }


TWO = """PREFIX : <http://e/>
SELECT ?low ?n
WITHIN 1 HOURS
FROM STREAM S <http://e/s>
FROM STREAM T <http://e/t>
SEQ (A: B) {
  DEFINE GPM A ON S { ?who :price ?low }
  DEFINE GPM B ON T { ?t :v ?n }
}"""
COUNTS = f"""{PREFIXES}CONSTRUCT {{ [] :v ?n ; prov:generatedAtTime ?when }}
WHERE {{ UNNEST ?ns AS ?n BIND(xsd:dateTime(?t) AS ?when) }}"""


def test_dataframes_beside_files_and_lists_in_them(spark: Any, tmp_path: Path) -> None:
    table = rows_of(1, 3)
    lines = [f'{{"ns": [{n}, 7], "t": "2026-01-05T09:00:0{n}Z"}}\n' for n in range(4)]
    (tmp_path / "t.jsonl").write_text("".join([*lines, "[]\n"]))
    path = str(tmp_path / "t.jsonl")
    expected = here(
        TWO, {"S": spaseq.Lifted(table.sort_by("id"), LIFT), "T": spaseq.Lifted(path, COUNTS)}
    )
    assert len(expected) == 2 * 3 * 2
    given = {"S": spark.createDataFrame(table), "T": path}
    lifts = {"S": LIFT, "http://e/t": COUNTS}
    assert on_spark(spark, TWO, given, lifts=lifts, order={"S": "id"}) == expected
    nested = pa.Table.from_pylist(
        [{"ns": [n, 7], "t": f"2026-01-05T09:00:0{n}Z", "x": {"y": 1}} for n in range(4)]
    )
    given["T"] = spark.createDataFrame(nested)
    assert on_spark(spark, TWO, given, lifts=lifts, order={"S": "id"}) == expected


def test_bad_rows_are_rows_of_sides(spark: Any) -> None:
    rows = [
        {"id": None if n == 1 else n, "name": "x", "price": n + 1, "at": at(n)} for n in range(3)
    ]
    frame = spark.createDataFrame(pa.Table.from_pylist(rows))
    found = answers(spark, RISE, {"S": frame}, lifts={"S": LIFT}, sides=True).collect()
    assert len([row for row in found if row.bad is None]) == 1
    assert [(row.bad.file, row.bad.reason) for row in found if row.bad is not None] == [
        ("<http://e/s>", "the event's name is unbound: ?e has no value, field id is empty")
    ]
    with pytest.raises(InputError, match="unbound"), errors():
        answers(spark, RISE, {"S": frame}, lifts={"S": LIFT}, strict=True).collect()


def test_what_is_refused(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame(rows_of(1, 2))
    refused: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (UsageError, "needs a lift", {}),
        (UsageError, "lifts names Q, which is no stream", {"lifts": {"S": LIFT, "Q": LIFT}}),
        (UsageError, "no column idd for order; did you mean id", {"order": {"S": "idd"}}),
        (UsageError, "no row numbers", {"lifts": {"S": LIFT.replace("STR(?id)", "STR(?_line)")}}),
        (
            InputError,
            "no field for .nam of the lift",
            {"lifts": {"S": LIFT.replace("?name", "?nam")}},
        ),
        (QueryError, "expected", {"lifts": {"S": "CONSTRUCT {"}}),
    ]
    for kind, message, options in refused:
        given = options if not options or "lifts" in options else {"lifts": {"S": LIFT}, **options}
        with pytest.raises(kind, match=message):
            answers(spark, RISE, {"S": frame}, **given)
    with pytest.raises(UsageError, match="order is for DataFrames"):
        answers(spark, RISE, {"S": str(tmp_path)}, lifts={"S": LIFT}, order={"S": "id"})
    with pytest.raises(UsageError, match="given by name"):
        answers(spark, RISE, frame, lifts={"S": LIFT})


@pytest.mark.thorough
@pytest.mark.parametrize("idle_ms", [None, 3_600_000])
def test_streaming_dataframes(spark: Any, tmp_path: Path, idle_ms: int | None) -> None:
    table = rows_of(1, 3, 2, 5, 0, 4)
    (tmp_path / "rows").mkdir()
    for number in range(3):  # a file for each second, its rows in reverse
        part = table.sort_by("id").slice(2 * number, 2).take(pa.array([1, 0]))
        path = tmp_path / "rows" / f"{number}.parquet"
        pq.write_table(part, path)
        os.utime(path, (10 * number, 10 * number))  # Spark takes the oldest file first
    frame = spark.read.parquet(str(tmp_path / "rows"))
    stream = (
        spark.readStream.schema(frame.schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(tmp_path / "rows"))
    )
    checkpoint = tmp_path / "state"
    given = {"lifts": {"S": LIFT}, "order": {"S": "id"}}
    with pytest.raises(UsageError, match="needs a checkpoint"):
        answers(spark, RISE, {"S": stream}, **given)
    with pytest.raises(UsageError, match="beside no paths"):
        answers(spark, RISE, {"S": frame}, checkpoint=checkpoint, **given)
    found = answers(spark, RISE, {"S": stream}, checkpoint=checkpoint, idle_ms=idle_ms, **given)
    name = f"rises_{idle_ms}"
    query = (
        found.writeStream.format("memory")
        .queryName(name)
        .option("checkpointLocation", str(tmp_path / "spark"))
        .trigger(**({"availableNow": True} if idle_ms is None else {"processingTime": "1 second"}))
        .start()
    )
    expected = here(RISE, {"S": spaseq.Lifted(table.sort_by("id"), LIFT)})
    # Answers that end at the last time, 9:00:02, may still get company.
    final = [e for e in expected if e[1] < int(at(2).timestamp() * 1000)]
    assert len(final) == 5
    if idle_ms is None:
        query.awaitTermination()
    else:
        until = monotonic() + 120
        while spark.table(name).count() < len(final) and monotonic() < until:
            sleep(1)
        query.stop()
    assert plain(spark.table(name).collect()) == final
    for other in ({"lifts": {"S": LIFT.replace("> 0", "> 1")}}, {"order": {"S": "price"}}):
        with pytest.raises(UsageError, match="the lift of stream http://e/s has changed"):
            answers(spark, RISE, {"S": stream}, checkpoint=checkpoint, **{**given, **other})


COLUMNS: dict[str, tuple[Any, pa.DataType]] = {
    "i": (st.integers(-3, 3), pa.int64()),
    "d": (st.sampled_from([0.0, 1.0, 0.1, -3.0, 1e300]), pa.float64()),
    "c": (st.decimals(-9, 9, places=2), pa.decimal128(9, 2)),
    "b": (st.booleans(), pa.bool_()),
    "s": (st.sampled_from(["a", "b-1", "", "ä", "7", "a b"]), pa.string()),
    "m": (st.integers(0, 3).map(at), pa.timestamp("us", "UTC")),
    "l": (st.lists(st.integers(0, 3), max_size=3), pa.list_(pa.int32())),
}
BINDS = (
    "IRI(CONCAT('http://e/', ?s))",
    "IRI(CONCAT('http://e/', STR(?i)))",
    "xsd:decimal(?d)",
    "?i + ?c",
    "UCASE(?s)",
    "COALESCE(?i, ?s)",
    "IF(?b, ?i, ?d)",
)
TESTS = ("?i > 0", "?d >= 0", "?c > 0.5", "BOUND(?s)", "?b", "?i < ?c || ?b", "isIRI(?x)")
QUERY = """PREFIX : <http://e/>
SELECT *
WITHIN 1 HOURS
FROM STREAM S <http://e/s>
SEQ (A : B) {
  DEFINE GPM A ON S { :s :p ?v }
  DEFINE GPM B ON S { ?t :q ?w OPTIONAL { ?t :p ?u } }
}"""


@st.composite
def random_lifts(draw: Any) -> str:
    bound = "xy"[: draw(st.integers(0, 2))]
    where = [f"BIND({draw(st.sampled_from(BINDS))} AS ?{v})" for v in bound]
    where += [f"FILTER({t})" for t in draw(st.lists(st.sampled_from(TESTS), max_size=1))]
    known = [f"?{v}" for v in (*"idcbs", *bound)]
    if draw(st.booleans()):
        where.append("UNNEST ?l AS ?item")
        known.append("?item")
    thing = st.sampled_from([*known, *known, "1", "'a'"])
    subject = st.sampled_from([":s", ":s", "?x" if bound else ":a", "[]"])
    triples = [f":s :p {draw(thing)}", f"{draw(subject)} :q {draw(thing)}"]
    if draw(st.booleans()):
        triples.append(f"{draw(subject)} {draw(st.sampled_from([':p', ':q']))} {draw(thing)}")
    triples.append(":t prov:generatedAtTime ?m")
    return f"{PREFIXES}CONSTRUCT {{ {' . '.join(triples)} }} WHERE {{ {' '.join(where)} }}"


@st.composite
def random_tables(draw: Any) -> pa.Table:
    size = draw(st.integers(1, 8))
    columns: dict[str, Any] = {"n": pa.array(draw(st.permutations(range(size))))}
    for name, (values, kind) in COLUMNS.items():
        some = values if draw(st.booleans()) else st.one_of(st.none(), values)
        columns[name] = pa.array(draw(st.lists(some, min_size=size, max_size=size)), kind)
    return pa.table(columns)


@pytest.mark.thorough
@pytest.mark.parametrize("examples", [40, pytest.param(100, marks=pytest.mark.slow)])
def test_random_lifts_and_tables(spark: Any, examples: int) -> None:
    seen = 0

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(random_lifts(), random_tables(), st.integers(1, 3))
    def check(lift: str, table: pa.Table, parts: int) -> None:
        nonlocal seen
        expected = without_labels(here(QUERY, {"S": spaseq.Lifted(table.sort_by("n"), lift)}))
        frame = spark.createDataFrame(table).repartition(parts)
        found = on_spark(spark, QUERY, {"S": frame}, lifts={"S": lift}, order={"S": "n"})
        assert without_labels(found) == expected
        seen += bool(expected)

    check()
    assert seen > examples // 20


def without_labels(found: Found) -> Found:
    """The answers with `_:` for every blank node."""
    return sorted(
        (
            *moments,
            tuple((v, "_:" if text.startswith("_:") else text) for v, text in bindings),
            trace,
        )
        for *moments, bindings, trace in found
    )
