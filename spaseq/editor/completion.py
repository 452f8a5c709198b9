"""Completions at a position of a query: keywords, names, variables, functions, IRIs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from spaseq.editor.document import Document
from spaseq.editor.vocabulary import Vocabulary
from spaseq.editor.words import FUNCTIONS, KEYWORDS
from spaseq.errors import QueryText, Span
from spaseq.lang.names import ASSUMED, RDF, RDFS, WELL_KNOWN, XSD
from spaseq.lang.scan import Lexeme, closing_brace, scan
from spaseq.lang.section_parser import SectionParser
from spaseq.lang.sections import FORMS, OPENINGS, PROLOGUE, GpmSection, Layout, Section, cut
from spaseq.lang.syntax_errors import THE_END, UNITS
from spaseq.rdf.geosparql import AGGREGATES, ARITIES, GEOF, MEANINGS

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
    """The possible continuations of a text: the section's keyword, and names of the grammar's
    elements.

    `exact` is false if the section has an error before the place. `before` holds the last lexemes.
    """

    place: Place
    keyword: str
    expected: frozenset[str]
    exact: bool
    before: tuple[Lexeme, ...]


def expectation(text: str) -> Expectation:
    """The possible continuations of the begin of a query."""
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
    from spaseq.lang.grammar.patterns import WHOLE_GROUP, WHOLE_SEQUENCE

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
    """The elements that the grammar expects at the end of a text; None after an error."""
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
    """The possible continuations outside of all sections."""
    if place == "header":
        return _openings(layout)
    if layout.sequence is None:
        return frozenset({"SEQ", "DEFINE"})
    if layout.gpms:
        pattern = layout.gpms[-1].pattern
        if pattern is not None and any(i.span.start >= pattern.end for i in lexemes):
            return frozenset({"HAVING"})
    return frozenset({"DEFINE"})


Sort: TypeAlias = Literal[
    "keyword", "variable", "GPM", "stream", "function", "prefix", "class", "property", "iri"
]

MOST = 300
"""Terms of the knowledge base that are offered at once; typing on shows others."""

_STRATEGIES = ("ALL", "NEXT", "LAST", "MAX", "STRICT")
_DATATYPES = (
    *("string", "boolean", "integer", "decimal", "double", "float", "long", "int"),
    *("date", "dateTime", "time", "duration", "dayTimeDuration"),
)
_FIXED: dict[str, tuple[str, ...]] = {
    "a unit of time": UNITS,
    "a selection strategy": _STRATEGIES,
    "true or false": ("true", "false"),
    "'a'": ("a",),
}
_PHRASES = {
    "AFTER": "AFTER MATCH",
    "PARTITION": "PARTITION BY",
    "DEFINE": "DEFINE GPM",
    "REGISTER": "REGISTER STREAM",
    "GROUP": "GROUP BY",
    "ORDER": "ORDER BY",
}
_WITH_TERMS = ("pattern", "having")
_OF_THE_LANGUAGE = (RDF, RDFS, XSD, WELL_KNOWN["owl"])
"""Namespaces whose classes queries do not use."""

_LONGEST_WORD = 500

_PARTIAL = re.compile(
    r"[?$]\w*\Z"  # a variable
    r"|(?:[^\W\d_][\w-]*)?:[\w:.%-]*\Z"  # a prefixed name
    r"|<[^<>\"{}|^`\\\s]*\Z"  # an IRI
    r"|[^\W\d]\w*\Z"  # a word
)
_WORD = re.compile(r"\w*\Z")


@dataclass(frozen=True, slots=True)
class Completion:
    """One proposal: `text` replaces `span`; `added` goes to the top of the query."""

    label: str
    text: str
    sort: Sort
    span: Span
    detail: str = ""
    added: str = ""


@dataclass(frozen=True, slots=True)
class _Request:
    document: Document
    vocabulary: Vocabulary
    expected: Expectation
    typed: str
    span: Span

    def item(self, text: str, sort: Sort, detail: str = "", added: str = "") -> Completion:
        return Completion(text, text, sort, self.span, detail, added)


def completions(document: Document, offset: int, vocabulary: Vocabulary) -> list[Completion]:
    """The proposals at an offset, the likeliest first. The list never has two of one label."""
    before = document.text[:offset]
    if _in_text(before):
        return []
    start = offset - len(_typed(_PARTIAL, before))
    if start < offset and before[start] not in "?$<" and _sequence_before(before, start):
        start = offset - len(_typed(_WORD, before))
    expected = expectation(before[:start])
    if expected.place == "sequence" and before[start:offset][:1] in ("?", "$"):
        return []  # a quantifier
    request = _Request(document, vocabulary, expected, before[start:], Span(start, offset))
    made = (item for maker in _MAKERS for item in maker(request))
    fitting = (item for item in made if _fits(item, request.typed))
    return list({item.label: item for item in reversed(list(fitting))}.values())[::-1]


def _typed(pattern: re.Pattern[str], before: str) -> str:
    """The begin of a word at the end of a text; the search looks at a bounded part of it."""
    match = pattern.search(before[-_LONGEST_WORD:])
    return "" if match is None else match[0]


def _in_text(before: str) -> bool:
    """Whether the begin of a query ends inside a comment or a string."""
    lexemes = scan(before)
    if (
        lexemes
        and lexemes[-1].span.end == len(before)
        and lexemes[-1].kind in ("comment", "string")
    ):
        return True
    line = max(before.rfind("\n"), before.rfind("\r")) + 1
    for number, lexeme in enumerate(lexemes):
        if lexeme.is_punct('"', "'") and lexeme.span.start >= line:
            return True
        following = lexemes[number + 1].text if number + 1 < len(lexemes) else ""
        if lexeme.text in ('""', "''") and following == lexeme.text[0]:
            return True
    return False


def _sequence_before(before: str, start: int) -> bool:
    """Whether a word or prefixed name that begins at `start` is in a sequence."""
    return expectation(before[:start]).place == "sequence"


def _fits(item: Completion, typed: str) -> bool:
    if item.sort in ("class", "property", "iri"):
        return True  # chosen already, also by label
    return item.text.lower().startswith(typed.lower())


# --- proposals, by kind


def _variables(request: _Request) -> Iterator[Completion]:
    if "a variable" not in request.expected.expected or request.typed[:1] == "<":
        return
    sign = "$" if request.typed.startswith("$") else "?"
    names: dict[str, list[str]] = {}
    for item in request.document.variables:
        if item.span.start != request.span.start:
            gpm = request.document.gpm_at(item.span.start)
            where = names.setdefault(item.text[1:], [])
            if gpm is not None and gpm.name is not None and gpm.name not in where:
                where.append(gpm.name)
    for name, gpms in names.items():
        yield request.item(f"{sign}{name}", "variable", f"in {', '.join(gpms)}" if gpms else "")


def _names(request: _Request) -> Iterator[Completion]:
    expected, document = request.expected, request.document
    if "the name of a GPM" in expected.expected:
        yield from _gpms(request)
    elif "a name" not in expected.expected:
        return
    elif expected.place == "head":
        words = [item.keyword for item in expected.before]
        if words[-1:] == ["GPM"]:
            defined = {gpm.name for gpm in document.gpms if gpm.span.start < request.span.start}
            used = (n for n in document.names if n.kind == "GPM" and not n.defines)
            missing = (n.name for n in used if n.name not in defined)
            for name in missing:
                yield request.item(name, "GPM", "used, but not defined")
        elif "ON" not in expected.expected:
            for stream in document.streams:
                if stream.name is not None:
                    yield request.item(stream.name, "stream", f"<{stream.iri}>")
    elif expected.place == "header" and expected.keyword == "FROM":
        declared = {stream.name for stream in document.streams}
        for used_name in document.names:
            if used_name.kind == "stream" and used_name.name not in declared:
                yield request.item(used_name.name, "stream", "used, but not declared")
    else:  # SKIP TO, TIMESTAMP
        yield from _gpms(request)


def _gpms(request: _Request) -> Iterator[Completion]:
    for gpm in request.document.gpms:
        if gpm.name is not None:
            yield request.item(gpm.name, "GPM", f"over {', '.join(gpm.streams) or 'no stream'}")


def _keywords(request: _Request) -> Iterator[Completion]:
    lower = request.typed.islower()
    for name in sorted(request.expected.expected):
        for word in _FIXED.get(
            name, name.split(" or ") if name.replace(" or ", "").isupper() else ()
        ):
            if not word[:1].isalpha():
                continue
            phrase = _PHRASES.get(word, word)
            shown = phrase.lower() if lower else phrase
            if name in ("'a'", "true or false"):
                shown = word
            yield request.item(shown, "keyword", KEYWORDS.get(word.split()[0].upper(), ""))


def _functions(request: _Request) -> Iterator[Completion]:
    if "a function" in request.expected.expected:
        for name, meaning in FUNCTIONS.items():
            shown = name.lower() if request.typed.islower() else name
            yield Completion(shown, f"{shown}(", "function", request.span, meaning)


def _place_functions(request: _Request) -> Iterator[Completion]:
    """GeoSPARQL's functions, once their prefix or a part of a name is typed."""
    typed = request.typed.lower()
    if "a function" not in request.expected.expected or not typed:
        return
    for name, meaning in {**MEANINGS, **AGGREGATES}.items():
        shown, added = _written(request, GEOF + name)
        if shown.lower().startswith(typed) or name.lower().startswith(typed):
            detail = f"{shown}({_arguments(name)}): {meaning}."
            yield Completion(shown, f"{shown}(", "function", request.span, detail, added)


