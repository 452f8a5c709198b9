"""The causes of one GPM: why it has no solution by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from spaseq.algebra import nodes as n
from spaseq.algebra.constants import constant_text
from spaseq.algebra.groups import translate_group
from spaseq.algebra.scope import certain, possible
from spaseq.diagnosis.absent_terms import AbsentTerm
from spaseq.diagnosis.conditions import Conditions
from spaseq.diagnosis.kb_patterns import KbPattern
from spaseq.diagnosis.observed import Observed, StreamSeen
from spaseq.diagnosis.pattern_parts import (
    FREE,
    Condition,
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
from spaseq.diagnosis.together import Together
from spaseq.lang import ast
from spaseq.lang.variables import exists_uses, expression_variables, looks_back
from spaseq.lang.visibility import seen_before
from spaseq.records import record

_NO_EVENT = "is in no event"
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
        self._correlated = question.gpm_plan(name).correlation is not None
        known = _Known(_earlier(observed, name), self._correlated)
        self._group = _GroupProbes(self.probes, self._gpm.pattern, known)
        self._empty = not observed.counts(name)[0]

    @property
    def is_open(self) -> bool:
        """Whether the GPM may be a cause.

        That is so if it has no solution, if a FILTER reads what nothing binds, or if its FILTERs
        have not been tested because it is evaluated with bindings of earlier steps.
        """
        return self._empty or self._correlated or self._group.has_unbound

    def causes(self) -> list[Cause]:
        """The causes; terms that never occur come first, and make other kinds pointless."""
        wrong = self._wrong_stream() if self._empty else None
        if wrong is not None:
            return [wrong]
        found = list(self._group.causes(self._place, self._streams))
        never = [cause for cause in found if cause.kind in _NEVER]
        if not found and self._empty:
            text = "the pattern as a whole matches no event"
            if self._group.whole.exceeded:
                text = "the events that might match exceed a limit"
            return [self._place.cause("pattern-never-matches", self._gpm.pattern, text)]
        return sorted(never, key=lambda cause: _NEVER.index(cause.kind)) or found

    def _wrong_stream(self) -> Cause | None:
        """The cause if another stream has all predicates of the GPM, and its own lack one."""
        needed = {constant_text(iri) for iri in all_predicates(self._gpm.pattern)}
        if needed <= _predicates(self._streams).keys() or not self._group.alone_fails:
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


@record
class _Known:
    """What is known where a group stands.

    A FILTER that reads one of the variables `elsewhere` is tested between steps and not here. In a
    `correlated` GPM earlier steps may change what OPTIONAL, MINUS, BIND and EXISTS give.
    """

    elsewhere: frozenset[str]
    correlated: bool

    def inside(self, names: frozenset[str]) -> _Known:
        """The same for a group inside one that may bind `names`."""
        return replace(self, elsewhere=self.elsewhere | names)

    def parts(self, group: ast.GroupGraphPattern) -> list[Part]:
        """The parts of a group whose solutions are certain."""
        parts = parts_of(group)
        return [part for part in parts if part.demands] if self.correlated else parts

    def conditions(self, group: ast.GroupGraphPattern, pattern: n.Pattern) -> list[Condition]:
        """The conjuncts of a group's FILTERs that its parts, the `pattern`, decide."""
        names = certain(pattern) if self.correlated else possible(pattern)
        found = []
        for condition in conditions_of(group):
            read = expression_variables(condition.expr)
            open_ = looks_back(condition.expr) or bool((read & self.elsewhere) - names)
            if self.correlated:
                open_ |= not read <= names or bool(exists_uses(condition.expr))
            if not open_:
                found.append(condition)
        return found


class _GroupProbes:
    """The probes of a group over its event."""

    def __init__(self, probes: Probes, group: ast.GroupGraphPattern, known: _Known) -> None:
        self._observed = probes.observed
        parts = known.parts(group)
        whole = group_of(p.node for p in parts)
        pattern = translate_group(whole)
        own = known.conditions(group, pattern)
        read = sorted({v for condition in own for v in expression_variables(condition.expr)})
        self._names = possible(pattern)
        self.has_unbound = not self._names.issuperset(read)
        self._bound = self._names | known.elsewhere
        self._base = probes.probe(whole, keep=read)
        self.whole = probes.probe(whole, [condition.expr for condition in own])
        inside = known.inside(self._names)
        self._alone = [
            (p, _PartProbes(probes, p, inside)) for p in parts if p.demands and not p.is_remote
        ]
        self._graphs = [
            (node, KbPattern(self._observed, node, probes.hint))
            for node in (part.node for part in parts)
            if isinstance(node, ast.GraphGraphPattern)
        ]
        self._together = Together(probes, parts)
        self._conditions = Conditions(probes, parts, own, self._base)

    @property
    def alone_fails(self) -> bool:
        """Whether some part over the event matches nothing by itself."""
        return any(own.alone.fails for _, own in self._alone)

    def causes(self, place: GpmPlace, streams: Sequence[StreamSeen]) -> Iterator[Cause]:
        """Why the group has no solution."""
        alone = [c for part, own in self._alone for c in own.causes(place, part, streams)]
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
        self._inner = [_GroupProbes(probes, group, known) for group in inner_groups(part.node)]
        self._freed: list[tuple[ast.Iri | ast.Literal, Probe]] = []
        self._hint = probes.hint
        self._entailed: Probe | None = None
        if isinstance(part.node, ast.Triple):
            if self._hint is not None and self._hint.applies(part.node):
                self._entailed = probes.probe(part.alone, schema=self._hint.schema)
            for where, constant in constants(part.node):
                triple = group_of([freed(part.node, where)])
                self._freed.append((constant, probes.probe(triple, keep=[FREE])))

    def causes(self, place: GpmPlace, part: Part, streams: Sequence[StreamSeen]) -> Iterator[Cause]:
        """Why the part matches nothing by itself; nothing if it does."""
        if not self.alone.fails:
            return
        if isinstance(part.node, ast.Triple):
            yield self._triple(place, part.node, streams)
        elif self._inner and all(each.whole.fails for each in self._inner):
            for each in self._inner:
                yield from each.causes(place, streams)
        else:
            text = "no event matches it"
            yield place.cause("pattern-never-matches", part.node, text)

    def _triple(self, place: GpmPlace, triple: ast.Triple, streams: Sequence[StreamSeen]) -> Cause:
        known = _predicates(streams)
        for iri in needed_predicates(triple.predicate):
            if constant_text(iri) not in known:
                return self._absent(place, AbsentTerm(triple, "predicate", iri, known, _NO_EVENT))
        for constant, probe in self._freed:
            if probe.solutions:
                values = probe.values[FREE]
                absent = AbsentTerm(triple, "constant", constant, values, _NO_EVENT)
                return self._absent(place, absent)
        text = "no triple of an event matches it"
        return place.cause("pattern-never-matches", triple, text)

    def _absent(self, place: GpmPlace, absent: AbsentTerm) -> Cause:
        entailed = 0 if self._entailed is None else self._entailed.solutions
        return absent.cause(place, self._hint, entailed)


def _predicates(streams: Sequence[StreamSeen]) -> Counter[str]:
    """The predicates of some streams with their counts."""
    return sum((stream.predicates for stream in streams), Counter[str]())


def _earlier(observed: Observed, name: str) -> frozenset[str]:
    resolved = observed.question.resolved
    return frozenset(seen_before(resolved.chain, resolved.scope, resolved.binds).get(name, ()))
