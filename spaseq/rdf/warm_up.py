"""Warm-up of the RDF kernels: one call compiles or loads each of them."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

import numpy as np

from spaseq.limits import DEFAULT_LIMITS
from spaseq.rdf.documents.turtle_statements import TurtleStatements
from spaseq.rdf.events.graph_times import TimeTerms
from spaseq.rdf.kernels import PAD
from spaseq.rdf.kernels.event_ranges import (
    equal_times,
    event_rows,
    named_events,
    sized_events,
)
from spaseq.rdf.kernels.lines import last_event_end, last_line_end
from spaseq.rdf.kernels.message_graphs import find_apart
from spaseq.rdf.kernels.shaped_lines import END
from spaseq.rdf.kernels.texts import CONSTANT, compacted, compacted_parts, holding_any, joined_texts
from spaseq.rdf.lines.arenas import ArenaPool, ReadArena
from spaseq.rdf.lines.line_batches import times_of
from spaseq.rdf.lines.statements import LineChunk, StatementReader
from spaseq.rdf.messages.message_shapes import MessageShape
from spaseq.rdf.terms.term import GENERATED_AT_TIME, XSD

_TIME = f"<{GENERATED_AT_TIME}>"
_SAMPLE = f"""<a:s> <a:p> "1"^^<{XSD}integer> <a:g> .
<a:g> {_TIME} "1970-01-01T00:00:00Z"^^<{XSD}dateTime> .
<a:s> <a:p> "1"^^<{XSD}integer> <a:h> .
""".encode()


def steps() -> Iterator[str]:
    """Call each kernel once and yield its name when it is ready."""
    reader = StatementReader(True, ArenaPool(1), (_TIME,), has_time=True)
    arena, size = ReadArena(len(_SAMPLE)), len(_SAMPLE)
    arena.buffer[: size + PAD] = np.frombuffer(_SAMPLE + b"\n" * PAD, np.uint8)
    last_line_end(arena.buffer, 0, size)
    yield "last_line_end"
    last_event_end(arena.buffer, 0, size, 1)
    yield "last_event_end"
    arena.grow_terms(0)
    yield "fill_slots"
    reader.enter((_TIME,), arena, reader.state(LineChunk(arena, 0, size)))
    yield "add_texts"
    statements = reader.read(LineChunk(arena, 0, size))
    yield "tokenize"
    list(TurtleStatements(BytesIO(_SAMPLE), None, DEFAULT_LIMITS, least=0))
    yield "read_turtle"
    times = times_of(statements, TimeTerms("", "ms", lambda _: None))
    found = named_events(statements.g, statements.s, times, 0, False, 0, -1, (False, 0))
    yield "named_events"
    sized_events(1, len(statements), times)
    yield "sized_events"
    event_rows(found.first, found.end, statements.s, statements.p, statements.o, False)
    yield "event_rows"
    zero = np.zeros(1, np.int64)
    equal_times(zero, 0, np.empty(1, np.int32), zero.copy(), zero.copy())
    yield "equal_times"
    codes = statements.terms.find([_TIME])
    yield "find_texts"
    statements.terms.strings(codes)
    yield "gather"
    own, ends, places = np.frombuffer(b"a", np.uint8), np.array([0, 1]), np.zeros(1, np.int64)
    holding_any(own, ends, np.zeros(256, np.bool_))
    yield "holding_any"
    rows = np.empty((0, 1), np.int32)
    joined_texts(np.zeros(1 + PAD, np.uint8), ends, places, np.array([CONSTANT]), rows, 1)
    yield "joined_texts"
    compacted(codes, len(statements.terms))
    yield "compacted"
    compacted_parts(codes, np.array([len(codes)]), len(statements.terms))
    yield "compacted_parts"
    statements.terms.numbers(codes)
    yield "numbers"
    text, bounds = np.frombuffer(_SAMPLE, np.uint8), np.array([0, size])
    find_apart(text, bounds[:1], bounds[1:], np.empty(1, bool))
    yield "find_apart"
    MessageShape([(b"{}", END)], (), b"").quads(b"{}")
    yield "shaped_quads"
