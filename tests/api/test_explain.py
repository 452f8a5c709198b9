"""`spaseq.explain` and `spaseq explain`: the plan, and the measures of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import spaseq
from spaseq.errors import InputError, UsageError
from tests.cli.test_run import Place

TRAFFIC = Path(__file__).parents[2] / "streams" / "traffic"
QUERY = TRAFFIC / "query.rq"
STREAMS = {f"S{n}": TRAFFIC / f"sensor-{n}.nq" for n in range(1, 5)}
KB = {"http://traffic.example/kb": str(TRAFFIC / "kb.ttl")}

SMALL = """PREFIX : <http://e/>
SELECT ?x WITHIN 1 MINUTES FROM STREAM S <http://e/s> WHERE {
  SEQ(A; B)
  DEFINE GPM A ON S { ?x :a ?a FILTER (?a > 1) OPTIONAL { ?x :c ?c } }
  DEFINE GPM B ON S { ?x :a ?b FILTER (?b > ?a) }
}"""


def events(*values: int) -> list[spaseq.Event]:
    number = "^^<http://www.w3.org/2001/XMLSchema#integer>"
    return [
        spaseq.Event(f'<http://e/x> <http://e/a> "{value}"{number} .', 1000 * second)
        for second, value in enumerate(values)
    ]


def nodes(found: spaseq.Explanation) -> dict[str, dict]:
    return {node["node"]: node for node in found.data["analysis"]["nodes"]}


def test_three_forms_of_a_query_give_the_same() -> None:
    text = QUERY.read_text("utf-8")
    query = spaseq.parse(text)
    shown = (spaseq.explain(q) for q in (text, query, QUERY))
    assert {str(each) for each in shown} == {str(query.explain())}


def test_the_plan_stands_alone_unless_all_is_asked_for() -> None:
    short, full = str(spaseq.explain(QUERY)), str(spaseq.explain(QUERY, full=True))
    assert short.startswith("# plan\n") and "# AST" not in short
    assert full.endswith(short)
    for section in ("# query text\n", "# AST\n", "# algebra\n"):
        assert section in full


def test_a_run_counts_rows() -> None:
    found = spaseq.explain(SMALL, {"S": events(1, 5, 3, 7)})
    counts = {name: (node["rows_in"], node["rows"]) for name, node in nodes(found).items()}
    assert counts["stream S"] == (4, 4)
    assert counts["GPM A"] == (4, 3)
    assert counts["?x :a ?a"] == (None, 4)
    assert counts["FILTER ?a > 1"] == (4, 3)
    assert counts["OPTIONAL"] == (None, 4)
    assert counts["GPM B"] == (4, 4)
    assert counts["sequence"] == (7, 2)


def test_the_measures_of_a_case() -> None:
    found = spaseq.explain(QUERY, STREAMS, KB)
    answers = (TRAFFIC / "answers.jsonl").read_text("utf-8").splitlines()
    measured = nodes(found)
    assert measured["sequence"]["rows"] == sum(a.startswith('{"query": "query"') for a in answers)
    read = sum(measured[f"stream S{n}"]["rows"] for n in range(1, 5))
    assert measured["GPM A"]["rows_in"] == read
    assert measured["GRAPH <http://traffic.example/kb>"]["depth"] == 1
    for node in measured.values():
        assert node["seconds"] >= 0
    for name in ("stream S1", "GPM A", "sort", "sequence"):
        assert measured[name]["bytes"] > 0
    assert measured["sort"]["seconds"] > 0
    assert found.data["analysis"]["seconds"] > 0
    assert json.loads(found.to("json"))["analysis"] == found.data["analysis"]


def test_a_run_without_events_has_nodes_without_rows() -> None:
    found = spaseq.explain(SMALL, {"S": []})
    assert nodes(found)["sequence"]["rows"] == 0
    assert "# analysis" in str(found)


def test_measures_change_no_answer() -> None:
    given = events(*range(40), *range(20))
    matches = sum(1 for _ in spaseq.run(SMALL, {"S": given}, runtime="local"))
    assert nodes(spaseq.explain(SMALL, {"S": given}))["sequence"]["rows"] == matches


@pytest.mark.spark
@pytest.mark.thorough
def test_spark_measures_stages() -> None:
    found = spaseq.explain(QUERY, STREAMS, KB, runtime="spark")
    assert list(nodes(found)) == ["ingest", "graph patterns", "sequence"]
    assert nodes(found)["sequence"]["rows"] == 10
    assert "Spark tells the stages apart, but neither GPMs nor memory" in str(found)


def test_a_knowledge_base_goes_with_streams() -> None:
    with pytest.raises(UsageError, match="only over streams"):
        spaseq.explain(QUERY, kb=KB)
    with pytest.raises(UsageError, match="no option 'thread', did you mean threads"):
        spaseq.explain(QUERY, thread=1)  # type: ignore[call-arg]
    with pytest.raises(InputError, match="missing"):
        spaseq.explain(SMALL, {"S": "missing.nq"})


# --- the command --------------------------------------------------------------------------------


@pytest.fixture
def place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Place:
    monkeypatch.chdir(tmp_path)
    found = Place(tmp_path, capsys)
    found.write("q.rq", SMALL)
    found.write(
        "s.trig",
        "@prefix : <http://e/> . @prefix p: <http://www.w3.org/ns/prov#> .\n"
        ":e1 { :x :a 2 } :e1 p:generatedAtTime 0 .\n:e2 { :x :a 5 } :e2 p:generatedAtTime 9 .\n",
    )
    return found


def test_analyze_on_the_command_line(place: Place) -> None:
    done = place.spaseq("explain", "q.rq", "--analyze", "--stream", "S=s.trig", "--format", "json")
    assert done.status == 0
    found = {n["node"]: n["rows"] for n in json.loads(done.out)["analysis"]["nodes"]}
    assert (found["GPM A"], found["sequence"]) == (2, 1)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--stream", "S=s.trig"], 2, "--stream and --kb go with --analyze"),
        (["--kb", "http://e/kb=kb.ttl"], 2, "--stream and --kb go with --analyze"),
        (["--analyze"], 2, "S"),
        (["--analyze", "--stream", "S=s.trig", "--format", "svg"], 2, "text or JSON, not svg"),
        (["--analyze", "--stream", "S=missing.nq"], 3, "missing.nq"),
        (["--analyze", "--stream", "S=s.trig", "--master", "spark://h:1"], 2, "--master"),
        (["--format", "png"], 2, "png"),
    ],
)
def test_wrong_use(place: Place, arguments: list[str], status: int, message: str) -> None:
    done = place.spaseq("explain", "q.rq", *arguments)
    assert (done.status, done.out) == (status, "")
    assert message in done.err


def test_a_query_with_errors_has_no_picture(place: Place) -> None:
    place.write("bad.rq", SMALL.replace("SEQ(A; B)", "SEQ(A; C)"))
    done = place.spaseq("explain", "bad.rq", "--format", "svg")
    assert (done.status, done.out) == (1, "")
