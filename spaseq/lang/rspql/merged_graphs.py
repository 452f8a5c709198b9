"""Patterns on the graphs that windows and stored data make together.

RSP-QL and C-SPARQL match some patterns in a graph that spaseq does not have: several streams, or
streams and stored data, as one. A basic graph pattern on such a graph is the join of its triple
patterns, and each of these has the solutions of all parts. C-SPARQL's `f:timestamp(?s, ?p, ?o)` is
the latest time at which the window has a triple.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, TypeAlias

from spaseq.lang import ast
from spaseq.lang.names import XSD
from spaseq.lang.variables import leaves, rewritten, triple_variables, walk

Refuse: TypeAlias = Callable[[str, ast.Node], None]
"""Reports that something (message, place) has no counterpart."""

TIMESTAMP = "http://larkc.eu/csparql/sparql/jena/ext#timestamp"


@dataclass
class Places:
    """The graphs in which the triple patterns of a group are matched.

    `window` says that the union graph of the window is one; `streams` are events of one stream of
    it, with the range in milliseconds if that is shorter than the window's; `stored` are graphs of
    the knowledge base.
    """

    window: bool = False
    streams: Sequence[tuple[str, int | None]] = ()
    stored: Sequence[ast.Iri] = ()

    def __len__(self) -> int:
        return self.window + len(self.streams) + len(self.stored)

    @property
    def whole(self) -> bool:
        """Whether a basic graph pattern can be matched in one of them as it is."""
        return len(self) == 1 and not self.streams


@dataclass
class Rewriter:
    """Rewrites the patterns of one query; `blocks` are the offsets of its WINDOW blocks."""

    blocks: frozenset[int]
    refuse: Refuse
    known: Collection[str]
    counts: bool = False  # something counts solutions, so a triple in two places counts once
    fresh: dict[str, str] = field(default_factory=dict)
    times: list[str] = field(default_factory=list)

    def rewrite(
        self,
        node: ast.GroupGraphPattern,
        places: Places,
        of_block: Callable[[ast.GraphGraphPattern], Sequence[Places]],
    ) -> ast.GroupGraphPattern:
        """The group with its triple patterns in their graphs, and the patterns of WINDOW in those
        of `of_block`.

        A block with several graphs becomes a union.
        """

        def change(inner: ast.Node) -> ast.Node | None:
            match inner:
                case ast.GroupGraphPattern(elements):
                    return replace(inner, elements=tuple(_each(elements)))
                case ast.EventGraphPattern():
                    return inner
                case ast.ServiceGraphPattern():
                    self.refuse("SERVICE cannot stand in a pattern on a window", inner)
                case ast.GraphGraphPattern() if inner.span.start in self.blocks:
                    arms = [self.rewrite(inner.pattern, own, of_block) for own in of_block(inner)]
                    return _union(arms)
                case ast.GraphGraphPattern(pattern=pattern):
                    self._refuse_inside(pattern)
                    return inner
            return None

        def _each(elements: Sequence[ast.Element]) -> Iterable[ast.Element]:
            for element in elements:
                if isinstance(element, ast.Triples):
                    yield from self._triples(element, places)
                else:
                    yield rewritten(element, change)

        return rewritten(node, change)

    def _refuse_inside(self, pattern: ast.GroupGraphPattern) -> None:
        def change(inner: ast.Node) -> ast.Node | None:
            if isinstance(inner, ast.GraphGraphPattern) and inner.span.start in self.blocks:
                self.refuse("WINDOW cannot stand inside GRAPH", inner)
            return None

        rewritten(pattern, change)

    # --- triple patterns --------------------------------------------------------------------------

    def _triples(self, block: ast.Triples, places: Places) -> Iterable[ast.Element]:
        if not len(places):
            message = "this matches the default graph, and no FROM says what is in it"
            self.refuse(f"{message}: put it into WINDOW or GRAPH", block)
        elif places.whole:
            yield block if places.window else _graph(places.stored[0], block)
        else:
            for triple in block.triples:
                yield self._triple(triple, places)

    def _triple(self, triple: ast.Triple, places: Places) -> ast.Element:
        if not isinstance(triple.predicate, ast.Var | ast.Iri):
            message = "a property path cannot cross the graphs that are one graph here"
            self.refuse(f"{message}: write its steps as triple patterns", triple)
        triples = ast.Triples((rewritten(triple, self._named),))
        groups = [ast.GroupGraphPattern((triples,))] if places.window else []
        groups += [self._of_events(triples, *each) for each in places.streams]
        groups += [ast.GroupGraphPattern((_graph(iri, triples),)) for iri in places.stored]
        union = _union(groups)
        return _distinct(union, triples) if self.counts and len(groups) > 1 else union

    def _named(self, node: ast.Node) -> ast.Node | None:
        """A variable for a blank node, which would be local to one part of the union."""
        if not isinstance(node, ast.BlankNode):
            return None
        if node.label not in self.fresh:
            self.fresh[node.label] = free_name("node", {*self.known, *self.fresh.values()})
        return ast.Var(self.fresh[node.label])

    def _of_events(
        self, triples: ast.Triples, stream: str, range_ms: int | None
    ) -> ast.GroupGraphPattern:
        """A triple pattern in the union of the events of a stream: its solutions in one of them."""
        elements: tuple[ast.Element, ...] = (triples,)
        time = None
        if range_ms is not None:
            self.times.append(free_name("time", {*self.known, *self.times}))
            time = ast.Var(self.times[-1])
            length = ast.Literal(f"PT{range_ms / 1000:g}S", XSD + "dayTimeDuration")
            begin = ast.Arithmetic("-", ast.Call("NOW", ()), length)
            elements = (triples, ast.Filter(ast.Compare(">=", time, begin)))
        event = ast.EventGraphPattern(ast.Ref(stream), None, time, ast.GroupGraphPattern(elements))
        return _distinct(event, triples)


def _distinct(element: ast.Element, block: ast.Triples) -> ast.GroupGraphPattern:
    """The different solutions of an element that matches a block."""
    names = sorted(triple_variables(block))
    group = ast.GroupGraphPattern((element,))
    if not names:
        return ast.GroupGraphPattern((ast.Filter(ast.Exists(group)),))
    items = tuple(ast.SelectItem(ast.Var(name)) for name in names)
    return ast.GroupGraphPattern((ast.SubSelect(items, group, distinct=True),))


def free_name(stem: str, known: Collection[str]) -> str:
    """A name that is not known: the stem with a number."""
    return next(name for n in count(1) if (name := f"{stem}{n}") not in known)


def _graph(iri: ast.Iri, block: ast.Triples) -> ast.GraphGraphPattern:
    return ast.GraphGraphPattern(iri, ast.GroupGraphPattern((block,)))


def _union(groups: Sequence[ast.GroupGraphPattern]) -> ast.Element:
    return groups[0] if len(groups) == 1 else ast.GroupOrUnionGraphPattern(tuple(groups))


_JOINED = (
    ast.Triples,
    ast.GroupGraphPattern,
    ast.GroupOrUnionGraphPattern,
    ast.GraphGraphPattern,
)


def flattened(group: ast.GroupGraphPattern) -> ast.GroupGraphPattern:
    """The group without redundant braces: around one group, or around the operands of a join."""
    elements: list[ast.Element] = []
    given = [rewritten(e, _flattened) for e in group.elements]
    others = [e for e in given if not isinstance(e, ast.GroupGraphPattern)]
    alone = len(given) - len(others) == 1 and all(isinstance(e, ast.Filter) for e in others)
    for element in given:
        inner = element.elements if isinstance(element, ast.GroupGraphPattern) else ()
        is_select = any(isinstance(e, ast.SubSelect) for e in inner)
        joined = inner and all(isinstance(e, _JOINED) for e in inner)
        elements += inner if joined or (alone and inner and not is_select) else [element]
    if len(elements) == 1 and isinstance(elements[0], ast.GroupGraphPattern):
        elements = [*elements[0].elements]
    return replace(group, elements=tuple(_joined(elements)))


def _flattened(node: ast.Node) -> ast.Node | None:
    return flattened(node) if isinstance(node, ast.GroupGraphPattern) else None


def _joined(elements: Iterable[ast.Element]) -> Iterable[ast.Element]:
    """Blocks of triples that stand side by side as one."""
    last: ast.Triples | None = None
    for element in elements:
        if isinstance(element, ast.Triples):
            triples = (*(last.triples if last else ()), *element.triples)
            last = ast.Triples(triples)
            continue
        if last is not None:
            yield last
            last = None
        yield element
    if last is not None:
        yield last


def term_variables(triples: Iterable[ast.Triple]) -> list[str]:
    """The variables of a template, in the order of the text."""
    terms = (t for triple in triples for t in (triple.subject, triple.predicate, triple.object))
    names = (leaf.name for term in terms for leaf in leaves(term) if isinstance(leaf, ast.Var))
    return [*dict.fromkeys(names)]


def with_times(select: ast.SubSelect) -> ast.SubSelect:
    """The query with a variable for each call, which a sub-SELECT over the events binds.

    The sub-SELECT is in the group of the calling FILTER or BIND, or else in the whole pattern.
    """
    if not any(map(_is_call, walk(select))):
        return select
    known = {n.name for n in walk(select) if isinstance(n, ast.Var)}
    times = _Times(known)

    def change(node: ast.Node) -> ast.Node | None:
        if not isinstance(node, ast.GroupGraphPattern):
            return None
        return times.group(node.elements, change, node)

    pattern = times.group(select.pattern.elements, change, select.pattern)
    outer = _Times(known)
    outside = {
        name: tuple(rewritten(part, outer.named) for part in getattr(select, name) or ())
        for name in ("items", "group_by", "having", "order_by")
    }
    elements = (*pattern.elements, *outer.elements)
    given: Any = {**outside, "items": outside["items"] if select.items else None}
    return replace(select, pattern=replace(pattern, elements=elements), **given)


def _is_call(node: ast.Node) -> bool:
    return isinstance(node, ast.FunctionCall) and node.function.value == TIMESTAMP


@dataclass
class _Times:
    """The calls of one group, by their arguments."""

    known: set[str]
    names: dict[tuple[ast.Node, ...], str] = field(default_factory=dict)

    def group(
        self, elements: tuple[ast.Element, ...], change: Any, node: ast.GroupGraphPattern
    ) -> ast.GroupGraphPattern:
        times = _Times(self.known)
        made: list[ast.Element] = []
        for element in elements:
            if isinstance(element, ast.Filter | ast.Bind):
                element = replace(element, expr=rewritten(element.expr, times.named))
            made.append(rewritten(element, change))
        return replace(node, elements=(*times.elements, *made))

    def named(self, node: ast.Node) -> ast.Node | None:
        """The variable of a call."""
        if not isinstance(node, ast.FunctionCall) or not _is_call(node) or len(node.args) != 3:
            return None
        if node.args not in self.names:
            name = self.names[node.args] = free_name("latest", self.known)
            self.known.add(name)
        return ast.Var(self.names[node.args], span=node.span)

    @property
    def elements(self) -> list[ast.Element]:
        """A sub-SELECT for each call."""
        time = free_name("when", self.known)
        return [_latest(args, name, time) for args, name in self.names.items()]


def _latest(args: tuple[Any, ...], name: str, when: str) -> ast.Element:
    time = ast.Var(when)
    block = ast.Triples((ast.Triple(*args),))
    event = ast.EventGraphPattern(None, None, time, ast.GroupGraphPattern((block,)))
    keys = tuple(ast.SelectItem(arg) for arg in dict.fromkeys(args) if isinstance(arg, ast.Var))
    latest = ast.SelectItem(ast.Var(name), ast.Aggregate("MAX", time))
    inner = ast.GroupGraphPattern((event,))
    return ast.GroupGraphPattern((ast.SubSelect((*keys, latest), inner, group_by=keys),))
