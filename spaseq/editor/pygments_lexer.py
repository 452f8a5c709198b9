"""Colours of queries in Pygments, for documents and notebooks: the lexer `spaseq`.

It uses the tokenizer of the language and its tables of words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from pygments.lexer import Lexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

from spaseq.editor.document import Document
from spaseq.editor.words import FUNCTIONS, KEYWORDS
from spaseq.lang.scan import Lexeme

_KINDS: dict[str, Any] = {
    "comment": Comment.Single,
    "string": String,
    "iri": Name.Label,
    "var": Name.Variable,
    "bnode": Name.Label,
    "pname": Name.Namespace,
    "langtag": Name.Decorator,
    "number": Number,
}
_CONSTANTS = ("TRUE", "FALSE", "UNDEF")
_BRACKETS = "(){}[].,;"
_STEPS = re.compile(r"(?P<name>[^\W\d]\w*)|(?P<number>\d+)|(?P<bracket>[(){}\[\]])|(?P<sign>\S)")
_SEQUENCE = re.compile(r"(?i)\bSEQ\s*\(")
_DEFINITION = re.compile(r"(?i)\bDEFINE\s+GPM\b")


class SpaseqLexer(Lexer):  # type: ignore[misc]
    """Queries of spaseq. A `.rq` file is one only if it defines GPMs; otherwise it is SPARQL."""

    name = "SPAseq"
    aliases: ClassVar[list[str]] = ["spaseq"]
    filenames: ClassVar[list[str]] = ["*.spaseq"]
    alias_filenames: ClassVar[list[str]] = ["*.rq", "*.sparql"]
    mimetypes: ClassVar[list[str]] = ["application/x-spaseq-query"]
    url = "https://pypi.org/project/spaseq/"

    @staticmethod
    def analyse_text(text: str) -> float:
        """How likely a text is a query of spaseq, from 0 to 1."""
        return 0.95 if _SEQUENCE.search(text) and _DEFINITION.search(text) else 0.0

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        """(offset, token type, text) of every piece of the text, which together are the text."""
        document = Document(text)
        names = {place.span: place.kind for place in document.names}
        reached = 0
        for lexeme in (*document.scanned, None):
            start = len(text) if lexeme is None else lexeme.span.start
            if start > reached:
                yield reached, Text, text[reached:start]
            if lexeme is None:
                return
            reached = lexeme.span.end
            if document.in_sequence(start) and lexeme.kind != "comment":
                yield from _steps(lexeme)
            else:
                token = Name.Function if lexeme.span in names else _token(document, lexeme)
                yield start, token, text[start:reached]


def _token(document: Document, lexeme: Lexeme) -> Any:
    if lexeme.kind == "punct":
        return Punctuation if lexeme.text in _BRACKETS else Operator
    if lexeme.kind != "word":
        return _KINDS[lexeme.kind]
    word = lexeme.keyword
    if word in _CONSTANTS:
        return Keyword.Constant
    called = document.text[lexeme.span.end :].lstrip()[:1] == "("
    if word in FUNCTIONS and (called or word not in KEYWORDS):
        return Name.Builtin
    if word in KEYWORDS or lexeme.text == "a":
        return Keyword
    return Name


def _steps(lexeme: Lexeme) -> Iterator[tuple[int, Any, str]]:
    """The pieces of a lexeme in a sequence, where `A:B` is two steps."""
    for match in _STEPS.finditer(lexeme.text):
        kind = match.lastgroup
        token = {"name": Name.Function, "number": Number, "bracket": Punctuation}
        word = match[0].upper() in KEYWORDS and match[0].upper() in ("AND", "UNTIL", *_UNITS)
        yield (
            lexeme.span.start + match.start(),
            (Keyword if word else token.get(kind or "", Operator)),
            match[0],
        )


_UNITS = tuple(w for w in KEYWORDS if KEYWORDS[w].startswith("A unit of time"))
