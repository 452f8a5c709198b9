"""The tests of the W3C suites, from the manifests in all folders.

A manifest is any file `manifest*.ttl` at any depth; this also finds included manifests. An
unreadable manifest becomes a failing test with a message, so that the other tests run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import rdflib
from rdflib.namespace import RDF

from tests.rdf.shared import SHARED

SUITES = SHARED / "w3c"

MF = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
QT = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-query#")
DAWGT = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-dawg#")
SD_REGIME = rdflib.URIRef("http://www.w3.org/ns/sparql-service-description#entailmentRegime")
REGIMES = (SD_REGIME, MF.entailmentRegime)
ROOT = "http://w3c.example/"
"""Base IRI of the suites, unless a manifest has another one."""

UNREADABLE = "UnreadableManifest"
"""The kind of the test for an unreadable manifest."""


@dataclass(frozen=True)
class Test:
    """One test.

    `action`, `data`, `named` and `result` are file names in its folder; `base` is the folder's IRI.
    `kind` is the test's type without its namespace. For a query test, `action` is the query file,
    and `data` and `named` are the default graph and the named graphs. For a syntax or format test,
    `action` is the tested file.
    """

    __test__ = False  # not a pytest test

    suite: str  # the first folder: rdf11, sparql10, sparql11
    folder: Path
    place: str  # the folder, relative to the suite's folder
    name: str
    kind: str
    base: str
    action: str | None
    data: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    result: str | None = None
    withdrawn: bool = False
    regimes: tuple[str, ...] = ()  # evaluated under one of these entailment regimes
    services: tuple[tuple[str, tuple[str, ...]], ...] = ()  # endpoints and the files they serve
    problem: str = ""  # the error of an unreadable manifest

    @property
    def id(self) -> str:
        return "/".join(part for part in (self.suite, self.place, self.name) if part)

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
def suite_tests(root: Path = SUITES) -> tuple[Test, ...]:
    """All tests of all folders, each once."""
    found: dict[str, Test] = {}
    for manifest in sorted(root.rglob("manifest*.ttl")):
        for test in _tests(manifest, root):
            found.setdefault(test.id, test)
    return tuple(found.values())


def _tests(manifest: Path, root: Path) -> Iterator[Test]:
    folder = manifest.parent
    suite, *places = folder.relative_to(root).parts or (root.name,)
    base = ROOT + "".join(f"{part}/" for part in (suite, *places))
    where = suite, folder, "/".join(places)
    try:
        graph = rdflib.Graph().parse(manifest, format="turtle", publicID=f"{base}{manifest.name}")
        assumed = next(graph.objects(predicate=MF.assumedTestBase), None)
        found = [
            _test(graph, test, where, base, str(assumed or base))
            for head in graph.objects(predicate=MF.entries)
            for test in graph.items(head)
        ]
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        yield Test(*where, manifest.name, UNREADABLE, base, None, problem=problem)
        return
    yield from found


def _test(
    graph: rdflib.Graph,
    test: rdflib.term.Node,
    where: tuple[str, Path, str],
    base: str,
    stated: str,
) -> Test:
    action, result = graph.value(test, MF.action), graph.value(test, MF.result)
    folder = where[1]

    def file(node: rdflib.term.Node | None) -> str | None:
        return _file(str(node), folder, base) if isinstance(node, rdflib.URIRef) else None

    def files(predicate: rdflib.URIRef, of: rdflib.term.Node | None = action) -> tuple[str, ...]:
        return tuple(sorted(name for o in graph.objects(of, predicate) if (name := file(o))))

    return Test(
        *where,
        os.path.basename(str(test).replace("#", "/").rstrip("/")),
        _kind(list(graph.objects(test, RDF.type))),
        stated,
        file(graph.value(action, QT.query) or action),
        files(QT.data),
        files(QT.graphData),
        file(result),
        (test, DAWGT.approval, DAWGT.Withdrawn) in graph,
        tuple(_regimes(graph, action, test)),
        tuple(
            (str(graph.value(service, QT.endpoint)), files(QT.data, service))
            for service in graph.objects(action, QT.serviceData)
        ),
    )


def _kind(types: Sequence[rdflib.term.Node]) -> str:
    """The kind of a test: a query test if it has no type; the longest of several types."""
    names = [str(t).replace("#", "/").rpartition("/")[2] for t in types]
    return max(names, key=len, default="QueryEvaluationTest")


def _file(iri: str, folder: Path, base: str) -> str:
    """The name of a file in a manifest, relative to the manifest's folder."""
    if iri.startswith(base):
        return unquote(iri.removeprefix(base))
    if iri.startswith(ROOT):
        up = "../" * len(base.removeprefix(ROOT).rstrip("/").split("/"))
        return up + unquote(iri.removeprefix(ROOT))
    last = unquote(iri.rpartition("/")[2])  # if the manifest has another base
    return last if last and (folder / last).exists() else iri


def _regimes(graph: rdflib.Graph, *nodes: rdflib.term.Node | None) -> Iterator[str]:
    """The local names of the entailment regimes, given one by one or as a list."""
    for node in nodes:
        for predicate in REGIMES:
            for value in graph.objects(node, predicate) if node is not None else ():
                listed = list(graph.items(value)) if (value, RDF.first, None) in graph else [value]
                yield from (str(regime).rpartition("/")[2] for regime in listed)
