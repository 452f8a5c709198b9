"""`spaseq check`, `explain` and `fmt`."""

from __future__ import annotations

import json

from tests.cli.test_run import QUERY, Place, place

__all__ = ["place"]

FIVE_MISTAKES = """PREFIX : <http://example/>
SELECT ?s WITHIN 5 MINUETS
FROM STREAM S1 <http://example/s>
WHERE {
  SEQ(A; B; C; E)
  DEFINE GPM A ON S1 { ?s :price ?p FLITER(?p > 1) }
  DEFINE GPM B ON S1 { ?s :price }
  DEFINE GPM C ON S2 { ?s ex:price ?c }
}
"""


def test_one_run_reports_every_mistake_with_its_place(place: Place) -> None:
    place.write("five.rq", FIVE_MISTAKES)
    done = place.spaseq("check", "five.rq")
    assert done.status == 1
    places = {text.split(": ")[0] for text in done.out.splitlines() if ": error: " in text}
    assert places == {
        "five.rq:2:20", "five.rq:5:16", "five.rq:6:37", "five.rq:7:34", "five.rq:8:19",
        "five.rq:8:27",
    }  # fmt: skip
    assert "did you mean: MINUTES" in done.out
    assert "did you mean: FILTER" in done.out


def test_json(place: Place) -> None:
    place.write("five.rq", FIVE_MISTAKES)
    findings = json.loads(place.spaseq("check", "--json", "five.rq").out)
    assert len(findings) == 6
    assert {"severity", "code", "message", "file", "line", "column", "text"} <= set(findings[0])


def test_a_good_query_has_status_0(place: Place) -> None:
    done = place.spaseq("check", "query.rq")
    assert (done.status, done.out) == (0, "")
    assert "0 error(s), 0 warning(s)" in done.err


def test_explain_shows_every_stage(place: Place) -> None:
    done = place.spaseq("explain", "query.rq", "--full")
    assert done.status == 0
    for section in ("# query text", "# AST", "# algebra", "# plan", "# automaton"):
        assert section in done.out
    assert "TAKE B on S1 joined on ?s" in done.out
    assert "skip-till-next" in done.out


def test_fmt_prints_canonical_text(place: Place) -> None:
    done = place.spaseq("fmt", "query.rq")
    assert done.status == 0
    again = place.write("again.rq", done.out)
    assert place.spaseq("fmt", again).out == done.out
    place.write("lower.rq", QUERY.replace("SELECT", "select").replace("WITHIN", "within"))
    assert place.spaseq("fmt", "lower.rq").out == done.out


def test_fmt_keeps_what_a_query_says_about_itself(place: Place) -> None:
    head = "# title: Jam\n# severity: warning\n"
    place.write("said.rq", "\ufeff" + f"{head}\n{QUERY} # the end".replace("\n", "\r\n"))
    bare = place.spaseq("fmt", "query.rq").out
    assert place.spaseq("fmt", "said.rq").out == head + bare
    for _ in range(2):
        assert place.spaseq("fmt", "-w", "said.rq").status == 0
        assert (place.directory / "said.rq").read_bytes() == (head + bare).encode()


def test_a_missing_query_file(place: Place) -> None:
    done = place.spaseq("check", "nothing.rq")
    assert done.status == 3
    assert "nothing.rq" in done.err


def test_a_pattern_that_no_given_event_matches_is_a_warning(place: Place) -> None:
    place.write("typo.rq", QUERY.replace("?s :price ?p2", "?s :prize ?p2"))
    given = ["--stream", "S1=stream.nq", "--kb", "kb.ttl"]
    done = place.spaseq("check", "typo.rq", *given)
    assert done.status == 0
    assert "typo.rq:8:24: warning: " in done.out
    assert "[predicate-never-occurs]" in done.out
    assert ":price" in done.out.partition("[predicate-never-occurs]")[0]
    good = place.spaseq("check", "query.rq", *given)
    assert (good.status, good.out) == (0, "")


VAIN = QUERY.replace("?p2 < ?p1", '?p2 < "9"')


def test_warnings_beside_errors(place: Place) -> None:
    place.write(
        "vain.rq", VAIN.replace("?owner WITHIN", "?wner WITHIN").replace("A ON S1", "A ON S2")
    )
    done = place.spaseq("check", "vain.rq", "query.rq")
    assert done.status == 1
    assert [text.split(": ")[:2] for text in done.out.splitlines() if text.startswith("vain")] == [
        ["vain.rq:2:15", "warning"], ["vain.rq:7:19", "error"], ["vain.rq:8:45", "warning"],
    ]  # fmt: skip
    assert "2 queries: 1 error(s), 2 warning(s)" in done.err
    found = json.loads(place.spaseq("check", "--json", "vain.rq", "query.rq").out)
    assert [finding["code"] for finding in found] == [
        "unbound-variable", "unknown-stream", "vain-comparison",
    ]  # fmt: skip


def test_streams_are_read_for_the_queries_without_errors(place: Place) -> None:
    place.write("typo.rq", QUERY.replace("?s :price ?p2", "?s :prize ?p2"))
    place.write("vain.rq", VAIN.replace("A ON S1", "A ON S2"))
    given = ["--json", "--stream", "S1=stream.nq", "--kb", "kb.ttl"]
    found = json.loads(place.spaseq("check", "vain.rq", "typo.rq", *given).out)
    assert [(finding["file"], finding["code"]) for finding in found] == [
        ("vain.rq", "unknown-stream"), ("vain.rq", "vain-comparison"),
        ("typo.rq", "predicate-never-occurs"),
    ]  # fmt: skip


def test_a_stream_that_a_query_with_errors_makes(place: Place) -> None:
    """What its readers find in it is not known, and is not the mistake."""
    maker = f"REGISTER STREAM <http://example/made> AS {QUERY}".replace("SEQ(A; B)", "SEQ(A; X)")
    place.write("maker.rq", maker.replace("SELECT ?s ?p2 ?owner", "CONSTRUCT { ?s :fell ?p2 }"))
    place.write(
        "reader.rq", QUERY.replace("stream?a=1", "made").replace(":price ?p2", ":prize ?p2")
    )
    given = ["--json", "--stream", "S1=stream.nq", "--kb", "kb.ttl"]
    done = place.spaseq("check", "maker.rq", "reader.rq", *given)
    assert done.status == 1
    assert [finding["code"] for finding in json.loads(done.out)] == ["unknown-gpm"]
