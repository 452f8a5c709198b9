"""A request for a change of a graph: other triples, more triples, or an update.

A change has only the triples removed and added. Blank nodes of a document get labels by their order
in it. So a document that is given again changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from hashlib import blake2b
from itertools import pairwise
from os import PathLike, fspath
from typing import Any

import pyoxigraph as ox

from spaseq.algebra.graph_changes import GraphChange
from spaseq.errors import InputError, UsageError
from spaseq.kb.knowledge import KbGraph
from spaseq.kb.quads import rdflib_quads, sources_at, texts_of, texts_of_blocks
from spaseq.kb.touched_triples import TOKEN, touched_triples
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.rdf.columns.term_tables import TermTable
from spaseq.rdf.terms.term import Triple, from_pyoxigraph
from spaseq.rdf.terms.triple_terms import with_blank_nodes

_DATA = re.compile(
    r"((?:\s*(?:PREFIX\s+[^\s<]*\s*<[^<>\s]*>|BASE\s*<[^<>\s]*>))*)\s*"
    r"(INSERT|DELETE)\s+DATA\s*\{(.*)\}\s*;?\s*",
    re.IGNORECASE | re.DOTALL,
)
"""An update with one operation that contains its triples."""

_OTHER_GRAPHS = {
    *("GRAPH", "WITH", "USING", "LOAD", "SERVICE", "CREATE", "DROP", "COPY", "MOVE", "ADD")
}


def graph_triples(graph: KbGraph, terms: TermTable) -> Iterator[Triple]:
    """The triples of a graph, as texts; `terms` are the terms of its codes."""
    for predicate, relation in graph.items():
        p = terms.text(predicate)
        pairs = zip(terms.take(relation.s), terms.take(relation.o), strict=True)
        yield from ((s, p, o) for s, o in pairs)


def replacing(now: Iterable[Triple], wanted: Iterable[Triple]) -> GraphChange:
    """The change after which a graph has the wanted triples.

    >>> replacing([("<a>", "<p>", "<b>")], [("<a>", "<p>", "<c>")])
    GraphChange(deleted=(('<a>', '<p>', '<b>'),), inserted=(('<a>', '<p>', '<c>'),))
    """
    old, new = set(now), set(wanted)
    return GraphChange(tuple(sorted(old - new)), tuple(sorted(new - old)))


def adding(now: Iterable[Triple], more: Iterable[Triple]) -> GraphChange:
    """The change after which a graph has further triples."""
    return GraphChange((), tuple(sorted(set(more).difference(now))))


def file_triples(path: str | PathLike[str], iri: str, limits: Limits) -> Iterator[Triple]:
    """The triples of files for a graph, as `load_kb` reads them.

    Raises:
        InputError: a file cannot be read; with file, line and reason.
    """
    for number, source in enumerate(sources_at(fspath(path))):
        yield from labelled(texts_of(source, iri, limits), f"{iri}\0{number}")


def document_triples(
    data: bytes, form: ox.RdfFormat, iri: str, scope: str, limits: Limits
) -> list[Triple]:
    """The triples of a document for a graph.

    Args:
        data: the document.
        form: its format. If it has named graphs, only the default graph and `iri` may have triples.
        iri: of the graph; relative IRIs are relative to it.
        scope: blank nodes of different scopes are different.
        limits: bound the literals.

    Raises:
        InputError: it is no such document; with line and reason.
    """
    triples = list[Triple]()
    try:
        for quad in ox.parse(data, form, base_iri=iri):
            name = quad.graph_name
            if not isinstance(name, ox.DefaultGraph) and str(name) != f"<{iri}>":
                raise InputError(f"a triple is in the graph {name}, and the request is for <{iri}>")
            triples.append(_texts(quad, limits))
    except SyntaxError as error:
        where = f"line {error.lineno}: " if error.lineno else ""
        raise InputError(f"{where}{error.msg}") from None
    except ValueError as error:
        raise InputError(str(error)) from None
    return [*labelled(triples, scope)]


def given_triples(given: Any, iri: str, limits: Limits) -> Iterator[Triple]:
    """The triples of a program's graph: a path, an rdflib or a pyoxigraph graph.

    Raises:
        InputError: it cannot be read, or has no RDF.
    """
    if isinstance(given, PathLike):
        yield from file_triples(given, iri, limits)
    elif isinstance(given, ox.Dataset | ox.Store):
        yield from labelled((_texts(quad, limits) for quad in given), iri)
    elif hasattr(given, "triples"):
        yield from labelled(texts_of_blocks(rdflib_quads(given, limits)), iri)
    else:
        raise UsageError(
            f"{type(given).__name__} is no change of a graph: give a SPARQL update as str, a Path, "
            "an rdflib graph or a pyoxigraph dataset"
        )


def labelled(triples: Iterable[Triple], scope: str) -> Iterator[Triple]:
    """Triples whose blank nodes have labels of a scope, by their order."""
    labels: dict[str, str] = {}

    def label(text: str) -> str:
        if text not in labels:
            key = f"{scope}\0{len(labels)}".encode()
            labels[text] = "_:k" + blake2b(key, digest_size=8).hexdigest()
        return labels[text]

    for s, p, o in triples:
        if s[0] == "_" or o[0] == "_" or o.startswith("<<"):
            yield with_blank_nodes(s, label), p, with_blank_nodes(o, label)
        else:
            yield s, p, o


def _texts(quad: Any, limits: Limits) -> Triple:
    triple = str(quad.subject), str(quad.predicate), from_pyoxigraph(quad.object)
    if len(triple[2]) > limits.literal_bytes:
        raise InputError(f"a literal has more than {limits.literal_bytes:,} bytes")
    return triple


def updating(
    graph: KbGraph,
    terms: TermTable,
    text: str,
    iri: str,
    scope: str,
    general: Callable[[Iterable[Triple], str, str], GraphChange] | None = None,
) -> GraphChange:
    """The change that a SPARQL update makes, with a graph as its default graph.

    Args:
        graph, terms: the graph.
        text: the update.
        iri: the IRI of the graph, which is also the base IRI.
        scope: blank nodes of different scopes are different.
        general: does the same as `updated`, possibly in another process. It is not called if the
            text of an update says which few triples it reads or writes.

    Raises:
        InputError: it is no update, or needs another graph.
    """
    check_update(text)
    data = _DATA.fullmatch(text)
    if data is not None:
        body = data[3].strip()
        document = f"{data[1]}\n{body}{'' if body.endswith('.') or not body else ' .'}"
        try:
            given = (document.encode(), ox.RdfFormat.TURTLE, iri, scope, DEFAULT_LIMITS)
            triples = tuple(sorted({*document_triples(*given)}))
        except InputError:
            pass  # it has variables, or several operations; or it is wrong, which is said below
        else:
            if data[2].upper() == "INSERT":
                return GraphChange((), triples)
            if not any("_:" in text for triple in triples for text in triple):
                return GraphChange(triples)
    touched = touched_triples(graph, terms, text, iri)
    if touched is not None:
        return updated(touched, text, iri)
    return (general or updated)(graph_triples(graph, terms), text, iri)


def check_update(text: str) -> None:
    """InputError if an update names another graph than the default graph, or an address."""
    for token in TOKEN.finditer(text):
        word = token[0].upper()
        if word in _OTHER_GRAPHS:
            line = text.count("\n", 0, token.start()) + 1
            raise InputError(
                f"line {line}: {word} is not possible: an update has its graph as the default graph"
            )


def updated(now: Iterable[Triple], text: str, iri: str) -> GraphChange:
    """The change that an update makes; InputError if it is none."""
    return updated_lines("".join(f"{s} {p} {o} .\n" for s, p, o in now).encode(), text, iri)


def _undeclared_prefix(text: str) -> str | None:
    """A prefix that an update uses and does not declare.

    >>> _undeclared_prefix('PREFIX a: <http://a/> INSERT DATA { a:x a:p "b:y", <c:z>, _:d, e:f }')
    'e'
    """
    tokens = [token[0] for token in TOKEN.finditer(text)]
    names = [token.split(":")[0] for token in tokens if ":" in token and token[0] not in "#<\"'"]
    declared = {b.split(":")[0] for a, b in pairwise(tokens) if a.upper() == "PREFIX"}
    return next((name for name in names if name not in declared | {"_"}), None)


def updated_lines(now: bytes, text: str, iri: str) -> GraphChange:
    """As `updated`, of a graph as N-Triples."""
    store = ox.Store()
    store.bulk_extend(ox.parse(now, ox.RdfFormat.N_TRIPLES))
    before = {*store}
    try:
        store.update(text, base_iri=iri)
    except SyntaxError as error:
        prefix = _undeclared_prefix(text)
        reason = error.msg if prefix is None else f"the prefix {prefix}: is not declared"
        raise InputError(f"the update is wrong: {reason}") from None
    except (ValueError, RuntimeError, OSError) as error:
        raise InputError(f"the update fails: {error}") from None
    after = {*store}
    gone, come = (_sorted(before - after), _sorted(after - before))
    return GraphChange(gone, come)


def _sorted(quads: Collection[Any]) -> tuple[Triple, ...]:
    return tuple(sorted(_texts(quad, DEFAULT_LIMITS) for quad in quads))
