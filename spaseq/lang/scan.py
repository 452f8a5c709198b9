"""A scanner for cutting a query into sections and blanking its comments.

It knows strings, IRIs, names and comments, so a bracket or keyword inside one of them does not
count as structure. It never fails: any other character is a lexeme by itself.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Literal, TypeAlias

from spaseq.errors import Span
from spaseq.records import record

Kind: TypeAlias = Literal[
    "comment", "string", "iri", "var", "bnode", "pname", "word", "langtag", "number", "punct"
]

MOST = 100_000
"""Most lexemes of a query; a longer one would take minutes."""

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


@record
class Lexeme:
    """A piece of the text with its kind and span.

    `keyword` is a word in upper case, and "" for other kinds of lexemes.
    """

    kind: Kind
    text: str
    span: Span
    keyword: str

    def is_punct(self, *marks: str) -> bool:
        """Whether this is one of some punctuation marks."""
        return self.kind == "punct" and self.text in marks


def scan(text: str) -> tuple[Lexeme, ...]:
    """The lexemes of `text` in order, with comments, without white space: `MOST` and one more."""
    return tuple(_lexeme(match) for match in islice(_LEXEME.finditer(text), MOST + 1))


def blank_comments(text: str, lexemes: tuple[Lexeme, ...]) -> str:
    """`text` with spaces over every comment, so that all offsets stay."""
    pieces, copied = [], 0
    for lexeme in lexemes:
        if lexeme.kind == "comment":
            pieces += [text[copied : lexeme.span.start], " " * len(lexeme.text)]
            copied = lexeme.span.end
    return "".join([*pieces, text[copied:]])


def _lexeme(match: re.Match[str]) -> Lexeme:
    kind: Kind = match.lastgroup  # type: ignore[assignment]
    text = match[0]
    return Lexeme(kind, text, Span(*match.span()), text.upper() if kind == "word" else "")
