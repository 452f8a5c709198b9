"""The causes of one GPM: why it has no solution by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from spaseq.algebra.groups import constant_text, translate_group
from spaseq.algebra.scope import possible, visible
from spaseq.diagnosis.conditions import Conditions
from spaseq.diagnosis.kb_patterns import KbPattern
from spaseq.diagnosis.nearest_terms import nearest_term
from spaseq.diagnosis.observed import Observed, StreamSeen
from spaseq.diagnosis.pattern_parts import (
    FREE,
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
from spaseq.diagnosis.place import GpmPlace
from spaseq.diagnosis.probes import Probe, Probes
from spaseq.diagnosis.report import Cause, plural
from spaseq.lang import ast
from spaseq.lang.variables import expression_variables, looks_back
from spaseq.lang.visibility import seen_before

_NEVER = ("wrong-stream", "predicate-never-occurs", "constant-never-occurs")


class GpmQuestion:
    """Why one GPM has no solution. The probes are evaluated between construction and `causes`."""

    def __init__(self, observed: Observed, name: str) -> None:
        question = observed.question
        self._gpm = question.gpm(name)
        self._place = GpmPlace(question, name, question.step_of(name))
        self._streams = [
            s for s in observed.streams if s.name in {r.name for r in self._gpm.streams}
        ]
        self._others = [s for s in observed.streams if s not in self._streams]
        self.probes = Probes(observed, [s.iri for s in self._streams])
        self._group = _GroupProbes(self.probes, self._gpm.pattern, _earlier(observed, name))
        self._empty = not observed.counts(name)[0]

    @property
    def is_open(self) -> bool:
        """Whether the GPM may be a cause: it has no solution, or a FILTER reads what none binds."""
        return self._empty or self._group.has_unbound

    def causes(self) -> list[Cause]:
        """The causes; terms that never occur come first, and make other kinds pointless."""
        wrong = self._wrong_stream()
        if wrong is not None:
            return [wrong]
        found = list(self._group.causes(self._place, self._streams))
        never = [cause for cause in found if cause.kind in _NEVER]
        if not found and self._empty:
            text = "the pattern as a whole matches no event"
            return [self._place.cause("pattern-never-matches", self._gpm.pattern, text)]
        return sorted(never, key=lambda cause: _NEVER.index(cause.kind)) or found

    def _wrong_stream(self) -> Cause | None:
        """The cause if another stream has all predicates of the GPM, and its own lack one."""
        needed = {constant_text(iri) for iri in all_predicates(self._gpm.pattern)}
        if needed <= _predicates(self._streams).keys():
            return None
        for other in self._others:
            if needed <= other.predicates.keys():
                own, ref = [s.name for s in self._streams], self._gpm.streams[0]
                text = (
                    f"no event of {', '.join(own)} has the predicates of this GPM; "
                    f"the events of {other.name} do ({plural(other.events, 'event')})"
                )
                return self._place.cause(
                    "wrong-stream", ref, text, other.events, ref.name, other.name
                )
        return None


class _GroupProbes:
    """The probes of a group over its event.

    `earlier` are variables that earlier steps may bind: a FILTER that reads one is tested between
    steps and not here.
    """

    def __init__(
        self, probes: Probes, group: ast.GroupGraphPattern, earlier: frozenset[str]
    ) -> None:
        self._observed, self._earlier = probes.observed, earlier
        parts = parts_of(group)
        names = possible(translate_group(group_of(p.node for p in parts)))
        own = [
            condition
            for condition in conditions_of(group)
            if not looks_back(condition.expr)
            and not (expression_variables(condition.expr) & earlier) - names
        ]
        read = sorted({v for condition in own for v in expression_variables(condition.expr)})
        self._names = names
        self.has_unbound = not names.issuperset(read)
        self._base = probes.probe(group_of(p.node for p in parts), read)
        self.whole = probes.probe(
            group_of([*(p.node for p in parts), *(ast.Filter(c.expr) for c in own)])
        )
        around = earlier | names
        self._alone = [
            (p, _PartProbes(probes, p, around)) for p in parts if p.demands and not p.is_remote
        ]
        self._remote = [p for p in parts if p.is_remote]
        self._prefixes = _prefixes(probes, parts)
        self._conditions = Conditions(probes, parts, own, self._base)

    def causes(self, place: GpmPlace, streams: Sequence[StreamSeen]) -> Iterator[Cause]:
        """Why the group has no solution."""
        alone = [c for part, own in self._alone for c in own.causes(place, part, streams)]
        for part in self._remote:
            if isinstance(part.node, ast.GraphGraphPattern):
                alone += KbPattern(self._observed, part.node).causes(place)
        if alone:
            yield from alone
        elif not self._base.solutions:
            yield from self._together(place)
        else:
            yield from self._conditions.causes(place, self._names | self._earlier)

    def _together(self, place: GpmPlace) -> Iterator[Cause]:
        """The part after which no solution is left."""
        before: Probe | None = None
        for part, probe in self._prefixes:
            if not probe.solutions:
                if part.is_remote:
                    yield _kb_empty(place, self._observed, part, before)
                else:
                    yield _never_together(place, part, before)
                return
            before = probe


class _PartProbes:
    """The probes of one part by itself."""

    def __init__(self, probes: Probes, part: Part, earlier: frozenset[str]) -> None:
        self.alone = probes.probe(part.alone)
        self._inner = [_GroupProbes(probes, g, earlier) for g in inner_groups(part.node)]
        self._freed: list[tuple[ast.Iri | ast.Literal, Probe]] = []
        if isinstance(part.node, ast.Triple):
            for where, constant in constants(part.node):
                triple = group_of([freed(part.node, where)])
                self._freed.append((constant, probes.probe(triple, [FREE])))

    def causes(self, place: GpmPlace, part: Part, streams: Sequence[StreamSeen]) -> Iterator[Cause]:
        """Why the part matches nothing by itself; nothing if it does."""
        if self.alone.solutions:
            return
        if isinstance(part.node, ast.Triple):
            yield self._triple(place, part.node, streams)
        elif self._inner and not any(each.whole.solutions for each in self._inner):
            for each in self._inner:
                yield from each.causes(place, streams)
        else:
            text = "no event matches it"
            yield place.cause("pattern-never-matches", part.node, text)

    def _triple(self, place: GpmPlace, triple: ast.Triple, streams: Sequence[StreamSeen]) -> Cause:
        known = _predicates(streams)
        for iri in needed_predicates(triple.predicate):
            if constant_text(iri) not in known:
                return _absent(place, "predicate", triple, iri, known)
        for constant, probe in self._freed:
            if probe.solutions:
                return _absent(place, "constant", triple, constant, probe.values[FREE])
        text = "no triple of an event matches it"
        return place.cause("pattern-never-matches", triple, text)


def _prefixes(probes: Probes, parts: Sequence[Part]) -> list[tuple[Part, Probe]]:
    """The first parts of a group, one more each time; VALUES and other graphs come last."""
    ordered = sorted(parts, key=lambda part: (part.is_remote, isinstance(part.node, ast.Values)))
    last = group_of(p.node for p in parts if p.is_remote or isinstance(p.node, ast.Values))
    shared = possible(translate_group(last))
    found = []
    for i, part in enumerate(ordered):
        group = group_of(p.node for p in ordered[: i + 1])
        keep = sorted(visible(possible(translate_group(group)) & shared))
        found.append((part, probes.probe(group, keep)))
    return found


def _kb_empty(place: GpmPlace, observed: Observed, part: Part, before: Probe | None) -> Cause:
    """The cause in a graph that does not know the terms of the events."""
    count = 0 if before is None else before.solutions
    text = f"{plural(count, 'solution')} in events, and none of them in the knowledge base"
    for name, values in () if before is None else before.values.items():
        if values and isinstance(part.node, ast.GraphGraphPattern):
            example = place.written(values.most_common(1)[0][0])
            text += f"; ?{name} is {example} in an event"
            other = KbPattern(observed, part.node).example(name)
            text += f", and {place.written(other)} in the knowledge base" if other else ""
            return place.cause("kb-empty", part.node, text, count, f"?{name}", None, example)
    return place.cause("kb-empty", part.node, text, count)


def _never_together(place: GpmPlace, part: Part, before: Probe | None) -> Cause:
    """The cause in a part that matches by itself, but not together with the parts before it."""
    count = 0 if before is None else before.solutions
    if isinstance(part.node, ast.Values) and len(part.node.variables) == 1 and before is not None:
        return _no_value(place, part.node, before)
    text = f"it matches alone, but not together with what stands before it ({count:,} without it)"
    example = None if before is None else before.example
    return place.cause("pattern-never-matches", part.node, text, count, None, None, example)


def _no_value(place: GpmPlace, node: ast.Values, before: Probe) -> Cause:
    """The cause in a VALUES of one variable, which never has one of the values."""
    name = node.variables[0].name
    seen = before.values[name]
    text = f"?{name} has no such value in {plural(before.solutions, 'solution')}"
    term = suggestion = None
    for value in (row[0] for row in node.rows if row[0] is not None):
        near = nearest_term(constant_text(value), seen)
        if term is None or suggestion is None:
            term = place.question.text(value.span)
            suggestion = None if near is None else place.written(near)
    text += f"; did you mean {suggestion}?" if suggestion else ""
    example = next((place.written(value) for value, _ in seen.most_common(1)), None)
    given = (before.solutions, term, suggestion, example)
    return place.cause("constant-never-occurs", node, text, *given)


def _absent(
    place: GpmPlace,
    what: str,
    triple: ast.Triple,
    term: ast.Iri | ast.Literal,
    known: Counter[str],
) -> Cause:
    """The cause in a predicate or a constant that is in no event."""
    written = place.question.text(term.span)
    near = nearest_term(constant_text(term), known)
    text = f"{what} {written} is in no event"
    suggestion = None if near is None else place.written(near)
    example = suggestion or next((place.written(text) for text, _ in known.most_common(1)), None)
    if near is not None:
        text += f"; did you mean {suggestion} ({known[near]:,})?"
    elif example is not None and what == "constant":
        text += f"; there is {example}, for example"
    kind = f"{what}-never-occurs"
    return place.cause(kind, triple, text, 0, written, suggestion, (near and suggestion) or example)


def _predicates(streams: Sequence[StreamSeen]) -> Counter[str]:
    """The predicates of some streams with their counts."""
    return sum((stream.predicates for stream in streams), Counter[str]())


def _earlier(observed: Observed, name: str) -> frozenset[str]:
    resolved = observed.question.resolved
    return frozenset(seen_before(resolved.chain, resolved.scope, resolved.binds).get(name, ()))
