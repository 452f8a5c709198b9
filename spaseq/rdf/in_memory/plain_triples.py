"""A fast reader for plain N-Triples text, for events that a program pushes one by one.

One regular expression reads the text. Plain text has one triple per line, ASCII IRIs without
percent signs, and literals that are canonical and need no escape. Other text needs a parser.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from spaseq.possessive import possessive
from spaseq.rdf.terms.vocabulary import LANG_STRING, RDF, XSD_STRING

PlainTriple: TypeAlias = tuple[str, str, str]

# All quantifiers are possessive: each text has one reading, so backtracking cannot help.
_PATH = r"[A-Za-z0-9._~!$&'()*+,;=:@/-]*+"
_PORT = r"(?::[0-9]{1,4}+)?+"
_HTTP = rf"https?+://[A-Za-z0-9.-]++{_PORT}(?:/{_PATH})?+(?:\?{_PATH})?+(?:#{_PATH})?+"
_URN = rf"urn:[a-z0-9]{{2,32}}+:[A-Za-z0-9]{_PATH}"
_IRI = rf"<(?:{_HTTP}|{_URN})>"
_BLANK = r"_:[A-Za-z][A-Za-z0-9]*+"
_CHARACTERS = r'[^"\\\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]*+'
_NOT_WRITTEN = "|".join(map(re.escape, (f"{XSD_STRING}>", f"{LANG_STRING}>", f"{RDF}dir")))
_TYPED = rf"\^\^(?!<(?:{_NOT_WRITTEN})){_IRI}"
_LITERAL = rf'"{_CHARACTERS}"(?:{_TYPED}|@[a-z]{{2,3}}+(?:-[a-z]{{2}})?+)?+'
_OBJECT = rf"{_IRI}|{_LITERAL}|{_BLANK}"
_LINE = possessive(
    rf"^({_IRI}|{_BLANK})[ \t]++({_IRI})[ \t]++({_OBJECT})[ \t]*+\.[ \t]*+$", re.MULTILINE
)


def plain_triples(text: str) -> list[PlainTriple] | None:
    """The triples of N-Triples text in canonical form; None if the text is not plain.

    >>> plain_triples('<http://e/s> <http://e/p> "x"@en .')
    [('<http://e/s>', '<http://e/p>', '"x"@en')]
    >>> plain_triples('<http://e/s> <http://e/p> "\\\\t" .')
    """
    found: list[PlainTriple] = _LINE.findall(text)
    lines = text.count("\n") + (text[-1:] != "\n")
    return found if len(found) == lines else None
