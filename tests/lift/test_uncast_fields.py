"""Warnings of `spaseq check` for lifts of CSV, in which every field is text."""

from __future__ import annotations

from pathlib import Path

import pytest

from spaseq.cli import main
from spaseq.lift.lift_warnings import uncast_fields

HEAD = """PREFIX ex: <http://e/>
PREFIX prov: <http://www.w3.org/ns/prov#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""


def lift(where: str, time: str = "?when") -> str:
    return (
        f"{HEAD}CONSTRUCT {{ ex:s ex:p ?price ; prov:generatedAtTime {time} }}\n"
        f"WHERE {{ BIND (xsd:dateTime(?at) AS ?when) {where} }}"
    )


@pytest.mark.parametrize(
    ("text", "types", "words"),
    [
        (lift("FILTER (?volume > 0)"), {}, ["?volume is text"]),
        (lift("FILTER (0.5 = ?volume)"), {}, ["?volume is text"]),
        (lift("FILTER (?volume > ?price)"), {}, []),
        (lift('FILTER (?volume > "0")'), {}, []),
        (lift("FILTER (xsd:integer(?volume) > 0)"), {}, []),
        (lift("FILTER (?volume > 0)"), {"volume": "integer"}, []),
        (lift("BIND (xsd:integer(?volume) AS ?v) FILTER (?v > 0)"), {}, []),
        (lift("BIND (?volume * 2 AS ?v)"), {}, ["is no number"]),
        (lift("FILTER (?_line > 5)"), {}, []),
        (lift("", "?at2"), {}, ["?at2 is text in CSV, and a text is no time"]),
        (lift("", "?at2"), {"at2": "dateTime"}, []),
        (lift('BIND (CONCAT("a", ?id) AS ?x)'), {}, []),
        (lift('BIND (CONCAT("a", ?id) AS ?x)'), {"id": "integer"}, ["write STR(?id)"]),
        (lift('BIND (CONCAT("a", STR(?id)) AS ?x)'), {"id": "integer"}, []),
        (lift('BIND (CONCAT("a", ?id) AS ?x)'), {"id": "string"}, []),
        ("CONSTRUCT", {}, []),
    ],
)
def test_warnings(text: str, types: dict[str, str], words: list[str]) -> None:
    found = [finding.message for finding in uncast_fields(text, "<lift>", types)]
    assert len(found) == len(words)
    assert all(word in message for word, message in zip(words, found, strict=True))


QUERY = """SELECT ?v WITHIN 1 MINUTES FROM STREAM S <http://e/s>
WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://e/p> ?v } }"""


@pytest.mark.parametrize(
    ("words", "warnings"),
    [
        (["t.lift.rq", "--stream", "S=t.csv"], 1),
        (["t.lift.rq", "--stream", "S=t.tsv"], 1),
        (["t.lift.rq"], 0),
        (["t.lift.rq", "--stream", "S=t.parquet"], 0),
        (["t.lift.rq", "--stream", "S=t.csv", "--types", "volume=integer"], 0),
        (["t.lift.rq", "--stream", "S=t.csv", "--types", "S=volume=integer"], 0),
        (["t.lift.rq", "--stream", "S=t.csv", "--lift", "S=t.lift.rq"], 1),
        (["t.lift.rq", "--stream", "S=tables"], 1),
        (["t.lift.rq", "--stream", "S=tables/*"], 1),
        (["t.lift.rq", "--stream", "S=others"], 0),
    ],
)
def test_check(
    words: list[str],
    warnings: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.lift.rq").write_text(lift("FILTER (?volume > 0)"))
    for name, text in (("tables/t.csv", "at,price,volume\n"), ("others/t.jsonl", "")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    (tmp_path / "t.csv").write_text("at,price,volume\n")
    (tmp_path / "t.tsv").write_text("at\tprice\tvolume\n")
    with pytest.raises(SystemExit) as done:
        main(["check", *words])
    found = capsys.readouterr()
    assert (done.value.code, found.out.count("[uncast-field]")) == (0, warnings), found


def test_check_of_a_query_and_its_lift(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "t.lift.rq").write_text(lift("FILTER (?volume > 0)"))
    (tmp_path / "t.csv").write_text("price,volume,at\n5,1,2026-01-01T00:00:00Z\n")
    with pytest.raises(SystemExit) as done:
        main(["check", "q.rq", "--stream", "S=t.csv", "--lift", "S=t.lift.rq"])
    assert done.value.code == 0
    assert capsys.readouterr().out.count("[uncast-field]") == 1
