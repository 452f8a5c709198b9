"""The graph IRIs and times of events as values of variables."""

from __future__ import annotations

import numpy as np

from spaseq.algebra import nodes as n
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.rdf.terms.term import XSD_DATE_TIME, iri_text, literal_text
from spaseq.rdf.terms.times import format_time


def event_names(pattern: n.EventName, source: VerticalPartition) -> Solutions:
    """The names and times of events; none of an event without an IRI if its name is asked for."""
    batch = source.batch
    events = np.arange(len(batch), dtype=np.int64)
    names = batch.graph.read(events).texts()
    if pattern.event is not None:
        events = np.array([i for i in events.tolist() if names[i] is not None], np.int64)
    columns = {}
    for variable in dict.fromkeys(pattern.variables):
        is_name = variable == pattern.event
        texts = [
            iri_text(names[i] or "") if is_name else _time_text(int(batch.time[i]))
            for i in events.tolist()
        ]
        columns[variable] = source.lexicon.encode(texts)
    return Solutions(len(events), events, columns, source.lexicon)


def _time_text(ms: int) -> str:
    """The canonical xsd:dateTime of a time.

    >>> _time_text(1500)
    '"1970-01-01T00:00:01.5Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    """
    text = format_time(ms)
    if "." in text:
        text = text[:-1].rstrip("0") + "Z"
    return literal_text(text, XSD_DATE_TIME)
