"""A scanner for cutting a query into sections and blanking its comments, and its pairs of matching
brackets, also in text with syntax errors.

It knows strings, IRIs, names and comments, so a bracket or keyword inside one of them does not
count as structure. It never fails: any other character is a lexeme by itself.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, takewhile
from typing import Any, Literal, TypeAlias, TypeVar

from spaseq.errors import Span
from spaseq.lang import ast
from spaseq.lang.variables import child_fields
from spaseq.records import record

T = TypeVar("T")

_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_LAST_CODEPOINT = 0x10FFFF

_IN_STRINGS = {"\\": r"\\", '"': r"\"", "'": r"\'", "\n": r"\n", "\r": r"\r"}
"""Characters that would end a string, or begin an escape, and their escaped forms.

SPARQL 1.2 (section 19.2) reads no character of an escape again as a part of the syntax.
"""

CLOSING = {"(": ")", "[": "]", "{": "}"}


@record
class Unescaped:
    """A text without codepoint escapes, with the way back to the offsets of its source.

    From offset `starts[i]` of `text` on, offsets in the source are greater by `shifts[i]`.
    `invalid` holds the spans, in the source, of escapes without a character.
    """

    text: str
    starts: tuple[int, ...] = ()
    shifts: tuple[int, ...] = ()
    invalid: tuple[Span, ...] = ()

    def offset(self, offset: int) -> int:
        """The offset in the source of an offset in `text`."""
        number = bisect_right(self.starts, offset)
        return offset + (self.shifts[number - 1] if number else 0)

    def span(self, span: Span) -> Span:
        """The span in the source of a span in `text`."""
        if not self.starts:
            return span
        return Span(self.offset(span.start), self.offset(span.end))


def unescape(source: str) -> Unescaped:
    """Replace the codepoint escapes of a query; after `\\\\`, `u0041` is plain text."""
    pieces: list[str] = []
    starts, shifts, invalid = [], [], []
    copied = length = 0
    for escape in _ESCAPE.finditer(source):
        if escape[3] is not None:
            continue
        code = int(escape[1] or escape[2], 16)
        valid = code <= _LAST_CODEPOINT and not 0xD800 <= code <= 0xDFFF
        if not valid:
            invalid.append(Span(*escape.span()))
        character = chr(code) if valid else "\ufffd"
        pieces += [source[copied : escape.start()], _IN_STRINGS.get(character, character)]
        length += len(pieces[-2]) + len(pieces[-1])
        copied = escape.end()
        starts.append(length)
        shifts.append(copied - length)
    text = "".join([*pieces, source[copied:]])
    return Unescaped(text, tuple(starts), tuple(shifts), tuple(invalid))


def misplaced(text: Unescaped, lexemes: Iterable[Lexeme]) -> Iterator[Span]:
    """The characters of `text` that were escapes outside strings, IRIs and comments."""
    if not text.starts:
        return
    known = [lexeme for lexeme in lexemes if lexeme.kind in _WITH_ESCAPES]
    starts = [lexeme.start for lexeme in known]
    for end in text.starts:
        number = bisect_left(starts, end - 1) - 1
        around = known[number] if number >= 0 else None
        if around is None or around.end < end + (around.kind != "comment"):
            yield Span(end - 1, end)


_WITH_ESCAPES = ("string", "iri", "comment")


def restore_spans(value: T, text: Unescaped) -> T:
    """A node, or a tuple of nodes, with all spans translated to the source."""
    if not text.starts:
        return value
    tree: Any = value
    if isinstance(tree, tuple):
        return tuple(restore_spans(item, text) for item in tree)  # type: ignore[return-value]
    if not isinstance(tree, ast.Node):
        return value
    children = {name: restore_spans(getattr(tree, name), text) for name in child_fields(tree)}
    return replace(tree, span=text.span(tree.span), **children)  # type: ignore[return-value]


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
    | (?P<punct>   [^ \t\n\r] )  # other white space, such as a no-break space, is a mistake
    """,
    re.VERBOSE | re.DOTALL,
)


@record
class Lexeme:
    """A piece of the text with its kind and place.

    `keyword` is a word in upper case, and "" for other kinds of lexemes. So is `mark`, a
    punctuation mark.
    """

    kind: Kind
    text: str
    start: int
    keyword: str
    mark: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def span(self) -> Span:
        return Span(self.start, self.start + len(self.text))

    def is_punct(self, *marks: str) -> bool:
        """Whether this is one of some punctuation marks."""
        return self.mark in marks


