"""Statements of large Turtle documents, by a kernel.

The kernel stops before a statement that it does not certainly understand. From there on the rest
of the document, with the prefixes so far before it, is for a parser.
"""

from __future__ import annotations

import io
import secrets
from collections.abc import Iterator, Mapping
from typing import IO, Any, NamedTuple, cast

import numpy as np
import pyoxigraph as ox

from spaseq.compiled.arrays import Bytes, Int32s, Int64s
from spaseq.limits import Limits
from spaseq.rdf.columns.term_columns import TextArray
from spaseq.rdf.inputs.files import READ_ERRORS, Headed
from spaseq.rdf.kernels import PAD, turtle
from spaseq.rdf.kernels import lines as k
from spaseq.rdf.kernels.literals import constant
from spaseq.rdf.kernels.texts import compacted
from spaseq.rdf.kernels.turtle import DEEPEST, read_turtle
from spaseq.rdf.kernels.turtle_terms import MADE, TurtleText
from spaseq.rdf.lines.arenas import LASTING_BYTES, BufferTerms, ReadArena
from spaseq.rdf.lines.chunks import CHUNK_BYTES
from spaseq.text_patterns import late_pattern

_LF = 10
_SPACES = bytes.maketrans(b"\r\n", b"  ")
_LINE_FEEDS = bytes.maketrans(b"\r", b"\n")
_STEP = 1 << 20  # bytes per read
_LONGEST_DIRECTIVES = 1 << 14
_SEED = np.uint64(secrets.randbits(64))
_BOM = b"\xef\xbb\xbf"

_DIRECTIVES = late_pattern(
    rb"(?:\s*+(?:@prefix\s++[A-Za-z0-9_.-]*+:\s*+<[^<>]*+>\s*+\.|@base\s++<[^<>]*+>\s*+\."
    rb"|(?i:prefix)\s++[A-Za-z0-9_.-]*+:\s*+<[^<>]*+>|(?i:base)\s++<[^<>]*+>))++"
)


class TripleBlock(NamedTuple):
    """Triples as codes int32 [m, 3] into their distinct texts, which appear in this order."""

    texts: TextArray
    triples: Int32s


class _Prefixes(NamedTuple):
    """The last fields of `TurtleText`."""

    text: Bytes
    places: Int32s
    label: int

    @staticmethod
    def of(iris: Mapping[str, str]) -> _Prefixes:
        """The prefixes with these IRIs, and a label that no document has."""
        label = f"_:{secrets.token_hex(16)}"
        texts = [label, *(text for name, iri in iris.items() for text in (f"{name}:", iri))]
        ends = np.cumsum([len(text.encode()) for text in texts], dtype=np.int32)
        places = np.stack((ends[:-1], np.diff(ends)), axis=1).reshape(-1, 4)
        return _Prefixes(constant("".join(texts))[0], places, len(label))


class _Unreadable(io.RawIOBase):
    """A file that cannot be read any more."""

    def __init__(self, fault: Exception) -> None:
        super().__init__()
        self._fault = fault

    def readable(self) -> bool:
        return True

    def readinto(self, room: memoryview) -> int:  # type: ignore[override]
        raise self._fault


