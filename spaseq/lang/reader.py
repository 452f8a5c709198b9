"""Reads the sections of a query independently of each other; names stay as written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spaseq.errors import Span
from spaseq.lang import ast
from spaseq.lang.other_languages.foreign_queries import (
    OTHER_FORMS,
    foreign_query,
    foreign_window,
    instead_of_sequence,
)
from spaseq.lang.section_parser import SectionParser
from spaseq.lang.sections import FORMS, OPENINGS, PROLOGUE, GpmSection, Layout, Section, Stray, cut
from spaseq.lang.syntax_errors import Failure, quoted, report

MOST_PAIRS = 100
"""Pairs may nest this deep. Evaluation goes into them one by one."""


def too_deep(sequence: ast.Sequence) -> ast.Bracket | None:
    """The first bracket whose pairs nest too deep, outer before inner; None if there is none."""
    brackets = (s.atom for s in sequence.steps if isinstance(s.atom, ast.Bracket))
    return next((b for b in brackets if _depth(b) > MOST_PAIRS), None)


def _depth(bracket: ast.Bracket) -> int:
    here = len(bracket.operands) - 1 if bracket.kind in ("&", "AND") else 0
    steps = (step for operand in bracket.operands for step in operand.steps)
    inner = (_depth(s.atom) for s in steps if isinstance(s.atom, ast.Bracket))
    return here + max(inner, default=0)


# The keyword that opens a clause -> the part of the query that the clause describes.
_CLAUSES = {
    "BASE": "prologue",
    "PREFIX": "prologue",
    "VERSION": "prologue",
    "REGISTER": "register",
    "SELECT": "form",
    "CONSTRUCT": "form",
    "MAINTAIN": "form",
    "WITHIN": "window",
    "PARTITION": "partition",
    "AFTER": "skip",
    "WHERE": "where",
    "HAVING": "having",
}
_ONCE = ("register", "form", "window", "partition", "skip", "where")
_FULL_NAMES = {"PARTITION": "PARTITION BY", "AFTER": "AFTER MATCH"}
_FOLLOWS = frozenset({*OPENINGS, "SEQ"})


@dataclass
class Reading:
    """The readable parts of a query.

    `clauses` holds the nodes of the header and of HAVING, by the values of `_CLAUSES`, in the order
    of the text.
    """

    clauses: dict[str, list[Any]] = field(default_factory=dict)
    sequence: ast.Sequence | None = None
    gpms: list[ast.Gpm] = field(default_factory=list)
    broken_gpms: set[str] = field(default_factory=set)
    broken_clauses: set[str] = field(default_factory=set)
    unreadable_prefixes: set[str] = field(default_factory=set)

    def nodes(self) -> Iterator[ast.Node]:
        """All nodes that were read."""
        for nodes in self.clauses.values():
            yield from nodes
        if self.sequence is not None:
            yield self.sequence
        yield from self.gpms

    def only(self, clause: str) -> Any:
        """The node of a clause that occurs at most once; None without the clause."""
        return next(iter(self.clauses.get(clause, [])), None)


def read(parser: SectionParser) -> Reading:
    """Read a query with at least one lexeme; errors go to the parser's findings."""
    reader = _Reader(parser)
    reader.read(cut(parser.lexemes, len(parser.text)))
    return reader.reading


