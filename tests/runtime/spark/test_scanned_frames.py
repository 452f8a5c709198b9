"""DataFrames that only scan Parquet: tasks read the files, and find what Spark's rows give."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spaseq
from spaseq.errors import InputError
from spaseq.runtime.spark import bounded
from spaseq.spark import answers, errors
from tests.lift.lifting import PREFIXES
from tests.runtime.spark.test_lifted_frames import EACH, LIFT, RISE, at, plain, rows_of
from tests.sizes import first_of

pytestmark = pytest.mark.spark

DIRECT, BY_SPARK = "tasks read", "Spark reads the rows"

VALUES = """PREFIX : <http://e/>
SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ (A) { DEFINE GPM A ON S { ?s ?p ?v } }"""

ZONES = ("UTC", "America/New_York")


@pytest.fixture(params=["one task", "tasks"])
def ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of reading files: the whole run in a task, and stage 1 in several."""
    if request.param == "tasks":
        monkeypatch.setattr(bounded, "FEW_ROWS", -1)
        monkeypatch.setattr(bounded, "FEW_CORES", 0)


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[[], str]:
    """What the log has said of DataFrames since the last call."""
    caplog.set_level(logging.INFO, "spaseq")

    def text() -> str:
        found = "\n".join(r.getMessage() for r in caplog.records if "DataFrame" in r.getMessage())
        caplog.clear()
        return found

    return text


def both(spark: Any, frame: Any, lift: str, query: str = VALUES) -> tuple[list[Any], list[Any]]:
    """The answers and the reasons of bad rows, of files and of Spark's rows."""
    found = []
    for direct in (True, False):
        given = {"lifts": {"S": lift}, "sides": True, "direct": direct}
        rows = answers(spark, query, {"S": frame}, **given).collect()
        bad = sorted(row.bad.reason for row in rows if row.bad is not None)
        found.append((plain(row for row in rows if row.bad is None), bad))
    return found[0], found[1]


def days(text: str) -> date:
    return date.fromisoformat(text)


def moments(text: str) -> datetime:
    return datetime.fromisoformat(text)


TIMES = ["0001-01-01T00:00:00", "1582-10-04T12:00:00", "1582-10-15T00:00:00.000001",
         "1899-12-31T23:59:59.999", "1969-12-31T23:59:59.999999", "2026-03-29T02:30:00",
         "9999-12-31T23:59:59.999999"]  # fmt: skip
COLUMNS: dict[str, tuple[list[Any], pa.DataType]] = {
    "i8": ([-128, 0, 127], pa.int8()),
    "i16": ([-(2**15), 7], pa.int16()),
    "i32": ([-(2**31), 2**31 - 1], pa.int32()),
    "i64": ([-(2**63), 2**63 - 1, 0], pa.int64()),
    "f32": ([0.1, -0.0, float("nan"), float("inf"), 1e-45, 3.4e38], pa.float32()),
    "f64": ([0.1, -0.0, 0.0, float("nan"), float("-inf"), 5e-324, 1e300], pa.float64()),
    "b": ([True, False], pa.bool_()),
    "c5": ([Decimal("0.00"), Decimal("-999.99"), Decimal("10.10")], pa.decimal128(5, 2)),
    "c20": ([Decimal("12345678901234567890"), Decimal("-1")], pa.decimal128(20, 0)),
    "c38": ([Decimal("0.0000000001"), Decimal("-9.5000000000")], pa.decimal128(38, 10)),
    "s": (["", "ä \u2028\\\"'\n", "a", "\U0001f600"], pa.string()),
    "few": (["x", "y"], pa.string()),
    "large": (["x", "y z"], pa.large_string()),
    "dict": (["x", "y"], pa.dictionary(pa.int32(), pa.string())),
    "day": ([*map(days, ("0001-01-01", "1582-10-04", "1582-10-15", "9999-12-31"))], pa.date32()),
    "us": ([*map(moments, TIMES)], pa.timestamp("us")),
    "ms": ([*map(moments, TIMES[:3])], pa.timestamp("ms", "UTC")),
    "utc": ([*map(moments, TIMES)], pa.timestamp("us", "UTC")),
    "berlin": ([*map(moments, TIMES)], pa.timestamp("us", "Europe/Berlin")),
    "far": ([2**62, -(2**62), 0], pa.timestamp("us", "UTC")),
    "bytes": ([b"\x00\xff"], pa.binary()),
    "st": ([{"x": 1, "y": {"z": "a"}}, {"x": None, "y": None}], pa.struct(
        [("x", pa.int32()), ("y", pa.struct([("z", pa.string())]))])),
}  # fmt: skip
READ = {"st": "?st_x ?st_y_z", "l": ""}