def _arguments(name: str) -> str:
    least, most = ARITIES.get(name, (1, 1))
    return ", ".join(["a", "b", "c"][:least] + ["[unit]"] * (most - least))


def _terms(request: _Request) -> Iterator[Completion]:
    """Classes and properties, where an IRI may stand."""
    expected, vocabulary = request.expected, request.vocabulary
    template = expected.place == "header" and expected.keyword in ("CONSTRUCT", "MAINTAIN")
    if "an IRI" not in expected.expected or not (template or expected.place in _WITH_TERMS):
        return
    last = expected.before[-1] if expected.before else None
    if last is None or last.text == "^" or last.keyword in ("GRAPH", "SERVICE", "SILENT"):
        return
    if "'a'" in expected.expected:
        yield from _fitting_terms(request, "property", vocabulary.properties)
    elif last.text == "a" or last.text.endswith(":type"):
        yield from _fitting_terms(request, "class", vocabulary.classes)
    elif request.typed:
        yield from _fitting_terms(request, "class", vocabulary.classes)
        yield from _fitting_terms(request, "property", vocabulary.properties)


def _fitting_terms(request: _Request, sort: Sort, iris: Iterable[str]) -> Iterator[Completion]:
    labels = request.vocabulary.labels
    typed = request.typed.lstrip("<").lower()
    ranked: list[tuple[int, str, str, str, str]] = []
    for iri in iris:
        if sort == "class" and iri.startswith(_OF_THE_LANGUAGE):
            continue
        label = labels.get(iri, "")
        text, added = _written(request, iri)
        local = re.split("[#/:]", text.strip("<>"))[-1].lower()
        begins = text.lstrip("<").lower().startswith(typed) or local.startswith(typed)
        if begins or (typed and (typed in local or typed in label.lower())):
            rank = 2 * (not begins) + (text.startswith("<") or bool(added))
            ranked.append((rank, text, label, iri, added))
    for _, text, label, iri, added in sorted(ranked)[:MOST]:
        yield Completion(text, text, sort, request.span, label or f"<{iri}>", added)


