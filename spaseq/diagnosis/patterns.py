"""The causes of one GPM: why it has no solution by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from spaseq.algebra import nodes as n
from spaseq.algebra.groups import translate_group
from spaseq.algebra.nodes import certain, possible, visible
from spaseq.diagnosis.conditions import Conditions, HavingProbes, WindowQuestion
from spaseq.diagnosis.kb_patterns import KbPattern
from spaseq.diagnosis.nearest_terms import nearest_term
from spaseq.diagnosis.observed import Observed, StreamSeen
from spaseq.diagnosis.probes import AbsentTerm, Probe, Probes
from spaseq.diagnosis.question import (
    FREE,
    Condition,
    GpmPlace,
    Part,
    all_predicates,
    conditions_of,
    constants,
    freed,
    group_of,
    inner_groups,
    needed_predicates,
    parts_of,
)
from spaseq.diagnosis.report import Cause, plural
from spaseq.lang import ast
from spaseq.lang.constants import constant_text
from spaseq.lang.scope import seen_before
from spaseq.lang.variables import exists_uses, expression_variables, looks_back
from spaseq.plan.pattern_plan import GpmPlan
from spaseq.records import record

MOST_PARTS = 40
"""Groups of more parts are not taken apart."""


class Together:
    """The parts of a group, one more each time, and all of them but one.

    VALUES and other graphs come last, so that a failure is theirs if the events match.
    """

    def __init__(self, probes: Probes, parts: Sequence[Part]) -> None:
        ordered = sorted(parts, key=lambda p: (p.is_remote, isinstance(p.node, ast.Values)))
        ordered = ordered if len(ordered) <= MOST_PARTS else []
        last = group_of(p.node for p in parts if p.is_remote or isinstance(p.node, ast.Values))
        shared = possible(translate_group(last))
        self._observed = probes.observed
        self._first: list[tuple[Part, Probe]] = []
        for i, part in enumerate(ordered):
            group = group_of(p.node for p in ordered[: i + 1])
            keep = sorted(visible(possible(translate_group(group)) & shared))
            self._first.append((part, probes.probe(group, keep=keep)))
        triples = [p for p in ordered if isinstance(p.node, ast.Triple)]
        self._without = [
            (part, probes.probe(group_of(p.node for p in triples if p is not part)))
            for part in triples
            if len(triples) > 2
        ]

    def causes(self, place: GpmPlace) -> Iterator[Cause]:
        """The part after which no solution is left.

        Of three triple patterns or more, the only one without which the others match.
        """
        for (_, before), (part, probe) in pairwise(self._first):
            if probe.fails:
                if part.is_remote:
                    yield _kb_empty(place, self._observed, part, before)
                elif isinstance(part.node, ast.Values) and len(part.node.variables) == 1:
                    yield _no_value(place, part.node, before)
                else:
                    yield self._never_together(place, part, before)
                return

    def _never_together(self, place: GpmPlace, part: Part, before: Probe) -> Cause:
        others = [(each, probe) for each, probe in self._without if probe.solutions]
        if len(others) == 1 and isinstance(part.node, ast.Triple):
            part, before = others[0]
        solutions = plural(before.solutions, "solution")
        text = f"it matches alone, but not together with the others ({solutions} without it)"
        if isinstance(part.node, ast.MinusGraphPattern):
            text = f"it takes away what is left ({solutions})"
        elif before not in (probe for _, probe in others):
            text = f"it matches alone, but not together with those before ({solutions})"
        count, example = before.solutions, before.example
        return place.cause("pattern-never-matches", part.node, text, count, None, None, example)


def _kb_empty(place: GpmPlace, observed: Observed, part: Part, before: Probe) -> Cause:
    """The cause in a graph that does not know the terms of the events."""
    count = before.solutions
    text = f"{plural(count, 'solution')} in events, and none of them in the knowledge base"
    for name, values in before.values.items():
        if values and isinstance(part.node, ast.GraphGraphPattern):
            example = place.written(values.most_common(1)[0][0])
            text += f"; ?{name} is {example} in an event"
            pattern = KbPattern(observed, part.node)
            when = pattern.held(place, range(min(before.graphs), max(before.graphs) + 1))
            other = None if when else pattern.example(name)
            text += f", and {place.written(other)} in the knowledge base" if other else when
            return place.cause("kb-empty", part.node, text, count, f"?{name}", None, example)
    return place.cause("kb-empty", part.node, text, count)


def _no_value(place: GpmPlace, node: ast.Values, before: Probe) -> Cause:
    """The cause in a VALUES of one variable, which never has one of the values."""
    name = node.variables[0].name
    seen = before.values[name]
    text = f"?{name} has no such value in {plural(before.solutions, 'solution')}"
    values = [row[0] for row in node.rows if row[0] is not None]
    nearest = {value: nearest_term(constant_text(value), seen) for value in values}
    value = next((v for v in values if nearest[v] is not None), values[0] if values else None)
    near = None if value is None else nearest[value]
    term = None if value is None else place.question.text(value.span)
    suggestion = None if near is None else place.written(near)
    text += f"; did you mean {suggestion}?" if suggestion else ""
    example = next((place.written(value) for value, _ in seen.most_common(1)), None)
    given = (before.solutions, term, suggestion, example)
    return place.cause("constant-never-occurs", node, text, *given)


_NO_EVENT = "is in no event"
_NEVER = ("wrong-stream", "predicate-never-occurs", "constant-never-occurs")


class GpmQuestion:
    """Why one GPM has no solution. The probes are evaluated between construction and `causes`."""

    def __init__(self, observed: Observed, name: str) -> None:
        question = observed.question
        self._gpm = question.gpm(name)
        self._place = GpmPlace(question, name, question.step_of(name))
        read = question.streams_of(name)
        self._streams = [s for s in observed.streams if s.name in read]
        self._others = [s for s in observed.streams if s not in self._streams]
        plan = question.gpm_plan(name)
        streams = [observed.streams[number].iri for number in plan.streams]
        self.probes = Probes(observed, streams, {source.window for source in plan.windows})
        self._windows = WindowQuestion(observed, self._place, plan) if plan.windows else None
        self._key = _key_probes(observed, plan) if self._windows and self._windows.is_empty else ()
        self._correlated = question.gpm_plan(name).correlation is not None
        known = _Known(_earlier(observed, name), self._correlated)
        self._group = _GroupProbes(self.probes, self._gpm.pattern, known)
        self._empty = not observed.counts(name)[0]

    @property
    def all_probes(self) -> list[Probes]:
        """The probes of the GPM, and of the KEYs of empty windows."""
        return [self.probes, *(probes for probes, _ in self._key)]

    @property
    def is_open(self) -> bool:
        """Whether the GPM may be a cause.

        That is so if it has no solution, if a FILTER reads a variable that nothing binds, or if its
        FILTERs have not been tested because it is evaluated with bindings of earlier steps.
        """
        return self._empty or self._correlated or self._group.has_unbound

    def causes(self) -> list[Cause]:
        """The causes; terms that never occur come first, and make other kinds pointless."""
        if self._empty and self._windows is not None:
            causes = self._windows.causes(self._group.whole)
            keys = (group.causes(self._place, self._streams) for _, group in self._key)
            if causes:
                return [*causes, *(cause for some in keys for cause in some)]
        wrong = self._wrong_stream() if self._empty and self._windows is None else None
        if wrong is not None:
            return [wrong]
        causes = list(self._group.causes(self._place, self._streams))
        never = [cause for cause in causes if cause.kind in _NEVER]
        if not causes and self._empty:
            text = "the pattern as a whole matches no event"
            if self._group.whole.exceeded:
                text = "the events that might match exceed a limit"
            return [self._place.cause("pattern-never-matches", self._gpm.pattern, text)]
        return sorted(never, key=lambda cause: _NEVER.index(cause.kind)) or causes

    def _wrong_stream(self) -> Cause | None:
        """The cause if another stream has all predicates of the GPM, and its own lack one."""
        needed = {constant_text(iri) for iri in all_predicates(self._gpm.pattern)}
        if needed <= _predicates(self._streams).keys() or not self._group.alone_fails:
            return None
        for other in self._others:
            if needed <= other.predicates.keys():
                names, ref = [s.name for s in self._streams], self._gpm.streams[0]
                text = (
                    f"no event of {', '.join(names)} has the predicates of this GPM; "
                    f"the events of {other.name} do ({plural(other.events, 'event')})"
                )
                return self._place.cause(
                    "wrong-stream", ref, text, other.events, ref.name, other.name
                )
        return None


@record
class _Known:
    """The knowledge about the place of a group.

    A FILTER that reads one of the variables `elsewhere` is tested between steps and not here. In a
    `correlated` GPM earlier steps may change the results of OPTIONAL, MINUS, BIND and EXISTS.
    """

    elsewhere: frozenset[str]
    correlated: bool
    begins: frozenset[str] = frozenset()  # variables that EVENT binds before the group

    def inside(self, names: frozenset[str], part: Part | None = None) -> _Known:
        """The same for a group inside one that may bind `names`."""
        bound = frozenset[str]()
        if part is not None and isinstance(part.node, ast.EventGraphPattern):
            bound = frozenset(v.name for v in (part.node.event, part.node.time) if v is not None)
        return replace(self, elsewhere=self.elsewhere | names, begins=bound)

    def parts(self, group: ast.GroupGraphPattern) -> list[Part]:
        """The parts of a group whose solutions are certain."""
        parts = parts_of(group)
        return [part for part in parts if part.demands] if self.correlated else parts

    def conditions(self, group: ast.GroupGraphPattern, pattern: n.Pattern) -> list[Condition]:
        """The conjuncts of a group's FILTERs that its parts, the `pattern`, decide."""
        names = self.begins | (certain(pattern) if self.correlated else possible(pattern))
        conditions = []
        for condition in conditions_of(group):
            read = expression_variables(condition.expr)
            open_ = looks_back(condition.expr) or bool((read & self.elsewhere) - names)
            if self.correlated:
                open_ |= not read <= names or bool(exists_uses(condition.expr))
            if not open_:
                conditions.append(condition)
        return conditions