@dataclass
class _Reader:
    parser: SectionParser
    reading: Reading = field(default_factory=Reading)
    broken_sections: list[Section] = field(default_factory=list)

    def read(self, layout: Layout) -> None:
        foreign = foreign_query(self.parser.lexemes)
        if foreign is not None:
            self.error(foreign.text, foreign.span)
            self.reading.broken_clauses |= {
                *_CLAUSES.values(),
                "streams",
                "kbs",
                "windows",
                "sequence",
                "gpms",
            }
            return
        self.header(layout.clauses)
        if layout.sequence is not None:
            self.sequence(layout.sequence)
        for gpm in layout.gpms:
            self.gpm(gpm)
        if layout.having is not None:
            self.clause(layout.having)
        self.report_strays(layout.strays)
        self.report_missing(layout)

    # --- sections

    def header(self, clauses: Iterable[Section]) -> None:
        seen: dict[str, Section] = {}
        for section in clauses:
            name = _CLAUSES.get(section.keyword, "from")
            if name in _ONCE and name in seen:
                self.report_duplicate(section, seen[name])
            else:
                seen[name] = section
                self.clause(section)

    def clause(self, section: Section) -> None:
        """Read a clause of the header, or HAVING."""
        from spaseq.lang.grammar.clauses import CLAUSES

        self.check_opening(section)
        name = f"the {_FULL_NAMES.get(section.keyword, section.keyword)} clause"
        span = Span(section.body, section.end)
        nodes = self.parser.parse(CLAUSES[section.keyword], span, name, _FOLLOWS)
        if nodes is None:
            self.broken_clause(section)
            return
        for node in nodes:
            if section.keyword not in ("REGISTER", "HAVING"):
                node = replace(node, span=Span(section.start, node.span.end))
            self.reading.clauses.setdefault(self.clause_name(section), []).append(node)

    def clause_name(self, section: Section) -> str:
        """The part of the query that a section describes; "from" if it cannot be told."""
        if section.keyword != "FROM":
            return _CLAUSES[section.keyword]
        words = self.words(section)
        if words[:2] == ["NAMED", "STREAM"]:
            return "from"
        return {"STREAM": "streams", "NAMED": "kbs", "WINDOW": "windows"}.get(words[0], "from")

    def broken_clause(self, section: Section) -> None:
        self.broken_sections.append(section)
        name = self.clause_name(section)
        if name != "where":  # WHERE describes nothing
            self.reading.broken_clauses.update(
                ("streams", "kbs", "windows") if name == "from" else (name,)
            )
        if section.keyword == "PREFIX":
            names = [i.text for i in self.inside(section) if i.kind in ("pname", "word")] or [""]
            self.reading.unreadable_prefixes.update(name.partition(":")[0] for name in names[:1])

    def sequence(self, section: Section) -> None:
        from spaseq.lang.grammar.patterns import WHOLE_SEQUENCE

        self.check_opening(section)
        span = Span(section.body, section.end)
        nodes = self.parser.parse(WHOLE_SEQUENCE, span, "the sequence", then="'{'")
        if nodes is None:
            self.broken_sections.append(section)
            self.reading.broken_clauses.add("sequence")
        elif (bracket := too_deep(nodes[0])) is not None:
            message = f"the pairs of & and AND nest more than {MOST_PAIRS} deep"
            self.parser.findings.error(message, bracket.span)
            self.reading.broken_clauses.add("sequence")
        else:
            self.reading.sequence = nodes[0]

    def gpm(self, section: GpmSection) -> None:
        from spaseq.lang.grammar.clauses import WHOLE_GPM_HEAD
        from spaseq.lang.grammar.patterns import WHOLE_GROUP

        self.check_opening(section.head)
        span = Span(section.head.body, section.head.end)
        heads = self.parser.parse(WHOLE_GPM_HEAD, span, "the head of a GPM", then="'{'")
        name, streams = (
            (heads[0].name, heads[0].streams) if heads else (self.guessed_name(section.head), ())
        )
        patterns = None
        if section.pattern is not None:
            where = f"GPM {name}" if name else "a GPM"
            patterns = self.parser.parse(WHOLE_GROUP, section.pattern, where, then="DEFINE")
        elif heads:
            self.report_end(section.head.end, f"GPM {name}", "'{'")
        self.keep_gpm(section, name, streams, patterns, complete=bool(heads and patterns))

    def keep_gpm(
        self,
        section: GpmSection,
        name: str | None,
        streams: tuple[ast.GpmSource, ...],
        patterns: Sequence[ast.GroupGraphPattern] | None,
        complete: bool,
    ) -> None:
        if not complete:
            self.broken_sections.append(section.head)
        if name is None:
            self.reading.broken_clauses.add("gpms")
            return
        if not complete:
            self.reading.broken_gpms.add(name)
        end = section.head.end if section.pattern is None else section.pattern.end
        pattern = patterns[0] if patterns else ast.GroupGraphPattern((), span=Span(end, end))
        span = Span(section.head.start, end)
        self.reading.gpms.append(ast.Gpm(name, streams, pattern, span=span))

    def guessed_name(self, head: Section) -> str | None:
        """The name in the broken head of a GPM: the word before ON, or the word after GPM."""
        words = self.words(head)
        texts = [item.text for item in self.inside(head) if item.keyword]
        if words[0] == "GPM":
            return texts[1] if len(texts) > 1 and words[1] != "ON" else None
        return texts[words.index("ON") - 1] if "ON" in words[1:] else None

    def inside(self, section: Section) -> list[Any]:
        span = Span(section.body, section.end)
        return [item for item in self.parser.lexemes if span.start <= item.start < span.end]

    def words(self, section: Section) -> list[str]:
        """The words of a section in upper case; one empty word if it has none."""
        return [item.keyword for item in self.inside(section) if item.keyword] or [""]

    # --- errors

    def check_opening(self, section: Section) -> None:
        """Report a misspelt or missing opening keyword."""
        written, keyword = section.opening, section.keyword
        if written is None:
            span = Span(section.body, section.body + 1)
            self.error(f"{keyword} is missing", span, expected=(keyword,))
        elif written.keyword != keyword:
            self.error(
                f"unexpected {quoted(written.text)}",
                written.span,
                expected=(keyword,),
                suggestion=keyword,
            )

    def report_duplicate(self, section: Section, first: Section) -> None:
        line, _ = self.parser.findings.place(first.start)
        name = _FULL_NAMES.get(section.keyword, section.keyword)
        self.error(
            f"a second {name} clause: the first is in line {line}"
            if section.keyword == first.keyword
            else f"{name} beside {first.keyword} in line {line}: a query has only one of them",
            Span(section.start, section.body),
            code="duplicate-clause",
        )

    def report_strays(self, strays: Iterable[Stray]) -> None:
        for stray in strays:
            if stray.lexeme is not None and stray.lexeme.text.lower() == "@prefix":
                later = (i.text for i in self.parser.lexemes if i.kind == "pname")
                self.reading.unreadable_prefixes.add(next(later, ":").partition(":")[0])
            if stray.after not in self.broken_sections:
                place = len(self.parser.text) if stray.lexeme is None else stray.lexeme.start
                self.report_end(place, "the query", *stray.expected)

    def report_end(self, place: int, where: str, *expected: str) -> None:
        """Report the text at `place`, where only `expected` may stand."""
        whole = Span(0, len(self.parser.text))
        failure = Failure(place, frozenset(expected), whole, where)
        report(failure, self.parser.lexemes, self.parser.findings)

    def report_missing(self, layout: Layout) -> None:
        keywords = [section.keyword for section in layout.clauses]
        if not set(keywords) & set(FORMS):
            self.reading.broken_clauses.add("form")
            after = next((s for s in layout.clauses if s.keyword not in PROLOGUE), None)
            place = layout.header_end if after is None else after.start
            told = any(d.message.endswith(OTHER_FORMS) for d in self.parser.findings.diagnostics)
            if not told and all(stray.expected != OPENINGS for stray in layout.strays):
                self.missing(" or ".join(FORMS[:2]), place)
        if "WITHIN" not in keywords and foreign_window(self.parser.lexemes):
            self.reading.broken_clauses.add("window")
        if layout.sequence is None:
            self.reading.broken_clauses.add("sequence")
            foreign = instead_of_sequence(self.parser.lexemes)
            if foreign is not None:
                self.error(foreign.text, foreign.span, expected=("SEQ",))
            else:
                self.missing("SEQ", layout.header_end)

    def missing(self, keyword: str, place: int) -> None:
        here = [item.span for item in self.parser.lexemes if item.end > place]
        span = here[0] if here else self.parser.lexemes[-1].span
        self.error(f"{keyword} is missing", span, expected=(keyword,))

    def error(self, message: str, span: Span, **details: Any) -> None:
        self.parser.findings.error(message, span, **details)
