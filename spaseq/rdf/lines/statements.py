"""Statements of a chunk of N-Quads or N-Triples, in columns.

The kernel reads the lines that are certainly well-formed. pyoxigraph reads each of the other lines
and decides whether it is well-formed. Then the graph of a malformed line is found.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyoxigraph as ox

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.rdf.columns.term_tables import encoded
from spaseq.rdf.inputs.sizes import (
    PARSED_BYTES,
    UNREADABLY_LONG,
    line_excess,
    long_line,
    nested_too_deep,
)
from spaseq.rdf.inputs.stream_options import syntax_reason
from spaseq.rdf.kernels import PAD
from spaseq.rdf.kernels import lines as k
from spaseq.rdf.kernels.date_times import NO_TIME
from spaseq.rdf.kernels.event_ranges import TIME_PREDICATE
from spaseq.rdf.kernels.lines import UNREAD
from spaseq.rdf.kernels.texts import add_texts
from spaseq.rdf.kernels.tokenizer import tokenize
from spaseq.rdf.lines.arenas import ArenaPool, BufferTerms, ReadArena
from spaseq.rdf.terms.term import from_pyoxigraph
from spaseq.rdf.terms.triple_terms import may_have_blank_node
from spaseq.records import record
from spaseq.text_patterns import late_pattern

_LINE = late_pattern(rb"[^\r\n]*+")

ALL_WANTED = 2**31
"""`wanted` of the tokenizer when it keeps all triples: no code is as large."""
_NO_CODE = -1

SHOWN_BYTES = 300
"""Bytes of a malformed line that a report shows."""


class LongLine(NamedTuple):
    """The row of a statement that exceeds a limit, its line, and the reason."""

    row: int
    line: bytes
    reason: str


def long_lines(arena: ReadArena, count: int, end: int, limits: Limits) -> Iterator[LongLine]:
    """The rows, of the first `count`, that exceed a limit; the last row's line ends before `end`.

    Rows that are UNREAD are left out.
    """
    at = arena.rows.at[:count].astype(np.int64)
    room = np.diff(at, append=end)  # of the line, and of comments and blank lines after it
    least = min(limits.line_bytes, limits.literal_bytes)
    for row in np.flatnonzero((room > least) & (arena.rows.s[:count] != UNREAD)).tolist():
        match = _LINE.match(arena.buffer, at[row], at[row] + room[row])  # type: ignore[call-overload]
        assert match is not None
        line = bytes(match.group())
        reason = line_excess(line, limits)
        if reason is not None:
            yield LongLine(row, line, reason)


_LITERAL = late_pattern(rb'"(?:[^"\\]|\\.)*+"')
_TERM = late_pattern(rb"<[^>]*+>|_:[^\s<>\"]++|[^\s<]++")
_END = late_pattern(rb"\s*+\.\s*+(?:#.*+)?$", re.DOTALL)
_NAME = late_pattern(rb"<[^\x00-\x20<>\"{}|^`\\]++>|_:[\w.-]*+")


def graph_named(line: bytes, time_predicate: str) -> str | None:
    r"""The graph that a malformed line names as its fourth term, or gives a time; else None.

    >>> graph_named(rb'<s:> <p:> "a \q" <g:1> .', "<t:>")
    '<g:1>'
    >>> graph_named(rb'<g:1> <t:> "\q" .', "<t:>")
    '<g:1>'
    >>> graph_named(rb'<s:> <p:> "a <g:1> .', "<t:>")
    """
    text = _LITERAL.sub(b'""', line)
    if text.count(b'"') % 2:
        return None
    terms: list[bytes] = []
    end = 0
    for match in _TERM.finditer(_END.sub(b"", text.rstrip())):
        if terms and match.start() == end and terms[-1].startswith(b'"'):
            terms[-1] += match[0]  # a datatype
        else:
            terms.append(match[0])
        end = match.end()
    if len(terms) == 4:
        name = terms[3]
    elif len(terms) == 3 and terms[1] == time_predicate.encode():
        name = terms[0]
    else:
        return None
    return name.decode(errors="replace") if _NAME.fullmatch(name) else None


def parse_nquads_line(
    line: bytes, graphs: bool = True, limits: Limits = DEFAULT_LIMITS
) -> Sequence[tuple[str, str, str, str | None]] | str:
    """The quads of one line (none if it is blank or a comment), or why it is malformed."""
    if len(line) > min(limits.line_bytes, PARSED_BYTES):
        return long_line(len(line), limits) or UNREADABLY_LONG
    if (reason := nested_too_deep(line, limits.nesting)) is not None:
        return reason
    form = ox.RdfFormat.N_QUADS if graphs else ox.RdfFormat.N_TRIPLES
    try:
        quads = list(ox.parse(line, form))
    except (SyntaxError, ValueError) as error:
        return _encoding_reason(line) or syntax_reason(error)
    return [_texts(quad) for quad in quads]


def _encoding_reason(line: bytes) -> str | None:
    """The fault in a line's encoding; None if it is UTF-8."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return f"not UTF-8 (column {len(line[: error.start].decode()) + 1})"
    return None


