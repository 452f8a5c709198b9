"""`spaseq run` from a user's view: answers on stdout, messages on stderr, exit statuses."""

from __future__ import annotations

import gzip
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from spaseq.cli import main
from spaseq.sinks import SINKS

QUERY = """PREFIX : <http://example/>
SELECT ?s ?p2 ?owner WITHIN 1 MINUTES PARTITION BY (?s)
FROM STREAM S1 <http://example/stream?a=1>
FROM NAMED <http://example/kb>
WHERE {
  SEQ(A; B)
  DEFINE GPM A ON S1 { ?s :price ?p1 GRAPH <http://example/kb> { ?s :owner ?owner } }
  DEFINE GPM B ON S1 { ?s :price ?p2 FILTER(?p2 < ?p1) }
}"""

KB = "<http://example/m> <http://example/owner> 'Ada' ."

XSD = "http://www.w3.org/2001/XMLSchema#"


def line(second: int, price: int) -> str:
    """An event as two lines of N-Quads: its triple, then its time."""
    graph = f"<http://example/e{second}>"
    return (
        f'<http://example/m> <http://example/price> "{price}"^^<{XSD}integer> {graph} .\n'
        f"{graph} <http://www.w3.org/ns/prov#generatedAtTime> "
        f'"2020-01-01T00:00:{second:02}Z"^^<{XSD}dateTime> .\n'
    )


STREAM = line(0, 14) + line(1, 16) + line(2, 12)


@dataclass(frozen=True)
class Done:
    status: int
    out: str
    err: str


