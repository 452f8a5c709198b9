"""A user's program with every public name; `test_user_script` runs it and checks its types."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import assert_type

import pyspark.sql

import spaseq
from spaseq.options import EngineKeywords

QUERY = """SELECT ?x ?t WITHIN 1 MINUTES FROM STREAM S <http://example/s>
WHERE { SEQ (A) DEFINE GPM A ON S { ?x <http://example/t> ?t } }"""
GRAPH = '<http://example/pan> <http://example/t> "9" .'


@spaseq.function("http://example/f#half")
def half(number: int) -> float:
    return number / 2


def readings(count: int) -> Iterator[spaseq.Event]:
    for number in range(count):
        yield spaseq.Event(GRAPH, 1000 * number, iri=f"http://example/e{number}")


async def awaited() -> AsyncIterator[spaseq.Event]:
    for event in readings(2):
        yield event


def tables() -> None:
    stats = spaseq.Stats()
    answers = spaseq.run(QUERY, {"S": list(readings(3))}, runtime="local", stats=stats)
    assert_type(answers, spaseq.Answers)
    columns: list[str] = answers.columns
    print(columns, answers.to_arrow().num_rows, len(answers.to_pandas()), answers.to_polars().shape)
    print(len(answers.to_rdflib()), stats.matches, answers.stats is stats, repr(answers))
    for match in answers:
        assert_type(match, spaseq.Match)
        term: spaseq.Term = match.bindings["t"]
        traced: spaseq.TracedEvent = match.trace[0]
        print(term.n3(), term.kind, traced.gpm, traced.time.isoformat(), match.end > match.start)


def rows() -> None:
    lift = """PREFIX prov: <http://www.w3.org/ns/prov#>
    CONSTRUCT { ?pan <http://example/t> ?t ; prov:generatedAtTime ?at }
    WHERE { BIND (IRI(CONCAT("http://example/", ?name)) AS ?pan) }"""
    table = spaseq.Lifted([{"name": "pan", "t": 9, "at": 0}], lift)
    for match in spaseq.run(QUERY, {"S": table}, runtime="local"):
        print(match.bindings["x"].n3(), match.bindings["t"].n3())


def objects() -> None:
    Path("pans.jsonl").write_text('{"@id": "o:e", "at": 0, "@graph": [{"@id": "o:pan", "t": 9}]}\n')
    at = {"@id": "http://www.w3.org/ns/prov#generatedAtTime"}
    context = {"@context": {"@version": 1.1, "o": "http://example/", "t": "o:t", "at": at}}
    Path("pan.jsonld").write_text(json.dumps(context))
    stream = spaseq.JsonLd("pans.jsonl", "pan.jsonld")
    for match in spaseq.run(QUERY, {"S": stream}, runtime="local"):
        print(match.bindings["x"].n3(), match.bindings["t"].n3())


def generators() -> None:
    parts: list[spaseq.PartialMatch] = []
    answers = spaseq.run(
        spaseq.parse(QUERY), {"S": readings(3)}, on_partial=parts.append, watermark_ms=5
    )
    first = next(answers)
    assert_type(first, spaseq.Match)
    answers.close()
    print(first.start.isoformat(), [part.reached for part in parts])


async def loop() -> None:
    answers = spaseq.run_async(QUERY, {"S": awaited()})
    assert_type(answers, spaseq.AsyncAnswers)
    async for match in answers:
        assert_type(match, spaseq.Match)
        print(match.query)
    await answers.aclose()


def engine() -> None:
    services = spaseq.ServiceOptions(timeout_s=2)
    options: EngineKeywords = {"limits": spaseq.Limits(), "services": services}
    bad: list[object] = []
    with spaseq.Engine([QUERY], on_bad=bad.append, **options) as live:
        found = live.push("S", GRAPH, "2014-08-01T07:50:00Z")
        assert_type(found, list[spaseq.Match])
        found += live.push_many([("S", spaseq.Event(GRAPH, "2014-08-02"))])
        found += live.close()
    print(len(found), live.suppressed, bad)
    try:
        live.advance(0)
    except spaseq.errors.UsageError as error:
        print(error)


def reports() -> None:
    report: spaseq.Report = spaseq.why(QUERY, {"S": []})
    causes: list[spaseq.Cause] = list(report.causes)
    print([cause.kind for cause in causes])
    explanation: spaseq.Explanation = spaseq.explain(Path("query.rq"))
    print(str(explanation)[:20])
    windowed = (
        "FROM NAMED WINDOW <w> ON <s> [RANGE PT10S STEP PT5S] WHERE { WINDOW <w> { ?s ?p ?o } }"
    )
    assert_type(spaseq.translate(f"SELECT * {windowed}", base="http://example/"), str)


def contracts(source: spaseq.sources.Source, sink: spaseq.sinks.Sink) -> str:
    return source.describe() + sink.form


def on_spark() -> None:
    """Is not called, because a session takes long to start."""
    spark = spaseq.spark.session("local[2]", config={"spark.ui.enabled": False})
    assert_type(spark, pyspark.sql.SparkSession)
    spark.dataSource.register(spaseq.spark.RdfDataSource)
    spark.dataSource.register(spaseq.spark.AnswerDataSink)
    rows = spaseq.spark.answers(spark, Path("query.rq"), {"S": "s.nq"}, sides=True)
    assert_type(rows, pyspark.sql.DataFrame)
    with spaseq.spark.errors():
        rows.collect()
    error: spaseq.errors.SpaseqError = spaseq.spark.cause(ValueError())
    print(error)


def bench() -> None:
    with spaseq.testing.Harness(QUERY) as harness:
        harness.push("S", {"<http://example/t>": 9}, at=0)
    print(harness.answers, spaseq.options.RunOptions().follow, spaseq.__version__)


if __name__ == "__main__":
    Path("query.rq").write_text(QUERY)
    tables()
    rows()
    objects()
    generators()
    asyncio.run(loop())
    engine()
    reports()
    bench()
