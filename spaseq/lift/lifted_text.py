"""Lifted events as text: the time in the default graph, right before each event.

RDF Messages have a message for each event, so events without a name stay without one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from spaseq.lift.lifted_events import LiftedBatch
from spaseq.rdf.columns.term_tables import term_table
from spaseq.rdf.messages.written import MESSAGE_END, VERSION
from spaseq.rdf.terms.term import iri_text


def event_texts(batch: LiftedBatch, form: str, time_predicate: str, number: int) -> Iterator[str]:
    """The text of each event; `form` is one of `FORMATS`.

    An event without a name gets a blank node, labelled by its number in the stream; `number` is
    the number of the batch's first event.
    """
    events, write = batch.events, _WRITERS[form]
    names = events.names(np.arange(len(events))).texts()
    predicate = iri_text(time_predicate)
    texts = term_table(events.terms)
    used = [texts.take(column) for column in (events.s, events.p, events.o)]
    starts = events.start.tolist()
    for i, time in enumerate(batch.time_texts()):
        name = names[i]
        graph = f"_:event{number + i}" if name is None else iri_text(name)
        rows = slice(starts[i], starts[i + 1])
        lines = [f"{s} {p} {o}" for s, p, o in zip(*(c[rows] for c in used), strict=True)]
        if form == "rdfm" and name is None:
            yield ("".join(f"{line} .\n" for line in lines) + MESSAGE_END)
            continue
        yield write(graph, f"{graph} {predicate} {time} .\n", lines)


def _nquads(graph: str, time: str, lines: list[str]) -> str:
    return time + "".join(f"{line} {graph} .\n" for line in lines)


def _trig(graph: str, time: str, lines: list[str]) -> str:
    triples = "".join(f"  {line} .\n" for line in lines)
    return f"{time}{graph} {{\n{triples}}}\n"


def _rdfm(graph: str, time: str, lines: list[str]) -> str:
    return _nquads(graph, time, lines) + MESSAGE_END


_WRITERS: dict[str, Callable[[str, str, list[str]], str]] = {
    "nquads": _nquads,
    "trig": _trig,
    "rdfm": _rdfm,
}

FORMATS = tuple(_WRITERS)
"""The formats of `spaseq lift`."""

HEADS = {"rdfm": VERSION}
"""What stands before the first event."""
