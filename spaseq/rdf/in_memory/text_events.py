"""Events that a program pushes as N-Triples text, many at a time, read by the kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spaseq.errors import InputError
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.event_names import EventNames
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.sizes import long_event
from spaseq.rdf.lines.arenas import ArenaPool
from spaseq.rdf.lines.chunks import MAX_CHUNK_BYTES
from spaseq.rdf.lines.cuts import chunk_of
from spaseq.rdf.lines.line_batches import LineBatches
from spaseq.rdf.lines.statements import StatementReader
from spaseq.rdf.terms.term import iri_text


class TextEvents:
    """Builds batches of one stream's events; compare `program_events.batch_from_events`.

    It keeps only triples whose predicate is one of `predicates` (IRIs; None keeps all).
    """

    def __init__(
        self,
        stream: str,
        counter: InstantCounter,
        predicates: tuple[str, ...] | None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._limits = limits
        self.predicates = None if predicates is None else frozenset(predicates)
        constants = tuple(map(iri_text, predicates or ()))
        self._reader = StatementReader(
            False, ArenaPool(1), constants, only_constants=predicates is not None, limits=limits
        )
        self._batches = LineBatches(stream, counter, batch_events=2**31, skip_time=False)

    def batch(self, events: Sequence[tuple[int, str | None, str]]) -> EventBatch:
        """A batch of one or more events (time in ms, graph IRI or None, N-Triples text).

        Raises:
            InputError: a text is not N-Triples, or exceeds a limit; or the texts are too large for
                one batch.
        """
        texts = [_encoded(event[2]) for event in events]
        if max(map(len, texts)) > self._limits.event_bytes:
            raise InputError(f"not a graph: {long_event(self._limits)}")
        if sum(map(len, texts)) > MAX_CHUNK_BYTES:
            raise InputError(f"more than {MAX_CHUNK_BYTES} bytes in one batch of events")
        starts = np.cumsum([0, *(len(text) + 1 for text in texts)])
        whole = np.frombuffer(b"\n".join([*texts, b""]), np.uint8)
        statements = self._reader.read(chunk_of(whole, self._reader.pool))
        for bad in statements.bad:
            raise InputError(f"not a graph: {bad.reason}: {bad.text}")
        rows = np.searchsorted(statements.at, starts)
        time = np.array([event[0] for event in events], np.int64)
        names = EventNames.of([event[1] for event in events])
        (batch,) = self._batches.batches(statements, 1, rows[:-1], rows[1:], time, names)
        return batch


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"not a graph: {error.reason}") from None
