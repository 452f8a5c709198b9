"""The causes in a predicate or a constant that never occurs, with the nearest that does, and
altered patterns that a second reading of the streams evaluates, to see which part fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Literal

import numpy as np

from spaseq.algebra import nodes as n
from spaseq.algebra.answers import extent_of
from spaseq.algebra.entailment import entailed
from spaseq.algebra.groups import conjoined, translate_group
from spaseq.algebra.substitution import lifted
from spaseq.compiled.arrays import Int64s
from spaseq.diagnosis.nearest_terms import nearest_term
from spaseq.diagnosis.observed import Observed, SeenWindows
from spaseq.diagnosis.question import GpmPlace, group_of
from spaseq.diagnosis.report import Cause
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.lang import ast
from spaseq.lang.constants import constant_text
from spaseq.rdf.inputs.stream_options import ignore
from spaseq.rdf.schema import AXIOM_PREDICATES, TYPE, Schema
from spaseq.rdf.terms.times import format_time
from spaseq.records import record
from spaseq.sources.base import Source

MOST_AXIOMS = 10_000
"""A knowledge base with more axioms gives no hint."""

MOST_VALUES = 10_000
"""Maximum number of values of a variable that a probe keeps."""


@record
class EntailmentHint:
    """The effect of the knowledge base's axioms on a run without entailment."""

    schema: Schema

    @classmethod
    def of(cls, observed: Observed) -> EntailmentHint | None:
        """The hint of the given knowledge base; None with entailment, and without axioms."""
        if observed.question.schema is not None:
            return None
        schema = Schema.of(_axioms(observed.knowledge))
        useful = 0 < len(schema.axioms) <= MOST_AXIOMS and not schema.transitive_types
        return cls(schema) if useful else None

    def applies(self, triple: ast.Triple) -> bool:
        """Whether entailment changes the matches of a triple pattern."""
        pattern = translate_group(group_of([triple]))
        return entailed(pattern, self.schema) != pattern

    def text(
        self,
        place: GpmPlace,
        triple: ast.Triple,
        term: ast.Iri | ast.Literal,
        known: Mapping[str, int],
        solutions: int,
    ) -> str:
        """The hint for a term of a triple pattern.

        Args:
            place: where it stands.
            triple: the triple pattern.
            term: its class or predicate, which is not in the data.
            known: the classes or predicates that are in the data, with their counts.
            solutions: how many solutions the triple pattern has with entailment.
        """
        is_class = _is_class(triple, term)
        below = self._below(constant_text(term), is_class)
        used = max((name for name in below if known.get(name)), key=known.__getitem__, default="")
        if used:
            kind = "subclass" if is_class else "subproperty"
            text = f"a {kind} of it, {place.written(used)}, is ({known[used]:,})"
        else:
            text = f"the knowledge base entails it ({solutions:,})"
        return f"; {text}: try --entailment rdfs, with the knowledge base as --ontology"

    def _below(self, name: str, is_class: bool) -> list[str]:
        """The subclasses or the subproperties."""
        if is_class:
            return sorted(self.schema.subclasses(name))
        return [other for other, turned in self.schema.subproperties(name) if not turned]


def _axioms(knowledge: KnowledgeBase) -> Iterator[tuple[str, str, str]]:
    """The axioms in the graphs of a knowledge base."""
    terms = knowledge.terms
    for predicate, objects in AXIOM_PREDICATES.items():
        code = knowledge.find(predicate)
        for relation in (graph[code] for graph in knowledge.graphs.values() if code in graph):
            rows = np.arange(len(relation))
            if objects:
                rows = np.flatnonzero(np.isin(relation.o, [knowledge.find(o) for o in objects]))
            rows = rows[: MOST_AXIOMS + 1]
            for s, o in zip(
                terms.take(relation.s[rows]), terms.take(relation.o[rows]), strict=True
            ):
                yield s, predicate, o


def _is_class(triple: ast.Triple, term: ast.Iri | ast.Literal) -> bool:
    """Whether a term is the class in a triple pattern `?x a :C`."""
    predicate = triple.predicate
    return term is triple.object and (
        isinstance(predicate, ast.Iri) and constant_text(predicate) == TYPE
    )


@record
class AbsentTerm:
    """A term of a triple pattern that is not in the data, as a predicate or a constant.

    `known` are the terms that the data have in its place, with their counts. `where` says that it
    is not in the data, and for a constant `role` its place: subject or object.
    """

    triple: ast.Triple
    what: Literal["predicate", "constant"]
    term: ast.Iri | ast.Literal
    known: Counter[str]
    where: str
    role: str = ""

    def cause(self, place: GpmPlace, hint: EntailmentHint | None, entailed: int) -> Cause:
        """The cause; `entailed` are the solutions of the triple pattern with entailment."""
        written = place.question.text(self.term.span)
        text = f"{self.what} {written} {self.where}"
        if self.role:
            text += f" as the {self.role} of {place.question.terms.verb(self.triple.predicate)}"
        near = nearest_term(constant_text(self.term), self.known)
        suggestion = None if near is None else place.written(near)
        common = next((place.written(text) for text, _ in self.known.most_common(1)), None)
        if hint is not None and entailed:
            text += hint.text(place, self.triple, self.term, self.known, entailed)
            suggestion = "--entailment rdfs"
        elif near is not None:
            text += f"; did you mean {suggestion} ({self.known[near]:,})?"
        elif common is not None and self.what == "constant":
            text += f"; there is {common}, for example"
        example = common if near is None else place.written(near)
        kind = f"{self.what}-never-occurs"
        return place.cause(kind, self.triple, text, 0, written, suggestion, example)


