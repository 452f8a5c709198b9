"""W3C query evaluation tests as events: the default graph is one event, its named graphs the KB,
and the whole query is a sub-SELECT in one GPM."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyoxigraph as ox
import rdflib
from rdflib.compare import isomorphic
from rdflib.namespace import RDF

from spaseq.algebra.groups import translate_group
from spaseq.expr.compile import Options
from spaseq.expr.values import decode, encode
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.kb.load import load_kb
from spaseq.lang import ast
from spaseq.lang.parser import parse
from spaseq.rdf.terms import Term
from tests.gpm.graphs import Triple, batch_of

MF = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
QT = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-query#")
RS = "<http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
ROOT = "http://w3c.example/"
BASE = "http://example.org/"
"""The base IRI that tests of IRI() expect."""
NUMBER = re.compile(r'"\^\^<http://www\.w3\.org/2001/XMLSchema#(integer|decimal|float|double)>$')

Solution = dict[str, str]


@dataclass(frozen=True)
class Case:
    """One test; `data` and `named` are file names in its folder."""

    folder: Path
    name: str
    query: str
    data: tuple[str, ...]
    named: tuple[str, ...]
    result: str

    def run(self) -> tuple[list[Solution] | bool, list[Solution] | bool]:
        """Our answers, and the expected ones."""
        text = (self.folder / self.query).read_text()
        expected = _expected(self.folder / self.result, self._iri(self.result))
        found = self._solutions(text)
        return (bool(found) if isinstance(expected, bool) else found), expected

    def _solutions(self, text: str) -> list[Solution]:
        files = self._files(text, "FROM", self.data)
        default = [t for i, file in enumerate(files) for t in self._triples(file, f"_:f{i}.")]
        named = self._files(text, "FROM NAMED", self.named)
        kb = [(self._iri(file), str(self.folder / file)) for file in named]
        group = _group(text, self._iri(""), [iri for iri, _ in kb])
        evaluator = GpmEvaluator(translate_group(group), load_kb(kb), Options(base=BASE))
        found = evaluator.evaluate(batch_of([default]))
        rows: list[Solution] = [{} for _ in found.event]
        for variable, codes in found.columns.items():
            for row in np.flatnonzero(codes >= 0).tolist():
                rows[row][variable] = found.terms[codes[row]]
        return rows

    def _files(self, text: str, clause: str, given: tuple[str, ...]) -> list[str]:
        return [*given, *re.findall(rf"\b{clause}\s*<([^>]*)>", text)]

    def _iri(self, file: str) -> str:
        return f"{ROOT}{self.folder.name}/{file}"

    def _triples(self, file: str, blank: str) -> list[Triple]:
        """The triples of a file, its blank nodes told apart from those of other files."""
        triples = _file_triples(self.folder / file, self._iri(file))
        return [
            tuple(blank + text[2:] if text[0] == "_" else text for text in triple)
            for triple in triples
        ]


def cases(folder: Path) -> Iterator[Case]:
    """The evaluation tests of a folder's manifest."""
    base = f"{ROOT}{folder.name}/"
    graph = rdflib.Graph().parse(folder / "manifest.ttl", publicID=f"{base}manifest.ttl")
    head = graph.value(graph.value(predicate=RDF.type, object=MF.Manifest), MF.entries)
    for test in graph.items(head):
        action, result = graph.value(test, MF.action), graph.value(test, MF.result)
        query = graph.value(action, QT.query)
        if query is None or result is None:
            continue

        def files(action: object, predicate: object) -> tuple[str, ...]:
            found = graph.objects(action, predicate)
            return tuple(sorted(str(f).removeprefix(base) for f in found))

        yield Case(
            folder,
            str(test).rpartition("#")[2],
            str(query).removeprefix(base),
            files(action, QT.data),
            files(action, QT.graphData),
            str(result).removeprefix(base),
        )


def same(found: list[Solution] | bool, expected: list[Solution] | bool, *, as_sets: bool) -> bool:
    """Whether two result sets are equal but for the labels of blank nodes."""
    if isinstance(found, bool) or isinstance(expected, bool):
        return found is expected
    ours, theirs = (Counter(frozenset(_plain(row)) for row in rows) for rows in (found, expected))
    if as_sets:
        ours, theirs = Counter(set(ours)), Counter(set(theirs))
    return ours == theirs or isomorphic(_as_graph(ours), _as_graph(theirs))


def _plain(row: Solution) -> Iterator[tuple[str, str]]:
    """The bindings, with numbers in canonical form: `1.0` and `1.00` are equally good answers."""
    for variable, text in row.items():
        number = NUMBER.search(text) is not None
        try:
            yield variable, encode(decode(text)) if number else text
        except ValueError:
            yield variable, text


def _as_graph(rows: Counter[frozenset[tuple[str, str]]]) -> rdflib.Graph:
    graph = rdflib.Graph()
    for row in rows.elements():
        node = rdflib.BNode()
        graph.add((node, RDF.type, rdflib.URIRef("var:solution")))
        for variable, text in row:
            graph.add((node, rdflib.URIRef(f"var:{variable}"), Term(text).to_rdflib()))
    return graph


def _group(text: str, base: str, named: list[str]) -> ast.Group:
    """The query as the one GPM of a SPAseq query."""
    text = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\bFROM\s+(NAMED\s*)?<[^>]*>", "", text, flags=re.IGNORECASE)
    forms = re.finditer(r"\b(SELECT|ASK)\b", text, re.IGNORECASE)
    start = next(
        m.start() for m in forms if text[: m.start()].count("<") == text[: m.start()].count(">")
    )
    prologue, body = text[:start], text[start:]
    if body[:3].upper() == "ASK":
        body = "SELECT * " + body[3:]
    graphs = " ".join(f"FROM NAMED <{name}>" for name in named)
    return parse(
        f"BASE <{base}> {prologue} SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> {graphs} "
        f"SEQ(A) {{ DEFINE GPM A ON S {{ {body}\n}} }}"
    ).gpms[0].pattern  # fmt: skip


def _outside_iri(before: str) -> bool:
    return before.count("<") == before.count(">")


def _expected(path: Path, iri: str) -> list[Solution] | bool:
    if path.suffix in (".srx", ".srj"):
        results = ox.parse_query_results(path=str(path))
        if isinstance(results, ox.QueryBoolean):
            return bool(results)
        names = [v.value for v in results.variables]
        return [{n: str(row[n]) for n in names if row[n] is not None} for row in results]
    graph = _file_triples(path, iri)
    answer = [o for s, p, o in graph if p == f"{RS}boolean>"]
    if answer:
        return answer[0].startswith('"true"')
    rows = []
    for solution in (o for s, p, o in graph if p == f"{RS}solution>"):
        row = {}
        for binding in (o for s, p, o in graph if s == solution and p == f"{RS}binding>"):
            pair = {p: o for s, p, o in graph if s == binding}
            row[pair[f"{RS}variable>"].strip('"')] = pair[f"{RS}value>"]
        rows.append(row)
    return rows


def _file_triples(path: Path, iri: str) -> list[Triple]:
    """The triples of a result file, lexical forms as they are written."""
    quads = ox.parse(path=str(path), base_iri=iri)
    return [(str(q.subject), str(q.predicate), str(q.object)) for q in quads]
