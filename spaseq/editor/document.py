"""The names of a query that may be half typed: prefixes, streams, graphs, GPMs, variables.

All of it comes from the tokenizer and the cut into sections, which never fail.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from spaseq.errors import QueryText, Span
from spaseq.lang.iris import is_absolute, resolve
from spaseq.lang.names import ASSUMED
from spaseq.lang.parser import Parsed, parse_source
from spaseq.lang.scan import MOST, Lexeme, blank_comments, scan
from spaseq.lang.sections import GpmSection, Layout, Section, cut

Kind: TypeAlias = Literal["GPM", "stream"]

_NAME = re.compile(r"[^\W\d]\w*")
_IN_BRACKETS = re.compile(r"\[[^\]\[]*\]?")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """A place where the name of a GPM or a stream stands; `defines` if it gets its meaning here."""

    kind: Kind
    name: str
    span: Span
    defines: bool = False


@dataclass(frozen=True, slots=True)
class NamedIri:
    """A stream (with its name) or a graph of the knowledge base (without), with its IRI."""

    name: str | None
    iri: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class GpmPart:
    """A GPM: its name, the names of its streams, its text and its pattern's."""

    name: str | None
    streams: tuple[str, ...]
    span: Span
    pattern: Span | None


class Document:
    """One text of a query. `text` has replacement characters for surrogates, of equal length."""

    def __init__(self, text: str, name: str = "<query>") -> None:
        self.text = _SURROGATE.sub("\ufffd", text)
        self.name = name

    @cached_property
    def scanned(self) -> tuple[Lexeme, ...]:
        """The lexemes with comments."""
        return scan(self.text)[:MOST]

    @cached_property
    def lexemes(self) -> tuple[Lexeme, ...]:
        """The lexemes without comments."""
        return tuple(lexeme for lexeme in self.scanned if lexeme.kind != "comment")

    @property
    def top(self) -> Span:
        """The place of a further first clause: behind the comments that say what the query is."""
        first = self.lexemes[0].start if self.lexemes else 0
        return Span(first, first)

    @cached_property
    def comments(self) -> tuple[Lexeme, ...]:
        """The comments."""
        return tuple(lexeme for lexeme in self.scanned if lexeme.kind == "comment")

    @cached_property
    def plain(self) -> str:
        """The text with blanks over its comments."""
        return blank_comments(self.text, self.scanned)

    @cached_property
    def layout(self) -> Layout:
        """The sections of the query."""
        return cut(self.lexemes, len(self.text))

    @cached_property
    def parsed(self) -> Parsed:
        """The readable parts of the query as a tree."""
        return parse_source(QueryText(self.text, self.name))

    def inside(self, start: int, end: int) -> Iterator[Lexeme]:
        """The lexemes that begin between two offsets."""
        first, last = (bisect_left(self._starts, offset) for offset in (start, end))
        return iter(self.lexemes[first:last])

    @cached_property
    def _starts(self) -> list[int]:
        return [item.span.start for item in self.lexemes]

    def line(self, offset: int) -> int:
        """The line of an offset, counted from 1."""
        return self.text.count("\n", 0, offset) + 1

    # --- prefixes and IRIs

    @cached_property
    def prefix_places(self) -> Mapping[str, Span]:
        """The place of each declared prefix."""
        return {prefix: span for prefix, span, _ in self._declarations()}

    @cached_property
    def prefixes(self) -> Mapping[str, str]:
        """The declared prefixes, without colons."""
        return {prefix: self._absolute(iri) for prefix, _, iri in self._declarations()}

    @cached_property
    def _base(self) -> str | None:
        for section in self.layout.clauses:
            if section.keyword == "BASE":
                for item in self.inside(section.body, section.end):
                    if item.kind == "iri":
                        return item.text[1:-1]
        return None

    def _declarations(self) -> Iterator[tuple[str, Span, str]]:
        for section in self.layout.clauses:
            if section.keyword == "PREFIX":
                items = list(self.inside(section.body, section.end))[:2]
                if [item.kind for item in items] == ["pname", "iri"]:
                    yield items[0].text.partition(":")[0], items[0].span, items[1].text[1:-1]

    def _absolute(self, iri: str) -> str:
        return iri if is_absolute(iri) or self._base is None else resolve(iri, self._base)

    def namespace(self, prefix: str) -> str | None:
        """The namespace of a prefix that is declared, or assumed without a declaration."""
        return self.prefixes.get(prefix, ASSUMED.get(prefix))

    def iri_of(self, lexeme: Lexeme) -> str | None:
        """The IRI of a lexeme; None if it has none."""
        if lexeme.kind == "iri":
            return self._absolute(lexeme.text[1:-1])
        if lexeme.kind != "pname":
            return None
        prefix, _, local = lexeme.text.partition(":")
        namespace = self.namespace(prefix)
        return None if namespace is None else namespace + re.sub(r"\\(.)", r"\1", local)

    def shortened(self, iri: str) -> str | None:
        """An IRI with the longest prefix that fits; None if there is none."""
        fitting = [(len(n), p, n) for p, n in self.prefixes.items() if n and iri.startswith(n)]
        for _, prefix, namespace in sorted(fitting, reverse=True):
            local = iri[len(namespace) :]
            if re.fullmatch(r"(?:\w[\w-]*)?", local):
                return f"{prefix}:{local}"
        return None

    # --- streams, graphs, GPMs

    @cached_property
    def streams(self) -> tuple[NamedIri, ...]:
        """The streams of FROM STREAM."""
        return tuple(self._from("STREAM"))

    @cached_property
    def graphs(self) -> tuple[NamedIri, ...]:
        """The graphs of FROM NAMED."""
        return tuple(self._from("NAMED"))

    def _from(self, keyword: str) -> Iterator[NamedIri]:
        for section in self.layout.clauses:
            items = list(self.inside(section.body, section.end))
            if section.keyword != "FROM" or not items or items[0].keyword != keyword:
                continue
            iri = next((i for i in map(self.iri_of, items) if i is not None), None)
            if keyword == "NAMED" and iri is not None:
                yield NamedIri(None, iri, items[-1].span)
            elif keyword == "STREAM" and len(items) > 1 and items[1].keyword:
                yield NamedIri(items[1].text, iri, items[1].span)

    @cached_property
    def gpms(self) -> tuple[GpmPart, ...]:
        """The GPMs, in the order of the text."""
        return tuple(self._gpm(section) for section in self.layout.gpms)

    def _gpm(self, section: GpmSection) -> GpmPart:
        places = list(self._head_places(section.head))
        name = next((p.name for p in places if p.kind == "GPM"), None)
        streams = tuple(p.name for p in places if p.kind == "stream")
        end = section.head.end if section.pattern is None else section.pattern.end
        return GpmPart(name, streams, Span(section.head.start, end), section.pattern)

    @cached_property
    def names(self) -> tuple[NamedPlace, ...]:
        """Every place of the name of a GPM or stream, in the order of the text."""
        places = [NamedPlace("stream", s.name, s.span, True) for s in self.streams if s.name]
        if self.layout.sequence is not None:
            places += self._sequence_places(self.layout.sequence)
        for section in self.layout.gpms:
            places += self._head_places(section.head)
        places += self._function_places()
        for clause in self.layout.clauses:
            if clause.keyword == "AFTER":
                places += self._skip_places(clause)
        return tuple(sorted(places, key=lambda place: place.span.start))

    def _head_places(self, head: Section) -> Iterator[NamedPlace]:
        words = [item for item in self.inside(head.body, head.end) if item.keyword]
        if words and words[0].keyword == "GPM":
            words = words[1:]
        on = next((n for n, item in enumerate(words) if item.keyword == "ON" and n), None)
        if words and (on is not None or words[0].keyword != "ON"):
            yield NamedPlace("GPM", words[0].text, words[0].span, True)
        for item in words[on + 1 :] if on is not None else ():
            yield NamedPlace("stream", item.text, item.span)

    def _sequence_places(self, section: Section) -> Iterator[NamedPlace]:
        text = self.plain[section.body : section.end]
        text = _IN_BRACKETS.sub(lambda match: " " * len(match[0]), text)
        for match in _NAME.finditer(text):
            if match[0].upper() not in ("AND", "UNTIL"):
                span = Span(section.body + match.start(), section.body + match.end())
                yield NamedPlace("GPM", match[0], span)

    def _function_places(self) -> Iterator[NamedPlace]:
        items = self.lexemes
        for first, bracket, name in zip(items, items[1:], items[2:], strict=False):
            if first.keyword == "TIMESTAMP" and bracket.is_punct("(") and name.keyword:
                yield NamedPlace("GPM", name.text, name.span)

    def _skip_places(self, section: Section) -> Iterator[NamedPlace]:
        items = list(self.inside(section.body, section.end))
        for to, which, name in zip(items, items[1:], items[2:], strict=False):
            if to.keyword == "TO" and which.keyword in ("FIRST", "LAST") and name.keyword:
                yield NamedPlace("GPM", name.text, name.span)

    def name_at(self, offset: int) -> NamedPlace | None:
        """The name of a GPM or stream at an offset."""
        return next((n for n in self.names if n.span.start <= offset < n.span.end), None)

    def in_sequence(self, offset: int) -> bool:
        """Whether an offset lies in the brackets of SEQ."""
        section = self.layout.sequence
        return section is not None and section.body < offset <= section.end

    # --- variables

    @cached_property
    def variables(self) -> tuple[Lexeme, ...]:
        """Every place of a variable outside the sequence, where ? is a quantifier."""
        return tuple(
            item
            for item in self.lexemes
            if item.kind == "var" and not self.in_sequence(item.span.start)
        )

    def lexeme_at(self, offset: int) -> Lexeme | None:
        """The lexeme at an offset, also a comment."""
        return next((i for i in self.scanned if i.span.start <= offset < i.span.end), None)

    def gpm_at(self, offset: int) -> GpmPart | None:
        """The GPM whose text holds an offset."""
        return next((g for g in self.gpms if g.span.start <= offset < g.span.end), None)
