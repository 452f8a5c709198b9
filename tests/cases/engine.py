"""Runs queries with spaseq and writes matches in the form of `answers.jsonl`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import spaseq

from .raw import EPOCH, MILLISECOND, Answer, Terms, iso, json_term

Runtime: TypeAlias = Literal["local", "spark"]


def inputs(query: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """The streams and the KB of a case's query, by IRI; file names follow from the IRIs."""
    text = query.read_text(encoding="utf-8")
    streams = re.findall(r"FROM STREAM \w+ <(\S+)>", text)
    kbs = re.findall(r"FROM NAMED <(\S+)>", text)
    folder = query.parent
    return (
        {iri: folder / f"{iri.rsplit('/', 1)[1]}.nq" for iri in streams},
        dict.fromkeys(kbs, folder / "kb.ttl"),
    )


def run(
    query: Path,
    streams: Mapping[str, Path],
    kb: Mapping[str, Path],
    runtime: Runtime,
    ontology: Path | None = None,
) -> list[Answer]:
    """The matches of a query, in order, as answers; with entailment if there is an ontology."""
    entailment = None if ontology is None else "rdfs"
    found = spaseq.run(query, streams, kb, runtime, ontology=ontology, entailment=entailment)
    return [written(match) for match in found]


def written(match: spaseq.Match) -> Answer:
    """A match as an answer, from its public attributes."""
    terms: Terms = {variable: term.n3() for variable, term in match.bindings.items()}
    return {
        "query": match.query,
        "start": iso((match.start - EPOCH) // MILLISECOND),
        "end": iso((match.end - EPOCH) // MILLISECOND),
        "bindings": {variable: json_term(text) for variable, text in terms.items()},
        "trace": [
            {
                "gpm": item.gpm,
                "stream": item.stream,
                "event": item.event,
                "time": iso((item.time - EPOCH) // MILLISECOND),
                "k": item.k,
            }
            for item in match.trace
        ],
    }
