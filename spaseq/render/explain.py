"""The explanation of a query, in every format: text, JSON, Mermaid, DOT and SVG."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, cast

from spaseq.algebra import nodes as n
from spaseq.compile import Checked
from spaseq.errors import QueryError, UsageError
from spaseq.lang import ast
from spaseq.lang.format import format_query
from spaseq.measures import Measure, Measures
from spaseq.message_text import public_address, visible, without_passwords
from spaseq.plan.query_plan import QueryPlan
from spaseq.render.picture.diagram import Picture, picture_of
from spaseq.render.picture.picture_texts import dot_text, mermaid_text, svg_text
from spaseq.render.plan_json import automaton_json, plan_json
from spaseq.render.plan_text import plan_text
from spaseq.render.query_words import QueryWords, variables_text, window_text
from spaseq.render.rule_effects import together_text
from spaseq.render.trees import algebra_text, automaton_text, tree

if TYPE_CHECKING:
    from spaseq.lift.lift_plan import LiftPlan


FORMATS = ("text", "json", "mermaid", "dot", "svg")
"""The formats of an explanation."""


@dataclass(frozen=True)
class Explanation:
    """The plan of a query, and its automaton as a picture; a notebook shows both.

    With `full` the text and the JSON also have the canonical text, the syntax tree and the algebra.
    `rate` is the number of solutions per second for the estimate of memory. `measures` are the
    measures of a run, if there was one. `lifts` are the lifts of streams, by their IRI.
    """

    plan: QueryPlan
    query: ast.Query
    full: bool = False
    rate: float | None = None
    measures: Measures | None = None
    lifts: tuple[tuple[str, LiftPlan], ...] = ()

    def __str__(self) -> str:
        return self.to("text")

    def __repr__(self) -> str:
        return self.to("text")

    def _repr_svg_(self) -> str:
        return self.to("svg")

    def _repr_html_(self) -> str:
        text = escape(self.to("text"))
        return f"{self.to('svg')}<details><summary>plan</summary><pre>{text}</pre></details>"

    def to(self, form: str) -> str:
        """The explanation in one of the `FORMATS`.

        Raises:
            UsageError: there is no such format.
        """
        match form:
            case "text":
                text = self._text
            case "json":
                text = json.dumps(self.data, indent=2) + "\n"
            case "mermaid":
                text = mermaid_text(self.picture)
            case "dot":
                text = dot_text(self.picture)
            case "svg":
                return svg_text(self.picture)
            case _:
                raise UsageError(f"no format {form!r}: {', '.join(FORMATS)}")
        return visible(without_passwords(text))

    @property
    def data(self) -> dict[str, Any]:
        """The explanation as JSON values (docs/cli.md#spaseq-explain)."""
        explanation = plan_json(self.plan, self._words, self.rate)
        explanation["automaton"] = automaton_json(self.picture)
        if self._lifts:
            explanation["lifts"] = self._lifts.splitlines()
        if self.measures is not None:
            explanation["analysis"] = analysis_json(self.measures, self._streams, self._words)
        if self.full:
            explanation.update((title, body) for title, body in self._stages())
        return explanation

    @cached_property
    def picture(self) -> Picture:
        """The automaton as a diagram."""
        sequence = self.plan.sequence
        note = f"WITHIN {window_text(sequence.window)}"
        if sequence.partition:
            note += f", PARTITION BY {variables_text(sequence.partition)}"
        return picture_of(self.plan, self.query, note)

    @property
    def _words(self) -> QueryWords:
        return QueryWords(self.query.prologue)

    @property
    def _streams(self) -> dict[str, str]:
        """The names of the streams, by IRI."""
        inputs = self.plan.inputs
        return dict(zip(inputs.streams, inputs.stream_names, strict=True))

    @property
    def _lifts(self) -> str:
        """How patterns over lifted streams are evaluated; empty if the query reads none."""
        if not self.lifts:
            return ""
        from spaseq.render.lift_text import lift_text  # a query without lifts needs not load it

        lifts = [(iri, lift) for iri, lift in self.lifts if iri in self.plan.inputs.streams]
        return lift_text(self.plan, lifts)

    @property
    def _text(self) -> str:
        sections = list(self._stages()) if self.full else []
        sections.append(("plan", plan_text(self.plan, self._words, self.rate)))
        sections.append(("automaton (G-NFA)", automaton_text(self.plan, self._words)))
        if self._lifts:
            sections.append(("lifts", self._lifts))
        if self.measures is not None:
            text = analysis_text(self.measures, self._streams, self._words)
            sections.append(("analysis", text))
        return "\n\n".join(f"# {title}\n\n{body}" for title, body in sections) + "\n"

    def _stages(self) -> Iterator[tuple[str, str]]:
        """The stages before the plan."""
        yield "query text", format_query(self.query).rstrip()
        yield "AST", tree(self.query)
        yield "algebra", algebra_text(self.plan)


def together(shown: Sequence[Explanation], form: str) -> str:
    """The explanations of several queries as one text, or as a JSON array.

    The text has the common parts of the queries, and each query below its name.

    Raises:
        UsageError: a picture of several queries is not possible.
    """
    if len(shown) == 1:
        return shown[0].to(form)
    match form:
        case "text":
            words = [QueryWords(each.query.prologue) for each in shown]
            common = together_text([each.plan for each in shown], words)
            titled = (f"# query {each.plan.identity.title}\n\n{each}" for each in shown)
            return visible("\n\n".join([f"# together\n\n{without_passwords(common)}", *titled]))
        case "json":
            text = json.dumps([each.data for each in shown], indent=2) + "\n"
            return visible(without_passwords(text))
    raise UsageError(f"--format {form} is a picture of one query; text and json take several")


def explained(checked: Checked, full: bool = False, rate: float | None = None) -> Explanation:
    """The explanation of a checked query.

    Raises:
        QueryError: the query has errors.
    """
    if checked.plan is None or checked.query is None:
        raise QueryError(checked.errors)
    return Explanation(checked.plan, checked.query, full, rate)


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
