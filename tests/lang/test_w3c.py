"""The queries of the W3C suites in canonical text, as the group graph pattern of a GPM.

The text must parse to the same tree. On the data of the evaluation tests it must give the same
solutions as the original query. `tests/w3c` runs the tests themselves.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress

import pyoxigraph
import pytest

from spaseq.lang.format import format_query
from spaseq.lang.parser import parse
from tests.rdf.shared import needs_w3c
from tests.w3c.exclusions import SYNTAX, why_excluded
from tests.w3c.manifests import SUITES, Test, suite_tests
from tests.w3c.queries import as_gpm, files_named, form_of

pytestmark = needs_w3c

UNDETERMINED = re.compile(r"(?i)\b(limit|rand|uuid|struuid|bnode|now)\b")


def chosen(syntax: bool) -> list[object]:
    """The tests of valid queries that can be written as a GPM."""
    if not SUITES.is_dir():
        return []
    found = (
        t for t in suite_tests() if (t.is_query or SYNTAX.fullmatch(t.kind)) and not t.negative
    )
    picked = (
        t
        for t in found
        if t.is_query is not syntax
        and why_excluded(t) is None
        and form_of(t.text()) in ("SELECT", "ASK")
    )
    return [pytest.param(t, id=t.id) for t in picked]


@pytest.mark.parametrize("test", chosen(syntax=True))
def test_canonical_text_is_sparql_that_parses_to_the_same_tree(test: Test) -> None:
    text = as_gpm(test.text(), test.base)
    canonical = format_query(parse(text))
    assert parse(canonical) == parse(text)
    with suppress(RuntimeError):  # unknown functions; raised after parsing
        pyoxigraph.Store().query(as_sparql(canonical), base_iri=test.base)


@pytest.mark.parametrize("test", chosen(syntax=False))
def test_canonical_text_gives_the_solutions_of_the_original(test: Test) -> None:
    text = test.text()
    if UNDETERMINED.search(text):
        pytest.skip("its answer is not determined by its data")
    if files_named(text, "FROM") or files_named(text, "FROM NAMED"):
        pytest.skip("its dataset is not the store that both queries are asked of")
    canonical = format_query(parse(as_gpm(text, test.base)))
    assert solutions(test, as_sparql(canonical)) == solutions(test, text)


def as_sparql(canonical: str) -> str:
    """The one GPM of a canonical text as a SPARQL query."""
    words = ("VERSION", "BASE", "PREFIX")
    prologue = [line for line in canonical.splitlines() if line.startswith(words)]
    group = canonical.partition("DEFINE GPM A ON S ")[2].rpartition("}")[0]
    return "\n".join([*prologue, "SELECT * WHERE", group])


def solutions(test: Test, query: str) -> Counter[frozenset[tuple[str, str]]] | bool:
    """The multiset of solutions, with blank nodes made equal; for ASK, whether any exist."""
    store = pyoxigraph.Store()
    for files, named in ((test.data, False), (test.named, True)):
        for file in files:
            graph = pyoxigraph.NamedNode(test.base + file) if named else None
            store.load(
                path=test.folder / file,
                format=pyoxigraph.RdfFormat.from_extension(file.rpartition(".")[2]),
                base_iri=test.base + file,
                to_graph=graph,
            )
    answers = store.query(query, base_iri=test.base)
    if isinstance(answers, pyoxigraph.QueryBoolean):
        return bool(answers)
    found: Counter[frozenset[tuple[str, str]]] = Counter()
    for solution in answers:
        values = ((variable.value, solution[variable]) for variable in answers.variables)
        found[frozenset((v, plain(term)) for v, term in values if term is not None)] += 1
    return bool(found) if re.search(r"(?i)\bask\b", test.text()) else found


def plain(term: object) -> str:
    return "a blank node" if isinstance(term, pyoxigraph.BlankNode) else str(term)
