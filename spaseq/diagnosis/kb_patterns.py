"""The causes in patterns over the knowledge base: GRAPH by itself has no solution."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from spaseq.algebra.entailment import entailed
from spaseq.algebra.groups import translate_group
from spaseq.algebra.nodes import possible
from spaseq.algebra.substitution import lifted
from spaseq.diagnosis.conditions import failing
from spaseq.diagnosis.observed import Observed
from spaseq.diagnosis.probes import AbsentTerm, EntailmentHint
from spaseq.diagnosis.question import (
    GpmPlace,
    Part,
    conditions_of,
    constants,
    freed,
    group_of,
    inner_groups,
    needed_predicates,
    parts_of,
)
from spaseq.diagnosis.report import Cause, period
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.lang import ast
from spaseq.lang.constants import constant_text
from spaseq.lang.variables import expression_variables
from spaseq.rdf.columns.term_columns import UNBOUND
from spaseq.rdf.schema import Schema
from spaseq.records import record

_SHOWN = 2
"""Maximum number of triples of a solution that are shown."""

MOST_TERMS = 10_000
"""Maximum number of terms of a graph that are candidates of a suggestion."""


class KbPattern:
    """One GRAPH of a GPM."""

    def __init__(
        self,
        observed: Observed,
        node: ast.GraphGraphPattern,
        hint: EntailmentHint | None = None,
    ) -> None:
        question = observed.question
        self._observed, self._node, self._hint = observed, node, hint
        self._knowledge = observed.knowledge.only(question.plan.inputs.kbs)
        names = [node.name.value] if isinstance(node.name, ast.Iri) else [*self._knowledge.graphs]
        self._graphs = [
            self._knowledge.graphs[name] for name in names if name in self._knowledge.graphs
        ]

    def solutions(self) -> Solutions | None:
        """The solutions of the pattern; None if an endpoint holds it or it exceeds the limits."""
        return self._constant(self._node)

    def causes(self, place: GpmPlace) -> Iterator[Cause]:
        """Why the graph by itself has no solution; nothing if it has one or is not known."""
        solutions = self.solutions()
        if solutions is None or solutions.size:
            return
        if any(self._solutions_of(n) is not None for n in self._observed.needed[:-1]):
            return
        when = self.held(place, self._observed.needed)
        alone = list(self._alone(place, self._node.pattern))
        for cause in alone or self._together(place):
            yield replace(cause, text=f"{cause.text}{when}")

    def _solutions_of(self, number: int) -> Solutions | None:
        """The solutions with a value of the knowledge base; None if there are none."""
        known = self._observed.values.values[number].only(self._observed.question.plan.inputs.kbs)
        solutions = self._constant(self._node, knowledge=known)
        return solutions if solutions is not None and solutions.size else None

    def held(self, place: GpmPlace, needed: range) -> str:
        """The match before the values `needed`, or after them, with its end or its beginning."""
        since = self._observed.values.since
        for number in reversed(range(needed.start)):
            if (solutions := self._solutions_of(number)) is not None:
                return f"; {self._shown(place, solutions)} held until {_moment(since[number + 1])}"
        for number in range(needed.stop, len(since)):
            if (solutions := self._solutions_of(number)) is not None:
                return f"; {self._shown(place, solutions)} holds from {_moment(since[number])} on"
        return ""

    def _shown(self, place: GpmPlace, solutions: Solutions) -> str:
        """The triples of a solution; they are one or two, as other patterns are not shown."""
        shown = []
        for part in parts_of(self._node.pattern)[:_SHOWN]:
            triple = part.node
            if isinstance(triple, ast.Triple) and isinstance(triple.predicate, ast.Iri):
                terms: tuple[ast.Term, ...] = (triple.subject, triple.predicate, triple.object)
                shown.append(" ".join(_written(place, term, solutions) for term in terms))
        return " . ".join(shown) or "the pattern"

    def example(self, variable: str) -> str | None:
        """A value of a variable in the graph."""
        solutions = self.solutions()
        if solutions is None or variable not in solutions.columns:
            return None
        codes = solutions.columns[variable]
        bound = np.flatnonzero(codes >= 0)
        return solutions.lexicon.take(codes[bound[:1]])[0] if len(bound) else None

    def _constant(
        self,
        node: ast.Element,
        schema: Schema | None = None,
        knowledge: KnowledgeBase | None = None,
    ) -> Solutions | None:
        question = self._observed.question
        pattern = translate_group(group_of([node]))
        pattern, _ = lifted(entailed(pattern, schema or question.schema))
        evaluator = GpmEvaluator(
            pattern,
            knowledge or self._knowledge,
            question.plan.expressions,
            limits=self._observed.limits,
        )
        return evaluator.constant(pattern)

    def _has(self, *nodes: ast.Triple | ast.Element) -> bool:
        """Whether parts of the graph's pattern have a solution, or it is not known."""
        solutions = self._constant(replace(self._node, pattern=group_of(nodes)))
        return solutions is None or solutions.size > 0

    def _alone(self, place: GpmPlace, group: ast.GroupGraphPattern) -> Iterator[Cause]:
        """The parts that match nothing by themselves."""
        for part in parts_of(group):
            if not part.demands or self._has(part.node):
                continue
            if isinstance(part.node, ast.Triple):
                yield self._triple(place, part.node)
            else:
                for inner in inner_groups(part.node):
                    yield from self._alone(place, inner)

    def _triple(self, place: GpmPlace, triple: ast.Triple) -> Cause:
        terms = self._knowledge.terms
        known = Counter[str]()
        for graph in self._graphs:
            known.update({terms.text(code): len(rows) for code, rows in graph.items()})
        for iri in needed_predicates(triple.predicate):
            if constant_text(iri) not in known:
                return self._absent(place, AbsentTerm(triple, "predicate", iri, known, _NOT_IN_KB))
        for where, constant in constants(triple):
            seen = self._terms_at(triple, where)
            other = "subject" if where == "object" else "object"
            if seen and not self._has(freed(triple, other)):
                absent = AbsentTerm(triple, "constant", constant, seen, _NOT_IN_KB, where)
                return self._absent(place, absent)
        text = "no triple of the knowledge base matches"
        return place.cause("pattern-never-matches", triple, text)

    def _absent(self, place: GpmPlace, absent: AbsentTerm) -> Cause:
        entailed = 0
        if self._hint is not None and self._hint.applies(absent.triple):
            alone = replace(self._node, pattern=group_of([absent.triple]))
            solutions = self._constant(alone, self._hint.schema)
            entailed = 0 if solutions is None else solutions.size
        return absent.cause(place, self._hint, entailed)

    def _terms_at(self, triple: ast.Triple, where: str) -> Counter[str]:
        """The subjects or objects of a predicate in the graph, with their counts."""
        terms, seen = self._knowledge.terms, Counter[str]()
        if not isinstance(triple.predicate, ast.Iri):
            return seen
        predicate = self._knowledge.find(constant_text(triple.predicate))
        for relation in (g[predicate] for g in self._graphs if predicate in g):
            column = relation.o if where == "object" else relation.s
            codes, counts = np.unique(column, return_counts=True)
            texts = terms.take(codes[:MOST_TERMS])
            seen.update(dict(zip(texts, counts.tolist(), strict=False)))
        return seen

    def _together(self, place: GpmPlace) -> Iterator[Cause]:
        """The part after which nothing is left, or the FILTER."""
        parts = parts_of(self._node.pattern)
        for i, part in enumerate(parts):
            if not self._has(*(p.node for p in parts[: i + 1])):
                yield place.cause("pattern-never-matches", part.node, _TOGETHER)
                return
        yield from self._conditions(place, parts)

    def _conditions(self, place: GpmPlace, parts: list[Part]) -> Iterator[Cause]:
        nodes = [part.node for part in parts]
        base = self._constant(replace(self._node, pattern=group_of(nodes)))
        if base is None:
            return
        names = possible(translate_group(group_of(nodes)))
        for condition in conditions_of(self._node.pattern):
            read = expression_variables(condition.expr)
            if read <= names and not self._has(*nodes, ast.Filter(condition.expr)):
                false = self._constant(
                    replace(
                        self._node,
                        pattern=group_of([*nodes, ast.Filter(ast.Not(condition.expr))]),
                    )
                )
                count = base.size if false is None else false.size
                yield failing(
                    place, condition, _GraphSolutions.of(base, read), count, frozenset(names)
                )


