"""`spaseq run` with tables: Parquet and Arrow files, and chosen columns."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from tests.cli.test_run import Place, place
from tests.sinks.test_arrow_files import READERS

__all__ = ["place"]


@pytest.mark.parametrize(("form", "read"), READERS.items())
def test_a_run_writes_a_table(form: str, read: Callable[[object], pa.Table], place: Place) -> None:
    done = place.run("--format", form, "--out", f"out.{form}")
    assert done.status == 0, done.err
    table = read(place.directory / f"out.{form}")
    assert table.column_names == ["s", "p2", "owner", "start", "end", "trace"]
    assert table.column("p2").to_pylist() == [12, 12]


def test_a_run_chooses_columns(place: Place) -> None:
    done = place.run("--format", "csv", "--columns", "p2,+start")
    assert done.out.split() == ["p2,start", "12,2020-01-01T00:00:00Z", "12,2020-01-01T00:00:01Z"]
    done = place.run("--format", "tsv", "--columns", "+start,+end")
    assert done.out.splitlines()[0] == "?s\t?p2\t?owner\t?start\t?end"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "csv", "--columns", "ownr"], "did you mean owner?"),
        (["--format", "csv", "--columns", "+begin"], "+start and +end"),
        (["--format", "csv", "--columns", "s,s"], "already"),
        (["--columns", "+start"], "goes with --format json, csv, tsv"),
        (["--format", "parquet", "--columns", "+start"], "not with parquet"),
    ],
)
def test_wrong_columns(arguments: list[str], message: str, place: Place) -> None:
    done = place.run(*arguments)
    assert (done.status, message in done.err) == (2, True), done.err


def test_a_followed_run_refuses_wrong_columns(place: Place) -> None:
    streams = ["--stream", "S1=stream.nq", "--kb", "kb.ttl", "--follow", "--checkpoint", "state"]
    done = place.spaseq("run", "query.rq", *streams, "--format", "csv", "--columns", "ownr")
    assert (done.status, "did you mean owner?" in done.err) == (2, True), done.err


KEEPER = """PREFIX : <http://example/>
MAINTAIN GRAPH <http://example/last> AS DELETE { ?s :last ?any } INSERT { ?s :last ?p }
FROM STREAM S1 <http://example/stream?a=1>
WHERE { SEQ(A) DEFINE GPM A ON S1 { ?s :price ?p } }"""

READER = """PREFIX : <http://example/>
SELECT ?low ?last FROM STREAM S1 <http://example/stream?a=1> FROM NAMED <http://example/last>
WHERE { SEQ(A) DEFINE GPM A ON S1 {
  ?s :price ?p FILTER(?p > 14) BIND(?p - 14 AS ?low)
  GRAPH <http://example/last> { ?s :last ?last } } }"""


@pytest.mark.parametrize("form", ["csv", *READERS])
@pytest.mark.parametrize("runtime", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_query_that_maintains_a_graph_needs_no_table(
    form: str, runtime: str, place: Place
) -> None:
    place.write("keeper.rq", KEEPER)
    place.write("reader.rq", READER)
    given = ["--stream", "S1=stream.nq", "--runtime", runtime, "--format", form]
    done = place.spaseq("run", "keeper.rq", "reader.rq", *given, "--out", "out")
    assert done.status == 0, done.err
    if form == "csv":
        lines = (place.directory / "out").read_text().split()
        assert lines == ["low,last", "2,16"]
    else:
        table = READERS[form](place.directory / "out")
        assert table.column("last").to_pylist() == [16]


def test_a_table_is_of_one_query_beside_those_that_maintain_graphs(place: Place) -> None:
    for name, text in {"keeper.rq": KEEPER, "reader.rq": READER, "other.rq": READER}.items():
        place.write(name, text)
    given = ["--stream", "S1=stream.nq", "--runtime", "local", "--format", "csv"]
    done = place.spaseq("run", "keeper.rq", "reader.rq", "other.rq", *given)
    assert (done.status, "holds the answers of one query" in done.err) == (2, True), done.err
