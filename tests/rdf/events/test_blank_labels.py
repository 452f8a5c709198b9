"""Labels of anonymous nodes: numbered within their event, in linear time."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from spaseq.rdf.columns.term_tables import ListedTerms
from spaseq.rdf.events.blank_labels import relabelled
from tests.rdf.streams import at, read, write

PREFIXES = "@prefix : <http://e/> . @prefix prov: <http://www.w3.org/ns/prov#> .\n"
EVENT = f":1 prov:generatedAtTime {at(1)} . :1 {{ %s }}\n"


def test_anonymous_nodes_of_a_triple_term_are_numbered(tmp_path: Path) -> None:
    text = PREFIXES + EVENT % ":s :p [] , <<( [] :q _:anon1 )>> ."
    path = write(tmp_path / "s.trig", text)
    (event,), bad = read(path)
    assert bad == []
    assert [o for _, _, o in event.triples] == [
        "_:anon0",
        "<<( _:anon2 <http://e/q> _:anon1 )>>",
    ]
    assert read(path)[0] == [event]


def seconds(nodes: int) -> float:
    """The least time to label so many anonymous nodes of one event."""
    labels = [f"_:a{i:031x}" for i in range(nodes)]
    codes = np.arange(nodes, dtype=np.int32)
    starts = np.array([0, nodes], np.int64)
    least = float("inf")
    for _ in range(3):
        start = time.process_time()
        s, _, _ = relabelled(starts, codes, codes, ListedTerms(list(labels)))
        least = min(least, time.process_time() - start)
    assert len(np.unique(s)) == nodes
    return least


def test_the_time_for_labels_is_linear_in_their_number() -> None:
    # quadratic: 64 times the time for 8 times the nodes
    assert seconds(80_000) < 32 * seconds(10_000)
