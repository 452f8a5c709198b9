"""Shapes of JSON-LD lines: lines that differ in some values alone become quads without a parser. A
kernel writes the quads of lines of known shapes.

A shape is learned from one line. The parser reads the line with marks in place of its values. In
the quads of another line, its values replace these marks. A value that may change the quads in
another way stays a constant of the shape: a relative IRI, for example, or a type. Blank nodes have
the same labels in all lines of a shape, as a label has no meaning beyond its event.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from secrets import randbelow
from typing import Any, TypeAlias

import numpy as np
import pyoxigraph as ox

from spaseq.compiled.arrays import Int32s, Int64s, grown
from spaseq.limits import DEFAULT_LIMITS
from spaseq.rdf.events.blank_labels import numbered_labels
from spaseq.rdf.inputs.sizes import PARSED_BYTES
from spaseq.rdf.kernels import PAD
from spaseq.rdf.kernels import shaped_lines as kernel
from spaseq.rdf.messages.message_lines import MARK, MARKED, MessageLines, lines_of
from spaseq.rdf.messages.message_quads import LoggedLines
from spaseq.rdf.terms.term import XSD
from spaseq.rdf.terms.triple_terms import blank_nodes, with_blank_nodes
from spaseq.records import record

_SHAPES = 32
"""Maximum number of known shapes; each is compared with every message of another one."""

_FIRST_ROOM = 1 << 12
_NONE = -1

Parse = Callable[[bytes], bytes]
"""The quads of one line as N-Quads; PARSER_ERRORS if it is malformed."""

_TOKEN = re.compile(
    rb'(?P<text>"(?:[^"\\]|\\.)*")(?P<colon>[ \t]*:)?|(?P<number>-?[0-9][0-9.eE+-]*)|[{}\[\]]'
)
_CONTEXT = b'"@context"'
_KEYWORDS_WITH_VALUES = (b'"@id"', b'"@value"')

_WORD = rb"[A-Za-z0-9_-]+"
_PATH = rb"(?:/(?:%b(?:[./:]%b)*)?)?" % (_WORD, _WORD)
_IRIS = (
    (rb"https?://", rb"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*%b(?:#%b)?" % (_PATH, _WORD), kernel.HOST),
    (rb"urn:[a-z0-9]+:", rb"%b(?:[.:/]%b)*" % (_WORD, _WORD), kernel.URN),
    (rb"[A-Za-z][A-Za-z0-9_-]*:", _WORD, kernel.NAME),  # a prefix of the context
)
"""Prefixes of IRIs, and texts after them that no parser changes."""

_IRI_VALUES = [(re.compile(b'"(%b)%b"' % (head, rest)), kind) for head, rest, kind in _IRIS]


@record
class MessageShape:
    """The common text of lines, and the construction of their quads.

    Attributes:
        parts: texts of a line, each with the kind of value after it; after the last one comes END.
        writes: texts of the quads, each with the position in the line of the value after it, and
            its form.
        rest: the text after the last of these values in the quads.
    """

    parts: Sequence[tuple[bytes, int]]
    writes: Sequence[tuple[bytes, int, int]]
    rest: bytes

    def quads(self, text: bytes) -> bytes | None:
        """The quads of a line as N-Quads; None if it has another shape.

        >>> parts = ((b'{"@id": "http://', kernel.HOST), (b'", "v": ', kernel.NUMBER))
        >>> writes = ((b"<http://", 0, kernel.AS_IT_IS), (b'> <v> "', 1, kernel.AS_DOUBLE))
        >>> shape = MessageShape((*parts, (b"}", kernel.END)), writes, b" .")
        >>> shape.quads(b'{"@id": "http://e/a", "v": 0.50}')
        b'<http://e/a> <v> "5.0E-1"^^<http://www.w3.org/2001/XMLSchema#double> .'
        >>> shape.quads(b'{"@id": "http://e/a", "v": null}')
        """
        known = KnownShapes()
        known.add(self)
        ((_, _, quads),) = known.spans(LoggedLines.one(bytearray(text), 1, DEFAULT_LIMITS), 0, 1)
        return None if quads is None else quads.text


Span: TypeAlias = tuple[int, int, MessageLines | None]
"""Messages first:end, and their quads if they have a known shape."""


class KnownShapes:
    """The shapes that lines with one context have."""

    def __init__(self) -> None:
        self._shapes: list[MessageShape] = []
        self._tables: kernel.ShapeTables | None = None
        self._values = np.empty((2, 0), np.int64)
        self._texts = np.empty(_FIRST_ROOM, np.uint8)  # room for the quads of some lines
        self._reads, self._last = 0, 0

    def add(self, shape: MessageShape) -> None:
        """Add one more. If there are too many, the one without use for longest is dropped."""
        used = np.empty(0, np.int64) if self._tables is None else self._tables.used
        if len(used) >= _SHAPES:
            oldest = int(used.argmin())
            del self._shapes[oldest]
            used = np.delete(used, oldest)
        self._shapes.append(shape)
        self._tables = _tables(self._shapes, np.append(used, self._reads))
        self._values = np.empty((2, max(len(each.parts) for each in self._shapes)), np.int64)
        self._last = len(used)

    def spans(self, lines: LoggedLines, first: int, unknown: int) -> Sequence[Span]:
        """Messages from `first` on, up to a number without a known shape."""
        if self._tables is None:
            return [(first, min(len(lines), first + unknown), None)]
        known, ends = np.empty(len(lines), np.bool_), np.empty(len(lines), np.int64)
        state = np.array([first, 0, 0, self._last])
        self._reads += 1
        limits = lines.limits
        bounds = kernel.LineBounds(
            min(PARSED_BYTES, limits.event_bytes), limits.event_bytes, min(unknown, len(lines))
        )
        while True:
            quads = kernel.ShapedQuads(self._texts, ends, known)
            if kernel.shaped_quads(
                lines.data, lines.ends, self._tables, bounds, self._values, quads, state,
                self._reads,
            ):  # fmt: skip
                break
            self._texts = grown(self._texts, 2 * len(self._texts))
        self._last = int(state[kernel.SHAPE])
        return [*_spans(lines, quads, first, int(state[kernel.LINE]))]


def _spans(lines: LoggedLines, quads: kernel.ShapedQuads, first: int, end: int) -> Iterator[Span]:
    changes = np.flatnonzero(quads.known[first + 1 : end] != quads.known[first : end - 1])
    done = 0
    for stop in [*(changes + first + 1).tolist(), end]:
        written = None
        if quads.known[first]:
            text = quads.texts[done : int(quads.ends[stop - 1])].tobytes()
            done += len(text)
            numbers = range(lines.line + first, lines.line + stop)
            written = MessageLines(text.removesuffix(MARKED), numbers)
        yield first, stop, written
        first = stop


def _tables(shapes: Sequence[MessageShape], used: Int64s) -> kernel.ShapeTables:
    """The shapes as the kernel reads them."""
    parts, writes = list[tuple[bytes, int]](), list[tuple[bytes, int, int]]()
    for shape in shapes:
        parts += shape.parts
        writes += *shape.writes, (shape.rest + MARKED, _NONE, kernel.AS_IT_IS)
    texts = [part[0] for part in parts] + [write[0] for write in writes]
    sizes = np.array([len(text) for text in texts], np.int32)
    starts = np.cumsum(sizes, dtype=np.int32) - sizes
    rooms = [_room(shape) for shape in shapes]
    count = len(parts)
    return kernel.ShapeTables(
        np.frombuffer(bytearray(b"".join(texts) + bytes(PAD)), np.uint8),
        _firsts([len(shape.parts) for shape in shapes]),
        starts[:count],
        sizes[:count],
        np.array([kind for _, kind in parts], np.int32),
        _firsts([len(shape.writes) + 1 for shape in shapes]),
        starts[count:],
        sizes[count:],
        np.array([value for _, value, _ in writes], np.int32),
        np.array([form for _, _, form in writes], np.int32),
        np.array(rooms),
        used,
    )


def _firsts(sizes: Sequence[int]) -> Int32s:
    return np.array([0, *accumulate(sizes)], np.int32)


def _room(shape: MessageShape) -> int:
    """Maximum bytes of a line's quads, without values that are copied unchanged."""
    numbers = sum(form >= kernel.AS_NUMBER for *_, form in shape.writes)
    fixed = sum(len(text) for text, *_ in shape.writes) + len(shape.rest) + len(MARKED)
    return fixed + numbers * kernel.WRITTEN_NUMBER


