"""Remedies and the canonical text."""

from __future__ import annotations

import pytest

from spaseq.compile import CompileOptions, check_query
from spaseq.editor.changes import canonical, findings, remedies
from spaseq.editor.document import Document
from spaseq.lang.format import format_query
from spaseq.lang.parser import parse
from tests.lang.test_typical_mistakes import GOOD, MISTAKES


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
    document = Document(GOOD.replace(":celsius ?low", "sosa:x ?low"))
    titles = [
        change.title
        for finding in findings(document, CompileOptions())
        for change in remedies(document, finding)
    ]
    assert "Add PREFIX sosa: <http://www.w3.org/ns/sosa/>" in titles


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
