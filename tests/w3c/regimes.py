"""Tests under an entailment regime: the ones that need only the implemented rules."""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.lang import ast
from spaseq.lang.parser import parse
from spaseq.lang.variables import walk
from spaseq.rdf.schema import TYPE, Schema
from spaseq.rdf.terms.term import OWL, RDF, RDFS
from tests.gpm.graphs import Triple
from tests.w3c.manifests import Test
from tests.w3c.queries import as_gpm

UNKNOWN = "its entailment regimes are not offered: "
AXIOMATIC = "asks for the ontology itself or for axiomatic triples, which no event entails"
UNSUPPORTED = "needs a rule that is not among those supported, about "

_RULES = {
    f"<{RDFS}{name}>" for name in ("subClassOf", "subPropertyOf", "domain", "range")
} | {
    f"<{OWL}{name}>"
    for name in (
        "equivalentClass", "equivalentProperty", "inverseOf", "SymmetricProperty",
        "TransitiveProperty",
    )
}  # fmt: skip
_DECLARATIONS = {TYPE, f"<{RDF}Property>"} | {
    f"<{RDFS}{name}>" for name in ("Class", "label", "comment", "seeAlso", "isDefinedBy")
} | {
    f"<{OWL}{name}>"
    for name in (
        "Class", "ObjectProperty", "DatatypeProperty", "AnnotationProperty", "Ontology", "Thing",
        "NamedIndividual", "versionInfo",
    )
}  # fmt: skip
_VOCABULARIES = tuple(f"<{vocabulary}" for vocabulary in (RDF, RDFS, OWL))


def entails(test: Test) -> bool:
    """Whether a test is evaluated with the schema in its own data."""
    return any(regime == "RDFS" or regime.startswith("OWL") for regime in test.regimes)


def schema_of(test: Test, data: tuple[Triple, ...]) -> Schema | None:
    """The schema in a test's data, if the test needs entailment and the schema is not empty."""
    schema = Schema.of(data) if entails(test) else None
    return schema if schema is not None and schema.axioms else None


def why_not_entailed(test: Test) -> str | None:
    """Why a test under a regime is not run; None if it is run or has no regime."""
    if not test.regimes or set(test.regimes) == {"Simple"}:
        return None
    if not entails(test):
        return UNKNOWN + ", ".join(sorted(set(test.regimes)))
    from tests.w3c.evaluation import dataset  # imported here because it imports this module

    with dataset(test) as data:
        for triple in data.default:
            for term in triple:
                if term.startswith(_VOCABULARIES) and term not in _RULES | _DECLARATIONS:
                    return UNSUPPORTED + term
    return AXIOMATIC if any(_axiomatic(test)) else None


def _axiomatic(test: Test) -> Iterator[bool]:
    """For each triple of the query, whether it may match an axiom or an axiomatic triple."""
    pattern = parse(as_gpm(test.text(), test.base)).gpms[0].pattern
    for triple in (part for part in walk(pattern) if isinstance(part, ast.Triple)):
        yield isinstance(triple.predicate, ast.Var)
        yield triple.predicate == ast.Iri(TYPE[1:-1]) and not isinstance(triple.object, ast.Iri)
        for term in (part for part in walk(triple) if isinstance(part, ast.Iri)):
            text = f"<{term.value}>"
            yield text.startswith(_VOCABULARIES) and text != TYPE