@record
class _Value:
    """A value in a line: the start and end of its text, the part that stays, the kind of the rest.

    `mark` and `other` replace it when its role is learned. The other number has a fraction, and the
    other text is an absolute IRI.
    """

    begin: int
    end: int
    kind: int
    head: bytes
    mark: bytes
    other: bytes

    def marked(self, mark: bytes) -> bytes:
        """The JSON text with a mark in place of each variable part."""
        return mark if self.kind == kernel.NUMBER else b'"%b%b"' % (self.head, mark)


def learned(text: bytes, context: Any, parse: Parse) -> MessageShape | None:
    """The shape of a line; None if it has none: its quads depend on its values in another way.

    Args:
        text: a JSON object.
        context: JSON with all its contexts, by `@context`.
        parse: reads a line.

    Raises:
        PARSER_ERRORS: the line is malformed; or it becomes so with marks.
    """
    values = [*_values(text, may_have_prefixes=not _names_iris(context))]

    def quads_of(texts: Mapping[_Value, bytes]) -> bytes:
        return with_numbered_labels(parse(_replaced(text, texts)))

    marks = {v: v.marked(v.mark) for v in values}
    marked = quads_of(marks)
    roles = {v: _role(v, marked) for v in values}
    numbers = {v: v.other for v in values if (role := roles[v]) and role.form == kernel.AS_NUMBER}
    if numbers:  # are numbers with fractions doubles?
        others = quads_of(marks | numbers)
        for v in numbers:
            if _TYPED % (_double(v.other), b"double") not in others:
                roles[v] = _Role(v.mark, kind=kernel.INTEGER)
    absent = [v for v in values if roles[v] is _ABSENT]
    if absent and quads_of(marks | {v: v.marked(v.other) for v in absent}) != marked:
        roles |= dict.fromkeys(absent, None)
    varying = {v: role for v in values if (role := roles[v]) is not None}
    quads = quads_of({v: marks[v] for v in varying})
    shown = [role.mark or v.mark for v, role in varying.items()]
    if [*map(quads.count, shown)] != [*map(marked.count, shown)]:
        return None  # a value means something else beside the others' own texts
    made = _shape(text, varying, quads)
    return made if made is not None and made.quads(text) == quads_of({}) else None


