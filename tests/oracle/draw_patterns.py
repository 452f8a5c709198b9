"""Generated graph patterns: first triples, then FILTERs over variables of other steps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from spaseq.lang import ast
from tests.oracle.draw_sequences import Grammar
from tests.oracle.steps import (
    Choice,
    Step,
    find_group_variables,
    group_variables,
    parts,
    positive_names,
    unfold,
)
from tests.oracle.triple_terms import REIFIES

MOMENT = '"1970-01-01T00:00:04Z"^^xsd:dateTime'


@dataclass
class Gpm:
    """A partly drawn GPM: its main variable, all bound variables, its triples and filters."""

    name: str
    own: str
    binds: set[str]
    text: list[str]
    filters: list[str] = field(default_factory=list)


class Patterns:
    """Draws the GPMs of a sequence: first triples, then filters over variables of other GPMs."""

    def __init__(self, grammar: Grammar, keys: tuple[str, ...], sequence: ast.Sequence) -> None:
        self.grammar = grammar
        self.keys = keys
        self.steps = unfold(sequence)
        self.positive = positive_names(self.steps)
        self.gpms = {name: self.bare(name) for name in grammar.names}
        binds = {name: frozenset(gpm.binds) for name, gpm in self.gpms.items()}
        find_group_variables(self.steps, binds, frozenset(keys))
        self.groups = group_variables(self.steps)
        whole = frozenset().union(*(binds[name] for name in self.positive))
        self.late: dict[str, str] = {}
        """The variables of BINDs over earlier steps, each with its GPM."""
        found: dict[str, list[Place]] = {}
        for name, place in places(self.steps, binds, Place(), whole):
            found.setdefault(name, []).append(place)
        for name, all_places in found.items():
            self.filter(self.gpms[name], common(all_places, name))

    def bare(self, name: str) -> Gpm:
        """A GPM without filters."""
        use, pick = self.grammar.use, self.grammar.pick
        low = name.lower()
        value, subject = f"?v{low}", pick(["[]", "[]", f"?s{low}"])
        if use("equality-join", one_in=8):
            value = pick(["?x", "?x", "2"])
        pairs = [f"ex:v {value}"]
        if pick([True, False]):
            pairs.append(f"ex:is ex:{name}")
        if self.keys and (name in self.positive or pick([True, True, False])):
            pairs.extend(f"ex:{key} ?{key}" for key in self.keys)
        elif use("equality-join", one_in=6):
            pairs.append("ex:k ?key")
        text = [f"{subject} {' ; '.join(pairs)} .", *self.extras(low, subject, pairs)]
        binds = {v for v in re.findall(r"\?(\w+)", " ".join(text)) if v[0] != "h"}
        return Gpm(name, value.lstrip("?"), binds, text)

    def extras(self, low: str, subject: str, pairs: list[str]) -> Iterator[str]:
        """Parts beyond a basic graph pattern; names of unbound variables begin with h."""
        use = self.grammar.use
        if use("OPTIONAL", one_in=12):
            yield f"OPTIONAL {{ {subject.replace('[]', f'?o{low}')} ex:w ?w{low} }}"
        if use("UNION", one_in=12):
            yield f"{{ ?u{low} ex:w 1 }} UNION {{ ?u{low} ex:w 2 }}"
        if use("BIND", one_in=12):
            yield f"BIND(IF({pairs[0].split()[1]} < 2, ex:low, ex:high) AS ?b{low})"
        if use("VALUES", one_in=12):
            yield f"VALUES ?y{low} {{ 1 2 }}"
        if subject != "[]" and use("sub-SELECT", one_in=8):
            yield (
                f"{{ SELECT {subject} (COUNT(?h{low}) AS ?n{low}) "
                f"WHERE {{ {subject} ?h{low} ?hh{low} }} GROUP BY {subject} }}"
            )
        if use("triple-terms", one_in=6):
            yield self.reified(low, subject, pairs[0].split()[1])
        if subject != "[]" and use("MINUS", one_in=8):
            yield f"MINUS {{ {subject} ex:w 1 }}"
        if use("EXISTS", one_in=12):
            word = self.grammar.pick(["EXISTS", "NOT EXISTS"])
            yield f"FILTER {word} {{ {subject.replace('[]', f'?h{low}')} ex:w 1 }}"
        if use("GRAPH", one_in=12):
            key = next((v for v in ("?k", "?key") if any(v in p.split() for p in pairs)), "ex:k1")
            yield f"GRAPH ex:kb {{ {key} ex:limit ?l{low} }}"

    def reified(self, low: str, subject: str, value: str) -> str:
        """A part about triple terms."""
        who, sure = f"?r{low}", f"ex:sure ?q{low}"
        whole = f"<<( ex:someone ex:says <<( {subject} ex:v ?t{low} )>> )>>"
        forms = [
            f"<< {subject} ex:v ?t{low} >> {sure} .",
            f"<< {subject} ex:v {value} ~ {who} >> {sure} .",
            f"{who} {sure} ; <{REIFIES}> ?t{low} .",
            f"{who} <{REIFIES}> {whole} .",
            f"OPTIONAL {{ << {subject.replace('[]', f'?o{low}')} ex:v {value} >> {sure} }}",
            f"FILTER {self.grammar.pick(['', 'NOT '])}EXISTS {{ "
            f"<< {subject.replace('[]', f'?h{low}')} ex:v ?h{low}v >> ex:sure ?h{low}q }}",
        ]
        if subject != "[]":
            forms.append(f"{subject} ex:v {value} {{| {sure} |}} .")
        return str(self.grammar.pick(forms))

    # filters

    def filter(self, gpm: Gpm, place: Place) -> None:
        use, pick = self.grammar.use, self.grammar.pick
        own = f"?{gpm.own}" if gpm.own in gpm.binds else gpm.own
        if not self.grammar.calm and self.grammar.choices.chance(6):
            gpm.filters.append(f"{own} {self.compare()} {pick(range(5))}")
        seen = sorted(v for v in place.seen if v[0] in "vx" and v not in gpm.binds)
        if seen and use("stateful-filter", one_in=3):
            change = pick(["", "", "", " + 1", " - 1", " * 2", " / 2"])
            compared = pick([own, own, own, f"{own} * 1.5", f"?{pick(seen)}"])
            gpm.filters.append(f"{compared} {self.compare()} ?{pick(seen)}{change}")
        before = sorted(v for v in place.group if v[0] in "vx")
        if before and use("PREV", one_in=2):
            asked = gpm.own if gpm.own in before and not place.negated else pick(before)
            rises = f"{own} {self.compare()} PREV(?{asked})"
            other = f"?{pick(seen)}" if seen else "1"
            scaled = f"{own} {self.compare()} 2 * COALESCE(PREV(?{asked}), {other})"
            gpm.filters.append(pick([rises, scaled, *[f"COALESCE({rises}, true)"] * 2]))
        if before and use("running", one_in=3):
            gpm.filters.append(self.running(pick(before)))
        finished = sorted(self.groups & place.seen - place.around - gpm.binds)
        if finished and use("aggregate", one_in=3):
            self.grammar.used.add("aggregate-in-filter")
            gpm.filters.append(
                f"{self.aggregate(pick(finished))} {self.compare()} {pick(range(4))}"
            )
        if place.names and use("TIMESTAMP", one_in=12):
            self.grammar.used.add("TIMESTAMP-in-filter")
            gpm.filters.append(f"TIMESTAMP({pick(sorted(place.names))}) {self.compare()} {MOMENT}")
        if use("NOW", one_in=16):
            moment = '"1970-01-01T00:00:03Z"^^xsd:dateTime'
            gpm.filters.append(f"NOW() {self.compare()} {moment}")
        if place.names and use("durations", one_in=12):
            length = f'"PT{pick([0, 1, 2, 3.5])}S"^^xsd:dayTimeDuration'
            later = pick(["NOW()", "NOW()", f"TIMESTAMP({pick(sorted(place.names))})"])
            earlier = f"TIMESTAMP({pick(sorted(place.names))})"
            gap = f"{later} - {earlier} {self.compare()} {length}"
            reach = f"{later} {self.compare()} {earlier} + {length}"
            gpm.filters.append(pick([gap, reach]))

        if place.names and use("late-BIND", one_in=4):
            self.late_bind(gpm, own, seen, before, sorted(place.names))
        known = sorted(v for v, binder in self.late.items() if binder in place.names - {gpm.name})
        if known and use("late-BIND", one_in=3):
            gpm.filters.append(f"{own} {self.compare()} ?{pick(known)}")

    def late_bind(
        self, gpm: Gpm, own: str, seen: list[str], before: list[str], names: list[str]
    ) -> None:
        """BIND of a value that depends on earlier steps, and perhaps a FILTER on it."""
        pick, name = self.grammar.pick, f"e{gpm.name.lower()}"
        other = f"?{pick(seen)}" if seen else own
        ways = [f"{own} - {other}", f"{other} + 1", f"COALESCE({other}, {own}) * 2"]
        ways.append(f"IF({own} < {other}, 1, 2)")
        ways.append(f"IF(NOW() {self.compare()} {MOMENT}, 1, {own})")
        ways.append(f"IF(TIMESTAMP({pick(names)}) {self.compare()} {MOMENT}, 1, {own})")
        if before:
            ways += [f"{own} - PREV(?{pick(before)})"] * 4
        if finished := sorted(self.groups.intersection(seen)):
            ways.append(f"{own} - {self.aggregate(pick(finished))}")
        value = pick(ways)  # whose lexical form is not prescribed
        bind = f"BIND(IF({value} > 1, 2, IF({value} > 0, 1, 0)) AS ?{name})"
        gpm.text.insert(pick([1, len(gpm.text), len(gpm.text)]), bind)
        gpm.binds.add(name)
        self.late[name] = gpm.name
        if pick([True, True, False]):
            test = f"?{name} {self.compare()} {pick(range(-1, 4))}"
            gpm.filters.append(pick([test, test, f"COALESCE({test}, true)", f"!BOUND(?{name})"]))
        if pick([True, False, False, False]):
            gpm.text.append(f"BIND(?{name} + 1 AS ?{name}2)")
            gpm.binds.add(f"{name}2")

    def compare(self) -> str:
        return str(self.grammar.pick(["<", ">", "<=", "<=", ">=", ">=", "=", "!=", "!="]))

    def aggregate(self, variable: str) -> str:
        """An aggregate over a group variable. Not SAMPLE: any value would be right."""
        numeric = ["SUM", "MIN", "MAX", "AVG"] if variable[0] in "vxwln" else []
        name = self.grammar.pick(["COUNT", "FIRST", "LAST", *numeric])
        distinct = "DISTINCT " if name == "COUNT" and self.grammar.choices.chance(4) else ""
        return f"{name}({distinct}?{variable})"

    def running(self, variable: str) -> str:
        """A condition on an aggregate over the repetitions so far."""
        v, pick = f"?{variable}", self.grammar.pick
        return str(
            pick(
                [
                    *[f"SUM({v}) {pick('<>')} {pick(range(2, 6))}"] * 2,
                    *[f"{self.aggregate(variable)} {self.compare()} {pick(range(4))}"] * 3,
                    f"COUNT({v}) <= {pick(range(1, 4))}",
                    f'STRLEN(GROUP_CONCAT({v}; SEPARATOR="-")) < {pick(range(2, 6))}',
                    f'!CONTAINS(STR(LIST({v})), "\\"{pick(range(4))}\\"")',
                    f"SAMPLE({v}) <= MAX({v})",
                ]
            )
        )

    def text(self, gpm: Gpm, on: str) -> str:
        body = " ".join([*gpm.text, *(f"FILTER({f})" for f in gpm.filters)])
        return f"  DEFINE GPM {gpm.name} ON {on} {{ {body} }}"


@dataclass(frozen=True)
class Place:
    """The place of a GPM name in a sequence.

    `seen`: variables bound before it; `names`: valid GPMs for TIMESTAMP; `group`: the group
    variables of the enclosing steps; `around`: the same, including steps inside these steps.
    """

    seen: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    group: frozenset[str] = frozenset()
    around: frozenset[str] = frozenset()
    negated: bool = False


def places(
    steps: list[Step], binds: Mapping[str, frozenset[str]], before: Place, whole: frozenset[str]
) -> Iterator[tuple[str, Place]]:
    """Every GPM name with its place, in text order; negated steps see all variables."""
    for step in steps:
        here = before
        if step.repeats:
            here = replace(
                before, group=before.group | step.group, around=before.around | step.inside
            )
        if step.negated:
            here = replace(here, seen=here.seen | whole, negated=True)
        after = here
        if isinstance(step.atom, str):
            yield step.atom, here
            after = _past(here, step.atom, binds)
        for inner in parts(step.atom):
            start = here if isinstance(step.atom, Choice) and step.atom.kind == "|" else after
            for name, place in places(inner, binds, start, whole):
                yield name, place
                if here.negated or not place.negated:
                    after = _past(after, name, binds)
        if step.until is not None:
            around = before.around | step.inside
            yield step.until, replace(before, seen=before.seen | whole, around=around, negated=True)
        if not step.negated:
            before = replace(before, seen=after.seen, names=after.names)


def common(all_places: list[Place], name: str) -> Place:
    """The common part of all places of a GPM; without TIMESTAMP of the GPM itself."""
    once = len(all_places) == 1
    return Place(
        frozenset.intersection(*(p.seen for p in all_places)),
        all_places[0].names - {name} if once else frozenset(),
        frozenset.intersection(*(p.group for p in all_places)),
        frozenset().union(*(p.around for p in all_places)),
        any(p.negated for p in all_places),
    )


def _past(place: Place, name: str, binds: Mapping[str, frozenset[str]]) -> Place:
    return replace(place, seen=place.seen | binds[name], names=place.names | {name})
