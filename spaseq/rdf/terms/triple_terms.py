"""Triple terms (RDF 1.2, section 3.6) as canonical N-Triples text: `<<( s p o )>>`.

A triple term is the object of a triple. It names a triple without stating it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from spaseq.text_patterns import possessive

_TOKEN = possessive(
    r"""  <<\( | \)>>                                            # the brackets
      |   <[^<>]*+>                                              # an IRI
      |   "(?:[^"\\]|\\.)*+"(?:\^\^<[^<>]*+>|@[A-Za-z0-9-]++)?+  # a literal
      |   _:[^\s<>"()]++                                         # a blank node
    """,
    re.VERBOSE | re.DOTALL,
)


def is_triple_term(text: str) -> bool:
    """Whether the term with this N-Triples text is a triple term."""
    return text.startswith("<<")  # no IRI contains `<`


def triple_term_text(s: str, p: str, o: str) -> str:
    """The text of the triple term of three texts."""
    return f"<<( {s} {p} {o} )>>"


def triple_term_parts(text: str) -> tuple[str, str, str]:
    """The texts of subject, predicate and object of a triple term; ValueError if it is none.

    >>> triple_term_parts('<<( <http://e/s> <http://e/p> "o"@en )>>')
    ('<http://e/s>', '<http://e/p>', '"o"@en')
    """
    s = _TOKEN.match(text, 4)
    p = s and _TOKEN.match(text, s.end() + 1)
    if s is None or p is None or not text.startswith("<<( ") or not text.endswith(" )>>"):
        raise ValueError(f"{text!r} is not a triple term")
    return s[0], p[0], text[p.end() + 1 : -4]


def with_blank_nodes(text: str, rename: Callable[[str], str]) -> str:
    """The text of a term, with `rename` applied to each blank node in it.

    >>> with_blank_nodes('<<( _:a <http://e/p> "_:a" )>>', str.upper)
    '<<( _:A <http://e/p> "_:a" )>>'
    """
    if text.startswith("_:"):
        return rename(text)
    if not is_triple_term(text) or "_:" not in text:
        return text
    return _TOKEN.sub(lambda m: rename(m[0]) if m[0].startswith("_:") else m[0], text)


def blank_nodes(text: str) -> list[str]:
    """The blank nodes in a term: the term itself, or those in a triple term.

    >>> blank_nodes('<<( _:a <http://e/p> "_:b" )>>')
    ['_:a']
    """
    if text.startswith("_:"):
        return [text]
    if not is_triple_term(text) or "_:" not in text:
        return []
    return [token for token in _TOKEN.findall(text) if token.startswith("_:")]


def may_have_blank_node(text: str) -> bool:
    """Whether the term is a blank node, or a triple term that may contain one."""
    return text.startswith("_:") or (is_triple_term(text) and "_:" in text)