def with_numbered_labels(quads: bytes) -> bytes:
    """The quads of a message, in which blank nodes have the labels that its events will give them.

    Raises:
        ValueError: the name of a graph is a blank node, which would not be another one in the next
            message.

    >>> with_numbered_labels(b"_:abcdefabcdefabcdefabcdef <a:p> _:b .\\n")
    b'_:anon0 <a:p> _:b .\\n'
    """
    rows = [
        (str(s), str(p), str(o), None if isinstance(g, ox.DefaultGraph) else str(g))
        for s, p, o, g in ox.parse(quads, ox.RdfFormat.N_QUADS)
    ]
    written: dict[str | None, set[str]] = {}
    for s, _, o, g in rows:
        written.setdefault(g, set()).update(blank_nodes(s), blank_nodes(o))
    if any(g is not None and g[0] == "_" for g in written):
        raise ValueError("a graph whose name is a blank node")
    names = {g: numbered_labels(labels) for g, labels in written.items()}

    def numbered(row: tuple[str, str, str, str | None]) -> tuple[str, str, str, str | None]:
        s, p, o, g = row
        return with_blank_nodes(s, names[g]), p, with_blank_nodes(o, names[g]), g

    for row in rows:
        if row[1] != f"<{MARK}>":  # which the event will not have
            numbered(row)
    return lines_of(map(numbered, rows))


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
        return _Value(begin, end, kernel.NUMBER, b"", mark, b"9." + other[2:])
    mark, other = b"x%bx" % mark, b"x%bx" % other
    for pattern, kind in _IRI_VALUES if may_have_prefixes else ():
        match = pattern.fullmatch(word)
        if match is not None:
            return _Value(begin, end, kind, match[1], mark, other)
    return _Value(begin, end, kernel.TEXT, b"", mark, b"urn:x:" + other)


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


