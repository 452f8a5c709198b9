"""The alerts of `spaseq demo`: the case card-fraud of streams/, which comes with the package."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pyoxigraph as ox

from spaseq.api.match import Match
from spaseq.api.run import run

DEMO = Path(__file__).parent / "demo"
"""The files of the case."""

STREAMS = {"S1": "transactions.nq.gz", "S2": "confirmations.nq"}
KB = {"http://cards.example/kb": "kb.ttl"}

RULE = """\
A card that is drained, from small amounts to big ones and back:

  A      a payment by card
  B{2,}  then two or more, each at least half as much again as the one before
  D!     and no telephone call by which the holder confirms them, before
  C{3}   three of at most a tenth of the biggest
"""


def alerts(runtime: Literal["local", "spark"]) -> Iterator[str]:
    """Each alert: whose card, when, and the payments of its steps."""
    streams = {name: str(DEMO / file) for name, file in STREAMS.items()}
    knowledge = {iri: str(DEMO / file) for iri, file in KB.items()}
    amounts = _amounts()
    for match in run(DEMO / "query.rq", streams, knowledge, runtime):
        yield _alert(match, amounts)


def _alert(match: Match, amounts: dict[str, str]) -> str:
    holder, bank = (match.bindings[name].to_python() for name in ("holder", "bankName"))
    steps = [f"{item.gpm} {amounts[str(item.event)]}" for item in match.trace]
    return f"{holder}, {bank}, {match.start:%H:%M:%S} to {match.end:%H:%M:%S}\n  {'  '.join(steps)}"


def _amounts() -> dict[str, str]:
    """The amount of each transaction, by the IRI of its event."""
    data = gzip.decompress((DEMO / STREAMS["S1"]).read_bytes())
    return {
        quad.graph_name.value: quad.object.value
        for quad in ox.parse(data, ox.RdfFormat.N_QUADS)
        if isinstance(quad.graph_name, ox.NamedNode)
        and isinstance(quad.object, ox.Literal)
        and quad.predicate.value == "http://cards.example/ns#amount"
    }