def random_table(dice: Random, rows: int, empty: str = "") -> pa.Table:
    """A table with a column of each type, its name, and nulls in some columns."""
    columns: dict[str, Any] = {"id": pa.array([*range(rows)])}
    columns["at"] = pa.array(
        [at(dice.randrange(4)) for _ in range(rows)], pa.timestamp("us", "UTC")
    )
    for name, (values, kind) in COLUMNS.items():
        some = [*values, None] if dice.random() < 0.6 else values
        chosen = [None if name == empty else dice.choice(some) for _ in range(rows)]
        columns[name] = pa.array(chosen, kind)
    lists = [None, [], [1, None], [2, 3, 3]]
    columns["l"] = pa.array([dice.choice(lists) for _ in range(rows)], pa.list_(pa.int64()))
    return pa.table(columns)


def lift_of(names: Iterator[str] | list[str], unnest: bool) -> str:
    """A lift of some columns, each value of which is a triple."""
    read = [v for name in names for v in READ.get(name, f"?{name}").split()]
    triples = " . ".join(f":s :{v[1:]} {v}" for v in read)
    items = "UNNEST ?l AS ?item" if unnest else ""
    element = ". :s :item ?item" if unnest else ""
    return f"""{PREFIXES}CONSTRUCT {{ GRAPH ?e {{ :s :id ?id . {triples} {element} }}
      ?e prov:generatedAtTime ?at }}
    WHERE {{ BIND(IRI(CONCAT("http://e/n/", STR(?id))) AS ?e) {items} }}"""


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("writer", first_of(["spark", "plain", "arrow"], 1))
@pytest.mark.usefixtures("ways")
def test_values_of_all_types_are_those_of_sparks_rows(
    spark: Any, tmp_path: Path, said: Callable[[], str], writer: str, seed: int
) -> None:
    dice = Random(seed)
    place = tmp_path / "rows"
    place.mkdir()
    for number in range(2):
        table = random_table(dice, 40, "s" if number else "")
        path = str(place / f"{number} ä%20.parquet")
        if writer == "plain":
            pq.write_table(table, path, row_group_size=9, store_schema=False, use_dictionary=False)
        else:
            pq.write_table(table, path, row_group_size=9)
    frame = spark.read.parquet(str(place))
    if writer == "spark":
        place = tmp_path / "written"
        frame.repartition(2).write.parquet(str(place))
        frame = spark.read.parquet(str(place))
    names = [name for name in COLUMNS if name not in ("bytes", "far")]
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", ZONES[seed % 2])
    try:
        for lift in (lift_of(names, False), lift_of(["f64", "bytes", "far"], True)):
            of_files, of_rows = both(spark, frame, lift)
            assert said().startswith("stream <http://e/s>: tasks read 2 Parquet files")
            assert of_files[1] == of_rows[1]
            assert without_numbers(of_files[0]) == without_numbers(of_rows[0])
            assert of_files[0]
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def without_numbers(found: list[Any]) -> list[Any]:
    """Answers without the numbers of events of equal time, which have no order."""
    return sorted((*rest, [(gpm, event) for gpm, event, _ in trace]) for *rest, trace in found)


@pytest.mark.usefixtures("ways")
def test_events_of_equal_time_in_all_files_are_numbered(spark: Any, tmp_path: Path) -> None:
    for number in range(3):
        rows = [
            {"id": 10 * number + n, "name": "x", "price": 1 + n % 2, "at": at(n % 3)}
            for n in range(10)
        ]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / f"{number}.parquet", row_group_size=4)
    frame = spark.read.parquet(str(tmp_path))
    found = answers(spark, EACH, {"S": frame}, lifts={"S": LIFT}).collect()
    counts = [12, 9, 9]  # rows at each second
    assert sorted((row.start.timestamp(), row.trace[0].k) for row in found) == [
        (at(second).timestamp(), k) for second in range(3) for k in range(counts[second])
    ]
    assert len({row.trace[0].event for row in found}) == 30


def test_beside_paths_and_with_partial_matches(
    spark: Any, tmp_path: Path, said: Callable[[], str]
) -> None:
    pq.write_table(rows_of(1, 3, 2, 5), tmp_path / "s.parquet")
    (tmp_path / "t.nq").write_text("")
    frame = spark.read.parquet(str(tmp_path / "s.parquet"))
    query = RISE.replace("SEQ", "FROM STREAM T <http://e/t>\nSEQ")
    for given in ({"S": frame}, {"S": frame, "T": str(tmp_path / "t.nq")}):
        found = [
            answers(
                spark, query if "T" in given else RISE, given,
                lifts={"S": LIFT}, partial=True, direct=direct,
            ).collect()
            for direct in (True, False)
        ]  # fmt: skip
        assert DIRECT in said()
        partials = [sorted((r.reached, str(r.bindings)) for r in f if r.reached) for f in found]
        assert partials[0] == partials[1] != []
        assert any(not r.reached for r in found[0])


