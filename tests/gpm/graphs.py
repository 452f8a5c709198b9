"""Small events and knowledge bases, and the solutions of other SPARQL engines over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import pyoxigraph as ox
import rdflib
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID
from rdflib.plugins.sparql import prepareQuery

from spaseq.algebra.entailment import entailed
from spaseq.algebra.groups import translate_group
from spaseq.algebra.nodes import possible, visible
from spaseq.expr.compile import Options
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.lang import ast
from spaseq.lang.parser import parse
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.program_events import batch_from_events
from spaseq.rdf.schema import Schema
from spaseq.rdf.terms.term import Term, from_rdflib

Triple = tuple[str, str, str]
Row = frozenset[tuple[str, str]]
Kb = Mapping[str, Sequence[Triple]]

PROLOGUE = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"


@lru_cache(maxsize=8)
def group_of(pattern: str) -> ast.GroupGraphPattern:
    """The syntax tree of `{ ... }`."""
    header = f"{PROLOGUE} SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> "
    names = "".join(f"FROM NAMED <http://e/kb{i}> " for i in range(3))
    return parse(f"{header} {names} SEQ(A) {{ DEFINE GPM A ON S {pattern} }}").gpms[0].pattern


def batch_of(events: Sequence[Sequence[Triple]]) -> EventBatch:
    """The events, one per second."""
    rows = [(1000 * i, None, triples) for i, triples in enumerate(events)]
    return batch_from_events("http://e/s", rows, InstantCounter())


def knowledge_of(kb: Kb) -> KnowledgeBase:
    """Named graphs with exactly these triples."""
    codes: dict[str, int] = {}
    columns: dict[str, list[int]] = {c: [] for c in "gspo"}
    for number, triples in enumerate(kb.values()):
        for triple in triples:
            columns["g"].append(number)
            for column, text in zip("spo", triple, strict=True):
                columns[column].append(codes.setdefault(text, len(codes)))
    arrays = {c: np.array(v, np.int32) for c, v in columns.items()}
    return KnowledgeBase.of_quads(list(codes), list(kb), [], arrays)


def solutions(
    pattern: str,
    events: Sequence[Sequence[Triple]],
    kb: Kb | None = None,
    schema: Schema | None = None,
) -> list[Counter[Row]]:
    """spaseq's solutions of a pattern, event by event; with entailment if there is a schema."""
    algebra = entailed(translate_group(group_of(pattern)), schema)
    evaluator = GpmEvaluator(algebra, knowledge_of(kb or {}), Options(schema=schema))
    found = evaluator.evaluate(batch_of(events))
    assert (np.diff(found.event) >= 0).all()
    rows: list[Counter[Row]] = [Counter() for _ in events]
    for i, event in enumerate(found.event.tolist()):
        codes = {v: int(column[i]) for v, column in found.columns.items()}
        rows[event][frozenset((v, found.terms[c]) for v, c in codes.items() if c >= 0)] += 1
    return rows


def oxigraph(
    pattern: str, events: Sequence[Sequence[Triple]], kb: Kb | None = None
) -> list[Counter[Row]]:
    """Oxigraph's solutions of a pattern, event by event."""
    query = f"{PROLOGUE} SELECT {_projection(pattern)} WHERE {pattern}"
    rows = []
    for event in events:
        store = ox.Store()
        for name, triples in {None: event, **(kb or {})}.items():
            graph = ox.NamedNode(name) if name else ox.DefaultGraph()
            if name:
                store.add_graph(graph)
            store.extend(ox.Quad(*map(_oxigraph_term, t), graph) for t in triples)
        found = store.query(query)
        names = [v.value for v in found.variables]
        rows.append(Counter(_row(names, [solution[n] for n in names]) for solution in found))
    return rows


def by_rdflib(
    pattern: str, events: Sequence[Sequence[Triple]], kb: Kb | None = None
) -> list[Counter[Row]]:
    """rdflib's solutions of a pattern, event by event."""
    query = prepareQuery(f"{PROLOGUE} SELECT {_projection(pattern)} WHERE {pattern}")
    rows = []
    for event in events:
        dataset = rdflib.Dataset()
        for name, triples in {None: event, **(kb or {})}.items():
            graph = dataset.graph(name or DATASET_DEFAULT_GRAPH_ID)
            for triple in triples:
                graph.add(tuple(Term(t).to_rdflib() for t in triple))
        found = dataset.query(query)
        names = [str(v) for v in found.vars or ()]
        texts = [[None if v is None else _rdflib_text(v) for v in row] for row in found]
        rows.append(Counter(_row(names, row) for row in texts))
    return rows


def _projection(pattern: str) -> str:
    names = sorted(visible(possible(translate_group(group_of(pattern)))))
    return " ".join(f"?{name}" for name in names) or "(1 AS ?nothing)"


def _row(names: Sequence[str], values: Sequence[object]) -> Row:
    pairs = zip(names, values, strict=True)
    return frozenset((n, str(v)) for n, v in pairs if v is not None and n != "nothing")


def _rdflib_text(term: rdflib.term.Identifier) -> str:
    return from_rdflib(term)


def _oxigraph_term(text: str) -> ox.NamedNode | ox.BlankNode | ox.Literal:
    match Term(text).kind:
        case "iri":
            return ox.NamedNode(text[1:-1])
        case "bnode":
            return ox.BlankNode(text[2:])
        case _:
            quad = next(ox.parse(f"<http://e/s> <http://e/p> {text} .", ox.RdfFormat.N_TRIPLES))
            return quad.object
