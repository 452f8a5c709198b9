"""Shapes of JSON-LD lines: lines that differ in some values alone become quads without a parser.

A shape is learned from one line. The parser reads the line with marks in place of its values. Where
a mark stands in the quads, the value of another line will stand. A value that may change the quads
in another way stays a constant of the shape: a relative IRI, for example, or a type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from secrets import randbelow
from typing import Any

from spaseq.rdf.terms.term import XSD
from spaseq.records import record

Parse = Callable[[bytes], bytes]
"""The quads of one line as N-Quads; PARSER_ERRORS if it is malformed."""

_TOKEN = re.compile(
    rb'(?P<text>"(?:[^"\\]|\\.)*")(?P<colon>[ \t]*:)?|(?P<number>-?[0-9][0-9.eE+-]*)|[{}\[\]]'
)
_CONTEXT = b'"@context"'
_KEYWORDS_WITH_VALUES = (b'"@id"', b'"@value"')

_WORD = rb"[A-Za-z0-9_-]+"
_PATH = rb"(?:/(?:%b(?:[./:]%b)*)?)?" % (_WORD, _WORD)
_HTTP = rb"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*%b(?:#%b)?" % (_PATH, _WORD)
_IRIS = (
    (rb"https?://", _HTTP),
    (rb"urn:[a-z0-9]+:", rb"%b(?:[.:/]%b)*" % (_WORD, _WORD)),
    (rb"[A-Za-z][A-Za-z0-9_-]*:", _WORD),  # a prefix of the context
)
"""How IRIs begin, and texts behind the begin that no parser changes."""

_IRI_VALUES = [(re.compile(b'"(%b)%b"' % own), own[1]) for own in _IRIS]
_TEXT = rb'[^"\\\x00-\x1f\x7f]*'
_INTEGER = rb"(?:0|-?[1-9][0-9]{0,14})(?![0-9.eE])"
_DECIMAL = rb"(?!-0\.0(?!\d))-?(?:0|[1-9][0-9]{0,6})\.(?:0|[0-9]{0,6}[1-9])(?![0-9eE])"
_NUMBER = rb"(?:%b|%b)" % (_INTEGER, _DECIMAL)
"""Numbers of at most 15 digits, which are the shortest texts of their doubles."""

_ESCAPED = b"\xef\xbf"
"""What U+FFFE and U+FFFF begin with, which N-Quads escapes."""


@record
class _Value:
    """A value in a line: where its text begins and ends, what stays of it, a pattern of the rest.

    `kind` is "iri", "text" or "number". The marks of two readings differ.
    """

    begin: int
    end: int
    kind: str
    head: bytes
    pattern: bytes
    mark: bytes
    other: bytes

    def marked(self, mark: bytes) -> bytes:
        """The JSON text with a mark in place of what may vary."""
        return mark if self.kind == "number" else b'"%b%b"' % (self.head, mark)


@record
class MessageShape:
    """What lines have in common, and how their quads are made.

    `pattern` has a group for each value that varies. `writers` have the place of a group, and what
    makes a literal of its text. `form` has `%b` wherever a value stands. `pick` gives the texts
    for these places, in order, from the texts of all groups.
    """

    pattern: re.Pattern[bytes]
    form: bytes
    pick: Callable[[Sequence[bytes]], Any]
    writers: Sequence[tuple[int, Callable[[bytes], bytes]]]

    def quads(self, text: bytes) -> bytes | None:
        """The quads of a line as N-Quads; None if it has another shape."""
        found = self.pattern.fullmatch(text)
        if found is None or not (text.isascii() or _is_plain(text)):
            return None
        values: Any = found.groups()
        if self.writers:
            values = [*values]
            for place, write in self.writers:
                values[place] = write(values[place])
        quads: bytes = self.form % self.pick(values)
        return quads


def _is_plain(text: bytes) -> bool:
    """Whether a text is UTF-8 without characters that N-Quads escapes."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return _ESCAPED not in text


def learned(text: bytes, context: Any, parse: Parse) -> MessageShape | None:
    """The shape of a line; None if its quads have blank nodes, or depend on its values otherwise.

    Args:
        text: a JSON object.
        context: what decides with it what it means: JSON that has all its contexts, by `@context`.
        parse: reads a line.

    Raises:
        PARSER_ERRORS: the line is malformed; or it is with marks in it.
    """
    values = [*_values(text, may_have_prefixes=not _names_iris(context))]
    marked = parse(_replaced(text, values, [v.marked(v.mark) for v in values]))
    roles = {v: _role(v, marked) for v in values}
    absent = [v for v in values if roles[v] is _ABSENT]
    if absent:  # do they change anything?
        others = [v.marked(v.other if roles[v] is _ABSENT else v.mark) for v in values]
        if parse(_replaced(text, values, others)) != marked:
            roles |= dict.fromkeys(absent, None)
    varying = {v: role for v in values if (role := roles[v]) is not None}
    quads = parse(_replaced(text, [*varying], [v.marked(v.mark) for v in varying]))
    if b"_:" in quads or not all(_role(v, quads) == role for v, role in varying.items()):
        return None  # a value means something else beside the others' own texts
    made = _shape(text, varying, quads)
    return made if made is not None and made.quads(text) == parse(text) else None


# --- values ---------------------------------------------------------------------------------------


