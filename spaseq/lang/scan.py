"""A light scanner: the lexemes of a query, enough to cut it into sections and blank its comments.

It knows strings, IRIs, names and comments, so that a bracket or keyword inside one of them is not
mistaken for structure. It never fails: a character that begins nothing is a lexeme by itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from spaseq.errors import Span

Kind: TypeAlias = Literal[
    "comment", "string", "iri", "var", "bnode", "pname", "word", "langtag", "number", "punct"
]

_LEXEME = re.compile(
    r"""
      (?P<comment> \# [^\n\r]* )
    | (?P<string>  \"{3} (?: \"{0,2} (?: [^"\\] | \\. ) )* \"{3}
                |  '{3}  (?: '{0,2}  (?: [^'\\] | \\. ) )* '{3}
                |  " (?: [^"\\\n\r] | \\. )* "
                |  ' (?: [^'\\\n\r] | \\. )* ' )
    | (?P<iri>     < [^<>"{}|^`\\\x00-\x20]* > )
    | (?P<var>     [?$] \w+ )
    | (?P<bnode>   _: [\w.-]* )
    | (?P<pname>   (?: [^\W\d_] [\w.-]* )? : (?: [\w:.-] | %[0-9A-Fa-f]{2} | \\\S )* )
    | (?P<word>    [^\W\d] \w* )
    | (?P<langtag> @ [\w-]+ )
    | (?P<number>  \d [\w.]* )
    | (?P<punct>   \S )
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Lexeme:
    """A piece of text with its kind and place."""

    kind: Kind
    text: str
    span: Span

    @cached_property
    def keyword(self) -> str:
        """The upper-case word, or "" for anything that is not a bare word."""
        return self.text.upper() if self.kind == "word" else ""

    def is_punct(self, *marks: str) -> bool:
        return self.kind == "punct" and self.text in marks


def scan(text: str) -> tuple[Lexeme, ...]:
    """All lexemes of `text` in order, comments included, white space left out."""
    return tuple(_lexeme(found) for found in _LEXEME.finditer(text))


def blank_comments(text: str, lexemes: tuple[Lexeme, ...]) -> str:
    """`text` with every comment overwritten by spaces, so that all offsets stay."""
    pieces, done = [], 0
    for lexeme in lexemes:
        if lexeme.kind == "comment":
            pieces += [text[done : lexeme.span.start], " " * len(lexeme.text)]
            done = lexeme.span.end
    return "".join([*pieces, text[done:]])


def _lexeme(found: re.Match[str]) -> Lexeme:
    kind: Kind = found.lastgroup  # type: ignore[assignment]
    return Lexeme(kind, found.group(), Span(*found.span()))