def _replaced(text: bytes, texts: Mapping[_Value, bytes]) -> bytes:
    """The line with other texts in place of some values, which are in order."""
    parts, at = list[bytes](), 0
    for value, new_text in texts.items():
        parts += text[at : value.begin], new_text
        at = value.end
    return b"".join([*parts, text[at:]])


# --- roles of values ------------------------------------------------------------------------------

_TYPED = b'%b"^^<' + XSD.encode() + b"%b>"


def _double(number: bytes) -> bytes:
    """A number of some digits, of which the first and last are not zero, as a canonical xsd:double.

    >>> _double(b"1234"), _double(b"1.234")
    (b'1.234E3', b'1.234E0')
    """
    exponent = len(number.partition(b".")[0]) - 1
    digits = number.replace(b".", b"")
    return b"%b.%bE%d" % (digits[:1], digits[1:], exponent)


@record
class _Role:
    """The role of a value in the quads: the text for its mark, and the form of other values there.

    `kind` is the kind of these values, if it allows fewer than the value's kind.
    """

    mark: bytes
    form: int = kernel.AS_IT_IS
    kind: int | None = None


_ABSENT = _Role(b"")


def _role(value: _Value, quads: bytes) -> _Role | None:
    """The role of a value in the quads of its marked line; None if it may depend on its text."""
    mark = value.mark
    if value.kind == kernel.NUMBER:
        for role, end in (
            (_Role(_TYPED % (mark, b"integer"), kernel.AS_NUMBER), b""),
            (_Role(_TYPED % (_double(mark), b"double"), kernel.AS_DOUBLE), b""),
            (_Role(mark, kind=kernel.INTEGER), b'"'),
        ):
            if whole := quads.count(b'"%b%b' % (role.mark, end)):
                return role if whole == _count(mark, quads) else None
        return None if _count(mark, quads) else _ABSENT
    count = quads.count(mark)
    if count == 0:
        return _ABSENT
    literal = b' "%b%b"' % (value.head, mark)  # behind a space, no quote belongs to a text
    whole = sum(quads.count(literal + after) for after in (b" ", b"@", b"^^"))
    if value.kind != kernel.TEXT:
        whole += len(re.findall(rb'<[^<>"]*%b>' % mark, quads))
    form = kernel.AS_TEXT if value.kind == kernel.TEXT else kernel.AS_IT_IS
    return _Role(mark, form) if count == whole else None


def _count(mark: bytes, quads: bytes) -> int:
    """Number of occurrences of a number in quads, in any form."""
    return quads.count(mark) + quads.count(_double(mark))


def _shape(text: bytes, roles: Mapping[_Value, _Role], quads: bytes) -> MessageShape | None:
    """The shape in which these values vary, given the quads of the line with their marks."""
    parts, at = list[tuple[bytes, int]](), 0
    places = dict[bytes, tuple[int, int]]()
    for number, (value, role) in enumerate(roles.items()):
        if role is not _ABSENT:
            places[role.mark] = number, role.form
        kind, quoted = role.kind or value.kind, value.kind != kernel.NUMBER
        parts.append((text[at : value.begin + quoted] + value.head, kind))
        at = value.end - quoted
    if not places:
        return None
    *pieces, rest = re.split(b"(%b)" % b"|".join(map(re.escape, places)), quads)
    writes = [(pieces[i], *places[pieces[i + 1]]) for i in range(0, len(pieces), 2)]
    return MessageShape((*parts, (text[at:], kernel.END)), writes, rest)
