"""An answer as the JSON object that the jsonl format writes, and its id: the same in every run and
runtime, so that receivers know repetitions.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import Any

from spaseq.algebra.answers import Answer, PartialAnswer, extent_of
from spaseq.rdf.terms.term import CDT_LIST, Term, kind_of, list_items, split_literal
from spaseq.rdf.terms.times import format_time

_TERMS = 1 << 14
"""Number of terms whose JSON texts are cached, because values repeat in many answers."""

_encoded = json.JSONEncoder(ensure_ascii=False).encode

quoted = json.encoder.encode_basestring
"""`_encoded` for strings alone, with less overhead."""

_bytes_of = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def answer_json(query: str, answer: Answer) -> str:
    """One line of JSON with the query's name, and the answer's start, end, bindings and trace.

    In place of "bindings", an answer of a CONSTRUCT query has "event", the IRI of its graph, and
    "graph", an array of triples whose "subject", "predicate" and "object" are SPARQL 1.1 JSON
    terms. Times are `xsd:dateTime` in UTC. A binding is a SPARQL 1.1 JSON term. A `cdt:List` is an
    array of such terms, with null for a null item.
    """
    start, end = format_time(answer.first[0]), format_time(answer.end[0])
    trace = ", ".join([item_json(*item) for item in answer.trace])
    return (
        f'{{"query": {_name_json(query)}, "start": "{start}", "end": "{end}", '
        f'{_result_json(answer)}, "trace": [{trace}]}}'
    )


def item_json(time: int, k: int, gpm: str, stream: str, name: str | None) -> str:
    """An event of a trace, or a window event with the begin of its range and its events."""
    begin, extent = step_json(gpm, stream), extent_of(name)
    text = "null" if name is None or extent else quoted(name)
    more = "" if extent is None else f', "from": "{format_time(extent[0])}", "events": {extent[1]}'
    return f'{begin}{text}, "time": "{format_time(time)}", "k": {k}{more}}}'


def partial_json(query: str, partial: PartialAnswer) -> str:
    """One line of JSON as `answer_json` makes it, with "reached", "waiting" and "closed".

    "closed" is null if the streams ended before the window closed.
    """
    closed = "null" if partial.closed is None else f'"{format_time(partial.closed[0])}"'
    names = ", ".join(map(_name_json, partial.waiting))
    return (
        f"{answer_json(query, partial.answer)[:-1]}, "
        f'"reached": {_name_json(partial.reached)}, "waiting": [{names}], "closed": {closed}}}'
    )


def _result_json(answer: Answer) -> str:
    if answer.graph is None:
        bindings = [
            # Most IRIs are new, so their texts are not kept.
            f"{_iri_head(name)}{quoted(text[1:-1])}}}"
            if text[0] == "<" != text[1]
            else f"{_name_json(name)}: {_term_json(text)}"
            for name, text in answer.bindings
        ]
        return f'"bindings": {{{", ".join(bindings)}}}'
    triples = [_triple_json(*triple) for triple in answer.graph]
    return f'"event": {_encoded(answer.event)}, "graph": [{", ".join(triples)}]'


@lru_cache
def step_json(gpm: str, stream: str) -> str:
    """The beginning of a trace item, which many answers share."""
    return f'{{"gpm": {quoted(gpm)}, "stream": {quoted(stream)}, "event": '


_name_json = lru_cache(quoted)
"""The JSON text of a name, which many answers share."""


@lru_cache
def _iri_head(name: str) -> str:
    """The beginning of a binding of a variable to an IRI."""
    return f'{quoted(name)}: {{"type": "uri", "value": '


def term_json(text: str) -> str:
    """A term as SPARQL 1.1 JSON text; a `cdt:List` as an array."""
    return _encoded(render_term(text))


_term_json = lru_cache(_TERMS)(term_json)


def _triple_json(s: str, p: str, o: str) -> str:
    """A triple as an object of three SPARQL 1.1 JSON terms."""
    subject, predicate, object_ = _known_json(s), _known_json(p), _known_json(o)
    return f'{{"subject": {subject}, "predicate": {predicate}, "object": {object_}}}'


def plain_json(text: str) -> str:
    """A term as SPARQL 1.1 JSON text, whatever it is."""
    return _encoded(Term(text).to_sparql_json())


_known_json = lru_cache(_TERMS)(plain_json)


def render_term(text: str) -> dict[str, Any] | list[Any]:
    """A term as SPARQL 1.1 JSON; a `cdt:List` as an array of terms."""
    if text.endswith(_LIST_END) and kind_of(text) == "literal":
        try:
            items = list_items(split_literal(text)[0])
        except ValueError:
            return Term(text).to_sparql_json()
        return [None if item is None else render_term(item) for item in items]
    return Term(text).to_sparql_json()


_LIST_END = f'"^^<{CDT_LIST}>'


def answer_id(query: str, canonical: str, answer: Answer) -> str:
    """The id of an answer, 32 hexadecimal digits.

    It is a hash of the query's name and its canonical text, of the answer's trace, its single
    variables and its lists. The values of PARTITION BY are among the bindings of single variables,
    or follow from the trace.

    Args:
        query: the name of the query.
        canonical: the hash of its canonical text, `Signature.canonical`.
        answer: the answer.

    >>> len(answer_id("jams", "", Answer((0, 0), (9, 0), (), (("road", "<http://e/a1>"),))))
    32
    """
    parts = [query, canonical, answer.trace, answer.bindings, answer.singles, answer.lists]
    text = _bytes_of([*parts, answer.end])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
