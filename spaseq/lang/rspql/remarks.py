"""Remarks on a translation for its reader: differences of its answers, and its requirements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spaseq.lang import ast
from spaseq.lang.rspql.rsp_reader import RspQuery, StreamWindow
from spaseq.lang.variables import nested_groups


def remarks(
    query: RspQuery, select: ast.SubSelect, used: Sequence[StreamWindow], is_aggregate: bool
) -> Iterator[str]:
    """A sentence for each difference from an RSP engine's answers, and for each stored graph.

    `select` is the translated query, `used` are the windows that it reads.
    """
    form = query.form.kind
    if any(not window.extent.each_event for window in used):
        yield (
            "Windows close at multiples of their slide since 1970, the first one with the first "
            "event; engines choose that."
        )
        whole = form == "ASK" or (is_aggregate and not select.group_by)
        if whole or _may_be_empty(select.pattern):
            yield "An empty window is reported at its first close, not at each one."
    if query.operator != "RSTREAM":
        yield f"{query.operator} compares sets of solutions, not multisets."
    if select.order_by and select.limit is None and select.offset is None:
        yield "ORDER BY is left out: the answers of one close have their own order."
    if form == "CONSTRUCT":
        yield (
            "Each solution makes a graph; RSP engines make one graph of all solutions of a close."
        )
    if form == "ASK":
        yield "ASK is ?ask: true or false at each close."
    if query.register and (query.register.name or form != "CONSTRUCT"):
        iri = query.register.iri
        shown = query.register.name or (iri.value if isinstance(iri, ast.Iri) else "")
        yield f"The query was registered as {shown}."
    for name in dict.fromkeys(graph.iri.value for graph in query.graphs):
        yield f"It needs the stored graph: --kb {name}=FILE"


def _may_be_empty(group: ast.GroupGraphPattern) -> bool:
    """Whether a group may have a solution where no triple is."""
    for element in group.elements:
        match element:
            case ast.Triples() | ast.Values():
                return False
            case ast.SubSelect(group_by=keys, pattern=pattern):
                if keys or _may_be_empty(pattern):
                    return not keys
            case ast.GroupOrUnionGraphPattern(alternatives):
                if not any(map(_may_be_empty, alternatives)):
                    return False
            case ast.OptionalGraphPattern() | ast.MinusGraphPattern():
                continue
            case _ if not all(map(_may_be_empty, nested_groups(element))):
                return False
    return True