class _GroupProbes:
    """The probes of a group over its event."""

    def __init__(self, probes: Probes, group: ast.GroupGraphPattern, known: _Known) -> None:
        self._observed = probes.observed
        parts = known.parts(group)
        whole = group_of(p.node for p in parts)
        pattern = translate_group(whole)
        conditions = known.conditions(group, pattern)
        read = sorted({v for condition in conditions for v in expression_variables(condition.expr)})
        self._names = possible(pattern) | known.begins
        self.has_unbound = not self._names.issuperset(read)
        self._bound = self._names | known.elsewhere
        self._base = probes.probe(whole, keep=read)
        self.whole = probes.probe(whole, [condition.expr for condition in conditions])
        self._alone = [
            (p, _PartProbes(probes, p, known.inside(self._names, p)))
            for p in parts
            if p.demands and not p.is_remote
        ]
        self._graphs = [
            (node, KbPattern(self._observed, node, probes.hint))
            for node in (part.node for part in parts)
            if isinstance(node, ast.GraphGraphPattern)
        ]
        self._together = Together(probes, parts)
        self._conditions = Conditions(probes, parts, conditions, self._base)

    @property
    def alone_fails(self) -> bool:
        """Whether some part over the event matches nothing by itself."""
        return any(probe.alone.fails for _, probe in self._alone)

    def causes(self, place: GpmPlace, streams: Sequence[StreamSeen]) -> Iterator[Cause]:
        """Why the group has no solution."""
        alone = [c for part, probe in self._alone for c in probe.causes(place, part, streams)]
        alone += [cause for _, graph in self._graphs for cause in graph.causes(place)]
        if alone:
            yield from alone
        elif self._base.fails:
            yield from self._together.causes(place)
        elif self._base.solutions:
            yield from self._conditions.causes(place, self._bound)


