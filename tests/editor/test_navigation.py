"""Definitions, uses, new names and the outline. Remedies and the canonical text."""

from __future__ import annotations

import pytest

from spaseq.compile import CompileOptions, check_query
from spaseq.editor.document import Document
from spaseq.editor.navigation import (
    canonical,
    definition,
    findings,
    outline,
    references,
    remedies,
    renamed,
)
from spaseq.errors import UsageError
from spaseq.lang.format import format_query
from spaseq.lang.parser import parse
from tests.editor.queries import QUERY, at
from tests.lang.test_typical_mistakes import GOOD, MISTAKES

DOCUMENT = Document(QUERY)


@pytest.mark.parametrize(
    ("place", "defined"),
    [
        (at("Low:"), at("Low ON")),
        (at("Low") + 3, at("Low ON")),
        (at("High+"), at("High ON")),
        (at("S {"), at("S <")),
        (at("?room"), at("?room", 1)),
        (at("t:Street"), at("t:")),
        (at("WITHIN"), None),
    ],
)
def test_definition(place: int, defined: int | None) -> None:
    span = definition(DOCUMENT, place)
    assert (None if span is None else span.start) == defined


def test_references() -> None:
    starts = [span.start for span in references(DOCUMENT, at("Low:"))]
    assert starts == [at("Low\nFROM"), at("Low:"), at("Low ON"), at("Low)")]
    assert len(references(DOCUMENT, at("?room"))) == QUERY.count("?room")
    assert references(DOCUMENT, at("WITHIN")) == []


@pytest.mark.parametrize(
    ("place", "new"), [(at("Low:"), "Cold"), (at("?room"), "?place"), (at("S {"), "In")]
)
def test_renaming_keeps_the_query_right(place: int, new: str) -> None:
    text = QUERY
    changes = renamed(DOCUMENT, place, new)
    for span, replacement in sorted(changes, key=lambda c: -c[0].start):
        text = text[: span.start] + replacement + text[span.end :]
    old = QUERY[references(DOCUMENT, place)[0].start : references(DOCUMENT, place)[0].end]
    assert {n.name for n in Document(text).names}.isdisjoint({old})
    assert old not in [v.text for v in Document(text).variables]
    before = [d.code for d in check_query(QUERY).diagnostics]
    assert [d.code for d in check_query(text).diagnostics] == before


@pytest.mark.parametrize(
    ("place", "new", "reason"),
    [
        (at("Low:"), "High", "there is a GPM High already"),
        (at("Low:"), "and", "is not a name of a GPM"),
        (at("Low:"), "a b", "is not a name of a GPM"),
        (at("?room"), "?low", "there is a variable ?low already"),
        (at("?room"), "a-b", "is not a name of a variable"),
        (at("WITHIN"), "x", "only GPMs, streams and variables"),
    ],
)
def test_refused_names(place: int, new: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason.replace("?", r"\?")):
        renamed(DOCUMENT, place, new)


def test_outline() -> None:
    found = [(entry.kind, entry.name) for entry in outline(DOCUMENT)]
    assert found == [
        ("stream", "S"),
        ("graph", "<http://example/kb>"),
        ("sequence", "SEQ"),
        ("GPM", "Low"),
        ("GPM", "High"),
        ("GPM", "Off"),
    ]
    for entry in outline(DOCUMENT):
        assert entry.whole.start <= entry.span.start <= entry.span.end <= entry.whole.end


def mistaken() -> list[str]:
    return [GOOD.replace(good, wrong, 1) for good, wrong, *_ in MISTAKES]


@pytest.mark.parametrize("text", mistaken())
def test_a_remedy_removes_its_finding(text: str) -> None:
    document = Document(text)
    for finding in findings(document, CompileOptions()):
        for change in remedies(document, finding):
            new = text[: change.span.start] + change.text + text[change.span.end :]
            said = [(d.code, d.message) for d in check_query(text).diagnostics]
            left = [(d.code, d.message) for d in check_query(new).diagnostics]
            kind = finding.code, finding.message
            assert left.count(kind) < said.count(kind)


def test_a_prefix_line() -> None:
    for head in ("", "# title: Jam\n\n"):
        text = head + GOOD.replace(":celsius ?low", "sosa:x ?low")
        document = Document(text)
        changes = {
            change.title: change
            for finding in findings(document, CompileOptions())
            for change in remedies(document, finding)
        }
        change = changes["Add PREFIX sosa: <http://www.w3.org/ns/sosa/>"]
        new = text[: change.span.start] + change.text + text[change.span.end :]
        assert new.startswith(f"{head}PREFIX sosa:")
        assert not check_query(new).errors


def test_findings_are_those_of_check() -> None:
    for text in mistaken():
        expected = [(d.code, d.span) for d in check_query(text).diagnostics]
        assert [(d.code, d.span) for d in findings(Document(text), CompileOptions())] == expected


def test_canonical() -> None:
    assert canonical(Document(GOOD)) == format_query(parse(GOOD))
    assert canonical(Document(f"# one\n# two\n{GOOD}")) == "# one\n# two\n" + format_query(
        parse(GOOD)
    )


def test_what_is_not_formatted() -> None:
    assert canonical(Document(GOOD + "# last")) is None
    assert canonical(Document(GOOD.replace("SEQ", "SEQ(("))) is None
    assert canonical(Document("")) is None
