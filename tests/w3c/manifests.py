"""The tests of the W3C suites, from the manifests in all folders.

A manifest is any file `manifest*.ttl` at any depth; this also finds included manifests. An
unreadable manifest becomes a failing test with a message, so that the other tests run.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyoxigraph as ox

from tests.rdf.shared import SHARED

SUITES = SHARED / "w3c"

MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
DAWGT = "http://www.w3.org/2001/sw/DataAccess/tests/test-dawg#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
REGIMES = (
    "http://www.w3.org/ns/sparql-service-description#entailmentRegime",
    f"{MF}entailmentRegime",
)
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
        graph = _Graph(manifest, f"{base}{manifest.name}")
        assumed = next(graph.all(f"{MF}assumedTestBase"), None)
        found = [
            _test(graph, test, where, base, base if assumed is None else assumed.value)
            for head in graph.all(f"{MF}entries")
            for test in graph.items(head)
        ]
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        yield Test(*where, manifest.name, UNREADABLE, base, None, problem=problem)
        return
    yield from found


class _Graph:
    """The triples of a manifest, by predicate and by subject and predicate."""

    def __init__(self, manifest: Path, base: str) -> None:
        self._by_predicate: dict[str, list[Any]] = defaultdict(list)
        self._by_subject: dict[tuple[Any, str], list[Any]] = defaultdict(list)
        for quad in ox.parse(path=manifest, format=ox.RdfFormat.TURTLE, base_iri=base):
            self._by_predicate[quad.predicate.value].append(quad.object)
            self._by_subject[quad.subject, quad.predicate.value].append(quad.object)

    def all(self, predicate: str) -> Iterator[Any]:
        """The objects of all triples with a predicate."""
        return iter(self._by_predicate.get(predicate, ()))

    def objects(self, subject: Any, predicate: str) -> Sequence[Any]:
        return self._by_subject.get((subject, predicate), ())

    def value(self, subject: Any, predicate: str) -> Any:
        """One of the objects; None if there are none."""
        return next(iter(self.objects(subject, predicate)), None)

    def items(self, head: Any) -> Iterator[Any]:
        """The items of a list."""
        while (item := self.value(head, f"{RDF}first")) is not None:
            yield item
            head = self.value(head, f"{RDF}rest")


def _test(graph: _Graph, test: Any, where: tuple[str, Path, str], base: str, stated: str) -> Test:
    action, result = graph.value(test, f"{MF}action"), graph.value(test, f"{MF}result")
    folder = where[1]

    def file(node: Any) -> str | None:
        return _file(node.value, folder, base) if isinstance(node, ox.NamedNode) else None

    def files(predicate: str, of: Any = action) -> tuple[str, ...]:
        names = (file(o) for o in graph.objects(of, f"{QT}{predicate}"))
        return tuple(sorted(name for name in names if name))

    return Test(
        *where,
        os.path.basename(test.value.replace("#", "/").rstrip("/")),
        _kind(graph.objects(test, f"{RDF}type")),
        stated,
        file(graph.value(action, f"{QT}query") or action),
        files("data"),
        files("graphData"),
        file(result),
        ox.NamedNode(f"{DAWGT}Withdrawn") in graph.objects(test, f"{DAWGT}approval"),
        tuple(_regimes(graph, action, test)),
        tuple(
            (graph.value(service, f"{QT}endpoint").value, files("data", service))
            for service in graph.objects(action, f"{QT}serviceData")
        ),
    )


def _kind(types: Sequence[Any]) -> str:
    """The kind of a test: a query test if it has no type; the longest of several types."""
    names = [t.value.replace("#", "/").rpartition("/")[2] for t in types]
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


def _regimes(graph: _Graph, *nodes: Any) -> Iterator[str]:
    """The local names of the entailment regimes, given one by one or as a list."""
    for node in nodes:
        for predicate in REGIMES:
            for value in graph.objects(node, predicate):
                for regime in [*graph.items(value)] or [value]:
                    yield regime.value.rpartition("/")[2]