def main_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> Done:
    """The command line in this process."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as exit_:
        main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    assert isinstance(exit_.value.code, int)
    return Done(exit_.value.code, out, err)


@dataclass(frozen=True)
class Place:
    """A directory with a query, a stream and a KB, in which the command line runs."""

    directory: Path
    capsys: pytest.CaptureFixture[str]

    def write(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.write_text(text)
        return path

    def spaseq(self, *arguments: object) -> Done:
        return main_of(self.capsys, *arguments)

    def run(self, *arguments: object, stream: str = "S1=stream.nq", kb: str = "kb.ttl") -> Done:
        base = ["run", "query.rq", "--runtime", "local", "--stream", stream, "--kb", kb]
        return self.spaseq(*base, *arguments)


@pytest.fixture
def place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Place:
    monkeypatch.chdir(tmp_path)
    place = Place(tmp_path, capsys)
    place.write("query.rq", QUERY)
    place.write("stream.nq", STREAM)
    place.write("kb.ttl", KB)
    return place


ANSWERS = [(14, 12), (16, 12)]


def prices(done: Done) -> list[str]:
    return [json.loads(text)["trace"][0]["event"] for text in done.out.splitlines()]


def test_jsonl_on_stdout_and_a_summary_on_stderr(place: Place) -> None:
    done = place.run()
    assert done.status == 0
    assert prices(done) == ["http://example/e0", "http://example/e1"]
    first = json.loads(done.out.splitlines()[0])
    assert first == {
        "query": "query",
        "start": "2020-01-01T00:00:00Z",
        "end": "2020-01-01T00:00:02Z",
        "bindings": {
            "s": {"type": "uri", "value": "http://example/m"},
            "p2": {"type": "literal", "value": "12", "datatype": f"{XSD}integer"},
            "owner": {"type": "literal", "value": "Ada"},
        },
        "trace": [
            {"gpm": "A", "stream": "http://example/stream?a=1", "event": "http://example/e0",
             "time": "2020-01-01T00:00:00Z", "k": 0},
            {"gpm": "B", "stream": "http://example/stream?a=1", "event": "http://example/e2",
             "time": "2020-01-01T00:00:02Z", "k": 0},
        ],
    }  # fmt: skip
    assert "2 answers from 3 events (3 triples)" in done.err


@pytest.mark.parametrize("name", ["S1", "http://example/stream?a=1", "<http://example/stream?a=1>"])
def test_a_stream_is_named_by_name_or_iri(place: Place, name: str) -> None:
    assert len(prices(place.run(stream=f"{name}=stream.nq"))) == 2


@pytest.mark.parametrize("kb", ["kb.ttl", "http://example/kb=kb.ttl", "<http://example/kb>=kb.ttl"])
def test_a_kb_is_named_by_iri_or_not_at_all(place: Place, kb: str) -> None:
    assert len(prices(place.run(kb=kb))) == 2


def test_a_quad_kb_keeps_its_graph_names(place: Place) -> None:
    place.write("kb.nq", KB.replace("'Ada' .", '"Ada" <http://example/kb> .'))
    assert len(prices(place.run(kb="kb.nq"))) == 2


def test_stdin_gz_directories_and_globs(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(STREAM.encode())))
    assert len(prices(place.run(stream="S1=-"))) == 2
    (place.directory / "more").mkdir()
    for i, text in enumerate((line(0, 14), line(1, 16), line(2, 12))):
        (place.directory / "more" / f"{i}.nq.gz").write_bytes(gzip.compress(text.encode()))
    assert len(prices(place.run(stream="S1=more"))) == 2
    assert len(prices(place.run(stream="S1=more/*.gz"))) == 2


def test_the_w3c_formats(place: Place) -> None:
    assert place.run("--format", "csv").out.splitlines() == [
        "s,p2,owner", "http://example/m,12,Ada", "http://example/m,12,Ada",
    ]  # fmt: skip
    tsv = place.run("--format", "tsv").out.splitlines()
    assert tsv[0] == "?s\t?p2\t?owner"
    assert tsv[1] == f'<http://example/m>\t"12"^^<{XSD}integer>\t"Ada"'
    found = json.loads(place.run("--format", "json").out)
    assert found["head"] == {"vars": ["s", "p2", "owner"]}
    assert len(found["results"]["bindings"]) == 2


def test_outputs_go_to_files(place: Place) -> None:
    done = place.run("--out", "answers.jsonl", "--stats", "stats.json", "--bad", "bad.jsonl")
    assert done.out == ""
    assert len((place.directory / "answers.jsonl").read_text().splitlines()) == 2
    stats = json.loads((place.directory / "stats.json").read_text())
    assert {k: stats[k] for k in ("events", "triples", "matches", "bad", "late")} == {
        "events": 3, "triples": 3, "matches": 2, "bad": 0, "late": 0,
    }  # fmt: skip
    assert set(stats["stages"]) >= {"ingest", "graph patterns", "sequence"}
    assert (place.directory / "bad.jsonl").read_text() == ""


def test_bad_input_loses_no_good_event(place: Place) -> None:
    timeless = '<http://example/m> <http://example/price> "1" <http://example/e9> .\n'
    wrong = "<http://example/m> this is <http://example/e8> ."
    place.write("stream.nq", line(0, 14) + f"{wrong}\n" + timeless + line(2, 12))
    done = place.run("--bad", "bad.jsonl")
    assert done.status == 0
    assert len(prices(done)) == 1
    assert "2 bad inputs" in done.err
    bad = [json.loads(text) for text in (place.directory / "bad.jsonl").read_text().splitlines()]
    assert [b["line"] for b in bad] == [3, 4]
    assert bad[0]["text"] == wrong
    assert all(b["file"].endswith("stream.nq") and b["reason"] for b in bad)


def test_strict_stops_at_bad_input(place: Place) -> None:
    place.write("stream.nq", STREAM + "this is no quad\n")
    done = place.run("--strict")
    assert done.status == 3
    assert "stream.nq:7" in done.err


def test_an_empty_stream_has_no_answers(place: Place) -> None:
    place.write("stream.nq", "")
    done = place.run()
    assert (done.status, done.out) == (0, "")
    assert "0 answers from 0 events" in done.err


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["--stream", "S2=stream.nq"], 2, "S2"),
        (["--kb", "http://example/kb=missing.ttl"], 3, "missing.ttl"),
        (["--checkpoint", "state"], 2, "--follow"),
        (["--follow"], 2, "--follow needs --checkpoint"),
        (["--format", "xml"], 2, "xml"),
        (["--no-such-option"], 2, "--no-such-option"),
    ],
)
def test_wrong_usage_and_missing_inputs(
    place: Place, arguments: list[str], status: int, text: str
) -> None:
    done = place.run(*arguments)
    assert done.status == status
    assert text in done.err
    assert done.out == ""


def test_missing_streams(place: Place) -> None:
    missing = place.run(stream="S1=steam.nq")
    assert missing.status == 3
    assert "steam.nq" in missing.err and "stream.nq" in missing.err  # the nearest name
    none = place.spaseq("run", "query.rq", "--runtime", "local", "--kb", "kb.ttl")
    assert none.status == 2
    assert "--stream S1=PATH" in none.err


def test_a_kb_that_does_not_load_stops_the_run(place: Place) -> None:
    place.write("kb.ttl", "<http://example/m> <http://example/owner")
    done = place.run()
    assert done.status == 3
    assert "kb.ttl" in done.err and "1" in done.err


def test_a_graph_without_kb_stops_the_run(place: Place) -> None:
    done = place.spaseq("run", "query.rq", "--runtime", "local", "--stream", "S1=stream.nq")
    assert done.status == 3
    assert "http://example/kb" in done.err


def test_query_errors(place: Place) -> None:
    place.write("query.rq", QUERY.replace("A; B", "A; D"))
    done = place.run()
    assert done.status == 1
    assert "query.rq:6:" in done.err
    assert "^" in done.err


def test_several_queries_share_one_run(place: Place) -> None:
    place.write("other.rq", QUERY.replace("?p2 < ?p1", "?p2 > ?p1"))
    done = place.spaseq(
        "run", "query.rq", "other.rq", "--runtime", "local", "--stream", "S1=stream.nq",
        "--kb", "kb.ttl",
    )  # fmt: skip
    names = [json.loads(text)["query"] for text in done.out.splitlines()]
    assert names == ["query", "query", "other"]
    refused = place.spaseq(
        "run", "query.rq", "other.rq", "--runtime", "local", "--stream", "S1=stream.nq",
        "--kb", "kb.ttl", "--format", "csv",
    )  # fmt: skip
    assert refused.status == 2


def test_triples_per_event(place: Place) -> None:
    place.write("query.rq", QUERY.replace("?s :price ?p2", "?s :price ?p2 ; :at ?t"))
    rows = []
    for second, price in enumerate((14, 16, 12)):
        rows.append(f'<http://example/m> <http://example/price> "{price}"^^<{XSD}integer> .')
        rows.append(f'<http://example/m> <http://example/at> "{second}000"^^<{XSD}long> .')
    place.write("stream.nt", "\n".join(rows))
    done = place.run(
        "--triples-per-event", 2, "--time-predicate", "http://example/at", stream="S1=stream.nt"
    )
    assert done.status == 0, done.err
    assert len(prices(done)) == 2


def test_threads(place: Place) -> None:
    assert place.run("--threads", 3).out == place.run("--threads", 1).out != ""
    refused = place.spaseq("run", "query.rq", "--stream", "S1=stream.nq", "--threads", 2)
    assert refused.status == 2
    assert "--threads goes with --runtime local" in refused.err


def test_partial_matches_go_to_a_file(place: Place) -> None:
    done = place.run("--partial", "partial.jsonl")
    assert done.status == 0
    assert prices(done) == ["http://example/e0", "http://example/e1"]
    lines = (place.directory / "partial.jsonl").read_text().splitlines()
    assert lines
    assert f"; {len(lines)} partial match" in done.err
    found = [json.loads(text) for text in lines]
    for each in found:
        assert list(each)[-4:] == ["trace", "reached", "waiting", "closed"]
        assert (each["reached"], each["waiting"]) == ("A", ["B"])
        assert each["end"] == each["trace"][-1]["time"] < each["closed"]
    assert found == sorted(found, key=lambda each: each["closed"])
    assert place.run("--partial", "-").status == 2


def test_a_partial_match_of_construct_has_the_template_s_variables(place: Place) -> None:
    query = f"CONSTRUCT {{ ?s <http://example/fell> ?p2 }} {QUERY[QUERY.index('WITHIN') :]}"
    place.write("query.rq", QUERY[: QUERY.index("SELECT")] + query)
    assert place.run("--partial", "partial.jsonl", "--format", "nquads").status == 0
    lines = (place.directory / "partial.jsonl").read_text().splitlines()
    assert [list(json.loads(text)["bindings"]) for text in lines] == [["s"]] * len(lines)
    assert lines


def test_queries_on_windows_have_partial_matches_beside_others(place: Place) -> None:
    """A second's price is high at 00:01, and none is over 100 in the ten seconds after that."""
    window = """PREFIX : <http://example/> SELECT ?high WITHIN 10 SECONDS
        FROM STREAM S1 <http://example/stream?a=1> FROM WINDOW W ON S1 RANGE 1 SECONDS
        WHERE { SEQ(High; Over)
          DEFINE GPM High ON W { { SELECT (MAX(?p) AS ?high) { EVENT { ?s :price ?p } } }
            FILTER (?high > 15) }
          DEFINE GPM Over ON W { { SELECT (MIN(?p) AS ?low) { EVENT { ?s :price ?p } } }
            FILTER (?low > 100) } }"""
    place.write("window.rq", window)
    assert place.run("window.rq", "--partial", "partial.jsonl").status == 0
    lines = (place.directory / "partial.jsonl").read_text().splitlines()
    found = [json.loads(text) for text in lines]
    assert {each["query"] for each in found} == {"query", "window"}
    (partial,) = (each for each in found if each["query"] == "window")
    assert partial["bindings"]["high"]["value"] == "16"
    assert (partial["reached"], partial["waiting"]) == ("High", ["Over"])
    assert partial["end"].startswith("2020-01-01T00:00:02")
    assert partial["closed"].startswith("2020-01-01T00:00:12")
    assert partial["trace"][0]["from"].startswith("2020-01-01T00:00:01")


