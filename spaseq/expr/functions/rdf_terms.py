"""Functions on RDF terms (SPARQL 1.2 section 17.4.2)."""

from __future__ import annotations

import re
import uuid

from spaseq.expr.env import ExpressionError
from spaseq.expr.functions.registry import builtin
from spaseq.expr.numbers import is_number
from spaseq.expr.values import BlankNodeValue, IriValue, LangString, Value
from spaseq.rdf.terms.term import DIR_LANG_STRING, LANG_STRING, kind_of, literal_text, split_literal
from spaseq.rdf.terms.triple_terms import is_triple_term, triple_term_parts, triple_term_text

_LANGUAGE_TAG = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")


def _literal(term: str) -> tuple[str, str, str | None]:
    if term[0] != '"':
        raise ExpressionError("not a literal")
    return split_literal(term)


@builtin("ISIRI", 1, takes_terms=True)
@builtin("ISURI", 1, takes_terms=True)
def is_iri(term: str) -> bool:
    return kind_of(term) == "iri"


@builtin("ISBLANK", 1, takes_terms=True)
def is_blank(term: str) -> bool:
    return term[0] == "_"


@builtin("ISLITERAL", 1, takes_terms=True)
def is_literal(term: str) -> bool:
    return term[0] == '"'


@builtin("ISNUMERIC", 1)
def is_numeric(value: Value) -> bool:
    return is_number(value)


@builtin("SAMETERM", 2, takes_terms=True)
def same_term(a: str, b: str) -> bool:
    return a == b


@builtin("STR", 1, takes_terms=True)
def lexical_form(term: str) -> str:
    if kind_of(term) == "iri":
        return term[1:-1]
    return _literal(term)[0]


@builtin("LANG", 1, takes_terms=True)
def language(term: str) -> str:
    """The language tag without the base direction that RDF 1.2 writes behind it: `ar--rtl`."""
    return (_literal(term)[2] or "").partition("--")[0]


@builtin("LANGDIR", 1, takes_terms=True)
def base_direction(term: str) -> str:
    return (_literal(term)[2] or "").partition("--")[2]


@builtin("HASLANG", 1, takes_terms=True)
def has_language(term: str) -> bool:
    return term[0] == '"' and split_literal(term)[2] is not None


@builtin("HASLANGDIR", 1, takes_terms=True)
def has_base_direction(term: str) -> bool:
    return term[0] == '"' and split_literal(term)[1] == DIR_LANG_STRING


@builtin("DATATYPE", 1, takes_terms=True)
def datatype(term: str) -> IriValue:
    return IriValue(_literal(term)[1])


@builtin("STRDT", 2, gives_term=True)
def typed_literal(lexical: Value, datatype: Value) -> str:
    if type(lexical) is not str or not isinstance(datatype, IriValue):
        raise ExpressionError("STRDT takes a simple literal and an IRI")
    if datatype.value in (LANG_STRING, DIR_LANG_STRING):
        raise ExpressionError("a language-tagged string needs a language tag")
    return literal_text(lexical, datatype.value)


@builtin("STRLANG", 2)
def tagged_literal(lexical: Value, tag: Value) -> LangString:
    if type(lexical) is not str or type(tag) is not str:
        raise ExpressionError("STRLANG takes two simple literals")
    if not _LANGUAGE_TAG.fullmatch(tag):
        raise ExpressionError("not a language tag")
    return LangString(lexical, tag.lower())


@builtin("STRLANGDIR", 3)
def directed_literal(lexical: Value, tag: Value, direction: Value) -> LangString:
    tagged = tagged_literal(lexical, tag)
    if type(direction) is not str or direction not in ("ltr", "rtl"):
        raise ExpressionError("a base direction is ltr or rtl")
    return LangString(tagged.text, f"{tagged.language}--{direction}")


@builtin("TRIPLE", 3, takes_terms=True, gives_term=True)
def triple_term(subject: str, predicate: str, object_: str) -> str:
    if kind_of(subject) not in ("iri", "bnode") or kind_of(predicate) != "iri":
        raise ExpressionError("no triple has such a subject or predicate")
    return triple_term_text(subject, predicate, object_)


@builtin("ISTRIPLE", 1, takes_terms=True)
def is_triple(term: str) -> bool:
    return is_triple_term(term)


def _part(name: str, index: int) -> None:
    @builtin(name, 1, takes_terms=True, gives_term=True)
    def part(term: str) -> str:
        if not is_triple_term(term):
            raise ExpressionError("not a triple term")
        return triple_term_parts(term)[index]


_part("SUBJECT", 0)
_part("PREDICATE", 1)
_part("OBJECT", 2)


@builtin("BNODE", 0, volatile=True)
def fresh_blank_node() -> BlankNodeValue:
    return BlankNodeValue("f" + uuid.uuid4().hex)


@builtin("UUID", 0, volatile=True)
def uuid_iri() -> IriValue:
    return IriValue(f"urn:uuid:{uuid.uuid4()}")


@builtin("STRUUID", 0, volatile=True)
def uuid_string() -> str:
    return str(uuid.uuid4())