def _values(text: bytes, may_have_prefixes: bool) -> Iterator[_Value]:
    """The values of a line that may vary: no keys, nothing of a context."""
    path = [b""]  # the key under which each open object or array stands
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word in (b"{", b"["):
            path.append(path[-1])
        elif word in (b"}", b"]"):
            path.pop()
        elif token["colon"] is not None:
            if _CONTEXT not in path[:-1]:
                path[-1] = token["text"]
        elif path[-1][:2] != b'"@' or path[-1] in _KEYWORDS_WITH_VALUES:
            yield _value(*token.span(), word, may_have_prefixes)


def _value(begin: int, end: int, word: bytes, may_have_prefixes: bool) -> _Value:
    mark, other = (b"9%013d7" % randbelow(10**13) for _ in range(2))  # no trailing zeros
    if word[:1] != b'"':
        return _Value(begin, end, "number", b"", _NUMBER, mark, other)
    mark, other = b"x%bx" % mark, b"x%bx" % other
    for pattern, rest in _IRI_VALUES if may_have_prefixes else ():
        found = pattern.fullmatch(word)
        if found is not None:
            return _Value(begin, end, "iri", found[1], rest, mark, other)
    return _Value(begin, end, "text", b"", _TEXT, mark, other)


def _names_iris(context: Any, inside: bool = False) -> bool:
    """Whether a context has terms with a colon, which may give IRIs another meaning."""
    if isinstance(context, list):
        return any(_names_iris(each, inside) for each in context)
    if not isinstance(context, dict):
        return False
    return any(
        (inside and ":" in key) or _names_iris(each, inside or key == "@context")
        for key, each in context.items()
    )


def _replaced(text: bytes, values: Sequence[_Value], texts: Sequence[bytes]) -> bytes:
    """The line with other texts in the place of some values."""
    parts, at = list[bytes](), 0
    for value, own in zip(values, texts, strict=True):
        parts += text[at : value.begin], own
        at = value.end
    return b"".join([*parts, text[at:]])


# --- what values become ---------------------------------------------------------------------------

_TYPED = b'"%b"^^<' + XSD.encode() + b"%b>"


@lru_cache(1 << 14)
def _double(text: bytes) -> bytes:
    """A number as JSON-LD writes an xsd:double.

    >>> _double(b"-12.34"), _double(b"0.05"), _double(b"5")
    (b'-1.234E1', b'5.0E-2', b'5.0E0')
    """
    sign = b"-" if text[:1] == b"-" else b""
    whole, _, part = text.removeprefix(b"-").partition(b".")
    digits = (whole + part).lstrip(b"0")
    exponent = len(digits) - len(part) - 1
    digits = digits.rstrip(b"0") or b"0"
    return b"%b%b.%bE%d" % (sign, digits[:1], digits[1:] or b"0", exponent if digits != b"0" else 0)


def _number(text: bytes) -> bytes:
    """A number without a datatype in the context, as a literal."""
    text = text.removesuffix(b".0")
    if b"." in text:
        return _typed_double(text)
    return _TYPED % (text, b"integer")


def _typed_double(text: bytes) -> bytes:
    return _TYPED % (_double(text), b"double")


def _quoted(text: bytes) -> bytes:
    return b'"%b"' % text


@record
class _Role:
    """How a value stands in the quads: the text for its mark, and what writes others there."""

    mark: bytes
    write: Callable[[bytes], bytes] | None = None
    pattern: bytes | None = None


_ABSENT = _Role(b"")


def _role(value: _Value, quads: bytes) -> _Role | None:
    """How a value stands in the quads of its marked line; None if that may depend on its text."""
    mark = value.mark
    if value.kind == "number":
        for role in (
            _Role(_TYPED % (mark, b"integer"), _number),
            _Role(_TYPED % (_double(mark), b"double"), _typed_double),
            _Role(b'"%b"' % mark, _quoted, _INTEGER),
        ):
            if role.mark in quads:
                return role if quads.count(role.mark) == _count(mark, quads) else None
        return None if _count(mark, quads) else _ABSENT
    count = quads.count(mark)
    if count == 0:
        return _ABSENT
    literal = b' "%b%b"' % (value.head, mark)  # behind a space, no quote belongs to a text
    whole = sum(quads.count(literal + after) for after in (b" ", b"@", b"^^"))
    if value.kind == "iri":
        whole += len(re.findall(rb'<[^<>"]*%b>' % mark, quads))
    return _Role(mark) if count == whole else None


def _count(mark: bytes, quads: bytes) -> int:
    """How often a number stands in quads, in any form."""
    return quads.count(mark) + quads.count(_double(mark))


def _shape(text: bytes, roles: Mapping[_Value, _Role], quads: bytes) -> MessageShape | None:
    """The shape in which these values vary, given the quads of the line with their marks."""
    pattern, at = list[bytes](), 0
    group: dict[bytes, int] = {}
    writers = list[tuple[int, Callable[[bytes], bytes]]]()
    for value, role in roles.items():
        rest, head = role.pattern or value.pattern, value.head
        if role is not _ABSENT:
            if role.write is not None:
                writers.append((len(group), role.write))
            group[role.mark] = len(group)
            rest = b"(%b)" % rest
        own = rest if value.kind == "number" else b'"%b%b"' % (re.escape(head), rest)
        pattern += re.escape(text[at : value.begin]), own
        at = value.end
    pattern.append(re.escape(text[at:]))
    if not group:
        return None
    pieces = re.split(b"(%b)" % b"|".join(map(re.escape, group)), quads)
    order = [group[mark] for mark in pieces[1::2]]
    form = b"%b".join(piece.replace(b"%", b"%%") for piece in pieces[::2])
    pick: Any = itemgetter(*order) if len(order) > 1 else lambda values: (values[order[0]],)
    return MessageShape(re.compile(b"".join(pattern)), form, pick, writers)