def _texts(quad: ox.Quad) -> tuple[str, str, str, str | None]:
    s, p, o, g = quad
    return str(s), str(p), from_pyoxigraph(o), None if isinstance(g, ox.DefaultGraph) else str(g)


@dataclass(slots=True)
class DroppedLines:
    """Lines before a chunk that are not read: they belong to no event, or to one that is too long.

    `reason` is empty if there is nothing to report, and `text` is the text of a report.
    """

    reason: str = ""
    text: str = ""
    lines: int = 0


@record
class LineChunk:
    """Whole lines of a file, `begin:end` of an arena's buffer."""

    arena: ReadArena
    begin: int
    end: int
    fault: Exception | None = None  # reason why the file ends with this chunk
    long: Mapping[int, int] = field(default_factory=dict)
    """Offsets and sizes of lines that exceed their limit; the buffer has only their beginning."""
    dropped: DroppedLines | None = None  # before the chunk: no event goes on after it
    place: int = 0  # the chunk's end in the file, in bytes since reading began
    goes_on: bool = False  # whether lines that belong to its last event may follow

    def place_of(self, at: int) -> int:
        """The place in the file of an offset in the buffer where a line begins."""
        after = {line: size for line, size in self.long.items() if line >= at}
        return self.place - (self.end - at) - removed_bytes(after)


def shown_bytes(size: int) -> int:
    """Number of bytes that replace a line of `size` bytes once it is shortened."""
    return min(SHOWN_BYTES, size - 1)


def removed_bytes(long: Mapping[int, int]) -> int:
    """Number of bytes that the shortened lines lack; a NUL is before each."""
    return sum(size - 1 - shown_bytes(size) for size in long.values())


class BadLine(NamedTuple):
    """A malformed line: its number from 0, the reason, its text, and the graph that it names."""

    line: int
    reason: str
    text: str
    graph: str | None = None

    @property
    def may_be_quad(self) -> bool:
        """Whether an event may have lost a quad with the line; comments and blanks are none."""
        return self.text.lstrip()[:1] not in ("", "#")


@record
class Statements:
    """The m statements of a chunk, in columns [m].

    The columns belong to the arena and are valid until it returns to its pool. A malformed line is
    a row of UNREAD codes in N-Triples and no row in N-Quads.
    """

    s: Int32s  # [m] codes into terms
    p: Int32s
    o: Int32s  # or SKIPPED if no query names the predicate, or TIMED
    g: Int32s  # or DEFAULT_GRAPH
    at: Int32s  # offset of the line in the buffer
    line: Int32s  # number of the line in the chunk, from 0
    time: Int64s  # ms or NO_TIME, valid in rows with the time predicate
    terms: BufferTerms
    lines: int  # number of lines in the chunk
    bad: list[BadLine]
    apart: bool = False  # the statements belong to no event of earlier chunks
    goes_on: bool = False  # lines of later chunks may belong to the last event
    seconds: int = 0  # an integer time of ms that seems to be seconds

    def __len__(self) -> int:
        return len(self.s)