ENDINGS = {
    "jsonl": lambda data: (
        [json.loads(line)["query"] for line in data.splitlines()] == ["query"] * 2
    ),
    "json": lambda data: len(json.loads(data)["results"]["bindings"]) == 2,
    "csv": lambda data: data.count(b"\r\n") == 3,
    "tsv": lambda data: data.startswith(b"?"),
    "parquet": lambda data: data.startswith(b"PAR1"),
    "arrow": lambda data: data.startswith(b"ARROW1"),
}
"""Whether bytes are two answers in the format of an ending."""


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_ending_of_the_file_decides_the_format(place: Place, ending: str) -> None:
    assert place.run("--out", f"answers.{ending}").status == 0
    assert ENDINGS[ending]((place.directory / f"answers.{ending}").read_bytes())


def test_a_gz_behind_the_ending_packs_the_file(place: Place) -> None:
    assert place.run("--out", "answers.csv.gz").status == 0
    assert place.run("--out", "answers.csv").status == 0
    packed = gzip.decompress((place.directory / "answers.csv.gz").read_bytes())
    assert packed == (place.directory / "answers.csv").read_bytes()


def test_format_wins_over_the_ending(place: Place) -> None:
    assert place.run("--out", "answers.csv", "--format", "tsv").status == 0
    assert (place.directory / "answers.csv").read_bytes().startswith(b"?")


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("answers.xls", ", ".join(f".{sink.suffix}" for sink in SINKS.values())),
        ("answers.parquet.gz", "parquet is compressed by itself"),
        ("answers.nq", "--format nquads holds graphs"),
    ],
)
def test_an_ending_that_does_not_suit_is_refused(place: Place, out: str, said: str) -> None:
    done = place.run("--out", out)
    assert done.status == 2
    assert said in done.err
    assert not (place.directory / out).exists()


