"""What a query becomes, in every format: text, JSON, Mermaid, DOT and SVG; and in words how graph
patterns over a lifted stream are evaluated.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

from spaseq.algebra import nodes as n
from spaseq.algebra.constants import is_part
from spaseq.algebra.nodes import PatternTerm
from spaseq.budget import Measures
from spaseq.compile import Checked
from spaseq.errors import QueryError, UsageError
from spaseq.expr.uses import variables_of
from spaseq.lang import ast
from spaseq.lang.format import format_query
from spaseq.lift.lift_plan import ROW_NUMBER, LiftPlan
from spaseq.lift.lifted_graphs import Way, unified
from spaseq.lift.pruned_lifts import needed_variables
from spaseq.lift.row_groups import asked_rows, asked_text, bounds
from spaseq.message_text import visible, without_passwords
from spaseq.plan.predicates import stream_patterns, stream_predicates
from spaseq.plan.query_plan import GpmPlan, QueryPlan
from spaseq.render.analysis_text import analysis_json, analysis_text
from spaseq.render.picture.diagram import Picture, picture_of
from spaseq.render.picture.picture_texts import dot_text, mermaid_text, svg_text
from spaseq.render.plan_json import automaton_json, plan_json
from spaseq.render.plan_text import plan_text
from spaseq.render.query_words import QueryWords, variables_text, window_text
from spaseq.render.rule_effects import together_text
from spaseq.render.trees import algebra_text, automaton_text, tree

FORMATS = ("text", "json", "mermaid", "dot", "svg")
"""The formats of an explanation."""


def lift_text(plan: QueryPlan, lifts: Sequence[tuple[str, LiftPlan]]) -> str:
    """What is made of the rows of each lifted stream, by its IRI."""
    return "\n".join(line for iri, lift in lifts for line in _of_stream(plan, iri, lift))


def _of_stream(plan: QueryPlan, iri: str, lift: LiftPlan) -> Iterator[str]:
    number = plan.inputs.streams.index(iri)
    yield f"stream {plan.inputs.stream_names[number]}"
    for gpm in plan.patterns.gpms:
        if number in gpm.streams:
            yield f"  {gpm.name}: {_of_gpm(plan, gpm, lift)}"
    fields = lift.fields.wanted - {ROW_NUMBER}
    asked = stream_predicates([plan], iri)
    read = fields if asked is None else needed_variables(lift, asked) & fields
    yield f"  read: {_listed(read)}"
    if fields - read:
        yield f"  not read from Parquet if no row can be bad by them: {_listed(fields - read)}"
    tested = bounds(lift)
    if tested:
        yield f"  row groups of Parquet are left out by {' && '.join(map(str, tested))}"
    patterns = stream_patterns([plan], iri)
    rows = None if tested or patterns is None else asked_rows(patterns, lift)
    if rows is not None:
        yield (
            "  row groups of Parquet are read for their times only, if no row can be bad, "
            f"unless a row may have {asked_text(rows)}"
        )


def _of_gpm(plan: QueryPlan, gpm: GpmPlan, lift: LiftPlan) -> str:
    """How a GPM is evaluated over the rows of a lift."""
    if not plan.patterns.evaluation.virtual:
        return "triples are made: the rule virtual-triples is disabled"
    reason = _by_rows(lift)
    if reason is not None:
        return f"rows are lifted one by one: {reason}"
    pattern = gpm.correlation.core if gpm.correlation is not None else gpm.pattern
    template = [t.terms for t in lift.template if t.inside]
    words = []
    for part in _parts(pattern):
        if isinstance(part, n.Path):
            words.append("triples are made for a path")
            continue
        if any(map(is_part, part.triples)):
            words.append("triples are made for a triple term with variables")
            continue
        ways = unified(part.triples, template)
        if ways is None:
            words.append("triples are made: the template matches in too many ways")
        elif part.triples and not ways:
            words.append("no row matches")
        elif part.triples:
            count = f"{len(part.triples)} triple pattern{'s' * (len(part.triples) != 1)}"
            union = f" in {len(ways)} ways" if len(ways) > 1 else ""
            words.append(f"{count} from {_listed(_fields(ways, lift))}{union}")
    return "; ".join(dict.fromkeys(words)) or "reads no triple"


def _by_rows(lift: LiftPlan) -> str | None:
    """Why rows are lifted one by one; None if the lift does not need it."""
    if not all(isinstance(e, ast.Bind | ast.Filter) for e in lift.elements):
        return "UNNEST or VALUES"
    terms = [term for t in lift.template for term in t.terms]
    if any(isinstance(t, ast.Var) and n.is_reserved(t.name) for t in terms):
        return "blank nodes, or triple terms with variables"
    if any(isinstance(t.terms[1], ast.Var) for t in lift.template):
        return "a variable as predicate"
    return None


def _parts(pattern: n.Pattern) -> Iterator[n.BGP | n.Path]:
    """The basic graph patterns and paths of a pattern that read the event, outside EXISTS."""
    waiting = [pattern]
    while waiting:
        match waiting.pop(0):
            case n.Graph():
                continue
            case n.BGP() | n.Path() as part:
                yield part
            case node:
                waiting += n.children(node)


def _fields(ways: Iterable[Way], lift: LiftPlan) -> frozenset[str]:
    """The fields of the rows that ways of a pattern read."""
    terms: list[PatternTerm] = []
    for way in ways:
        terms += [term for number in way.triples for term in _inside(lift)[number]]
    binds = {e.var.name: e.expr for e in lift.elements if isinstance(e, ast.Bind)}
    waiting = {term.name for term in terms if isinstance(term, ast.Var)}
    fields: set[str] = set()
    while waiting:
        name = waiting.pop()
        fields.add(name)
        waiting |= variables_of(binds[name]) - fields if name in binds else set()
    return frozenset(fields - binds.keys())


def _inside(lift: LiftPlan) -> list[tuple[PatternTerm, PatternTerm, PatternTerm]]:
    return [t.terms for t in lift.template if t.inside]


def _listed(names: Iterable[str]) -> str:
    return variables_text(sorted(names)) or "no field"


@dataclass(frozen=True)
class Explanation:
    """The plan of a query, and its automaton as a picture; a notebook shows both.

    With `full` the text and the JSON also have the canonical text, the syntax tree and the algebra.
    `rate` is the number of solutions per second for which the memory is estimated. `measures` are
    those of a run, if there was one. `lifts` are the lifts of streams, by their IRI.
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

    The text says what the queries have in common, and has each query below its name.

    Raises:
        UsageError: a picture of several queries is asked for.
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
