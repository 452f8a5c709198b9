"""RDF terms as canonical N-Triples text: building, splitting and converting them; IRIs of
vocabularies; values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import pyoxigraph

from spaseq.rdf.terms.triple_terms import is_triple_term, triple_term_parts, with_blank_nodes
from spaseq.text_patterns import late_pattern

if TYPE_CHECKING:
    import rdflib.term

XSD: Final = "http://www.w3.org/2001/XMLSchema#"
RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS: Final = "http://www.w3.org/2000/01/rdf-schema#"
OWL: Final = "http://www.w3.org/2002/07/owl#"

XSD_STRING: Final = XSD + "string"
XSD_DATE_TIME: Final = XSD + "dateTime"
XSD_DATE_TIME_STAMP: Final = XSD + "dateTimeStamp"
LANG_STRING: Final = RDF + "langString"
DIR_LANG_STRING: Final = RDF + "dirLangString"
CDT_LIST: Final = "http://w3id.org/awslabs/neptune/SPARQL-CDTs/List"

GENERATED_AT_TIME: Final = "http://www.w3.org/ns/prov#generatedAtTime"

INTEGER_TYPES: Final = frozenset(
    XSD + name
    for name in (
        "integer",
        "long",
        "int",
        "short",
        "byte",
        "nonNegativeInteger",
        "positiveInteger",
        "nonPositiveInteger",
        "negativeInteger",
        "unsignedLong",
        "unsignedInt",
        "unsignedShort",
        "unsignedByte",
    )
)
"""`xsd:integer` and the datatypes derived from it (XML Schema part 2, section 3.4)."""

_IRI = r'<[^<>"{}|^`\\\x00-\x20]*>'
_ITEM = late_pattern(
    rf'null|{_IRI}|_:[^\s,\]]+|"(?:[^"\\]|\\.)*"(?:\^\^{_IRI}|@[A-Za-z0-9-]+)?', re.DOTALL
)
_COMMA = late_pattern(r"\s*,\s*")


def list_lexical(items: Sequence[str | None]) -> str:
    """The lexical form of a `cdt:List` of N-Triples texts; None is `null`."""
    return "[" + ", ".join("null" if item is None else item for item in items) + "]"


def list_items(lexical: str) -> list[str | None]:
    """The N-Triples texts in the lexical form of a `cdt:List`, None for `null`.

    ValueError if the form is not valid.
    """
    body = lexical.strip()
    if body[:1] != "[" or body[-1:] != "]" or len(body) < 2:
        raise ValueError(f"{lexical!r} is not a list")
    body = body[1:-1].strip()
    items: list[str | None] = []
    at = 0
    while at < len(body):
        item = _ITEM.match(body, at)
        if item is None:
            raise ValueError(f"{lexical!r} is not a list of terms")
        items.append(None if item.group() == "null" else item.group())
        at = item.end()
        if at == len(body):
            break
        comma = _COMMA.match(body, at)
        if comma is None or comma.end() == len(body):
            raise ValueError(f"{lexical!r} is not a list of terms")
        at = comma.end()
    return items


_INTEGER = late_pattern(r"[+-]?[0-9]+")
_DECIMAL = late_pattern(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = late_pattern(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?INF|NaN")
_ZONE = r"(?:(Z)|([+-])([0-9]{2}):([0-9]{2}))?"
_DATE = late_pattern(rf"([0-9]{{4}})-([0-9]{{2}})-([0-9]{{2}}){_ZONE}")
_DATETIME = late_pattern(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?" + _ZONE
)
_SPACE = "\t\n\r "  # XML Schema's whiteSpace="collapse" removes these


def python_value(lexical: str, datatype: str) -> Any:
    """The Python value of a lexical form, or the form itself if there is no such value.

    A dateTime with a zone becomes an aware datetime, one without a zone a naive one. Digits beyond
    the microsecond are cut off. `xsd:date` becomes a date without its zone.
    """
    convert = _CONVERSIONS.get(datatype)
    if convert is None:
        return lexical
    try:
        return convert(lexical.strip(_SPACE))
    except (ValueError, OverflowError):
        return lexical


def _require(pattern: re.Pattern[str], lexical: str) -> re.Match[str]:
    match = pattern.fullmatch(lexical)
    if match is None:
        raise ValueError(lexical)
    return match


def _integer(lexical: str) -> int:
    return int(_require(_INTEGER, lexical).group())


def _decimal(lexical: str) -> Decimal:
    return Decimal(_require(_DECIMAL, lexical).group())


def _double(lexical: str) -> float:
    return float(_require(_DOUBLE, lexical).group())


def _boolean(lexical: str) -> bool:
    values = {"true": True, "1": True, "false": False, "0": False}
    if lexical not in values:
        raise ValueError(lexical)
    return values[lexical]


def _zone(z: str | None, sign: str | None, hours: str, minutes: str) -> timezone | None:
    if z is None and sign is None:
        return None
    if z is not None:
        return UTC
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    return timezone(-offset if sign == "-" else offset)


def _date(lexical: str) -> date:
    year, month, day, *_ = _require(_DATE, lexical).groups()
    return date(int(year), int(month), int(day))


def _datetime(lexical: str) -> datetime:
    *fields, fraction, z, sign, zh, zm = _require(_DATETIME, lexical).groups()
    year, month, day, hour, minute, second = map(int, fields)
    midnight = (hour, minute, second) == (24, 0, 0) and not (fraction or "").strip("0")
    micros = int((fraction or "")[:6].ljust(6, "0"))
    at = datetime(
        year, month, day, 0 if midnight else hour, minute, second, micros, _zone(z, sign, zh, zm)
    )
    return at + timedelta(days=1) if midnight else at


_CONVERSIONS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(INTEGER_TYPES, _integer),
    XSD + "decimal": _decimal,
    XSD + "double": _double,
    XSD + "float": _double,
    XSD + "boolean": _boolean,
    XSD_DATE_TIME: _datetime,
    XSD_DATE_TIME_STAMP: _datetime,
    XSD + "date": _date,
}

Kind: TypeAlias = Literal["iri", "bnode", "literal", "triple"]

Triple: TypeAlias = tuple[str, str, str]
"""Canonical N-Triples texts of subject, predicate and object."""

_NOT_IN_IRI = late_pattern(r'[\x00-\x20<>"{}|^`\\]')
_LANGUAGE = late_pattern(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*(--(ltr|rtl))?")

_NAMED = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 0x22: '\\"', 0x5C: "\\\\"}
_ESCAPES = {c: f"\\u{c:04X}" for c in (*range(0x20), 0x7F, 0xFFFE, 0xFFFF)} | _NAMED
_NEEDS_ESCAPE = late_pattern('[\x00-\x1f"\\\\\x7f\ufffe\uffff]')
_RARE_ESCAPES = {c: text for c, text in _ESCAPES.items() if chr(c) not in '\\"\n'}
_NEEDS_RARE_ESCAPE = late_pattern("[\x00-\x09\x0b-\x1f\x7f\ufffe\uffff]")

_UNNAMED = {v[1]: chr(k) for k, v in _NAMED.items()} | {"'": "'"}
_ESCAPE = late_pattern(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)


class Term(str):
    """An RDF term: its canonical N-Triples text, with conversions.

    Two terms are equal if and only if they are the same RDF term.

    >>> Term('"16"^^<http://www.w3.org/2001/XMLSchema#integer>').to_python()
    16
    """

    __slots__ = ()

    @property
    def kind(self) -> Kind:
        """`iri`, `bnode`, `literal` or `triple`."""
        return kind_of(self)

    def n3(self) -> str:
        """The N-Triples text as a plain string."""
        return str.__str__(self)

    def to_python(self) -> Any:
        """The nearest Python value.

        A literal becomes int, Decimal, float, bool, datetime, date or str, and a `cdt:List` a list.
        A literal of any other datatype, or with an invalid lexical form, becomes its lexical form.
        An IRI becomes a str without brackets, a blank node its `_:label`, a triple term a tuple of
        three `Term`s.
        """
        match self.kind:
            case "literal":
                lexical, datatype, _ = split_literal(self)
                return (
                    _list_value(lexical)
                    if datatype == CDT_LIST
                    else python_value(lexical, datatype)
                )
            case "iri":
                return self[1:-1]
            case "triple":
                return tuple(map(Term, triple_term_parts(self)))
            case _:
                return self.n3()

    def to_rdflib(self) -> rdflib.term.Identifier:
        """The same term as an rdflib term. The lexical form does not change.

        Raises:
            ValueError: it is a triple term or has a base direction, which rdflib does not have.
        """
        import rdflib.term as r  # importing it takes 0.3 s, which most runs do not need

        match self.kind:
            case "iri":
                return r.URIRef(self[1:-1])
            case "bnode":
                return r.BNode(self[2:])
            case "triple":
                raise ValueError(f"rdflib has no triple terms: {self}")
            case _:
                lexical, datatype, language = split_literal(self)
                if datatype == DIR_LANG_STRING:
                    raise ValueError(f"rdflib has no base directions: {self}")
                if language is not None:
                    return r.Literal(lexical, lang=language)
                typed = None if datatype == XSD_STRING else r.URIRef(datatype)
                return r.Literal(lexical, datatype=typed, normalize=False)

    def to_sparql_json(self) -> dict[str, Any]:
        """The term as an object of SPARQL Query Results JSON (section 3.2.2).

        A triple term is an object of its three terms, as in SPARQL 1.2.
        """
        match self.kind:
            case "iri":
                return {"type": "uri", "value": self[1:-1]}
            case "bnode":
                return {"type": "bnode", "value": self[2:]}
            case "triple":
                return {"type": "triple", "value": triple_json(triple_term_parts(self))}
            case _:
                return _literal_json(*split_literal(self))


def triple_json(triple: Triple) -> dict[str, Any]:
    """The triple as an object of three SPARQL 1.2 JSON terms."""
    places = ("subject", "predicate", "object")
    return {p: Term(text).to_sparql_json() for p, text in zip(places, triple, strict=True)}


def _literal_json(lexical: str, datatype: str, language: str | None) -> dict[str, str]:
    out = {"type": "literal", "value": lexical}
    if language is not None:
        out["xml:lang"], _, direction = language.partition("--")
        if direction:
            out["its:dir"] = direction
    elif datatype != XSD_STRING:
        out["datatype"] = datatype
    return out


def _list_value(lexical: str) -> Any:
    try:
        return [None if item is None else Term(item).to_python() for item in list_items(lexical)]
    except ValueError:
        return lexical


def kind_of(text: str) -> Kind:
    """The kind of the term with this N-Triples text."""
    match text[0]:
        case "<":
            return "triple" if is_triple_term(text) else "iri"
        case "_":
            return "bnode"
        case _:
            return "literal"


def is_rdf_term(text: str) -> bool:
    """Whether RDF allows the IRI in a term's text: it must be valid and absolute.

    A query can build other IRIs, as `IRI("a b")` does. No file can hold them.
    """
    match kind_of(text):
        case "iri":
            return is_absolute_iri(text[1:-1])
        case "literal" if text[-1] == ">":
            return is_absolute_iri(split_literal(text)[1])
        case "triple":
            return all(map(is_rdf_term, triple_term_parts(text)))
        case _:
            return True


@lru_cache(maxsize=16_384)
def is_absolute_iri(iri: str) -> bool:
    """Whether a text is a valid IRI with a scheme."""
    try:
        pyoxigraph.NamedNode(iri)
    except ValueError:
        return False
    return True


def iri_text(iri: str) -> str:
    """`<iri>`; ValueError if it contains a character that no IRI can have."""
    if (wrong := _NOT_IN_IRI.search(iri)) is not None:
        raise ValueError(f"{iri!r} is not an IRI: it contains {wrong.group()!r}")
    return f"<{iri}>"


def bnode_text(label: str) -> str:
    """`_:label`; ValueError if N-Triples does not allow the label."""
    return str(pyoxigraph.BlankNode(label))


def literal_text(lexical: str, datatype: str = XSD_STRING, language: str | None = None) -> str:
    """The canonical text of a literal. A language tag takes precedence over the datatype.

    ValueError for a malformed language tag or datatype IRI.
    """
    escaped = _escaped(lexical) if _NEEDS_ESCAPE.search(lexical) else lexical
    if language is not None:
        if _LANGUAGE.fullmatch(language) is None:
            raise ValueError(f"{language!r} is not a language tag")
        return f'"{escaped}"@{language.lower()}'
    if datatype == XSD_STRING:
        return f'"{escaped}"'
    return f'"{escaped}"^^{_datatype_text(datatype)}'


def _escaped(lexical: str) -> str:
    """The text with escapes; `str.translate` looks up each character, so it has the rare ones."""
    text = lexical.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return text.translate(_RARE_ESCAPES) if _NEEDS_RARE_ESCAPE.search(text) else text


_datatype_text = lru_cache(maxsize=256)(iri_text)  # a query names few datatypes


def split_literal(text: str) -> tuple[str, str, str | None]:
    """(lexical form, datatype IRI, language or None) of a literal's N-Triples text.

    The base direction stays behind the language: `ar--rtl`.

    >>> split_literal('"chat"@fr')
    ('chat', 'http://www.w3.org/1999/02/22-rdf-syntax-ns#langString', 'fr')
    """
    close = text.rfind('"')
    if close <= 0 or text[0] != '"':
        raise ValueError(f"{text!r} is not a literal")
    lexical = text[1:close]
    if "\\" in lexical:
        lexical = _ESCAPE.sub(_unescape, lexical)
    match text[close + 1 : close + 2]:
        case "":
            return lexical, XSD_STRING, None
        case "@":
            tag = text[close + 2 :]
            return lexical, DIR_LANG_STRING if "--" in tag else LANG_STRING, tag
        case _:
            return lexical, text[close + 4 : -1], None


def plain_text(text: str) -> str:
    """A term as people read it: an IRI without brackets, a lexical form, or `_:label`.

    >>> plain_text("<http://example/a>"), plain_text('"18"@en')
    ('http://example/a', '18')
    """
    match kind_of(text):
        case "iri":
            return text[1:-1]
        case "bnode" | "triple":
            return text
        case _:
            return split_literal(text)[0]


def _unescape(escape: re.Match[str]) -> str:
    four, eight, one = escape.groups()
    if one is not None:
        return _UNNAMED[one]
    return chr(int(four or eight, 16))


def from_rdflib(term: rdflib.term.Identifier) -> str:
    """The canonical text of an rdflib term; ValueError if N-Triples cannot write it."""
    import rdflib.term as r

    match term:
        case r.URIRef():
            return iri_text(str(term))
        case r.BNode():
            return bnode_text(str(term))
        case r.Literal():
            return literal_text(str(term), str(term.datatype or XSD_STRING), term.language)
        case _:
            raise ValueError(f"{term!r} is neither IRI, blank node nor literal")


def from_pyoxigraph(term: object) -> str:
    """The canonical text of a pyoxigraph term."""
    return f"<<( {term} )>>" if isinstance(term, pyoxigraph.Triple) else str(term)


def scoped_term(
    stream: str, time: int, k: int, text: str, own: Container[str] | None = None
) -> str:
    """The text of an event's term in answers: its blank nodes get the event's labels.

    If `own` is given, other blank nodes than these are not the event's, and stay.
    `stream` is the stream's IRI, `(time, k)` the event's instant (time in ms). Equal arguments give
    equal text. A label holds 64 bits of a hash, so different nodes get different labels. If k is
    negative, it is not known yet, and `numbered_term` makes the labels later.
    """

    def rename(blank: str) -> str:
        if own is not None and blank not in own:
            return blank
        return f"{UNNUMBERED}{blank[2:]}" if k < 0 else _answer_label(stream, time, k, blank[2:])

    return with_blank_nodes(text, rename)


UNNUMBERED = "_:\ue000"
"""Begins blank nodes of events whose k is not known yet; no document may have such a label."""


def numbered_term(stream: str, time: int, k: int, text: str) -> str:
    """The text that `scoped_term` would have made, had it known k.

    >>> later = scoped_term("http://e/s", 5, -1, "_:a")
    >>> numbered_term("http://e/s", 5, 3, later) == scoped_term("http://e/s", 5, 3, "_:a")
    True
    """

    def rename(blank: str) -> str:
        if not blank.startswith(UNNUMBERED):
            return blank
        return _answer_label(stream, time, k, blank.removeprefix(UNNUMBERED))

    return with_blank_nodes(text, rename)


def _answer_label(stream: str, time: int, k: int, label: str) -> str:
    key = "\0".join((stream, str(time), str(k), label))
    return "_:b" + blake2b(key.encode(), digest_size=8).hexdigest()
