"""`spaseq why`, `spaseq run --why`, and the line at the end of a run without answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spaseq.cli.main import cli
from tests.diagnosis.test_inputs import QUERY, stream


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A query without answers and its streams: no event of T has :b."""
    monkeypatch.chdir(tmp_path)
    Path("jam.rq").write_text(QUERY)
    stream(Path("s.nq"), "a", "a")
    stream(Path("t.nq"), "bb", "c", start=2)
    return ["jam.rq", "--stream", "S=s.nq", "--stream", "T=t.nq"]


def called(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, [*arguments], prog_name="spaseq")
    assert result.exit_code == 0, result.stderr
    return result


def test_text(given: list[str]) -> None:
    lines = called("why", *given).stdout.splitlines()
    assert lines[0] == "stream S         2 events, 2 triples, 1970-01-01T00:00 to 00:00:01"
    assert lines[1] == "  A              2 solutions in 2 events"
    assert "predicate :b is in no event; did you mean :bb (1)? (5:" in lines[4]


def test_json(given: list[str]) -> None:
    report = json.loads(called("why", "--json", *given).stdout)
    assert [*report] == ["answers", "causes", "streams", "gpms", "steps"]
    cause = report["causes"][0]
    assert cause["line"] == 5 and cause["column"] == QUERY.splitlines()[4].index("?y :b") + 1
    assert (cause["kind"], cause["gpm"], cause["step"]) == ("predicate-never-occurs", "B", 2)
    assert (cause["term"], cause["suggestion"]) == (":b", ":bb")


def test_the_line_at_the_end_of_a_run(given: list[str]) -> None:
    lines = called("run", "--runtime", "local", *given).stderr.splitlines()
    assert lines[-1] == (
        "jam: no answers, because GPM B matches no event. "
        "For more: spaseq why jam.rq --stream S=s.nq --stream T=t.nq"
    )


@pytest.mark.parametrize("runtime", ["local", pytest.param("spark", marks=pytest.mark.spark)])
@pytest.mark.parametrize(("count", "text"), [(1, "1 bad input was"), (3, "3 bad inputs were")])
def test_the_line_counts_bad_input(given: list[str], runtime: str, count: int, text: str) -> None:
    with Path("t.nq").open("a") as file:
        file.write("<e:s> no quad <e:g> .\n" * count)
    line = called("run", "--runtime", runtime, *given).stderr.splitlines()[-1]
    assert line.startswith(
        f"jam: no answers, because GPM B matches no event; {text} left out. For more: spaseq why"
    )


KEEPER = """PREFIX : <http://e/> MAINTAIN GRAPH :last AS INSERT { ?x :was ?y }
FROM STREAM S :s WHERE { SEQ(A) DEFINE GPM A ON S { ?x :a ?y } }"""
READER = """PREFIX : <http://e/> SELECT * FROM STREAM S :s FROM NAMED :last
WHERE { SEQ(B) DEFINE GPM B ON S { ?x :a ?y . GRAPH :last { ?x :is ?y } } }"""


@pytest.mark.parametrize("runtime", ["local", pytest.param("spark", marks=pytest.mark.spark)])
@pytest.mark.parametrize(
    ("queries", "changes", "said"),
    [
        ([KEEPER], "; 2 changes of graphs", []),
        (
            [KEEPER.replace(":a ", ":c ")],
            "",
            ["q1: no changes, because GPM A matches no event", "q1.rq"],
        ),
        (
            [KEEPER, READER],
            "; 2 changes of graphs",
            [
                "q2: no answers, because its GPMs match events, but no sequence of them with",
                "q2.rq q1.rq",
            ],
        ),
    ],
)
def test_the_line_of_maintained_graphs(
    given: list[str], runtime: str, queries: list[str], changes: str, said: list[str]
) -> None:
    """A query that maintains a graph has changes in the place of answers."""
    names = [f"q{number}.rq" for number in range(1, len(queries) + 1)]
    for name, text in zip(names, queries, strict=True):
        Path(name).write_text(text)
    run = called("run", "--runtime", runtime, *names, "--stream", "S=s.nq")
    summary, *lines = run.stderr.splitlines()
    assert summary.endswith(f" s{changes}")
    assert len(lines) == len(said) // 2
    for line, (cause, files) in zip(lines, [said] if said else [], strict=True):
        assert line.startswith(cause)
        assert line.endswith(f"For more: spaseq why {files} --stream S=s.nq")


def test_the_line_names_what_the_sequence_needs(given: list[str]) -> None:
    Path("jam.rq").write_text(QUERY.replace("A; B", "A; B?; A; A"))
    line = called("run", "--runtime", "local", *given).stderr.splitlines()[-1]
    assert "because its GPMs match events, but no sequence of them is an answer" in line


def test_no_line_if_there_are_answers(given: list[str]) -> None:
    Path("jam.rq").write_text(QUERY.replace("A; B", "A; B?"))
    assert "no answers" not in called("run", "--runtime", "local", *given).stderr


@pytest.mark.parametrize("runtime", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_the_report_of_a_run(given: list[str], runtime: str) -> None:
    result = called(
        "run", "--runtime", runtime, *given, "--why", "why.json", "--stats", "stats.json"
    )
    assert "GPM B matches no event" in result.stderr
    assert json.loads(Path("stats.json").read_text())["solutions"] == {"jam": {"A": 2}}
    assert json.loads(Path("why.json").read_text()) == json.loads(
        called("why", "--json", *given).stdout
    )


def test_the_report_in_text(given: list[str]) -> None:
    called("run", "--runtime", "local", *given, "--why", "why.txt")
    assert Path("why.txt").read_text() == called("why", *given).stdout


def test_why_does_not_go_with_follow(given: list[str]) -> None:
    arguments = ["run", *given, "--follow", "--checkpoint", "state", "--why", "why.txt"]
    result = CliRunner().invoke(cli, arguments)
    assert "--why reads streams that have ended" in str(result.exception)


def test_the_reports_of_several_queries(given: list[str]) -> None:
    Path("all.rq").write_text(QUERY.replace("A; B", "A; B?"))
    called("run", "--runtime", "local", "all.rq", *given, "--why", "why.jsonl")
    reports = [json.loads(line) for line in Path("why.jsonl").read_text().splitlines()]
    assert [(r["query"], r["answers"], len(r["causes"])) for r in reports] == [
        ("all", 2, 0),
        ("jam", 0, 1),
    ]


def test_standard_input_is_read_again_for_the_report(given: list[str]) -> None:
    arguments = ["run", "--runtime", "local", *given[:-1], "T=-", "--why", "why.json"]
    result = CliRunner().invoke(cli, arguments, input=Path("t.nq").read_text())
    assert result.exit_code == 0, result.stderr
    assert json.loads(Path("why.json").read_text())["streams"][1]["events"] == 2
