"""The triples of the knowledge base that an answer used, event by event.

They are not carried in answers: a GPM is evaluated again on the event, with the bindings of the
answer in place of its variables, and its triple patterns over named graphs are filled in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from spaseq.algebra import nodes as n
from spaseq.algebra.answers import Answer, TraceItem
from spaseq.algebra.groups import translate_group
from spaseq.algebra.nodes import mapped, possible, visible
from spaseq.algebra.substitution import lifted, substituted
from spaseq.algebra.translate import without_filters
from spaseq.expr.compile import Options
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.kb.knowledge import KbGraph, KnowledgeBase
from spaseq.lang import ast
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.options import ServiceOptions
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.program_events import batch_from_events
from spaseq.rdf.terms.term import Triple
from spaseq.records import record

MOST = 100
"""Maximum number of triples that are listed for an event."""

_SOLUTIONS = 1000
_OWN = "spaseq__"
"""Prefix of the variables for blank nodes of the query."""


@record
class UsedTriples:
    """The triples that one event of an answer used.

    Attributes:
        item: the event.
        is_exact: whether the event itself was there; otherwise these are all triples that fit the
            bindings of the answer.
        graphs: the triples, by the IRI of their graph.
        more: number of further triples.
    """

    item: TraceItem
    is_exact: bool
    graphs: Mapping[str, Sequence[Triple]]
    more: int


def used_triples(
    query: ast.Query,
    answer: Answer,
    events: Mapping[TraceItem, EventBatch],
    knowledge_at: Callable[[int], KnowledgeBase],
    limits: Limits = DEFAULT_LIMITS,
) -> list[UsedTriples]:
    """The triples that each event of an answer used; events of GPMs without graphs are left out.

    Args:
        query: the query that gave the answer.
        answer: the answer.
        events: the known events of its trace, one batch for each event.
        knowledge_at: the knowledge base at a time (ms). Its endpoints get no requests.
        limits: of the evaluation.
    """
    none = ServiceOptions()
    patterns = {gpm.name: _named(translate_group(gpm.pattern)) for gpm in query.gpms}
    used = []
    for item, values in _bound(answer):
        known = knowledge_at(item.time)
        local = replace(known, endpoints={}, addresses={}, services=none, asked=None)
        pattern = _without_remote(patterns[item.gpm], local)
        if not any(_graph_patterns(pattern)):
            continue
        event = events.get(item)
        if event is None:
            pattern, event = _of_graphs(pattern), _NOTHING
        names = {*visible(possible(pattern))}
        given = {name: value for name, value in values.items() if name in names}
        graphs, more = _filled(pattern, given, event, local, limits)
        used.append(UsedTriples(item, event is not _NOTHING, graphs, more))
    return used


_NOTHING = batch_from_events("", [(0, None, ())], InstantCounter())
"""An event without triples."""


def _bound(answer: Answer) -> Iterator[tuple[TraceItem, dict[str, str]]]:
    """Each event of an answer, with the values of variables there."""
    counts = {gpm: sum(item.gpm == gpm for item in answer.trace) for _, _, gpm, *_ in answer.trace}
    at = dict.fromkeys(counts, 0)
    for item in answer.trace:
        values = dict(answer.singles)
        for name, several in answer.lists:
            if len(several) == counts[item.gpm]:
                values[name] = several[at[item.gpm]]
        at[item.gpm] += 1
        yield item, values


# --- patterns -------------------------------------------------------------------------------------


def _named(pattern: n.Pattern) -> n.Pattern:
    """The pattern with names for its blank nodes, so that solutions have them."""

    def named(term: n.PatternTerm) -> n.PatternTerm:
        if isinstance(term, ast.Var) and n.is_reserved(term.name):
            return ast.Var(_OWN + term.name.removeprefix(n.RESERVED).replace("/", "__"))
        return term

    match pattern:
        case n.BGP(triples):
            return n.BGP(tuple(n.TriplePattern(*map(named, t.terms)) for t in triples))
        case n.Path(subject, path, object_):
            return n.Path(named(subject), path, named(object_))
        case _:
            return mapped(pattern, _named)


def _without_remote(pattern: n.Pattern, knowledge: KnowledgeBase) -> n.Pattern:
    """The pattern without the parts at endpoints."""
    match pattern:
        case n.Service():
            return n.UNIT
        case n.Graph(str() as name) if name[1:-1] not in knowledge.graphs:
            return n.UNIT
        case _:
            return mapped(pattern, lambda inner: _without_remote(inner, knowledge))


def _of_graphs(pattern: n.Pattern) -> n.Pattern:
    """The pattern without its patterns over the event."""
    match pattern:
        case n.Graph():
            return pattern
        case n.BGP() | n.Path():
            return n.UNIT
        case n.Filter(pattern=inner):
            return _of_graphs(inner)
        case n.LeftJoin(left, right):
            return n.LeftJoin(_of_graphs(left), _of_graphs(right))
        case _:
            return mapped(pattern, _of_graphs)


def _graph_patterns(
    pattern: n.Pattern, graph: n.PatternTerm | None = None
) -> Iterator[tuple[n.PatternTerm, n.TriplePattern]]:
    """The triple patterns over named graphs, each with its graph; none that must not match."""
    match pattern:
        case n.Graph(name, inner):
            yield from _graph_patterns(inner, name)
        case n.BGP(triples):
            if graph is not None:
                yield from ((graph, triple) for triple in triples)
        case n.Minus(left):
            yield from _graph_patterns(left, graph)
        case _:
            for inner in n.children(pattern):
                yield from _graph_patterns(inner, graph)


# --- solutions ------------------------------------------------------------------------------------


def _filled(
    pattern: n.Pattern,
    values: Mapping[str, str],
    event: EventBatch,
    knowledge: KnowledgeBase,
    limits: Limits,
) -> tuple[dict[str, list[Triple]], int]:
    """The triples of a pattern's solutions that the knowledge base has, and how many more."""
    known, _ = lifted(pattern)
    solutions = _solutions(known, values, event, knowledge, limits)
    if not solutions:  # a FILTER over unknown variables
        solutions = _solutions(without_filters(pattern), values, event, knowledge, limits)
    triples: dict[tuple[str, Triple], None] = {}
    for bound in solutions:
        for graph, triple in _graph_patterns(pattern):
            terms = [_value(term, bound) for term in (graph, *triple.terms)]
            if None not in terms:
                name, s, p, o = map(str, terms)
                triples[name[1:-1], (s, p, o)] = None
    there = [(g, t) for g, t in triples if g in knowledge.graphs and _has(knowledge, g, t)]
    graphs: dict[str, list[Triple]] = {}
    for graph_name, known_triple in there[:MOST]:
        graphs.setdefault(graph_name, []).append(known_triple)
    return graphs, len(there[MOST:])


