"""`spaseq run --limit-per-event`: a limit on the answers of one event, and a count of the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spaseq.cli import main

QUERY = """PREFIX : <http://example/>
SELECT * WITHIN 2 MINUTES FROM STREAM S <http://example/s>
WHERE {
  SEQ(A: B+: C)
  DEFINE GPM A ON S { ?a a :A }
  DEFINE GPM B ON S { ?b a :B }
  DEFINE GPM C ON S { ?c a :C }
}"""

XSD = "http://www.w3.org/2001/XMLSchema#"


def event(second: int, name: str) -> str:
    graph = f"<http://example/e{second}>"
    time = f"2020-01-01T00:{second // 60:02}:{second % 60:02}Z"
    return (
        f"<http://example/{second}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> "
        f"<http://example/{name}> {graph} .\n"
        f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{time}"^^<{XSD}dateTime> .\n'
    )


def test_an_exact_number_is_suppressed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """80 Bs between an A and a C: 2^80 - 1 answers."""
    monkeypatch.chdir(tmp_path)
    names = "A" + "B" * 80 + "C"
    Path("stream.nq").write_text("".join(event(i, name) for i, name in enumerate(names)))
    Path("query.rq").write_text(QUERY)
    arguments = ["run", "query.rq", "--runtime", "local", "--stream", "S=stream.nq"]
    with pytest.raises(SystemExit) as end:
        main([*arguments, "--limit-per-event", "20", "--stats", "stats.json"])
    out, err = capsys.readouterr()
    assert end.value.code == 0
    assert len(set(out.splitlines())) == 20
    suppressed = 2**80 - 1 - 20
    assert json.loads(Path("stats.json").read_text())["suppressed"] == suppressed
    assert f"{suppressed:,} answers suppressed" in err


@pytest.mark.spark
def test_suppressed_on_spark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With conditions between events, the stage applies the limit.

    The first B has 3 As before it, and the second has 4.
    """
    monkeypatch.chdir(tmp_path)
    Path("stream.nq").write_text("".join(event(i, n) for i, n in enumerate("AAABAB")))
    gpms = QUERY[QUERY.index("DEFINE GPM A") : QUERY.index("DEFINE GPM C")]
    gpms = gpms.replace("a :B }", "a :B FILTER(STR(?a) < STR(?b)) }")
    query = QUERY[: QUERY.index("SEQ")] + "SEQ(A: B) " + gpms + "}"
    Path("query.rq").write_text(query)
    arguments = ["run", "query.rq", "--stream", "S=stream.nq", "--limit-per-event", "2"]
    with pytest.raises(SystemExit) as end:
        main([*arguments, "--stats", "stats.json"])
    out, err = capsys.readouterr()
    assert end.value.code == 0
    assert len(set(out.splitlines())) == 4
    assert json.loads(Path("stats.json").read_text())["suppressed"] == (3 - 2) + (4 - 2)
    assert "3 answers suppressed" in err


def test_the_limit_is_at_least_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", __file__, "--stream", "S=x", "--limit-per-event", "0"])
    assert end.value.code == 2
