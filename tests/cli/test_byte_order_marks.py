"""A byte order mark at the begin of a file is skipped, whatever the file is."""

from __future__ import annotations

from pathlib import Path

import pytest

from spaseq.serve.configuration import read_configuration
from tests.cli.test_run import Place, place
from tests.sizes import first_of

__all__ = ["place"]

BOM = "\ufeff"
TIME = "http://www.w3.org/ns/prov#generatedAtTime"
LONG = "http://www.w3.org/2001/XMLSchema#long"
QUERY = """PREFIX : <http://e/>
SELECT ?v WITHIN 1 SECONDS FROM STREAM S <http://e/s> FROM NAMED <http://e/kb>
WHERE { SEQ(A) DEFINE GPM A ON S { ?o :p ?v GRAPH <http://e/kb> { ?v :q 1 } } }
"""
STREAMS = {
    "s.nq": f'<e:o> <http://e/p> "a" <e:g> .\n<e:g> <{TIME}> "1"^^<{LONG}> .\n',
    "s.trig": f'<e:g> {{ <e:o> <http://e/p> "a" }} <e:g> <{TIME}> "1"^^<{LONG}> .\n',
    "s.ttl": f'<e:o> <http://e/p> "a" ; <{TIME}> "1"^^<{LONG}> .\n',
    "s.jsonld": f'{{"@id": "e:g", "{TIME}": {{"@value": "1", "@type": "{LONG}"}}, '
    '"@graph": [{"@id": "e:o", "http://e/p": "a"}]}',
}
KB = {
    "kb.ttl": '@prefix : <http://e/> . "a" :q 1 .'.replace('"a"', ":a"),
    "kb.nt": '<http://e/a> <http://e/q> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .\n',
}


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("kb", first_of([*KB], 1))
def test_a_run_reads_files_with_a_mark(tmp_path: Path, place: Place, stream: str, kb: str) -> None:
    if kb == "kb.nt" and stream != "s.nq":
        pytest.skip("one stream is enough for this knowledge base")
    text = STREAMS[stream].replace('"a"', "<http://e/a>")
    if stream == "s.jsonld":
        text = STREAMS[stream].replace('"a"', '{"@id": "http://e/a"}')
    (tmp_path / stream).write_text(BOM + text, "utf-8")
    (tmp_path / kb).write_text(BOM + KB[kb], "utf-8")
    (tmp_path / "q.rq").write_text(BOM + QUERY, "utf-8")
    command = ["run", "q.rq", "--stream", f"S={stream}", "--kb", f"http://e/kb={kb}"]
    options = ["--runtime", "local", "--format", "csv", "--triples-per-event", "2"]
    done = place.spaseq(*command, *options)
    assert done.status == 0, done.err
    assert "http://e/a" in done.out, done.err


def test_a_lift_may_begin_with_a_mark(tmp_path: Path, place: Place) -> None:
    lift = f"CONSTRUCT {{ ?g <http://e/p> ?v ; <{TIME}> ?t }} WHERE {{ BIND(<e:g> AS ?g) "
    lift += "BIND(<http://www.w3.org/2001/XMLSchema#integer>(?at) AS ?t) }"
    (tmp_path / "lift.rq").write_text(BOM + lift, "utf-8")
    (tmp_path / "rows.csv").write_text(BOM + "at,v\n1,a\n", "utf-8")
    done = place.spaseq("lift", "lift.rq", "rows.csv")
    assert (done.status, '"a"' in done.out) == (0, True), done.err


def test_a_lift_of_nothing_names_the_path_alone(tmp_path: Path, place: Place) -> None:
    lift = f"CONSTRUCT {{ <e:g> <http://e/p> ?v ; <{TIME}> ?at }} WHERE {{ }}"
    (tmp_path / "lift.rq").write_text(lift)
    done = place.spaseq("lift", "lift.rq", "none.csv")
    assert done.status == 3
    assert "none.csv" in done.err
    assert "urn:spaseq" not in done.err


def test_an_open_reified_triple_is_no_open_iri(tmp_path: Path, place: Place) -> None:
    (tmp_path / "q.rq").write_text(QUERY.replace("?o :p ?v GRAPH", "<< ?o :p ?v :r 1 GRAPH"))
    done = place.spaseq("check", "q.rq")
    assert done.status == 1
    assert "never closed" not in done.err + done.out


def test_a_file_that_announces_messages_may_begin_with_a_mark(tmp_path: Path, place: Place) -> None:
    messages = f"""VERSION "1.2-messages"
<e:o> <http://e/p> <http://e/a> ; <{TIME}> "1"^^<{LONG}> .
MESSAGE
<e:o> <http://e/p> <http://e/b> ; <{TIME}> "2"^^<{LONG}> .
"""
    (tmp_path / "s.ttl").write_text(BOM + messages, "utf-8")
    query = "SELECT ?v WITHIN 1 SECONDS FROM STREAM S <http://e/s> "
    query += "WHERE { SEQ(A) DEFINE GPM A ON S { ?o <http://e/p> ?v } }"
    (tmp_path / "q.rq").write_text(query)
    done = place.spaseq(
        "run", "q.rq", "--stream", "S=s.ttl", "--runtime", "local", "--format", "csv"
    )
    assert "http://e/a" in done.out, done.err
    assert "http://e/b" in done.out, done.err


def test_a_configuration_may_begin_with_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "spaseq.toml"
    path.write_text(BOM + '[server]\nlisten = "127.0.0.1:7117"\n', "utf-8")
    assert read_configuration(path, {}).server["listen"] == "127.0.0.1:7117"