def others(spark: Any, frame: Any, place: Path) -> Iterator[tuple[str, Any]]:
    """DataFrames that are more than a scan, or another one, with a word of the reason."""
    other = spark.createDataFrame([(1, "x")], "id long, more string")
    yield "Filter", frame.where("price > 2")
    yield "computed or renamed", frame.withColumn("price", frame.price + 0)
    yield (
        "computed or renamed",
        frame.withColumnRenamed("id", "number").withColumnRenamed("number", "id"),
    )
    yield "Limit", frame.limit(3)
    yield "Sample", frame.sample(1.0)
    yield "Join", frame.join(other.select("id"), "id", "left")
    yield "Union", frame.union(frame)
    yield "Deduplicate", frame.dropDuplicates(["id"])
    yield "Repartition", frame.repartition(2)
    yield "Map", frame.mapInArrow(lambda batches: batches, frame.schema)
    yield "options", spark.read.option("mergeSchema", True).parquet(str(place / "rows"))
    yield "partitions", spark.read.parquet(str(place / "split"))
    longer = spark.read.schema("id long, name string, price long, at timestamp")
    yield "is int32", longer.parquet(str(place / "narrow"))
    yield (
        "no field for ?at",
        spark.read.parquet(str(place / "upper")).select("id", "name", "price", "at"),
    )
    yield (
        "computed or renamed",
        spark.read.csv(str(place / "csv"), header=True).selectExpr(
            "CAST(id AS long)", "name", "CAST(price AS long)", "to_timestamp(at) AS at"
        ),
    )


@pytest.mark.thorough
def test_what_spark_must_read_it_reads(spark: Any, tmp_path: Path, said: Callable[[], str]) -> None:
    table = rows_of(1, 3, 2, 5).select(["id", "name", "price", "at"])
    for name in ("rows", "narrow", "upper", "split/day=1"):
        (tmp_path / name).mkdir(parents=True)
    pq.write_table(table, tmp_path / "rows" / "0.parquet")
    pq.write_table(table, tmp_path / "split" / "day=1" / "0.parquet")
    narrow = table.set_column(0, "id", table["id"].cast("int32"))
    pq.write_table(narrow, tmp_path / "narrow" / "0.parquet")
    upper = table.rename_columns(["id", "name", "price", "At"])
    pq.write_table(upper, tmp_path / "upper" / "0.parquet")
    frame = spark.read.parquet(str(tmp_path / "rows"))
    frame.selectExpr("id", "name", "price", "CAST(at AS string)").write.csv(
        str(tmp_path / "csv"), header=True
    )
    for reason, each in others(spark, frame, tmp_path):
        of_files, of_rows = both(spark, each, LIFT, RISE)
        text = said()
        assert BY_SPARK in text, (reason, text)
        assert reason in text, (reason, text)
        assert len(of_files[0]) == len(of_rows[0])
        assert of_files[1] == of_rows[1]


@pytest.mark.thorough
def test_what_is_still_a_scan(spark: Any, tmp_path: Path, said: Callable[[], str]) -> None:
    table = rows_of(1, 3, 2, 5)
    path = str(tmp_path / "s.parquet")
    pq.write_table(table, path)
    frame = spark.read.parquet(path)
    frame.createOrReplaceTempView("scanned_rows")
    for each in (
        frame.select("at", "price", "name", "id"),
        frame.drop("unused").alias("a").select("a.id", "a.name", "a.price", "a.at"),
        spark.table("scanned_rows"),
        spark.sql("SELECT id, name, price, at FROM scanned_rows"),
        spark.read.parquet(path, path),
    ):
        of_files, of_rows = both(spark, each, LIFT, RISE)
        assert DIRECT in said()
        assert len(of_files[0]) == len(of_rows[0]) > 0
    cached = frame.select("id", "name", "price", "at").cache()
    both(spark, cached, LIFT, RISE)
    assert "its plan has InMemoryRelation" in said()
    cached.unpersist()
    answers(spark, RISE, {"S": frame}, lifts={"S": LIFT}, order={"S": "id"})
    assert "a column orders them" in said()