def _solutions(
    pattern: n.Pattern,
    values: Mapping[str, str],
    event: EventBatch,
    knowledge: KnowledgeBase,
    limits: Limits,
) -> list[dict[str, str]]:
    evaluator = GpmEvaluator(substituted(pattern, values), knowledge, Options(), limits=limits)
    rows = evaluator.evaluate(event)
    columns = {v: codes[:_SOLUTIONS].tolist() for v, codes in rows.columns.items()}
    return [
        {**values, **{v: rows.terms[codes[i]] for v, codes in columns.items() if codes[i] >= 0}}
        for i in range(min(len(rows.event), _SOLUTIONS))
    ]


def _value(term: n.PatternTerm, bound: Mapping[str, str]) -> str | None:
    return bound.get(term.name) if isinstance(term, ast.Var) else term


def _has(knowledge: KnowledgeBase, graph: str, triple: Triple) -> bool:
    """Whether a graph of the knowledge base has a triple."""
    s, p, o = knowledge.terms.find(triple).tolist()
    relations: KbGraph = knowledge.graphs[graph]
    if min(s, p, o) < 0 or p not in relations:
        return False
    relation = relations[p]
    first, end = relation.s.searchsorted([s, s + 1])
    at = first + relation.o[first:end].searchsorted(o)
    return bool(at < end and relation.o[at] == o)
