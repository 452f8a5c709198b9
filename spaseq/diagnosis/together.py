"""The causes in parts of a group that match by themselves, but not together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from spaseq.algebra.constants import constant_text
from spaseq.algebra.groups import translate_group
from spaseq.algebra.scope import possible, visible
from spaseq.diagnosis.kb_patterns import KbPattern
from spaseq.diagnosis.nearest_terms import nearest_term
from spaseq.diagnosis.observed import Observed
from spaseq.diagnosis.pattern_parts import Part, group_of
from spaseq.diagnosis.place import GpmPlace
from spaseq.diagnosis.probes import Probe, Probes
from spaseq.diagnosis.report import Cause, plural
from spaseq.lang import ast

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
        without = f"{plural(before.solutions, 'solution')} without it"
        text = f"it matches alone, but not together with the others ({without})"
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
            other = KbPattern(observed, part.node).example(name)
            text += f", and {place.written(other)} in the knowledge base" if other else ""
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
