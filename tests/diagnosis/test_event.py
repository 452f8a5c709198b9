"""The report on an event: why no answer holds it, or why a followed run may lack the answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

import spaseq
from spaseq.cli.main import cli
from tests.diagnosis.small_streams import NS, query_of
from tests.sizes import first_of

VALUES = {"A": "[] :a ?v", "B": "[] :b ?w"}
RISING = {"A": "[] :a ?v", "B": "[] :b ?w FILTER (?w > ?v)"}
JOINED = {"A": "[] :a ?v", "B": "[] :b ?v"}


def events(text: str) -> list[tuple[str, list[tuple[str, str, str]], int]]:
    """As `small_streams.observed`, with times `a@7` where the place in the text is not the time."""
    found = []
    for number, word in enumerate(text.split()):
        body, _, time = word.partition("@")
        triples = []
        for pair in body.split(","):
            name, _, value = pair.partition("=")
            term = f'"{value or 1}"^^<http://www.w3.org/2001/XMLSchema#integer>'
            triples.append((f"<{NS}x>", f"<{NS}{name}>", term))
        if body != ".":
            found.append((f"{NS}e{number}", triples, int(time or number) * 1000))
    return found


def stream(path: Path, text: str) -> Path:
    """The events as a file of N-Quads."""
    lines = []
    for iri, triples, time in events(text):
        lines += [f"{' '.join(triple)} <{iri}> ." for triple in triples]
        lines.append(
            f"<{iri}> <http://www.w3.org/ns/prov#generatedAtTime> "
            f'"{time}"^^<http://www.w3.org/2001/XMLSchema#integer> .'
        )
    path.write_text("\n".join(lines) + "\n")
    return path


class Case(NamedTuple):
    """A query, events, an event's number, and the first cause of the report on it."""

    sequence: str
    events: str
    event: int
    kind: str
    gpm: str | None = None
    step: int | None = None
    says: str = ""
    gpms: dict[str, str] | None = None
    head: str = "WITHIN 1 HOURS"
    tail: str = ""
    options: dict[str, Any] = {}  # noqa: RUF012 - a named tuple has no factory


CASES = (
    # the input
    Case("A; B", "a b", 7, "no-such-event", says="name of its graph, such as :e0"),
    # one GPM
    Case("A; B", "a x b", 1, "predicate-never-occurs", "A", 1, "predicate :a is not in :e1"),
    Case("A; B", "a=1 a=2 b", 0, "filter-false", "A", 1, "", {"A": "[] :a ?v FILTER (?v > 1)"}),
    # between steps
    Case("A; B", "a b a", 2, "order", "B", 2, "no B comes after A"),
    Case("A; B", "b a b", 0, "order", "B", 2, ":e0"),
    Case("A; B", "a=1 a=2 b=1 b=3", 1, "equality-join-empty", "B", 2, "", JOINED),
    Case("A; B", "a=1 a=9 b=5", 1, "condition-false", "B", 2, "4 off", RISING),
    Case("A, B", "a b a x b", 2, "contiguity", "B", 2, ":e3 at"),
    Case("A ;[1 SECONDS] B", "a b a . . b", 2, "gap-bound", "B", 2, "3 seconds"),
    Case("A; B", "a b a . . b", 2, "window", "B", 2, "3 seconds", None, "WITHIN 2 SECONDS"),
    Case("A; B; C", "a b c a b", 4, "order", "C", 3),
    Case("A; B{2}; C", "a b b c a b c", 4, "repetition", "B", 2, "at most 1 time"),
    Case("A; N!; B", "a b a n b", 2, "negation", "N", 2, ":e3 at"),
    Case("A; N!; B", "a n b a b", 1, "negation", "N", 2, "is negated"),
    Case("A; B", "a=9 b=9 a=1 b=1", 2, "having", says="off", gpms=VALUES, tail=" HAVING (?v > 5)"),
    Case("A; B", "a b a x b", 2, "selection", says=":e3 at", head="SELECT STRICT * WITHIN 1 HOURS"),
    Case("A; B", "a b b", 2, "contiguity", "B", 2, "write : to try all events"),
    # what other answers leave
    Case("A; B", "a a b", 1, "after-match", says="PAST LAST EVENT leaves out 1 match:",
         head="WITHIN 1 HOURS AFTER MATCH SKIP PAST LAST EVENT"),
    Case("A; B", "a=1 a=1 b=1", 1, "distinct", says="the same values", gpms=VALUES,
         head="SELECT DISTINCT ?v ?w WITHIN 1 HOURS"),
    Case("A; B", "a a b", 0, "limit", says="--limit-per-event 1 leaves out 1 answer",
         options={"limit_per_event": 1}),
    # runs with --follow
    Case("A; B", "a b x@9 a@5 b@7 x@20", 3, "late", says="4 seconds behind"),
    Case("A; B", "a b x@9 a@5 b@7 x@20", 3, "late", says="use --watermark '4 SECONDS'",
         options={"watermark_ms": 3999}),
    Case("A; B", "a b x@9 a@5 b@7 x@10", 3, "not-final-yet", says="--watermark '4 SECONDS' waits",
         options={"watermark_ms": 4000}),
    Case("A; B; N!", "a b x", 0, "not-final-yet", says="with --open-end the end of the input"),
    Case("A; B", "a b", 0, "not-final-yet"),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.kind}-{c.sequence}-{c.events}")
