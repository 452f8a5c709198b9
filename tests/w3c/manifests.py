"""The tests of the W3C suites, as their manifests list them: whatever folders there are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import rdflib
from rdflib.namespace import RDF

from tests.rdf.shared import SHARED

SUITES = SHARED / "w3c"

MF = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
QT = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-query#")
DAWGT = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-dawg#")
SD_REGIME = rdflib.URIRef("http://www.w3.org/ns/sparql-service-description#entailmentRegime")
ROOT = "http://w3c.example/"
"""Where the suites are said to lie, unless a manifest says otherwise."""


@dataclass(frozen=True)
class Test:
    """One test. `files` and `named` are names in its folder; `base` is the folder's IRI.

    `kind` is the test's type without its namespace. Of a query `action` is the query file, and
    `data`, `named` the default and the named graphs; of a syntax or format test the file itself.
    """

    __test__ = False  # no test of pytest's

    suite: str  # rdf11, sparql10, sparql11
    folder: Path
    name: str
    kind: str
    base: str
    action: str | None
    data: tuple[str, ...]
    named: tuple[str, ...]
    result: str | None
    withdrawn: bool
    regime: bool  # evaluated under an entailment regime
    services: tuple[tuple[str, tuple[str, ...]], ...] = ()  # endpoints and the files they serve

    @property
    def id(self) -> str:
        return f"{self.suite}/{self.folder.name}/{self.name}"

    @property
    def negative(self) -> bool:
        return "Negative" in self.kind

    @property
    def is_query(self) -> bool:
        return self.kind in ("QueryEvaluationTest", "CSVResultFormatTest")

    def text(self) -> str:
        """The action's text."""
        assert self.action is not None
        return (self.folder / self.action).read_text(encoding="utf-8")


@cache
def suite_tests() -> tuple[Test, ...]:
    """All tests of all folders."""
    found = [t for m in sorted(SUITES.glob("*/*/manifest.ttl")) for t in _tests(m)]
    return tuple(found)


def _tests(manifest: Path) -> Iterator[Test]:
    folder = manifest.parent
    suite, base = folder.parent.name, f"{ROOT}{folder.parent.name}/{folder.name}/"
    graph = rdflib.Graph().parse(manifest, publicID=f"{base}manifest.ttl")
    assumed = next(graph.objects(predicate=MF.assumedTestBase), None)
    for head in graph.objects(predicate=MF.entries):
        for test in graph.items(head):
            kind = str(graph.value(test, RDF.type) or "QueryEvaluationTest")
            yield _test(graph, test, kind, suite, folder, base, str(assumed or base))


def _test(
    graph: rdflib.Graph,
    test: rdflib.term.Node,
    kind: str,
    suite: str,
    folder: Path,
    base: str,
    stated: str,
) -> Test:
    action, result = graph.value(test, MF.action), graph.value(test, MF.result)

    def files(predicate: rdflib.URIRef, of: rdflib.term.Node | None = action) -> tuple[str, ...]:
        found = (o for o in graph.objects(of, predicate) if isinstance(o, rdflib.URIRef))
        return tuple(sorted(str(f).removeprefix(base) for f in found))

    query = graph.value(action, QT.query) or action
    return Test(
        suite,
        folder,
        os.path.basename(str(test).replace("#", "/")),
        kind.rpartition("#")[2],
        stated,
        str(query).removeprefix(base) if isinstance(query, rdflib.URIRef) else None,
        files(QT.data),
        files(QT.graphData),
        str(result).removeprefix(base) if isinstance(result, rdflib.URIRef) else None,
        (test, DAWGT.approval, DAWGT.Withdrawn) in graph,
        graph.value(action, SD_REGIME) is not None or graph.value(test, SD_REGIME) is not None,
        tuple(
            (str(graph.value(service, QT.endpoint)), files(QT.data, service))
            for service in graph.objects(action, QT.serviceData)
        ),
    )