def _moment(ms: int) -> str:
    return period(ms, ms)


def _written(place: GpmPlace, term: ast.Term, solutions: Solutions) -> str:
    """A term of a triple pattern in the first solution."""
    if isinstance(term, ast.Var):
        code = solutions.columns[term.name][0] if term.name in solutions.columns else UNBOUND
        return f"?{term.name}" if code < 0 else place.written(solutions.lexicon.text(int(code)))
    return place.written(constant_text(term)) if isinstance(term, ast.Iri | ast.Literal) else "[]"


@record
class _GraphSolutions:
    """Solutions over the knowledge base, with the values of some variables."""

    solutions: int
    values: dict[str, Counter[str]]

    @classmethod
    def of(cls, solutions: Solutions, variables: Iterable[str]) -> _GraphSolutions:
        values = {}
        for name in variables:
            codes, counts = np.unique(solutions.column(name), return_counts=True)
            codes, counts = codes[codes >= 0][:MOST_TERMS], counts[codes >= 0][:MOST_TERMS]
            texts = solutions.lexicon.take(codes)
            values[name] = Counter(dict(zip(texts, counts.tolist(), strict=True)))
        return cls(solutions.size, values)


_NOT_IN_KB = "is not in the knowledge base"
_TOGETHER = "each triple pattern matches the knowledge base alone, but not together"
