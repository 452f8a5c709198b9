"""An answer as the JSON-ready value that the jsonl format writes."""

from __future__ import annotations

from typing import Any

from spaseq.algebra.answers import Answer, TraceItem
from spaseq.rdf.cdt import list_items
from spaseq.rdf.terms import Term, kind_of, split_literal
from spaseq.rdf.times import format_time
from spaseq.rdf.vocabulary import CDT_LIST


def render_answer(query: str, answer: Answer) -> dict[str, Any]:
    """Name of the query, start, end, bindings and trace of an answer.

    An answer of a CONSTRUCT query has no bindings but "event", the IRI of its graph, and "graph",
    an array of triples whose "subject", "predicate" and "object" are SPARQL 1.1 JSON terms.

    Times are `xsd:dateTime` in UTC. A binding is a SPARQL 1.1 JSON term, or an array of them where
    the value is a `cdt:List` (an item is null where the list has null).
    """
    return {
        "query": query,
        "start": format_time(answer.first[0]),
        "end": format_time(answer.end[0]),
        **_render_result(answer),
        "trace": [_render_item(item) for item in answer.trace],
    }


def _render_result(answer: Answer) -> dict[str, Any]:
    if answer.graph is None:
        return {"bindings": {name: render_term(text) for name, text in answer.bindings}}
    places = ("subject", "predicate", "object")
    triples = [
        {place: Term(text).to_sparql_json() for place, text in zip(places, triple, strict=True)}
        for triple in answer.graph
    ]
    return {"event": answer.event, "graph": triples}


def render_term(text: str) -> dict[str, str] | list[Any]:
    """A term as SPARQL 1.1 JSON; a `cdt:List` as an array of such."""
    if text.endswith(_LIST_END) and kind_of(text) == "literal":
        try:
            items = list_items(split_literal(text)[0])
        except ValueError:
            return Term(text).to_sparql_json()
        return [None if item is None else render_term(item) for item in items]
    return Term(text).to_sparql_json()


_LIST_END = f'"^^<{CDT_LIST}>'


def _render_item(item: TraceItem) -> dict[str, Any]:
    return {
        "gpm": item.gpm,
        "stream": item.stream,
        "event": item.event,
        "time": format_time(item.time),
        "k": item.k,
    }