class Probe:
    """A pattern with its solutions so far, the first event that matched and values of variables.

    `graphs` are the numbers of the graphs' values at events that matched.
    `values` counts the values of the variables `keep`, by N-Triples text. FILTERs inside the group
    that read earlier steps are left out.
    """

    def __init__(
        self,
        observed: Observed,
        group: ast.GroupGraphPattern,
        tests: Sequence[ast.Expr] = (),
        keep: Sequence[str] = (),
        schema: Schema | None = None,
        on_windows: bool = False,
    ) -> None:
        question = observed.question
        pattern, _ = lifted(entailed(translate_group(group), schema or question.schema))
        condition = conjoined(tests)
        if condition is not None:
            pattern = n.Filter(condition, pattern)
        self._observed, self._pattern, self._on_windows = observed, pattern, on_windows
        self._evaluators: dict[int, GpmEvaluator] = {}  # by the number of the graphs' value
        self.solutions = self.events = 0
        self.graphs = set[int]()
        self.exceeded = False
        self.example: str | None = None
        self.values: dict[str, Counter[str]] = {variable: Counter() for variable in keep}

    @property
    def fails(self) -> bool:
        """Whether the pattern has no solution, on events that exceed no limit."""
        return not self.solutions and not self.exceeded

    def take(self, index: VerticalPartition) -> None:
        """Evaluate the pattern on a batch of events."""
        number = self._observed.values.numbers(index.batch)
        for value in np.unique(number).tolist():
            self._take(index, value, number)

    def _evaluator(self, number: int) -> GpmEvaluator:
        if number not in self._evaluators:
            observed, plan = self._observed, self._observed.question.plan
            self._evaluators[number] = GpmEvaluator(
                self._pattern,
                observed.values.values[number].only(plan.inputs.kbs),
                plan.expressions,
                limits=observed.limits,
                on_windows=self._on_windows,
            )
        return self._evaluators[number]

    def _take(self, index: VerticalPartition, value: int, number: Int64s) -> None:
        """Take the events [n] that see one value of the graphs, given the `number` [n] of each."""
        evaluator = self._evaluator(value)
        solutions = evaluator.evaluate(index)
        evaluator.take_failures()
        self.exceeded |= bool(evaluator.take_exceeding())
        if not (number == value).all():
            solutions = solutions.take(np.flatnonzero(number[solutions.event] == value))
        if not len(solutions.event):
            return
        self.graphs.add(value)
        if self.example is None:
            self.example = _described(index, int(solutions.event[0]))
        self.solutions += len(solutions.event)
        self.events += 1 + int((np.diff(solutions.event) > 0).sum())
        for variable, seen in self.values.items():
            if variable in solutions.columns and len(seen) < MOST_VALUES:
                codes, counts = np.unique(solutions.columns[variable], return_counts=True)
                for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
                    if code >= 0 and len(seen) < MOST_VALUES:
                        seen[solutions.terms[code]] += count


class Probes:
    """The probes of one GPM.

    `streams` are the IRIs of the streams that it reads, `windows` the numbers of its windows.
    Inside an EVENT `around` is that block without its pattern.
    """

    def __init__(
        self, observed: Observed, streams: Iterable[str], windows: Iterable[int] = ()
    ) -> None:
        self.observed, self.streams, self.windows = observed, tuple(streams), tuple(windows)
        self.hint = EntailmentHint.of(observed)
        self._all: list[Probe] = []
        self._around: ast.EventGraphPattern | None = None

    def inside(self, event: ast.EventGraphPattern) -> Probes:
        """The same probes, for the groups inside an EVENT."""
        inner = copy(self)
        inner._around = event
        return inner

    def probe(
        self,
        group: ast.GroupGraphPattern,
        tests: Sequence[ast.Expr] = (),
        keep: Sequence[str] = (),
        schema: Schema | None = None,
    ) -> Probe:
        """A new probe of a group and FILTERs, which `run_probes` will evaluate.

        With `schema` it matches what the schema entails, also where the question has none.
        """
        on_windows = bool(self.windows) and not self.streams
        if self._around is not None:
            inner = (*group.elements, *map(ast.Filter, tests))
            event = replace(self._around, pattern=ast.GroupGraphPattern(inner))
            group, tests = ast.GroupGraphPattern((event,)), ()
        self._all.append(Probe(self.observed, group, tests, keep, schema, on_windows))
        return self._all[-1]

    def take(self, index: VerticalPartition) -> None:
        """Evaluate all probes on a batch of events."""
        for probe in self._all:
            probe.take(index)


def run_probes(
    probes: Sequence[Probes], sources: Mapping[str, Source], windows: SeenWindows | None = None
) -> None:
    """Read the streams of some probes, by IRI, and the windows, and evaluate the probes."""
    for number in sorted({number for each in probes for number in each.windows}):
        assert windows is not None
        for window_events in windows.indices(number):
            for each in (each for each in probes if number in each.windows):
                each.take(window_events)
    for iri, source in sources.items():
        readers = [each for each in probes if iri in each.streams]
        if readers:
            for batch in source.keeping(None).open(ignore):
                index = VerticalPartition(batch)
                for each in readers:
                    each.take(index)


def _described(index: VerticalPartition, event: int) -> str:
    """Which event this is: its IRI, or its time."""
    batch = index.batch
    name = batch.graph[event]
    if extent_of(name) is not None:
        return f"the window event of {batch.stream} at {format_time(int(batch.time[event]))}"
    return (
        f"<{name}>" if name is not None else f"the event at {format_time(int(batch.time[event]))}"
    )
