"""The parts of a group graph pattern that every solution must match, each as a group by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from spaseq.lang import ast
from spaseq.lang.format_triples import TermText
from spaseq.lang.variables import conjuncts
from spaseq.records import record

Node: TypeAlias = ast.Triple | ast.Element

FREE = " free"
"""The variable that takes the place of a constant. No query can write its name."""


@record
class Part:
    """A triple pattern, or another element of a group."""

    node: Node

    @property
    def alone(self) -> ast.GroupGraphPattern:
        """The part as a group."""
        return group_of([self.node])

    @property
    def demands(self) -> bool:
        """Whether the part must match: OPTIONAL, MINUS and BIND need not."""
        optional = ast.OptionalGraphPattern | ast.MinusGraphPattern | ast.Bind
        return not isinstance(self.node, optional)

    @property
    def is_remote(self) -> bool:
        """Whether the part reads no event: GRAPH and SERVICE."""
        return isinstance(self.node, ast.GraphGraphPattern | ast.ServiceGraphPattern)


def group_of(nodes: Iterable[Node]) -> ast.GroupGraphPattern:
    """Parts and FILTERs as a group."""
    return ast.GroupGraphPattern(
        tuple(ast.Triples((n,)) if isinstance(n, ast.Triple) else n for n in nodes)
    )


def parts_of(group: ast.GroupGraphPattern) -> list[Part]:
    """The parts of a group in the order of the text, without its FILTERs."""
    parts: list[Part] = []
    for element in group.elements:
        if isinstance(element, ast.Triples):
            parts.extend(map(Part, element.triples))
        elif not isinstance(element, ast.Filter):
            parts.append(Part(element))
    return parts


@record
class Condition:
    """A conjunct of a FILTER."""

    filter: ast.Filter
    expr: ast.Expr


def conditions_of(group: ast.GroupGraphPattern) -> list[Condition]:
    """The conjuncts of a group's own FILTERs, in the order of the text."""
    filters = (e for e in group.elements if isinstance(e, ast.Filter))
    return [Condition(node, expr) for node in filters for expr in conjuncts([node.expr])]


def inner_groups(node: Node) -> tuple[ast.GroupGraphPattern, ...]:
    """The groups inside a part, one of which must match."""
    match node:
        case ast.GroupGraphPattern():
            return (node,)
        case ast.GroupOrUnionGraphPattern(alternatives):
            return alternatives
        case ast.SubSelect(pattern=pattern) | ast.EventGraphPattern(pattern=pattern):
            return (pattern,)
        case _:
            return ()


def needed_predicates(predicate: ast.Var | ast.Path) -> Iterator[ast.Iri]:
    """The predicates without which a triple pattern cannot match."""
    match predicate:
        case ast.Iri():
            yield predicate
        case ast.PathSequence(parts):
            for part in parts:
                yield from needed_predicates(part)
        case ast.PathInverse(inner) | ast.PathRepeat(inner, "+"):
            yield from needed_predicates(inner)


def all_predicates(group: ast.GroupGraphPattern) -> Iterator[ast.Iri]:
    """The predicates without which the events of a group cannot match."""
    for part in parts_of(group):
        if isinstance(part.node, ast.Triple):
            yield from needed_predicates(part.node.predicate)
        elif len(inner := inner_groups(part.node)) == 1:
            yield from all_predicates(inner[0])


def constants(triple: ast.Triple) -> Iterator[tuple[str, ast.Iri | ast.Literal]]:
    """(place, constant) of the subject and the object, the object first."""
    for role, term in (("object", triple.object), ("subject", triple.subject)):
        if isinstance(term, ast.Iri | ast.Literal):
            yield role, term


def freed(triple: ast.Triple, role: str) -> ast.Triple:
    """A triple pattern with the variable `FREE` in place of its subject or its object."""
    if role == "object":
        return replace(triple, object=ast.Var(FREE))
    return replace(triple, subject=ast.Var(FREE))


def shown_triple(terms: TermText, triple: ast.Triple) -> str:
    """A triple pattern written out, with the subject that the text may have left out."""
    texts = (terms.term(triple.subject), terms.verb(triple.predicate), terms.term(triple.object))
    return " ".join("[]" if text.startswith("_:") else text for text in texts)