def test_changed_files(spark: Any, tmp_path: Path, said: Callable[[], str]) -> None:
    path = tmp_path / "s.parquet"
    pq.write_table(rows_of(1, 3), path)
    frame = spark.read.parquet(str(path))
    found = answers(spark, RISE, {"S": frame}, lifts={"S": LIFT})
    assert DIRECT in said()
    pq.write_table(rows_of(1, 3, 2, 5), path)
    with pytest.raises(InputError, match="has changed since"), errors():
        found.collect()
    answers(spark, RISE, {"S": frame}, lifts={"S": LIFT})
    assert "has changed" in said()
    os.remove(path)
    answers(spark, RISE, {"S": frame}, lifts={"S": LIFT})
    assert "cannot be read here" in said()


def test_settings_of_the_session(spark: Any, tmp_path: Path, said: Callable[[], str]) -> None:
    pq.write_table(rows_of(1, 3), tmp_path / "s.parquet")
    frame = spark.read.parquet(str(tmp_path / "s.parquet"))
    for name, value, reason in (
        ("spark.sql.files.ignoreCorruptFiles", "true", "ignoreCorruptFiles"),
        ("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY", "another calendar"),
        ("spark.sql.parquet.fieldId.read.enabled", "true", "fieldId"),
    ):
        before = spark.conf.get(name)
        spark.conf.set(name, value)
        try:
            answers(spark, RISE, {"S": frame}, lifts={"S": LIFT})
            assert reason in said()
        finally:
            spark.conf.set(name, before)


@pytest.mark.usefixtures("ways")
def test_bad_rows_have_file_and_line(spark: Any, tmp_path: Path) -> None:
    rows = [
        {"id": None if n == 5 else n, "name": "x", "price": n + 1, "at": at(n)} for n in range(7)
    ]
    path = str(tmp_path / "s.parquet")
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=2)
    frame = spark.read.parquet(path)
    found = answers(spark, EACH, {"S": frame}, lifts={"S": LIFT}, sides=True).collect()
    assert [(r.bad.file, r.bad.line) for r in found if r.bad is not None] == [(path, 6)]
    assert len([r for r in found if r.bad is None]) == 6
    with pytest.raises(InputError, match="unbound"), errors():
        answers(spark, EACH, {"S": frame}, lifts={"S": LIFT}, strict=True).collect()


@pytest.mark.usefixtures("ways")
def test_values_that_a_cast_loses_are_reported(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "s.parquet")
    rows = [{"id": n, "name": "x", "price": text, "at": at(n)} for n, text in enumerate("1?3")]
    pq.write_table(pa.Table.from_pylist(rows), path)
    frame, lift = spark.read.parquet(path), LIFT.replace("?price > 0", "xsd:integer(?price) > 0")
    assert answers(spark, EACH, {"S": frame}, lifts={"S": lift}).count() == 2
    with pytest.raises(InputError, match="price"), errors():
        answers(spark, EACH, {"S": frame}, lifts={"S": lift}, strict=True).collect()


@pytest.mark.usefixtures("ways")
def test_a_damaged_file_fails(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    pq.write_table(rows_of(*range(1, 500)), path)
    frame = spark.read.parquet(str(path))
    found = answers(spark, EACH, {"S": frame}, lifts={"S": LIFT})
    data = bytearray(path.read_bytes())
    data[4:400] = bytes(396)
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"s\.parquet"), errors():
        found.collect()


def test_times_far_away_in_milliseconds_are_sparks(
    spark: Any, tmp_path: Path, said: Callable[[], str]
) -> None:
    times = pa.array([0, 2**62], pa.timestamp("ms", "UTC"))
    pq.write_table(pa.table({"v": times, "at": [0, 1]}), tmp_path / "s.parquet")
    frame = spark.read.parquet(str(tmp_path / "s.parquet"))
    lift = f"{PREFIXES}CONSTRUCT {{ :s :v ?v ; prov:generatedAtTime ?at }} WHERE {{ }}"
    answers(spark, VALUES, {"S": frame}, lifts={"S": lift})
    assert BY_SPARK in said()


def test_times_that_spark_writes_as_96_bits(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame([(text,) for text in TIMES], "t string")
    frame.selectExpr("CAST(concat(t, 'Z') AS timestamp) AS at").coalesce(1).write.parquet(
        str(tmp_path / "rows")
    )
    (path,) = (tmp_path / "rows").glob("*.parquet")
    assert pq.read_metadata(path).schema.column(0).physical_type == "INT96"
    lift = f"{PREFIXES}CONSTRUCT {{ :s :v ?at ; prov:generatedAtTime ?at }} WHERE {{ }}"
    found = spaseq.run(VALUES, {"S": spaseq.Lifted(str(path), lift)}, runtime="local")
    texts = sorted({match.bindings["v"].n3().split('"')[1] for match in found})
    assert texts == [text + "Z" for text in TIMES]