@pytest.mark.parametrize("out", ["a.parquet", "a.arrow", "a.json", "a.jsonl.gz"])
def test_a_followed_run_refuses_files_that_need_an_end(place: Place, out: str) -> None:
    (place.directory / "in").mkdir()
    more = ["--out", out, "--follow", "--checkpoint", "state"]
    done = place.run(*more, stream="S1=in")
    assert done.status == 2, done.err
    assert "end" in done.err or "cannot grow" in done.err


def test_a_query_without_partial_matches_is_warned_of_beside_others(place: Place) -> None:
    """Alone it is refused; its answers come with the partial matches of the other."""
    optional = QUERY.replace("SEQ(A; B)", "SEQ(A; B!; C?; D)").replace("1 MINUTES", "9 EVENTS")
    further = "".join(f"DEFINE GPM {name} ON S1 {{ ?s :price ?{name} }} " for name in "CD")
    place.write("optional.rq", optional.replace("DEFINE", f"{further}DEFINE", 1))
    done = place.run("optional.rq", "--partial", "partial.jsonl", "--format", "jsonl")
    assert done.status == 0
    assert "optional.rq:6:7: warning: no partial matches: its first steps" in done.err
    answered = {json.loads(text)["query"] for text in done.out.splitlines()}
    assert answered == {"optional", "query"}
    lines = (place.directory / "partial.jsonl").read_text().splitlines()
    assert {json.loads(text)["query"] for text in lines} == {"query"}
    given = ["--stream", "S1=stream.nq", "--kb", "kb.ttl", "--runtime", "local"]
    alone = place.spaseq("run", "optional.rq", *given, "--partial", "partial.jsonl")
    assert alone.status == 2
    assert "query optional has no partial matches: its first steps" in alone.err
