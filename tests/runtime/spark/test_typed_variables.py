"""`spaseq.spark.answers` with `typed`: a column for each variable."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from spaseq.errors import UsageError
from spaseq.rdf.terms.term import XSD
from spaseq.spark import answers

pytestmark = pytest.mark.spark

HEAD = "PREFIX : <http://e/> SELECT * WITHIN 1 MINUTES FROM STREAM S :S "
VALUES = HEAD + "SEQ(A) { DEFINE GPM A ON S { ?end :is ?v } }"
"""A variable has the name of a column that is there anyway."""

PROPERTIES = ["integer", "decimal", "double", "boolean", "dateTime", "iri", "mixed", "big", "name"]
ALL = HEAD + (
    "SEQ(A) { DEFINE GPM A ON S { "
    + " ".join(f"?s :{name} ?{name} ." for name in PROPERTIES)
    + " OPTIONAL { ?s :no ?no } } }"
)


def literal(text: str, datatype: str) -> str:
    return f'"{text}"^^<{XSD}{datatype}>'


def stream(path: Path, *graphs: str) -> str:
    lines = []
    for number, graph in enumerate(graphs):
        name = f"<http://e/g{number}>"
        time = literal(str(number * 1000), "long")
        lines.append(f"{name} <http://www.w3.org/ns/prov#generatedAtTime> {time} .\n")
        lines += [f"{triple} {name} .\n" for triple in graph.split(" . ")]
    path.write_text("".join(lines))
    return str(path)


def values(path: Path, *terms: str) -> str:
    return stream(path, *(f"<http://e/s{n}> <http://e/is> {t}" for n, t in enumerate(terms)))


def types_of(frame: Any) -> dict[str, str]:
    return dict(frame.dtypes)


def test_types_are_those_of_all_answers(spark: Any, tmp_path: Path) -> None:
    """One datatype throughout gives its type, and a mixture without a common one gives strings."""
    first = {
        "integer": literal("7", "integer"),
        "decimal": literal("1.50", "decimal"),
        "double": literal("1.5E0", "double"),
        "boolean": literal("true", "boolean"),
        "dateTime": literal("2026-01-02T03:04:05+01:00", "dateTime"),
        "iri": "<http://e/x>",
        "mixed": literal("1", "integer"),
        "big": literal("1", "integer"),
        "name": '"one"@en',
    }
    second = first | {"mixed": '"x"', "big": literal(str(2**63), "integer")}
    graphs = [
        " . ".join(f"<http://e/s> <http://e/{name}> {term}" for name, term in each.items())
        for each in (first, second)
    ]
    found = answers(spark, ALL, {"S": stream(tmp_path / "s.nq", *graphs)}, typed=True)
    assert {name: types_of(found)[name] for name in [*PROPERTIES, "no"]} == {
        "integer": "bigint",
        "decimal": "decimal(38,2)",
        "double": "double",
        "boolean": "boolean",
        "dateTime": "timestamp",
        "iri": "string",
        "mixed": "string",
        "big": "decimal(38,0)",
        "name": "string",
        "no": "string",
    }
    rows = found.orderBy("start").withColumn("ms", found.dateTime.cast("double") * 1000).collect()
    assert [row.ms for row in rows] == [datetime.fromisoformat(
        "2026-01-02T02:04:05+00:00").timestamp() * 1000] * 2  # fmt: skip
    assert [(r.integer, r.decimal, r.double, r.boolean, r.no) for r in rows] == [
        (7, Decimal("1.50"), 1.5, True, None)
    ] * 2
    assert [(r.iri, r.mixed, r.big, r.name) for r in rows] == [
        ("http://e/x", "1", Decimal(1), "one"),
        ("http://e/x", "x", Decimal(2**63), "one"),
    ]


def test_a_term_without_a_value_of_a_named_type_is_only_in_the_bindings(
    spark: Any, tmp_path: Path
) -> None:
    terms = [literal("2", "integer"), '"two"']
    path = values(tmp_path / "s.nq", *terms)
    found = answers(spark, VALUES, {"S": path}, typed={"v": "double"})
    assert found.columns[:5] == ["query", "end", "v", "start", "match_end"]
    rows = found.orderBy("start").collect()
    assert [(row.end, row.v, row.bindings["v"]) for row in rows] == [
        ("http://e/s0", 2.0, terms[0]),
        ("http://e/s1", None, terms[1]),
    ]


@pytest.mark.thorough
def test_a_streaming_frame_has_the_types_that_the_caller_names(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    terms = [literal("1", "integer"), literal("2.5", "decimal"), literal("0", "integer")]
    values(tmp_path / "in" / "s.nq", *terms)
    given: Any = {"S": tmp_path / "in"}
    found = answers(
        spark, VALUES, given, checkpoint=tmp_path / "state", typed={"v": "decimal(10,2)"}
    )
    query = (
        found.writeStream.format("memory")
        .queryName("typed_stream")
        .option("checkpointLocation", str(tmp_path / "spark"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    table = spark.table("typed_stream")
    assert types_of(table)["v"] == "decimal(10,2)"
    rows = table.orderBy("start").collect()
    assert [row.v for row in rows][:2] == [Decimal("1.00"), Decimal("2.50")]


def test_nobody_can_find_the_types_of_a_stream(spark: Any, tmp_path: Path) -> None:
    path, state = values(tmp_path / "s.nq", '"x"'), tmp_path / "state"
    with pytest.raises(UsageError, match=r'typed=\{"end": "double", "v": "double"\}'):
        answers(spark, VALUES, {"S": path}, checkpoint=state, typed=True)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ({"w": "double"}, "no query projects a variable 'w'; they are end, v"),
        ({"v": "number"}, "'number' of 'v' is no type"),
        ({"v": "decimal(39,0)"}, r"no type of a variable; they are bigint"),
    ],
)
def test_an_unknown_variable_or_type_is_refused(
    spark: Any, tmp_path: Path, typed: dict[str, str], message: str
) -> None:
    path = values(tmp_path / "s.nq", '"x"')
    with pytest.raises(UsageError, match=message):
        answers(spark, VALUES, {"S": path}, typed=typed)