def scan(text: str) -> tuple[Lexeme, ...]:
    """The lexemes of `text` in order, with comments, without white space: `MOST` and one more."""
    return tuple(map(_lexeme, islice(_LEXEME.finditer(text), MOST + 1)))


def blank_comments(text: str, lexemes: tuple[Lexeme, ...]) -> str:
    """`text` with spaces over every comment, so that all offsets stay."""
    pieces, copied = [], 0
    for lexeme in lexemes:
        if lexeme.kind == "comment":
            pieces += [text[copied : lexeme.start], " " * len(lexeme.text)]
            copied = lexeme.end
    return "".join([*pieces, text[copied:]])


def _lexeme(match: re.Match[str]) -> Lexeme:
    kind: Kind = match.lastgroup  # type: ignore[assignment]
    text, start = match[0], match.start()
    if kind == "punct":
        return Lexeme(kind, text, start, "", text)
    return Lexeme(kind, text, start, text.upper() if kind == "word" else "", "")


def pairs(lexemes: Sequence[Lexeme]) -> Iterator[tuple[int, int]]:
    """Indexes of matching brackets, as pairs (opening, closing).

    A bracket without a partner is in no pair. A closing bracket skips open brackets of other kinds.
    """
    unmatched: list[int] = []
    waiting = Counter[str]()  # open brackets by the bracket that closes them
    for index, lexeme in enumerate(lexemes):
        mark = lexeme.mark
        if not mark:
            continue
        if mark in CLOSING:
            unmatched.append(index)
            waiting[CLOSING[mark]] += 1
        elif waiting.get(mark):
            closes = ""
            while closes != mark:
                opening = unmatched.pop()
                closes = CLOSING[lexemes[opening].text]
                waiting[closes] -= 1
            yield opening, index


def nesting(lexemes: Sequence[Lexeme]) -> list[int]:
    """The depth of each lexeme: the number of pairs of brackets around it."""
    change = [0] * (len(lexemes) + 1)
    for opening, closing in pairs(lexemes):
        change[opening + 1] += 1
        change[closing] -= 1
    depths, depth = [], 0
    for difference in change[: len(lexemes)]:
        depth += difference
        depths.append(depth)
    return depths


def closing_brace(lexemes: Sequence[Lexeme], opening: int, limit: int) -> int | None:
    """The index of the brace that closes the one at `opening`; None if that is not below `limit`.

    Other kinds of brackets do not count.
    """
    depth = 0
    for index in range(opening, limit):
        mark = lexemes[index].mark
        if mark == "{":
            depth += 1
        elif mark == "}":
            depth -= 1
        if depth == 0:
            return index
    return None


def unclosed(lexemes: Sequence[Lexeme]) -> Lexeme | None:
    """The last bracket that is never closed; None if all are."""
    closed = {opening for opening, _ in pairs(lexemes)}
    unclosed_lexemes = (
        lexeme
        for index, lexeme in enumerate(lexemes)
        if lexeme.is_punct(*CLOSING) and index not in closed
    )
    return max(unclosed_lexemes, key=lambda lexeme: lexeme.start, default=None)


_SAID = re.compile(r"#+[ \t]*([A-Za-z][A-Za-z0-9_-]{0,99})[ \t]*:[ \t]+(\S.*)")


def head_lines(text: str) -> list[str]:
    """The comment lines before anything else.

    >>> head_lines("# title: Jam\\n\\n  # two\\nSELECT ...\\n# no")
    ['# title: Jam', '# two']
    """
    lines = map(str.strip, re.split("[\r\n]", text.removeprefix("\ufeff")))
    return [line for line in takewhile(lambda x: not x or x.startswith("#"), lines) if line]


def head_comments(text: str) -> dict[str, str]:
    """Keys, in small letters, and values of the comment lines before anything else.

    The first line with a key counts.

    >>> head_comments("# title: Jam\\n# Severity: warning\\nSELECT ...\\n# runbook: no")
    {'title': 'Jam', 'severity': 'warning'}
    """
    comments: dict[str, str] = {}
    for line in head_lines(text):
        said = _SAID.fullmatch(line)
        if said is not None:
            comments.setdefault(said[1].lower(), said[2])
    return comments


def comments_of(text: str) -> list[str]:
    """The lines that are comments.

    >>> comments_of("# title: Jam\\nSELECT ... # not this\\n  # the end")
    ['# title: Jam', '# the end']
    """
    lines = map(str.strip, re.split("[\r\n]", text))
    return [line for line in lines if line.startswith("#")]