def _written(request: _Request, iri: str) -> tuple[str, str]:
    """How a query writes an IRI, and the PREFIX line that this adds."""
    if not request.typed.startswith("<"):
        short = request.document.shortened(iri)
        if short is not None:
            return short, ""
        for prefix, namespace in {**ASSUMED, **WELL_KNOWN}.items():
            local = iri[len(namespace) :]
            fits = iri.startswith(namespace) and re.fullmatch(r"\w[\w-]*", local)
            if fits and prefix not in request.document.prefixes:
                return f"{prefix}:{local}", f"PREFIX {prefix}: <{namespace}>\n"
    return f"<{iri}>", ""


def _iris(request: _Request) -> Iterator[Completion]:
    """Graphs and streams by their IRIs, and datatypes."""
    expected, document = request.expected, request.document
    if "an IRI" not in expected.expected:
        return
    last = expected.before[-1] if expected.before else None
    keyword = "" if last is None else last.keyword
    if keyword == "GRAPH":
        for graph in document.graphs:
            if graph.iri is not None:
                yield from _iri(request, graph.iri, "a graph of the knowledge base")
    elif document.text[: request.span.start].endswith("^^"):
        prefix = next((p for p, n in document.prefixes.items() if n == XSD), "xsd")
        for name in _DATATYPES:
            yield request.item(f"{prefix}:{name}", "class", "a datatype")


def _iri(request: _Request, iri: str, detail: str) -> Iterator[Completion]:
    short = None if request.typed.startswith("<") else request.document.shortened(iri)
    yield Completion(short or f"<{iri}>", short or f"<{iri}>", "iri", request.span, detail)


def _prefixes(request: _Request) -> Iterator[Completion]:
    """Prefixes: declared ones, and well-known ones with the PREFIX line that they need."""
    expected, document = request.expected.expected, request.document
    known = {**ASSUMED, **WELL_KNOWN}
    if "a prefix with a colon" in expected:
        for prefix, namespace in known.items():
            if prefix not in document.prefixes:
                yield request.item(f"{prefix}: <{namespace}>", "prefix")
    elif "an IRI" in expected and not request.typed.startswith("<"):
        for prefix, namespace in document.prefixes.items():
            yield request.item(f"{prefix}:", "prefix", f"<{namespace}>")
        for prefix, namespace in known.items() if request.typed else ():
            if prefix not in document.prefixes:
                line = f"PREFIX {prefix}: <{namespace}>\n"
                yield request.item(f"{prefix}:", "prefix", f"adds {line.strip()}", line)


_MAKERS: tuple[Callable[[_Request], Iterator[Completion]], ...] = (
    _names,
    _variables,
    _iris,
    _terms,
    _prefixes,
    _keywords,
    _functions,
    _place_functions,
)
