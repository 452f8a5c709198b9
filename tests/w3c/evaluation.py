"""Query evaluation tests as events: the default graph is one event, the named graphs are the KB."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyoxigraph as ox
import rdflib

import spaseq
from spaseq.algebra.entailment import entailed
from spaseq.algebra.groups import translate_group
from spaseq.expr.compile import Options
from spaseq.expr.values import decode, encode
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.load import load_kb
from spaseq.lang import ast
from spaseq.lang.parser import parse
from spaseq.lang.variables import is_now, rewritten
from spaseq.options import ServiceOptions
from spaseq.rdf.schema import Schema
from spaseq.rdf.terms.term import Term, from_pyoxigraph
from spaseq.rdf.terms.triple_terms import with_blank_nodes
from tests.gpm.graphs import Triple, batch_of
from tests.kb.sparql_server import serving
from tests.w3c.manifests import Test
from tests.w3c.queries import as_construct, as_gpm, files_named
from tests.w3c.regimes import schema_of

RS = "<http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
NUMBER = re.compile(r'"\^\^<http://www\.w3\.org/2001/XMLSchema#(integer|decimal|float|double)>$')

SERVICES = ServiceOptions(timeout_s=5.0, retries=0)

Solution = dict[str, str]
Solutions = list[Solution] | bool


@dataclass(frozen=True)
class Dataset:
    """The data of a test's query."""

    default: tuple[Triple, ...]
    named: dict[str, str]  # graph IRI to file
    endpoints: dict[str, str]  # IRI in the test to the actual URL

    def knowledge(self) -> KnowledgeBase:
        knowledge = load_kb(list(self.named.items()))
        return replace(knowledge, addresses=self.endpoints, services=SERVICES)

    def engine(self, text: str, schema: Schema | None = None) -> spaseq.Engine:
        """An engine that has read the default graph as an event."""
        kb = {**self.named, **self.endpoints}
        if schema is None:
            engine = spaseq.Engine(text, kb, services=SERVICES)
        else:
            ontology = rdflib.Graph()
            for triple in schema.axioms:
                ontology.add(tuple(Term(term).to_rdflib() for term in triple))
            engine = spaseq.Engine(
                text, kb, services=SERVICES, ontology=ontology, entailment="rdfs"
            )
        engine.push("S", self.default, 1)
        return engine


@contextmanager
def dataset(test: Test) -> Iterator[Dataset]:
    """The data of a test; serves the test's endpoints on loopback."""
    text = test.text()
    files = [*test.data, *files_named(text, "FROM")]
    default = [t for i, f in enumerate(files) for t in _data(test, f, f"_:f{i}.")]
    names = dict.fromkeys([*test.named, *files_named(text, "FROM NAMED")])
    named = {test.base + f: str(test.folder / f) for f in names}
    with ExitStack() as stack:
        inside = _graphs_inside(test, files)
        if inside:
            folder = Path(stack.enter_context(TemporaryDirectory()))
            for number, (graph, lines) in enumerate(inside.items()):
                (folder / f"{number}.nt").write_text("".join(lines), encoding="utf-8")
                named[graph] = str(folder / f"{number}.nt")
        endpoints = {}
        for iri, served in test.services:
            triples = [t for i, f in enumerate(served) for t in _data(test, f, f"_:s{i}.")]
            lines = "".join(f"{' '.join(triple)} .\n" for triple in triples)
            endpoints[iri] = stack.enter_context(serving(lines)).url
        yield Dataset(tuple(default), named, endpoints)


def _graphs_inside(test: Test, files: Sequence[str]) -> dict[str, list[str]]:
    """The named graphs in data files, as lines of N-Triples by IRI."""
    found: dict[str, list[str]] = {}
    for file in files:
        for q in ox.parse(path=str(test.folder / file), base_iri=test.base + file):
            if isinstance(q.graph_name, ox.NamedNode):
                terms = str(q.subject), str(q.predicate), from_pyoxigraph(q.object)
                found.setdefault(q.graph_name.value, []).append(f"{' '.join(terms)} .\n")
    return found


def expected(test: Test) -> Solutions:
    """The expected result from the suite."""
    assert test.result is not None
    return _expected(test.folder / test.result, test.base + test.result)


def by_evaluator(test: Test) -> Solutions:
    """The solutions of the graph-pattern evaluator, as a multiset."""
    with dataset(test) as data:
        query = parse(as_gpm(test.text(), test.base, list(data.named)))
        schema = schema_of(test, data.default)
        group = rewritten(query.gpms[0].pattern, _event_time)
        pattern = entailed(translate_group(group), schema)
        options = Options(base=query.prologue.base, schema=schema)
        evaluator = GpmEvaluator(pattern, data.knowledge(), options)
        found = evaluator.evaluate(batch_of([data.default]))
    rows: list[Solution] = [{} for _ in found.event]
    for variable, codes in found.columns.items():
        for row in np.flatnonzero(codes >= 0).tolist():
            rows[row][variable] = found.terms[codes[row]]
    return rows