def test_the_first_cause(case: Case, tmp_path: Path) -> None:
    query = query_of(case.sequence, case.gpms, case.head, case.tail)
    given = {"S": stream(tmp_path / "s.nq", case.events)}
    report = spaseq.why(query, given, event=f"{NS}e{case.event}", **case.options)
    cause = report.causes[0]
    assert (cause.kind, cause.gpm, cause.step) == (case.kind, case.gpm, case.step), cause
    assert case.says in cause.text
    assert cause.count > 0 or case.step is not None
    assert (report.answers > 0) == (case.kind in ("late", "not-final-yet"))
    assert report.event.startswith(f":e{case.event}")
    assert cause.text in report.as_text()


def test_an_event_that_an_answer_holds(tmp_path: Path) -> None:
    given = {"S": stream(tmp_path / "s.nq", "a a b b x")}
    report = spaseq.why(query_of("A; B"), given, event=f"<{NS}e1>")
    assert (report.answers, report.causes) == (1, ())
    assert "event        :e1 at 1970-01-01T00:00:01 in S, matches A" in report.as_text()


SEQUENCES = (
    ("A; B", "WITHIN 1 HOURS"),
    ("A: B", "WITHIN 4 SECONDS"),
    ("A, B", "WITHIN 1 HOURS"),
    ("A; A", "WITHIN 4 SECONDS"),
    ("A; B+; C", "WITHIN 1 HOURS"),
    ("A: B{2}", "WITHIN 6 SECONDS"),
    ("(A | B): C", "WITHIN 5 SECONDS"),
    ("(A AND B)", "WITHIN 3 SECONDS"),
    ("A; N!; B", "WITHIN 1 HOURS"),
    ("A: B: N!", "WITHIN 4 SECONDS"),
    ("A?; B", "WITHIN 4 SECONDS"),
    ("A: B", "WITHIN 3 EVENTS"),
    ("A: B", "WITHIN 5 SECONDS TUMBLING"),
    ("A: B", "WITHIN 5 SECONDS AFTER MATCH SKIP PAST LAST EVENT"),
    ("A: B", "WITHIN 5 SECONDS AFTER MATCH CONSUME"),
    ("A: B", "SELECT MAX * WITHIN 4 SECONDS"),
    ("A: B+", "SELECT STRICT * WITHIN 5 SECONDS"),
)


@pytest.mark.parametrize("nth", first_of([3, 1], 1))
@pytest.mark.parametrize(("sequence", "head"), SEQUENCES)
def test_answers_are_those_of_a_run_that_hold_the_event(
    sequence: str, head: str, nth: int, tmp_path: Path
) -> None:
    """By default each sequence asks about every third event."""
    query = query_of(sequence, None, head)
    text = "a b c a n b b x a,b c b a a n x b c b a c"
    given = {"S": stream(tmp_path / "s.nq", text)}
    held = [
        {item.event for item in answer.trace}
        for answer in spaseq.run(query, given, runtime="local")
    ]
    for number in range(SEQUENCES.index((sequence, head)) % nth, len(text.split()), nth):
        iri = f"{NS}e{number}"
        report = spaseq.why(query, given, event=iri)
        assert report.answers == sum(iri in events for events in held), iri
        kinds = [cause.kind for cause in report.causes]
        assert not report.answers or set(kinds) <= {"late", "not-final-yet"}
        assert report.answers or kinds or report.notes, iri


def test_the_watermark_waits_for_a_late_event(tmp_path: Path) -> None:
    given = {"S": stream(tmp_path / "s.nq", "a b x@9 a@5 b@7 x@20")}
    event = f"{NS}e3"
    assert spaseq.why(query_of("A; B"), given, event=event, watermark_ms=4000).causes == ()


