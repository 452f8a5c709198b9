"""The measures of a run as a table and as JSON: rows, time and memory of each node."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, cast

from spaseq.algebra import nodes as n
from spaseq.lang import ast
from spaseq.measures import Measure, Measures
from spaseq.message_text import public_address
from spaseq.render.query_words import QueryWords

_COLUMNS = ("node", "rows in", "rows", "seconds", "memory")
_LONGEST = 64
"""Longest name of a node in the table."""


def analysis_text(measures: Measures, names: Mapping[str, str], words: QueryWords) -> str:
    """A table with a line for each node; nodes inside others are indented.

    `names` has the names of streams, by IRI; `words` the prefixes of the query.
    """
    lines = [_COLUMNS, *(_cells(node) for node in _nodes(measures, names, words))]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_COLUMNS))]
    table = (
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )
    return "\n".join([_headline(measures), "", *table])


def analysis_json(
    measures: Measures, names: Mapping[str, str], words: QueryWords
) -> dict[str, Any]:
    """The measures as JSON values; `depth` is how many nodes stand around a node."""
    return {
        "runtime": measures.runtime,
        "seconds": round(measures.seconds, 6),
        "peak_bytes": measures.peak_bytes,
        "nodes": [
            {
                "node": name,
                "depth": depth,
                "rows_in": measure.rows_in,
                "rows": measure.rows,
                "seconds": round(measure.seconds, 6),
                "bytes": measure.bytes,
            }
            for name, depth, measure in _nodes(measures, names, words)
        ],
    }


def _headline(measures: Measures) -> str:
    memory = ""
    if measures.peak_bytes is not None:
        memory = f", {_size(measures.peak_bytes)} at most in this process"
    note = ""
    if measures.runtime == "spark":
        note = "; Spark tells the stages apart, but neither GPMs nor memory; seconds are those of"
        note += " all tasks together"
    return f"runtime {measures.runtime}, {measures.seconds:.3f} s{memory}{note}"


def _nodes(
    measures: Measures, names: Mapping[str, str], words: QueryWords
) -> Iterator[tuple[str, int, Measure]]:
    """(name, depth, measure) of each node, those inside another after it."""
    order = {path: number for number, path in enumerate(measures.nodes)}
    for path in sorted(measures.nodes, key=lambda p: _place(p, order)):
        match path:
            case ("stream", str(iri)):
                yield f"stream {names.get(iri, iri)}", 0, measures.nodes[path]
            case ("gpm", str(gpm)):
                yield f"GPM {gpm}", 0, measures.nodes[path]
            case ("gpm", _, *inner):
                yield _part(inner[-1], words), len(inner), measures.nodes[path]
            case (name, *_):
                yield str(name), 0, measures.nodes[path]


def _place(path: tuple[Hashable, ...], order: Mapping[tuple[Hashable, ...], int]) -> list[int]:
    """The sort key of a node: after the nodes around it, in the order of their first use."""
    least = 2 if path[0] in ("stream", "gpm") else 1
    stages = ("stream", "ingest", "gpm", "graph patterns", "sort", "sequence")
    lead = stages.index(str(path[0]))
    return [lead, *(order[path[:end]] for end in range(least, len(path) + 1))]


def _part(node: object, words: QueryWords) -> str:
    """A part of a graph pattern, in short."""
    match node:
        case tuple():
            return " . ".join(words.triple(triple) for triple in node)
        case n.Service(str(name)):
            return f"SERVICE <{public_address(name[1:-1])}>"
        case n.Graph(name) | n.Service(name):
            return f"{type(node).__name__.upper()} {words.term(name)}"
        case n.LeftJoin():
            return "OPTIONAL"
        case n.Extend(variable=variable):
            return f"BIND ?{variable}"
        case n.Path(subject, path, object_):
            return f"{words.term(subject)} {words.path(path)} {words.term(object_)}"
        case ast.Node():
            return f"FILTER {words.condition(cast(ast.Expr, node))}"
    return _OTHERS.get(type(node).__name__, type(node).__name__.upper())


_OTHERS = {"Table": "VALUES", "Project": "SELECT", "Slice": "LIMIT", "OrderBy": "ORDER BY"}


def _cells(node: tuple[str, int, Measure]) -> tuple[str, str, str, str, str]:
    name, depth, measure = node
    return (
        f"{'  ' * depth}{name if len(name) <= _LONGEST else f'{name[: _LONGEST - 3]}...'}",
        "" if measure.rows_in is None else f"{measure.rows_in:,}",
        f"{measure.rows:,}",
        f"{measure.seconds:.3f}",
        "" if measure.bytes is None else _size(measure.bytes),
    )


def _size(count: int) -> str:
    """Bytes in words.

    >>> _size(900), _size(2_500_000)
    ('900 B', '2.4 MB')
    """
    for unit, bytes_ in (("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if count >= bytes_:
            return f"{count / bytes_:.1f} {unit}"
    return f"{count} B"
