"""Query evaluation tests over many copies of their event, in one file of N-Quads.

Every copy has the suite's result: the first as a multiset of solutions up to blank nodes, all
others as the first, and some of them up to blank nodes again.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

import pyoxigraph as ox
import rdflib

import spaseq
from spaseq.rdf.terms.term import Term
from tests.w3c.evaluation import (
    SERVICES,
    Dataset,
    Solution,
    dataset,
    expected,
    expected_graph,
    same,
)
from tests.w3c.formats import canonical
from tests.w3c.manifests import Test
from tests.w3c.queries import as_construct, as_gpm, form_of
from tests.w3c.regimes import schema_of

STAMP = "<http://www.w3.org/ns/prov#generatedAtTime>"
LONG = "<http://www.w3.org/2001/XMLSchema#long>"
BLANK = re.compile(r"_:\w+")

SOME = 7
"""Of this many copies each, the results are compared up to blank nodes."""


def events(data: Dataset, count: int, directory: Path) -> Path:
    """Copies of the test's event, a millisecond apart, as a file."""
    path = directory / "events.nq"
    with path.open("w", encoding="utf-8") as file:
        for copy in range(count):
            graph = f"<http://copies.example/{copy}>"
            file.writelines(f"{s} {p} {o} {graph} .\n" for s, p, o in data.default)
            file.write(f'{graph} {STAMP} "{copy}"^^{LONG} .\n')
    return path


def run(test: Test, data: Dataset, text: str, count: int, directory: Path) -> list[spaseq.Match]:
    """The matches of a query over all copies."""
    schema = schema_of(test, data.default)
    options: dict[str, object] = {"services": SERVICES}
    if schema is not None:
        ontology = rdflib.Graph()
        for triple in schema.axioms:
            ontology.add(tuple(Term(term).to_rdflib() for term in triple))
        options |= {"ontology": ontology, "entailment": "rdfs"}
    kb = {**data.named, **data.endpoints}
    streams = {"S": events(data, count, directory)}
    return list(spaseq.run(text, streams, kb, runtime="local", **options))  # type: ignore[arg-type]


def wrong(test: Test, count: int, directory: Path) -> str | None:
    """The first copy without the suite's result, if one is."""
    with dataset(test) as data:
        if not data.default:
            return None  # an event without triples cannot be written as N-Quads
        named = list(data.named)
        text = as_construct(test.text(), test.base, named) if _constructs(test) else None
        found = run(test, data, text or as_gpm(test.text(), test.base, named), count, directory)
    own: dict[int, list[spaseq.Match]] = defaultdict(list)
    for match in found:
        assert match.trace[0].event is not None
        own[int(match.trace[0].event.rpartition("/")[2])].append(match)
    if text is not None:
        return _wrong_graph(test, own, count)
    return _wrong_solutions(test, own, count)


def _constructs(test: Test) -> bool:
    return form_of(test.text()) == "CONSTRUCT"


def _wrong_solutions(test: Test, own: Mapping[int, list[spaseq.Match]], count: int) -> str | None:
    wanted = expected(test)
    first: Counter[frozenset[tuple[str, str]]] | None = None
    for copy in range(count):
        rows = [{v: t.n3() for v, t in m.bindings.items()} for m in own.get(copy, [])]
        shape = Counter(map(_shape, rows))
        if first is None:
            first = shape
        if copy % (count // SOME or 1) == 0 and not same(rows, wanted, test, as_sets=True):
            return f"copy {copy}: found {rows}, expected {wanted}"
        if shape != first and not _is_chance(test):
            return f"copy {copy}: {shape - first} instead of {first - shape}"
    return None


def _shape(row: Solution) -> frozenset[tuple[str, str]]:
    """A solution with all blank nodes alike."""
    return frozenset((v, BLANK.sub("_:", text)) for v, text in row.items())


def _is_chance(test: Test) -> bool:
    """Whether a result is another one each time."""
    return re.search(r"(?i)\b(uuid|struuid|rand|now)\s*\(", test.text()) is not None


def _wrong_graph(test: Test, own: Mapping[int, list[spaseq.Match]], count: int) -> str | None:
    wanted = canonical(expected_graph(test))
    for copy in range(count):
        made = {triple for match in own.get(copy, []) for triple in match.answer.graph or ()}
        lines = "".join(f"{' '.join(triple)} .\n" for triple in sorted(made))
        if canonical(list(ox.parse(lines, ox.RdfFormat.N_QUADS))) != wanted:
            return f"copy {copy}: made {made}"
    return None
