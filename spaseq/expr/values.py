"""Terms as values: decoding N-Triples text into Python values, and writing values as terms.

| term | value |
|---|---|
| xsd:integer and the types derived from it | `int` |
| xsd:decimal, xsd:float, xsd:double | `Decimal`, `Float`, `float` |
| xsd:boolean, xsd:string | `bool`, `str` |
| language-tagged string | `LangString` |
| xsd:dateTime, date, time, gYear ... ; durations | `Moment`; `Duration` |
| IRI, blank node, triple term | `IriValue`, `BlankNodeValue`, `TripleTermValue` |
| literal of an unknown datatype, or ill-typed | `Opaque` |

A value keeps neither the lexical form nor the derived datatype of its term. Functions that need
those (`STR`, `DATATYPE`, `sameTerm`) and projection work on texts.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any, TypeAlias

from spaseq.expr import numbers
from spaseq.expr.numbers import Float
from spaseq.expr.temporal import (
    DURATION_KINDS,
    MOMENT_KINDS,
    Duration,
    Moment,
    parse_duration,
    parse_moment,
    write_duration,
    write_moment,
)
from spaseq.rdf.terms.term import XSD, XSD_STRING, iri_text, literal_text, split_literal
from spaseq.rdf.terms.triple_terms import is_triple_term, triple_term_parts, triple_term_text
from spaseq.records import record


@record
class IriValue:
    """An IRI, without angle brackets."""

    value: str


@record
class BlankNodeValue:
    """A blank node, its label without `_:`."""

    label: str


@record
class TripleTermValue:
    """A triple term (RDF 1.2); its terms as N-Triples texts."""

    terms: tuple[str, str, str]


@record
class LangString:
    """A language-tagged string; the tag is in lower case, with the base direction: `ar--rtl`."""

    text: str
    language: str


@record
class Opaque:
    """A literal without a known value: of an unknown datatype, or ill-typed."""

    lexical: str
    datatype: str


Value: TypeAlias = (
    bool
    | int
    | Decimal
    | Float
    | float
    | str
    | LangString
    | Moment
    | Duration
    | IriValue
    | BlankNodeValue
    | TripleTermValue
) | Opaque

TRUE = f'"true"^^<{XSD}boolean>'
FALSE = f'"false"^^<{XSD}boolean>'

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def parse_boolean(lexical: str) -> bool:
    """The value of an xsd:boolean lexical form; ValueError if it is none."""
    if lexical not in _BOOLEANS:
        raise ValueError(lexical)
    return _BOOLEANS[lexical]


def _parse_derived(datatype: str, lexical: str) -> int:
    value = numbers.parse_integer(lexical)
    if not numbers.in_range(value, datatype):
        raise ValueError(lexical)
    return value


PARSERS: dict[str, Callable[[str], Value]] = {
    XSD_STRING: str,
    XSD + "boolean": parse_boolean,
    XSD + "decimal": numbers.parse_decimal,
    XSD + "float": numbers.parse_float,
    XSD + "double": numbers.parse_double,
    **{XSD + name: partial(_parse_derived, name) for name in numbers.INTEGER_RANGES},
    **{XSD + name: partial(parse_moment, name) for name in MOMENT_KINDS},
    **{XSD + name: partial(parse_duration, name) for name in DURATION_KINDS},
    XSD + "integer": numbers.parse_integer,
}
"""By datatype IRI: from lexical form to value; ValueError if the datatype has no such form."""


def decode_uncached(text: str) -> Value:
    """The value of a term given as N-Triples text. Never fails on such text."""
    match text[0]:
        case "<":
            if is_triple_term(text):
                return TripleTermValue(triple_term_parts(text))
            return IriValue(text[1:-1])
        case "_":
            return BlankNodeValue(text[2:])
    lexical, datatype, language = split_literal(text)
    if language is not None:
        return LangString(lexical, language)
    try:
        return PARSERS[datatype](lexical)
    except (KeyError, ValueError, ArithmeticError):
        return Opaque(lexical, datatype)


_CACHE_LIMIT = 1 << 16
_cache: dict[str, Value] = {}


def decode(text: str) -> Value:
    """`decode_uncached` with a cache of some ten thousand terms."""
    try:
        return _cache[text]
    except KeyError:
        pass
    if len(_cache) >= _CACHE_LIMIT:
        _cache.clear()
    value = _cache[text] = decode_uncached(text)
    return value


_WRITERS: dict[type, Callable[[Any], str]] = {
    bool: lambda v: TRUE if v else FALSE,
    int: lambda v: f'"{numbers.write_integer(v)}"^^<{XSD}integer>',
    Decimal: lambda v: f'"{numbers.write_decimal(v)}"^^<{XSD}decimal>',
    Float: lambda v: f'"{numbers.write_double(v)}"^^<{XSD}float>',
    float: lambda v: f'"{numbers.write_double(v)}"^^<{XSD}double>',
    str: literal_text,
    LangString: lambda v: literal_text(v.text, language=v.language),
    Moment: lambda v: f'"{write_moment(v)}"^^<{XSD}{v.kind}>',
    Duration: lambda v: f'"{write_duration(v)}"^^<{XSD}{v.kind}>',
    IriValue: lambda v: iri_text(v.value),
    BlankNodeValue: lambda v: f"_:{v.label}",
    TripleTermValue: lambda v: triple_term_text(*v.terms),
    Opaque: lambda v: literal_text(v.lexical, v.datatype),
}


def encode(value: Value) -> str:
    """The N-Triples text of a value; numbers, booleans and moments in canonical form."""
    return _WRITERS[type(value)](value)
