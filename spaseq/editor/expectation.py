"""What the grammar expects at a place, from the text before it.

The section around the place is parsed up to there with the grammar's own elements, which note what
they expected at the furthest place. A section that is wrong earlier tells nothing; then the section
alone says what usually stands in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from spaseq.errors import QueryText
from spaseq.lang.brackets import closing_brace
from spaseq.lang.scan import Lexeme
from spaseq.lang.section_parser import SectionParser
from spaseq.lang.sections import FORMS, OPENINGS, PROLOGUE, GpmSection, Layout, Section, cut
from spaseq.lang.syntax_errors import THE_END

if TYPE_CHECKING:
    from pyparsing import ParserElement

Place: TypeAlias = Literal["header", "sequence", "head", "pattern", "body", "having", "end"]

LONGEST_SECTION = 20_000
"""A longer section is not parsed for a completion, in characters."""

_USUAL: Mapping[Place, frozenset[str]] = {
    "header": frozenset({"a variable", "an IRI", *OPENINGS, "SEQ"}),
    "sequence": frozenset({"the name of a GPM", "AND", "UNTIL"}),
    "head": frozenset({"ON", "a name"}),
    "pattern": frozenset(
        {"a variable", "an IRI", "a function"}
        | set("FILTER OPTIONAL UNION MINUS GRAPH SERVICE BIND VALUES EXISTS".split())  # noqa: SIM905
        | {"NOT EXISTS"}
    ),
    "having": frozenset({"a variable", "a function"}),
}


@dataclass(frozen=True, slots=True)
class Expectation:
    """What may follow a text: the section's keyword, and the grammar's names of what may stand.

    `exact` is false if the section has an error before the place. `before` holds the last lexemes.
    """

    place: Place
    keyword: str
    expected: frozenset[str]
    exact: bool
    before: tuple[Lexeme, ...]


def expectation(text: str) -> Expectation:
    """What may follow the begin of a query."""
    parser = SectionParser.of(QueryText(text))
    layout = cut(parser.lexemes, len(parser.text))
    before = parser.lexemes[-3:]
    place, section, element = _innermost(parser.lexemes, layout)
    if section is None:
        return Expectation(place, "", _after(place, layout, parser.lexemes), True, before)
    start = section.body if place != "pattern" else section.end
    expected = None if element is None else _continuations(element, parser.text[start:])
    if expected is None:
        usual = _USUAL.get(place, frozenset())
        return Expectation(place, section.keyword, usual, False, before)
    if place == "header" and THE_END in expected:
        expected |= _openings(layout)
    return Expectation(place, section.keyword, expected, True, before)


def _innermost(
    lexemes: Sequence[Lexeme], layout: Layout
) -> tuple[Place, Section | None, ParserElement | None]:
    """The section at the end of the text, and the element that parses it."""
    from spaseq.lang.grammar.clauses import CLAUSES, WHOLE_GPM_HEAD
    from spaseq.lang.grammar.patterns import WHOLE_GROUP
    from spaseq.lang.grammar.sequences import WHOLE_SEQUENCE

    if layout.having is not None:
        return "having", layout.having, CLAUSES["HAVING"]
    if layout.gpms:
        gpm = layout.gpms[-1]
        if gpm.pattern is None:
            return "head", gpm.head, WHOLE_GPM_HEAD
        return ("body", None, None) if _closed(lexemes, gpm) else ("pattern", gpm.head, WHOLE_GROUP)
    if layout.sequence is not None:
        depth = 0
        inside = [i for i in lexemes if i.span.start >= layout.sequence.body]
        for item in inside:
            depth += item.is_punct("(") - item.is_punct(")")
            if item.is_punct(")") and depth <= 0:
                return "body", None, None
        return "sequence", layout.sequence, WHOLE_SEQUENCE
    if any(item.span.start >= layout.header_end for item in lexemes):
        return "body", None, None
    if not layout.clauses:
        return "header", None, None
    last = layout.clauses[-1]
    return "header", last, CLAUSES[last.keyword]


def _closed(lexemes: Sequence[Lexeme], gpm: GpmSection) -> bool:
    assert gpm.pattern is not None
    starts = [item.span.start for item in lexemes]
    return closing_brace(lexemes, starts.index(gpm.pattern.start), len(lexemes)) is not None


def _continuations(element: ParserElement, text: str) -> frozenset[str] | None:
    """What the grammar expects at the end of a text; None if it does not get so far."""
    from pyparsing import ParseBaseException

    from spaseq.lang.grammar.rules import Passage

    if len(text) > LONGEST_SECTION:
        return None
    passage = Passage(text)
    whole = False
    try:
        element.parse_string(passage)
        whole = True
    except ParseBaseException:
        pass
    except RecursionError:
        return None
    expected = passage.expected if passage.furthest >= len(text.rstrip()) else frozenset()
    if whole:
        return expected | {THE_END}
    return expected or None


def _openings(layout: Layout) -> frozenset[str]:
    """The clauses that may follow in the header."""
    used = {section.keyword for section in layout.clauses}
    if used <= set(PROLOGUE):
        return frozenset({*PROLOGUE, "REGISTER", *FORMS})
    if not used & set(FORMS):
        return frozenset(FORMS)
    later = OPENINGS[OPENINGS.index("WITHIN") :]
    return frozenset({"FROM", "SEQ", *(k for k in later if k not in used)})


def _after(place: Place, layout: Layout, lexemes: Sequence[Lexeme]) -> frozenset[str]:
    """What may follow outside of all sections."""
    if place == "header":
        return _openings(layout)
    if layout.sequence is None:
        return frozenset({"SEQ", "DEFINE"})
    if layout.gpms:
        pattern = layout.gpms[-1].pattern
        if pattern is not None and any(i.span.start >= pattern.end for i in lexemes):
            return frozenset({"HAVING"})
    return frozenset({"DEFINE"})
