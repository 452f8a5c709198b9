"""Lines of known shapes, whose quads a kernel writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from spaseq.compiled.arrays import Int32s, Int64s, grown
from spaseq.limits import DEFAULT_LIMITS
from spaseq.rdf.inputs.sizes import PARSED_BYTES
from spaseq.rdf.kernels import PAD
from spaseq.rdf.kernels import shaped_lines as kernel
from spaseq.rdf.messages.message_lines import MARKED, MessageLines
from spaseq.rdf.messages.message_quads import LoggedLines
from spaseq.records import record

_SHAPES = 32
"""Shapes that are known at a time; each costs a look at every message of another one."""

_FIRST_ROOM = 1 << 12
_NONE = -1


@record
class MessageShape:
    """What lines have in common, and how their quads are made.

    Attributes:
        parts: texts that stand in a line, each with the kind of value that follows it; behind the
            last one stands END.
        writes: texts that stand in the quads, each with the place in the line of the value that
            follows it, and how that is written.
        rest: what follows the last of these values in the quads.
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
        """Know one more. If there are too many, the one that no line has had for longest goes."""
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
        """Messages from `first` on, until so many have no known shape."""
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
    """The most bytes of a line's quads, without values that are written as they are."""
    numbers = sum(form >= kernel.AS_NUMBER for *_, form in shape.writes)
    fixed = sum(len(text) for text, *_ in shape.writes) + len(shape.rest) + len(MARKED)
    return fixed + numbers * kernel.WRITTEN_NUMBER
