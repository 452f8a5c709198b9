"""Functions on RDF terms (SPARQL 1.1 section 17.4.2)."""

from __future__ import annotations

import re
import uuid

from spaseq.expr.errors import ExpressionError
from spaseq.expr.functions.registry import builtin
from spaseq.expr.numbers import is_number
from spaseq.expr.values import BlankNodeValue, IriValue, LangString, Value
from spaseq.rdf.terms.term import kind_of, literal_text, split_literal
from spaseq.rdf.terms.vocabulary import LANG_STRING

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
    return _literal(term)[2] or ""


@builtin("DATATYPE", 1, takes_terms=True)
def datatype(term: str) -> IriValue:
    return IriValue(_literal(term)[1])


@builtin("STRDT", 2, gives_term=True)
def typed_literal(lexical: Value, datatype: Value) -> str:
    if type(lexical) is not str or not isinstance(datatype, IriValue):
        raise ExpressionError("STRDT takes a simple literal and an IRI")
    if datatype.value == LANG_STRING:
        raise ExpressionError("a language-tagged string needs a language tag")
    return literal_text(lexical, datatype.value)


@builtin("STRLANG", 2)
def tagged_literal(lexical: Value, tag: Value) -> LangString:
    if type(lexical) is not str or type(tag) is not str:
        raise ExpressionError("STRLANG takes two simple literals")
    if not _LANGUAGE_TAG.fullmatch(tag):
        raise ExpressionError("not a language tag")
    return LangString(lexical, tag.lower())


@builtin("BNODE", 0, volatile=True)
def fresh_blank_node() -> BlankNodeValue:
    return BlankNodeValue("f" + uuid.uuid4().hex)


@builtin("UUID", 0, volatile=True)
def uuid_iri() -> IriValue:
    return IriValue(f"urn:uuid:{uuid.uuid4()}")


@builtin("STRUUID", 0, volatile=True)
def uuid_string() -> str:
    return str(uuid.uuid4())