class TurtleStatements:
    """The triples of a document, as far as the kernel reads it.

    After the iteration `rest` is what a parser must read, or None if the kernel has read all. It
    has `lines` fewer lines than the document.

    Args:
        data: the document.
        base: the base IRI until the document sets its own.
        limits: a parser reads what exceeds them.
        least: bytes of a document below which a parser reads all.
    """

    def __init__(self, data: IO[bytes], base: str | None, limits: Limits, least: int) -> None:
        self._data: Any = data
        self._least = least
        self._base, self._limits = base, limits
        self._more = True
        self._directives = b""
        self._prefixes = _Prefixes.of({})
        self._made = 0  # labels
        self._column = 0  # characters before the rest in its line
        self.lines = 0
        self.rest: IO[bytes] | None = None

    def __iter__(self) -> Iterator[TripleBlock]:
        arena, at, stop = ReadArena(CHUNK_BYTES), 0, 0
        end = self._fill(arena, b"")
        goes_on = end >= self._least
        if goes_on and arena.buffer[: len(_BOM)].tobytes() == _BOM:
            at = len(_BOM)
        while goes_on:
            state = self._read(arena, at, end)
            yield _block(arena, state)
            stop = int(state[k.AT])
            self._pass(arena.buffer[at:stop].tobytes())
            goes_on = stop > at and self._more
            if goes_on:
                end = self._fill(arena, arena.buffer[stop:end].tobytes())
                at = stop = 0
        if stop < end or self._more:
            self.rest = self._for_parser(arena.buffer[stop:end].tobytes())

    def _fill(self, arena: ReadArena, left: bytes) -> int:
        """Fill the buffer, first with what is left; returns the bytes in it."""
        size = len(left)
        room = memoryview(arena.buffer)  # type: ignore[arg-type]
        room[:size] = left
        try:
            while self._more and size < CHUNK_BYTES:
                count = self._data.readinto(room[size : min(size + _STEP, CHUNK_BYTES)])
                self._more = count > 0
                size += count
        except READ_ERRORS as fault:
            self._data = _Unreadable(fault)
        arena.buffer[size : size + PAD] = _LF
        return size

    def _read(self, arena: ReadArena, at: int, end: int) -> Int64s:
        """Read the statements of `at:end` of the buffer; returns the state after the last one."""
        arena.clear()
        state = np.zeros(k.STATE, np.int64)
        state[k.AT], state[k.HEAP], state[MADE] = at, end + PAD, self._made
        longest, most = self._limits.literal_bytes, self._limits.event_bytes
        deepest = min(self._limits.nesting, DEEPEST)
        stack = np.empty((DEEPEST, 2), np.int32)
        while True:
            table = _SEED, state, arena.spans, arena.slots
            text = TurtleText(arena.buffer, end, longest, *table, *self._prefixes)
            match read_turtle(text, not self._more, most, deepest, arena.rows, stack):
                case k.ROWS_FULL:
                    arena.grow_rows()
                case k.TERMS_FULL:
                    arena.grow_terms(int(state[k.TERM]))
                case turtle.HEAP_FULL if state[k.HEAP] < LASTING_BYTES:
                    arena.reserve(int(state[k.HEAP]), len(arena.buffer))
                case turtle.DIRECTIVE if size := self._directive(arena.buffer, state, end):
                    state[k.AT] += size
                case _:
                    self._made = int(state[MADE])
                    return state

    def _directive(self, buffer: Bytes, state: Int64s, end: int) -> int:
        """Take the directives that follow; returns their size, 0 if a parser must read them."""
        at = int(state[k.AT])
        match = _DIRECTIVES.match(buffer[at : min(end, at + _LONGEST_DIRECTIVES)].tobytes())
        if match is None or len(self._directives) > _LONGEST_DIRECTIVES:
            return 0
        directives = self._directives + match[0].translate(_SPACES) + b" "
        parser = ox.parse(directives, ox.RdfFormat.TURTLE, base_iri=self._base)
        try:
            next(parser, None)  # it reads them all
        except (SyntaxError, ValueError):
            return 0
        self._directives, self._prefixes = directives, _Prefixes.of(parser.prefixes)
        return match.end()

    def _pass(self, text: bytes) -> None:
        """Count the lines and characters of text that has been read."""
        lines = text.replace(b"\r\n", b"\n").translate(_LINE_FEEDS)
        self.lines += lines.count(b"\n")
        last = lines[lines.rfind(b"\n") + 1 :]
        before = self._column if len(last) == len(lines) else 0
        self._column = before + len(last.decode(errors="replace"))

    def _for_parser(self, head: bytes) -> IO[bytes]:
        """The rest of the document, after its directives, and in the same column."""
        if self._directives or self._column:
            head = self._directives + b"\n" + b" " * self._column + head
            self.lines -= 1
        return cast("IO[bytes]", Headed(head, self._data))


def _block(arena: ReadArena, state: Int64s) -> TripleBlock:
    rows, terms = int(state[k.ROW]), int(state[k.TERM])
    triples = np.stack([column[:rows] for column in arena.rows[:3]], axis=1)
    used, places = compacted(triples.ravel(), terms)
    texts = BufferTerms(arena, terms, _SEED, bool(state[k.BLANK])).strings(used)
    return TripleBlock(texts, places.reshape(-1, 3))
