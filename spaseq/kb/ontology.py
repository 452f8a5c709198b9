"""Ontologies: files and graphs as the schema for entailment."""

from __future__ import annotations

from os import PathLike

from spaseq.algebra.schema import Schema
from spaseq.errors import InputError, UsageError
from spaseq.kb.quads import triples_in
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.options import REGIMES, KbInput, OntologyInput


def entailing_schema(
    ontology: OntologyInput | None, entailment: str | None, limits: Limits = DEFAULT_LIMITS
) -> Schema | None:
    """The schema of one or more ontologies; None without entailment.

    Reads the triples of all graphs in the ontologies. See `spaseq.algebra.entailment`.

    Raises:
        UsageError: there is an ontology without entailment, entailment without an ontology, or an
            unknown regime.
        InputError: an ontology cannot be read, has no axiom that the rules use, or has a transitive
            property above or below rdf:type.
    """
    if entailment is not None and entailment not in REGIMES:
        raise UsageError(f"unknown entailment {entailment!r}; there is: {', '.join(REGIMES)}")
    sources = _sources(ontology)
    if not sources and entailment is None:
        return None
    if entailment is None:
        raise UsageError("an ontology has no effect without entailment: say rdfs")
    if not sources:
        raise UsageError(f"entailment {entailment} needs an ontology (--ontology FILE)")
    schema = Schema.of(t for source in sources for t in triples_in(source, limits))
    names = ", ".join(str(s) for s in sources if isinstance(s, str | PathLike)) or "the graph"
    if not schema.axioms:
        raise InputError(f"{names}: no axiom about classes or properties to entail by")
    if refused := schema.transitive_types:
        raise InputError(
            f"{names}: {refused[0]} is transitive and above or below rdf:type, by which nothing "
            "can be entailed: take away one of the two"
        )
    return schema


def _sources(ontology: OntologyInput | None) -> list[KbInput]:
    if ontology is None:
        return []
    if isinstance(ontology, list | tuple):
        return list(ontology)
    return [ontology]
