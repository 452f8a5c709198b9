"""The parts of a pattern that SPARQL endpoints evaluate, and the paths that they cannot."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from spaseq.algebra import nodes as n
from spaseq.algebra.entailment import entailed
from spaseq.algebra.groups import translate_group
from spaseq.algebra.nodes import expressions
from spaseq.algebra.schema import Schema
from spaseq.lang import ast
from spaseq.lang.variables import exists_uses, walk


def remote_parts(
    pattern: n.Pattern, endpoints: Collection[str], schema: Schema | None = None
) -> Iterator[n.Graph | n.Service]:
    """The outermost parts that an endpoint evaluates: SERVICE, and graphs that are endpoints.

    `endpoints` are the IRIs of these graphs. The pattern itself has been rewritten with `schema`;
    the patterns of EXISTS have not.
    """
    match pattern:
        case n.Service():
            yield pattern
        case n.Graph(str() as name) if name[1:-1] in endpoints:
            yield pattern
        case n.Graph(ast.Var()) if endpoints:
            yield pattern
        case _:
            for inner in (*_tested(pattern, schema), *n.children(pattern)):
                yield from remote_parts(inner, endpoints, schema)


def asks_endpoints(pattern: n.Pattern, endpoints: Collection[str]) -> bool:
    """Whether evaluating a pattern asks an endpoint."""
    return next(remote_parts(pattern, endpoints), None) is not None


def unsayable_paths(pattern: n.Pattern, schema: Schema) -> Iterator[tuple[str, str]]:
    """Repeated paths over entailed inverses, which SPARQL cannot express.

    Each is a pair: the repeated property, and a property that is read backwards. No step of such a
    path may start at a literal, and SPARQL cannot say so. It need not if all properties that are
    read backwards are declared to be object properties, which relate no literals.
    """
    for inner in (*_tested(pattern, schema), *n.children(pattern)):
        if not isinstance(inner, n.Service):  # SERVICE is sent as it was written
            yield from unsayable_paths(inner, schema)
    if isinstance(pattern, n.Path):
        for part in (p for p in walk(pattern.path) if isinstance(p, ast.PathFromNode)):
            names = [p.value for p in walk(part) if isinstance(p, ast.Iri)]
            backwards = (
                p.path.value
                for p in walk(part)
                if isinstance(p, ast.PathInverse) and isinstance(p.path, ast.Iri)
            )
            for name in backwards:
                if f"<{name}>" not in schema.object_properties:
                    yield names[0], name
                    break


def _tested(pattern: n.Pattern, schema: Schema | None) -> Iterator[n.Pattern]:
    """The patterns of EXISTS in a node's own expressions."""
    for expr in expressions(pattern):
        for use in exists_uses(expr):
            yield entailed(translate_group(use.pattern), schema)
