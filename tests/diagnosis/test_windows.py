"""`why` on queries with windows: empty windows, HAVING, nothing new, what never goes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import spaseq
from spaseq.cli.main import cli
from spaseq.rdf.terms.term import XSD

W = "FROM WINDOW W ON S RANGE 2 SECONDS SLIDE 1 SECONDS"
KEYED = f"{W} KEY {{ ?x :raod ?r }}"
BY_ROAD = "WITHIN 1 HOURS PARTITION BY (?r)"
HIGH = "FILTER EXISTS { EVENT { ?o :v ?v FILTER(?v >= 60) } } BIND(1 AS ?a)"
MEAN = "{ SELECT (AVG(?v) AS ?a) { EVENT { ?o :v ?v } } HAVING (AVG(?v) >= 40) }"
LATE = "DEFINE GPM B ON S { ?x :v 70 }"


def _events() -> list[spaseq.Event]:
    return [
        spaseq.Event(
            f'<http://e/a> <http://e/v> "{value}"^^<{XSD}integer> .\n'
            "<http://e/a> <http://e/road> <http://e/r1> .",
            time * 1000,
        )
        for time, value in [(0, 10), (1, 20), (2, 60), (3, 70), (9, 10)]
    ]


def _query(gpms: str, sequence: str = "A", head: str = "", window: str = W) -> str:
    return f"""PREFIX : <http://e/> SELECT * {head} FROM STREAM S <http://e/s> {window}
        WHERE {{ SEQ({sequence}) {gpms} }}"""


def _on(pattern: str, source: str = "W", window: str = W) -> str:
    return _query(f"DEFINE GPM A ON {source} {{ {pattern} }}", window=window)


CASES = [
    (_on("{ SELECT (AVG(?v) AS ?a) { EVENT { ?o :v ?v } } HAVING (AVG(?v) > 400) }"),
     "having-never", "AVG(?v) > 400", "AVG(?v) is 0 to 70"),
    (_on("{ SELECT ?o { EVENT { ?o :v ?v } } GROUP BY ?o HAVING (COUNT(*) > 2 && SUM(?v) > 1) }",
         "NEW W"), "having-never", "COUNT(*) > 2", "COUNT(*) = 1"),
    (_on("{ SELECT ?o { EVENT { ?o :vv ?v } } GROUP BY ?o HAVING (COUNT(*) > 2) }"),
     "predicate-never-occurs", "?o :vv ?v", "did you mean :v"),
    (_on("EVENT { ?o :v ?v FILTER(?v > 100) }"), "filter-false", "FILTER(?v > 100)", "10 to 70"),
    (_on('EVENT AT ?t { ?o :v ?v FILTER(YEAR(?t) > 1970) }'), "filter-false",
     "FILTER(YEAR(?t) > 1970)", "false for all"),
    (_on("EVENT ?e { ?o :v ?v }"), "pattern-never-matches", "EVENT ?e", "no event has an IRI"),
    (_on("?o :v 21"), "constant-never-occurs", "?o :v 21", "21"),
    (_on("EVENT { ?o :v 10 } EVENT { ?o :v 70 }"), "pattern-never-matches", "EVENT { ?o :v 70 }",
     "not together"),
    (_on("?o :road ?r", "GONE W", "FROM WINDOW W ON S RANGE 9 SECONDS EACH EVENT"), "gone-never",
     "GONE W", "without GONE"),
    (_query(f"{LATE} DEFINE GPM A ON NEW W {{ {HIGH} }}", "B; A", "WITHIN 1 HOURS"), "nothing-new",
     "A)", "without NEW, there is a match"),
    (_query(f"DEFINE GPM A ON W {{ {MEAN} }}", head=BY_ROAD, window=KEYED), "window-empty",
     "FROM WINDOW W", "KEY has no solution on 5 events"),
    (_query(f"DEFINE GPM A ON W {{ {MEAN} }} DEFINE GPM B ON S {{ ?x :v 10 }}", "A; B",
            "WITHIN 1 SECONDS"), "window", "B)", "the window event of W at"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(CASES)))
def test_the_first_cause(number: int) -> None:
    query, kind, place, text = CASES[number]
    report = spaseq.why(query, {"S": _events()})
    cause = report.causes[0]
    assert (report.answers, cause.kind) == (0, kind), report.as_text()
    assert cause.line is not None and cause.column is not None
    assert query.split("\n")[cause.line - 1][cause.column - 1 :].startswith(place)
    assert text in cause.text
    assert cause.text in report.as_text()


def test_what_the_key_lacks() -> None:
    """An empty window is followed by what its KEY does not find."""
    query = _query(f"DEFINE GPM A ON W {{ {MEAN} }}", head=BY_ROAD, window=KEYED)
    causes = spaseq.why(query, {"S": _events()}).causes
    assert [cause.kind for cause in causes] == ["window-empty", "predicate-never-occurs"]
    assert causes[1].suggestion == ":road"


def test_a_window_without_events() -> None:
    (cause,) = spaseq.why(_on(MEAN), {"S": []}).causes
    assert (cause.kind, cause.stream) == ("no-events", "S")


def test_no_cause_where_there_are_answers() -> None:
    for query in (
        _on(MEAN),
        _on(HIGH, "GONE W"),
        _query(f"{LATE} DEFINE GPM A ON W {{ {HIGH} }}", "B; A", "WITHIN 1 HOURS"),
        _query(
            f"DEFINE GPM A ON W {{ {MEAN} }}", head=BY_ROAD, window=KEYED.replace("raod", "road")
        ),
    ):
        report = spaseq.why(query, {"S": _events()})
        assert report.answers == len(list(spaseq.run(query, {"S": _events()}, runtime="local")))
        assert report.answers and not report.causes


def test_counts_of_windows() -> None:
    report = spaseq.why(_on("EVENT { ?o :v ?v FILTER(?v > 100) }"), {"S": _events()})
    assert report.as_json()["windows"] == [{"window": "W", "events": 9, "full": 7}]
    assert "window W         9 window events, 7 of them not empty" in report.as_text()


def _named() -> list[spaseq.Event]:
    return [
        spaseq.Event(event.graph, event.time, f"http://e/e{n}")
        for n, event in enumerate(_events(), 1)
    ]


def test_an_event_that_only_windows_read() -> None:
    (cause,) = spaseq.why(_on(MEAN), {"S": _named()}, event=":e3").causes
    assert cause.kind == "in-windows"
    assert ":e3 is in 2 window events of W, at 1970-01-01T00:00:03 to 00:00:04" in cause.text
    query = _query(f"DEFINE GPM A ON W {{ {MEAN} }}", head=BY_ROAD, window=KEYED)
    (cause,) = spaseq.why(query, {"S": _named()}, event=":e3").causes
    assert "is in none" in cause.text


def test_an_event_beside_windows() -> None:
    """A GPM on the stream itself: the level comes too late for this event."""
    gpms = f"DEFINE GPM B ON S {{ ?x :v 70 }} DEFINE GPM A ON W {{ {MEAN} }}"
    query = _query(gpms, "B; A", "WITHIN 500 MILLISECONDS")
    (cause,) = spaseq.why(query, {"S": _named()}, event=":e4").causes
    assert (cause.kind, cause.step) == ("window", 2)
    wide = _query(gpms, "B; A", "WITHIN 1 HOURS")
    assert spaseq.why(wide, {"S": _named()}, event=":e4").answers == 1


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "q.rq").write_text(CASES[0][0])
    lines = [
        f'<urn:g{n}> <http://www.w3.org/ns/prov#generatedAtTime> "{n}000"^^<{XSD}long> .\n'
        f'<http://e/a> <http://e/v> "{n}"^^<{XSD}integer> <urn:g{n}> .\n'
        for n in range(5)
    ]
    (tmp_path / "s.nq").write_text("".join(lines))
    command = ["why", str(tmp_path / "q.rq"), "--stream", f"S={tmp_path / 's.nq'}"]
    text = CliRunner().invoke(cli, command)
    assert "AVG(?v) > 400" in text.output and "AVG(?v) is 0 to 4" in text.output
    report = json.loads(CliRunner().invoke(cli, [*command, "--json"]).output)
    assert report["causes"][0]["kind"] == "having-never"
    run = CliRunner().invoke(
        cli, ["run", command[1], *command[2:], "--runtime", "local", "--why", str(tmp_path / "why")]
    )
    assert run.exit_code == 0, run.output
    assert "no answers, because no window event matches" in run.stderr
    assert "AVG(?v) > 400" in (tmp_path / "why").read_text()


def test_only_the_last_step_is_tried_without_new() -> None:
    """B goes at 6 and A is new at 4; without GONE, B would match at 3, before A."""
    gpms = f"DEFINE GPM B ON GONE W {{ {HIGH} }} DEFINE GPM A ON NEW X {{ ?o :v 70 }}"
    query = _query(gpms, "B; A", "WITHIN 1 HOURS", f"{W} FROM WINDOW X ON S RANGE 1 SECONDS")
    (cause,) = spaseq.why(query, {"S": _events()}).causes
    assert (cause.kind, cause.gpm) == ("order", "A")