@pytest.mark.parametrize("name", [f"{NS}e1", f"<{NS}e1>", ":e1", " :e1 ", r":\e1"])
def test_the_forms_of_an_events_name(name: str, tmp_path: Path) -> None:
    given = {"S": stream(tmp_path / "s.nq", "a a b b x")}
    report = spaseq.why(query_of("A; B"), given, event=name)
    assert (report.answers, report.event[:7]) == (1, ":e1 at ")


@pytest.mark.parametrize(
    ("name", "shown", "suggestion"),
    [
        ("ex:e1", "<ex:e1>", ":e1"),
        (":E1", ":E1", ":e1"),
        ("http://other/e1", "<http://other/e1>", ":e1"),
        ("e1", "<e1>", ":e1"),
        (":nothing", ":nothing", None),
    ],
)
def test_the_event_that_an_unknown_name_may_mean(
    name: str, shown: str, suggestion: str | None, tmp_path: Path
) -> None:
    given = {"S": stream(tmp_path / "s.nq", "a b a")}
    cause = spaseq.why(query_of("A; B"), given, event=name).causes[0]
    assert (cause.kind, cause.term, cause.suggestion) == ("no-such-event", shown, suggestion)


def test_events_without_names(tmp_path: Path) -> None:
    path = tmp_path / "s.nt"
    path.write_text(f"<{NS}x> <{NS}a> 1 .\n".replace(" 1 ", ' "1" ') + _AT)
    given = {"S": path}
    cause = spaseq.why(query_of("A; B"), given, event=":e1", triples_per_event=2).causes[0]
    assert cause.kind == "no-such-event"
    assert "no event has an IRI" in cause.text


_AT = f'<{NS}x> <http://www.w3.org/ns/prov#generatedAtTime> "2020-01-01T00:00:00Z"' + (
    "^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n"
)


def test_a_stream_that_only_negated_steps_read(tmp_path: Path) -> None:
    query = query_of("A; N!; B").replace("WHERE", f"FROM STREAM T <{NS}t> WHERE")
    query = query.replace("GPM N ON S", "GPM N ON T")
    given = {"S": stream(tmp_path / "s.nq", "a b"), "T": stream(tmp_path / "t.nq", ". . . x")}
    cause = spaseq.why(query, given, event=f"{NS}e3").causes[0]
    assert (cause.kind, cause.term) == ("wrong-stream", "T")


def test_an_event_that_is_bad(tmp_path: Path) -> None:
    path = stream(tmp_path / "s.nq", "a b")
    with path.open("a") as file:
        file.write(f"<{NS}x> <{NS}a> <{NS}y> <{NS}untimed> .\n")
    cause = spaseq.why(query_of("A; B"), {"S": path}, event=f"{NS}untimed").causes[0]
    assert (cause.kind, cause.term) == ("bad-event", ":untimed")
    assert "without a timestamp" in cause.text


def test_the_command(tmp_path: Path) -> None:
    query = tmp_path / "q.rq"
    query.write_text(query_of("A; B"))
    given = stream(tmp_path / "s.nq", "a b a")
    command = ["why", str(query), "--stream", f"S={given}", "--event", f"{NS}e2"]
    json_, text = (CliRunner().invoke(cli, words) for words in ([*command, "--json"], command))
    assert (json_.exit_code, text.exit_code) == (0, 0)
    found = json.loads(json_.stdout)
    assert (found["answers"], [cause["kind"] for cause in found["causes"]]) == (0, ["order"])
    assert "event        :e2 at" in text.stdout
    command = [*command[:-1], ":e0", "--watermark", "5 SECONDS"]
    assert "--watermark '5 SECONDS' waits" in CliRunner().invoke(cli, command).stdout
    del command[4:6]
    refused = CliRunner().invoke(cli, command)
    assert "--watermark goes with --event" in str(refused.exception)


def test_a_gpm_without_solutions_is_why_no_event_has_answers(tmp_path: Path) -> None:
    query = query_of("(A AND B); C", {**VALUES, "C": "[] :c ?c FILTER (?c > 5)"})
    report = spaseq.why(query, {"S": stream(tmp_path / "s.nq", "a b c=1")}, event=":e0")
    (cause,) = report.causes
    assert (report.answers, cause.kind, cause.gpm) == (0, "filter-false", "C")
    query = query_of("(A AND B); C", {**VALUES, "B": "[] :b ?w FILTER (?w > 5)"})
    for event in (":e0", ":e2"):
        (cause,) = spaseq.why(query, {"S": tmp_path / "s.nq"}, event=event).causes
        assert (cause.kind, cause.gpm) == ("filter-false", "B")
