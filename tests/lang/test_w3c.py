"""The W3C suites: a SELECT or ASK query becomes the group graph pattern of a GPM.

Syntax tests must be accepted or rejected as their manifests say. The queries of the evaluation
tests must give, in canonical text and on the tests' own data, the solutions of the original.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from spaseq.errors import Source
from spaseq.lang.format import format_query
from spaseq.lang.parser import parse, parse_source
from spaseq.lang.scan import scan

SHARED = Path(os.environ.get("SPASEQ_SHARED") or Path(__file__).parents[3] / "shared")
SUITES = SHARED / "w3c"

pytestmark = pytest.mark.skipif(
    not SUITES.is_dir(), reason=f"no W3C suites in {SUITES}; set SPASEQ_SHARED to their parent"
)

HEADER = "SELECT * FROM STREAM S <http://s> SEQ(A) { DEFINE GPM A ON S "
# What a GPM cannot be asked, by the keyword that shows it.
EXCLUDED = {
    "CONSTRUCT": "a GPM has solutions, not graphs",
    "DESCRIBE": "a GPM has solutions, not graphs",
    "FROM": "a GPM's dataset is the event and the knowledge base",
}


@dataclass(frozen=True)
class Case:
    """One test: its query, whether it must parse, and its data."""

    path: Path
    good: bool
    data: tuple[Path, ...] = ()
    graphs: tuple[Path, ...] = ()

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def excluded(self) -> str | None:
        words = {lexeme.keyword for lexeme in scan(self.text)}
        return next((reason for word, reason in EXCLUDED.items() if word in words), None)

    def as_gpm(self) -> str:
        """The query as the pattern of a GPM: a SELECT as a sub-query, an ASK by its pattern."""
        form = next(item for item in scan(self.text) if item.keyword in ("SELECT", "ASK"))
        prologue, rest = self.text[: form.span.start], self.text[form.span.start :]
        if form.keyword == "SELECT":
            return f"{prologue}\n{HEADER} {{ {rest}\n}} }}"
        pattern = re.sub(r"(?i)^ask\s*(where\b)?", "", rest)
        return f"{prologue}\n{HEADER} {pattern}\n}}"


@cache
def cases() -> dict[str, Case]:
    """All tests with a query, by folder and name."""
    import rdflib

    manifest = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
    test = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-query#")
    found: dict[str, Case] = {}
    for path in sorted(SUITES.glob("sparql1*/*/manifest.ttl")):
        graph = rdflib.Graph().parse(path, publicID=path.as_uri())
        for subject, action in graph.subject_objects(manifest.action):
            kinds = [str(kind) for kind in graph.objects(subject, rdflib.RDF.type)]
            query = graph.value(action, test["query"]) or action
            if isinstance(query, rdflib.URIRef):
                files = {
                    name: tuple(local(item) for item in graph.objects(action, test[name]))
                    for name in ("data", "graphData")
                }
                good = not any("Negative" in kind for kind in kinds)
                case = Case(local(query), good, files["data"], files["graphData"])
                found[f"{path.parent.name}/{str(subject).rpartition('#')[2]}"] = case
    return found


def local(uri: object) -> Path:
    from urllib.parse import unquote, urlparse

    return Path(unquote(urlparse(str(uri)).path))


def names(syntax: bool) -> list[str]:
    if not SUITES.is_dir():
        return []
    return [name for name, case in cases().items() if ("syntax" in name) is syntax]


@pytest.mark.parametrize("name", names(syntax=True))
def test_syntax(name: str) -> None:
    case = cases()[name]
    if case.excluded:
        pytest.skip(case.excluded)
    parsed = parse_source(Source(case.as_gpm(), name))
    assert (parsed.errors == ()) is case.good, "\n".join(d.render() for d in parsed.errors)


@pytest.mark.parametrize("name", [n for n in names(syntax=True) if cases()[n].good])
def test_canonical_text_of_good_queries_is_sparql_that_parses_to_the_same_tree(name: str) -> None:
    import pyoxigraph

    case = cases()[name]
    if case.excluded:
        pytest.skip(case.excluded)
    canonical = format_query(parse(case.as_gpm()))
    assert parse(canonical) == parse(case.as_gpm())
    with suppress(RuntimeError):  # of functions that it does not know; after parsing
        pyoxigraph.Store().query(as_sparql(canonical), base_iri="http://base/")


@pytest.mark.parametrize("name", names(syntax=False))
def test_canonical_text_gives_the_solutions_of_the_original(name: str) -> None:
    case = cases()[name]
    if case.excluded:
        pytest.skip(case.excluded)
    if re.search(r"(?i)\b(limit|rand|uuid|struuid|bnode|now)\b", case.text):
        pytest.skip("its answer is not determined by its data")
    canonical = format_query(parse(case.as_gpm()))
    assert solutions(case, as_sparql(canonical)) == solutions(case, case.text)


def as_sparql(canonical: str) -> str:
    """The one GPM of a canonical text as a SPARQL query."""
    prologue = [line for line in canonical.splitlines() if line.startswith(("BASE", "PREFIX"))]
    group = canonical.partition("DEFINE GPM A ON S ")[2].rpartition("}")[0]
    return "\n".join([*prologue, "SELECT * WHERE", group])


def solutions(case: Case, query: str) -> Counter[frozenset[tuple[str, str]]] | bool:
    """The multiset of solutions, blank nodes all alike; of ASK, whether there are any."""
    import pyoxigraph

    store, base = pyoxigraph.Store(), "http://base/"
    for path in case.data:
        store.load(path=path, format=format_of(path), base_iri=base)
    for path in case.graphs:
        graph = pyoxigraph.NamedNode(base + path.name)
        store.load(path=path, format=format_of(path), base_iri=base, to_graph=graph)
    answers = store.query(query, base_iri=base)
    if isinstance(answers, pyoxigraph.QueryBoolean):
        return bool(answers)
    found: Counter[frozenset[tuple[str, str]]] = Counter()
    for solution in answers:
        values = ((variable.value, solution[variable]) for variable in answers.variables)
        found[frozenset((v, plain(term)) for v, term in values if term is not None)] += 1
    return bool(found) if re.search(r"(?i)\bask\b", case.text) else found


def plain(term: object) -> str:
    import pyoxigraph

    return "a blank node" if isinstance(term, pyoxigraph.BlankNode) else str(term)


def format_of(path: Path) -> object:
    import pyoxigraph

    return pyoxigraph.RdfFormat.from_extension(path.suffix[1:])