@record
class StatementReader:
    """Reads chunks of one stream, in any order and in several threads.

    Attributes:
        graphs: N-Quads if true, N-Triples if false.
        pool: arenas of the chunks.
        constants: texts that get the first codes in each chunk.
        has_time: the first constant is the time predicate.
        only_constants: check, but do not keep, the objects of triples whose predicate is not one of
            the constants.
        limits: bounds on lines, literals and the nesting of triple terms.
        larger: chunks are this many times as large as usual.
        scale: milliseconds per unit of an integer time.
        keeps_times: the terms of times in the default graph are kept, too.
        seed: seed of the term hashes.
    """

    graphs: bool
    pool: ArenaPool
    constants: tuple[str, ...] = ()
    has_time: bool = False
    only_constants: bool = False
    limits: Limits = DEFAULT_LIMITS
    larger: int = 1
    scale: int = 1
    keeps_times: bool = False
    seed: np.uint64 = field(default_factory=lambda: np.uint64(secrets.randbits(64)))

    def read(self, chunk: LineChunk) -> Statements:
        """The statements of a chunk. Its arena returns to the pool after their terms."""
        arena, state = chunk.arena, self.state(chunk)
        arena.clear()
        self.enter(self.constants, arena, state)
        self._tokenize(chunk, state)
        bad = self._parse_deferred(chunk, state)
        count = int(state[k.ROW])
        if chunk.end - chunk.begin > min(self.limits.line_bytes, self.limits.literal_bytes):
            bad += self._refuse_long(arena, count, chunk.end)
        columns: list[Any] = [column[:count] for column in arena.rows]
        if self.graphs and (state[k.DEFERRED] or bad):
            read = arena.rows.s[:count] != k.UNREAD
            columns = [column[read] for column in columns]
        s, p, o, g, at, line, time = columns
        terms = BufferTerms(arena, int(state[k.TERM]), self.seed, bool(state[k.BLANK]))
        self.pool.lend(arena, terms)
        lines, apart = int(state[k.LINE]), chunk.dropped is not None
        seconds = int(state[k.SECONDS])
        return Statements(
            s, p, o, g, at, line, time, terms, lines, bad, apart, chunk.goes_on, seconds
        )

    def state(self, chunk: LineChunk) -> Int64s:
        """The tokenizer's state at the start of a chunk."""
        state = np.zeros(k.STATE, np.int64)
        state[k.AT], state[k.HEAP] = chunk.begin, chunk.end + PAD
        state[k.SCALE], state[k.KEEPS_TIMES] = self.scale, self.keeps_times
        return state

    def _tokenize(self, chunk: LineChunk, state: Int64s) -> None:
        arena = chunk.arena
        arena.reserve(int(state[k.HEAP]), chunk.end - chunk.begin)  # no canonical text is longer
        wanted = len(self.constants) if self.only_constants else ALL_WANTED
        time = TIME_PREDICATE if self.has_time else _NO_CODE
        predicted = k.PredictedPredicates.none()
        while True:
            status = tokenize(
                arena.buffer, chunk.end, self.graphs, wanted, time, self.seed, state,
                arena.rows, arena.spans, arena.slots, arena.deferred,
                predicted,
            )  # fmt: skip
            match status:
                case k.DONE:
                    return
                case k.ROWS_FULL:
                    arena.grow_rows()
                case k.TERMS_FULL:
                    arena.grow_terms(int(state[k.TERM]))
                case k.DEFERRED_FULL:
                    arena.grow_deferred()

    def enter(self, texts: Sequence[str], arena: ReadArena, state: Int64s) -> Int32s:
        """The codes of canonical texts; new texts are added to the arena."""
        flat, ends = encoded(texts)
        heap, count = int(state[k.HEAP]), int(state[k.TERM])
        arena.reserve(heap, len(flat))
        while count + len(texts) > len(arena.spans):
            arena.grow_terms(count)
        arena.buffer[heap : heap + len(flat)] = flat
        codes: Int32s = add_texts(
            ends + heap, heap, count, self.seed, arena.buffer, arena.spans, arena.slots
        )
        state[k.HEAP] = heap + len(flat)
        state[k.TERM] = max(count, codes.max(initial=-1) + 1)
        return codes

    def _parse_deferred(self, chunk: LineChunk, state: Int64s) -> list[BadLine]:
        """Parse the deferred lines: set their rows' codes, or report them as bad lines."""
        arena = chunk.arena
        bad: list[BadLine] = []
        rows: list[int] = []
        texts: list[str] = []
        in_default: list[bool] = []
        for deferred_line in range(int(state[k.DEFERRED])):
            begin, end, row = (int(column[deferred_line]) for column in arena.deferred)
            line = arena.buffer[begin:end].tobytes()
            quads: Sequence[tuple[str, str, str, str | None]] | str
            if begin in chunk.long:
                line = line[1:]
                quads = long_line(chunk.long[begin], self.limits) or ""
            else:
                quads = parse_nquads_line(line, self.graphs, self.limits)
            if isinstance(quads, str):
                text = line[:SHOWN_BYTES].decode(errors="replace")
                graph = None if begin in chunk.long else self._graph_named(line)
                bad.append(BadLine(int(arena.rows.line[row]), quads, text, graph))
            for s, p, o, g in quads if not isinstance(quads, str) else ():
                rows.append(row)
                texts += s, p, o, g or s
                in_default.append(g is None)
        if rows:
            codes = self.enter(texts, arena, state).reshape(-1, 4)
            codes[in_default, 3] = k.DEFAULT_GRAPH
            if self.only_constants:
                codes[codes[:, 1] >= len(self.constants), 2] = k.SKIPPED
            columns = arena.rows
            columns.s[rows], columns.p[rows], columns.o[rows], columns.g[rows] = codes.T
            columns.time[rows] = NO_TIME
            state[k.BLANK] += any(map(may_have_blank_node, texts))
        return bad

    def _graph_named(self, line: bytes) -> str | None:
        """The graph that a malformed line of N-Quads names; unknown if the line is too long."""
        if not self.graphs or len(line) > self.limits.line_bytes:
            return None
        return graph_named(line, self.constants[0] if self.has_time else "")

    def _refuse_long(self, arena: ReadArena, count: int, end: int) -> list[BadLine]:
        """Report lines that exceed a limit; their rows become UNREAD."""
        bad = []
        columns = arena.rows
        for row, line, reason in long_lines(arena, count, end, self.limits):
            text = line[:SHOWN_BYTES].decode(errors="replace")
            bad.append(BadLine(int(columns.line[row]), reason, text, self._graph_named(line)))
            columns.s[row] = columns.p[row] = columns.o[row] = k.UNREAD
            columns.g[row] = k.DEFAULT_GRAPH
        return bad