def _event_time(node: ast.Node) -> ast.Node | None:
    """The time of the one event in place of NOW(), which the evaluator does not know."""
    time = ast.Literal("1970-01-01T00:00:00Z", f"{rdflib.XSD}dateTime")
    return time if is_now(node) else None


def by_engine(test: Test) -> list[Solution]:
    """The answers of the whole engine in process: each solution once."""
    with dataset(test) as data:
        text = as_gpm(test.text(), test.base, list(data.named))
        engine = data.engine(text, schema_of(test, data.default))
        return [{v: t.n3() for v, t in match.bindings.items()} for match in engine.close()]


def constructed(test: Test) -> list[ox.Quad]:
    """All triples that the whole engine constructs for a CONSTRUCT query."""
    with dataset(test) as data:
        text = as_construct(test.text(), test.base, list(data.named))
        assert text is not None
        matches = data.engine(text).close()
        made = {triple for match in matches for triple in match.answer.graph or ()}
    lines = "".join(f"{' '.join(triple)} .\n" for triple in sorted(made))
    return list(ox.parse(lines, ox.RdfFormat.N_QUADS))


def expected_graph(test: Test) -> list[ox.Quad]:
    """The expected graph of a CONSTRUCT query from the suite."""
    assert test.result is not None
    path = test.folder / test.result
    return list(ox.parse(path=str(path), base_iri=test.base + test.result))


def same(found: Solutions, wanted: Solutions, test: Test, *, as_sets: bool = False) -> bool:
    """Whether two results are equal up to labels of blank nodes; numbers are equal by value."""
    if isinstance(wanted, bool):
        return bool(found) is wanted
    assert not isinstance(found, bool)
    if test.kind == "CSVResultFormatTest":
        return Counter(map(_in_csv, found)) == Counter(map(_in_csv, wanted))
    ours, theirs = (Counter(frozenset(_plain(row)) for row in rows) for rows in (found, wanted))
    if as_sets or re.search(r"(?i)\bREDUCED\b", test.text()):
        ours, theirs = Counter(set(ours)), Counter(set(theirs))
    return ours == theirs or _as_graph(ours) == _as_graph(theirs)


def _plain(row: Solution) -> Iterator[tuple[str, str]]:
    """The bindings, with numbers in canonical form: `1.0` and `1.00` are equally good answers."""
    for variable, text in row.items():
        number = NUMBER.search(text) is not None
        try:
            yield variable, encode(decode(text)) if number else text
        except ValueError:
            yield variable, text


def _in_csv(row: Solution) -> frozenset[tuple[str, str]]:
    """The part of a solution that CSV keeps: the texts of its terms."""
    cells = ((v, Term(t)) for v, t in row.items() if t)
    plain = ((v, "_:" if t[0] == "_" else str(t.to_rdflib())) for v, t in cells)
    return frozenset((v, text) for v, text in plain if text)


def _as_graph(rows: Counter[frozenset[tuple[str, str]]]) -> ox.Dataset:
    """The solutions as a graph, equal if they differ only in the labels of blank nodes."""
    lines = []
    for number, row in enumerate(rows.elements()):
        lines.append(f"_:row.{number} <var:is> <var:solution> .")
        lines += [f"_:row.{number} <var:{variable}> {text} ." for variable, text in row]
    graph = ox.Dataset(ox.parse("\n".join(lines), ox.RdfFormat.N_QUADS))
    graph.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return graph


def _expected(path: Path, iri: str) -> Solutions:
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        return [{v: x if x.startswith("_:") else encode(x) for v, x in row.items()} for row in rows]
    if path.suffix in (".srx", ".srj", ".tsv"):
        return _result_file(path)
    graph = _file_triples(path, iri)
    answer = [o for s, p, o in graph if p == f"{RS}boolean>"]
    if answer:
        return answer[0].startswith('"true"')
    found = []
    for solution in (o for s, p, o in graph if p == f"{RS}solution>"):
        row = {}
        for binding in (o for s, p, o in graph if s == solution and p == f"{RS}binding>"):
            pair = {p: o for s, p, o in graph if s == binding}
            row[pair[f"{RS}variable>"].strip('"')] = pair[f"{RS}value>"]
        found.append(row)
    return found


def _result_file(path: Path) -> Solutions:
    results = ox.parse_query_results(path=str(path))
    if isinstance(results, ox.QueryBoolean):
        return bool(results)
    names = [v.value for v in results.variables]
    return [{n: from_pyoxigraph(row[n]) for n in names if row[n] is not None} for row in results]


def _data(test: Test, file: str, blank: str) -> list[Triple]:
    """The triples of a file; `blank` separates its blank nodes from other files' blank nodes."""
    triples = _file_triples(test.folder / file, test.base + file)
    return [
        tuple(with_blank_nodes(t, lambda label: blank + label[2:]) for t in triple)
        for triple in triples
    ]


def _file_triples(path: Path, iri: str) -> list[Triple]:
    """The triples of a file's default graph with unchanged lexical forms."""
    quads = ox.parse(path=str(path), base_iri=iri)
    quads = (q for q in quads if isinstance(q.graph_name, ox.DefaultGraph))
    return [(str(q.subject), str(q.predicate), from_pyoxigraph(q.object)) for q in quads]