class _PartProbes:
    """The probes of one part by itself."""

    def __init__(self, probes: Probes, part: Part, known: _Known) -> None:
        self.alone = probes.probe(part.alone)
        node = part.node
        self._nameless = None
        if isinstance(node, ast.EventGraphPattern) and node.event is not None:
            every = replace(node, pattern=ast.GroupGraphPattern(()))
            self._nameless = probes.probe(group_of([every]))
        inner = probes.inside(node) if isinstance(node, ast.EventGraphPattern) else probes
        self._inner = [_GroupProbes(inner, group, known) for group in inner_groups(node)]
        self._having = None
        if isinstance(node, ast.SubSelect) and node.having:
            self._having = HavingProbes(probes, node)
        self._freed: list[tuple[str, ast.Iri | ast.Literal, Probe]] = []
        self._hint = probes.hint
        self._entailed: Probe | None = None
        if isinstance(part.node, ast.Triple):
            if self._hint is not None and self._hint.applies(part.node):
                self._entailed = probes.probe(part.alone, schema=self._hint.schema)
            for where, constant in constants(part.node):
                triple = group_of([freed(part.node, where)])
                self._freed.append((where, constant, probes.probe(triple, keep=[FREE])))

    def causes(self, place: GpmPlace, part: Part, streams: Sequence[StreamSeen]) -> Iterator[Cause]:
        """Why the part matches nothing by itself; nothing if it does."""
        if not self.alone.fails:
            return
        if isinstance(part.node, ast.Triple):
            yield self._triple(place, part.node, streams)
        elif self._nameless is not None and self._nameless.fails:
            text = "no event has an IRI, which EVENT binds to its variable: leave it out"
            yield place.cause("pattern-never-matches", part.node, text)
        elif self._inner and all(each.whole.fails for each in self._inner):
            for each in self._inner:
                yield from each.causes(place, streams)
        elif self._having is not None and (cause := self._having.cause(place)) is not None:
            yield cause
        else:
            text = "no event matches it"
            yield place.cause("pattern-never-matches", part.node, text)

    def _triple(self, place: GpmPlace, triple: ast.Triple, streams: Sequence[StreamSeen]) -> Cause:
        known = _predicates(streams)
        for iri in needed_predicates(triple.predicate):
            if constant_text(iri) not in known:
                return self._absent(place, AbsentTerm(triple, "predicate", iri, known, _NO_EVENT))
        freed = [each for each in self._freed if each[2].solutions]
        if len(freed) == 1:
            where, constant, probe = freed[0]
            values = probe.values[FREE]
            absent = AbsentTerm(triple, "constant", constant, values, _NO_EVENT, where)
            return self._absent(place, absent)
        text = "no triple of an event matches it"
        if freed:
            text = "its subject and its object occur with the predicate, but never together"
        return place.cause("pattern-never-matches", triple, text)

    def _absent(self, place: GpmPlace, absent: AbsentTerm) -> Cause:
        entailed = 0 if self._entailed is None else self._entailed.solutions
        return absent.cause(place, self._hint, entailed)


def _key_probes(observed: Observed, plan: GpmPlan) -> list[tuple[Probes, _GroupProbes]]:
    """The probes of the KEYs of a GPM's windows, on the events of their streams."""
    made = []
    for source in plan.windows:
        window = observed.question.resolved.query.windows[source.window]
        numbers = observed.question.plan.inputs.windows[source.window].streams
        probes = Probes(observed, [observed.streams[number].iri for number in numbers])
        if window.key is not None:
            made.append((probes, _GroupProbes(probes, window.key, _Known(frozenset(), False))))
    return made


def _predicates(streams: Sequence[StreamSeen]) -> Counter[str]:
    """The predicates of some streams with their counts."""
    return sum((stream.predicates for stream in streams), Counter[str]())


def _earlier(observed: Observed, name: str) -> frozenset[str]:
    resolved = observed.question.resolved
    return frozenset(seen_before(resolved.chain, resolved.scope, resolved.binds).get(name, ()))
