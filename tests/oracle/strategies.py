"""Generated queries over the whole grammar, and streamsets that they bite on.

A query comes as text together with the features it uses, so that a run can print how often each
was exercised; `features` restricts what may be drawn. Nothing is drawn that the page refuses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal as L
from typing import TypeAlias

from hypothesis import strategies as st
from rdflib import XSD, Graph, Literal, URIRef

from spaseq.lang import ast
from tests.oracle.choices import Choices
from tests.oracle.model import Triple
from tests.oracle.sequences import (
    Choice,
    Step,
    find_group_variables,
    group_variables,
    parts,
    positive_names,
    unfold,
)

NS = "http://example.org/"
KB = f"{NS}kb"
STREAMS = [f"{NS}stream/{i}" for i in (1, 2, 3)]
NAMES = ["A", "B", "C", "D", "E"]

STEP_1_TEXT = """
    , ; + * ? {n,m} ! | & AND nested repeated-bracket stateful-filter equality-join PREV
    several-streams several-streams-per-GPM WITHIN PARTITION several-keys SELECT-vars
    same-GPM-twice ties
"""
FURTHER_TEXT = """
    : gap !-first !-last !-bracket TUMBLING TUMBLING-FROM EVENTS NEXT LAST MAX STRICT DISTINCT
    CONSUME TO-NEXT-EVENT PAST-LAST-EVENT TO-FIRST TO-LAST HAVING SELECT-expr aggregate LIST
    TIMESTAMP PARTITION-2 OPTIONAL UNION GRAPH lexical-forms
"""
STEP_1 = frozenset(STEP_1_TEXT.split())
EVERYTHING = STEP_1 | frozenset(FURTHER_TEXT.split())


Operator: TypeAlias = L[",", ";", ":"]
Kind: TypeAlias = L["|", "&", "AND"]
OPERATORS: tuple[Operator, ...] = (",", ";", ":")
KINDS: tuple[Kind, ...] = ("|", "&", "AND")


@dataclass(frozen=True)
class Case:
    """One example: a query, what it exercises, and what it runs on."""

    query: str
    features: frozenset[str]
    streams: dict[str, list[tuple[int, str | None, list[Triple]]]]
    kb: dict[str, Graph] = field(default_factory=dict)


# --- streamsets -----------------------------------------------------------------------------------


def term(local: str) -> URIRef:
    return URIRef(NS + local)


def number(lexical: str, datatype: URIRef = XSD.integer) -> Literal:
    return Literal(lexical, datatype=datatype, normalize=False)


def knowledge() -> dict[str, Graph]:
    """A limit for each key, and an owner for one."""
    graph = Graph()
    for key, limit in (("k1", "1"), ("k2", "3")):
        graph.add((term(key), term("limit"), number(limit)))
    graph.add((term("k1"), term("owner"), term("someone")))
    return {KB: graph}


def observations(
    choices: Choices, features: frozenset[str], names: list[str], due: str
) -> list[Triple]:
    """The triples of one event: up to two observations, each a possible solution; or neither.

    `due` is the GPM that the event should rather match.
    """
    triples: list[Triple] = []
    keys = ["k1", "k1", "k2"] if "several-keys" in features else ["k1"]
    for subject in map(term, ("o1", "o2")[: choices.pick([1, 1, 1, 1, 2, 2, 0])]):
        kind = choices.pick([due] * 2 * len(names) + [*names, *names, "Other"])
        triples.append((subject, term("is"), term(kind)))
        triples.append((subject, term("v"), _value(choices, features)))
        if not choices.chance(6):
            triples.append((subject, term("k"), term(choices.pick(keys))))
            triples.append((subject, term("g"), number(choices.pick("001"))))
        if choices.chance(2):
            triples.append((subject, term("w"), number(choices.pick("112"))))
    return triples


def _value(choices: Choices, features: frozenset[str]) -> Literal:
    value = str(choices.pick(range(4)))
    if "lexical-forms" in features and choices.chance(6):
        return choices.pick([number(f"0{value}"), number(f"{value}.0", XSD.decimal)])
    return number(value)


Arrivals: TypeAlias = "list[tuple[int, str | None, list[Triple]]]"


def streamset(
    choices: Choices, features: frozenset[str], names: list[str], iris: list[str], most: int
) -> dict[str, Arrivals]:
    """Up to `most` events over the given streams, in order of time, on few instants."""
    streams: dict[str, Arrivals] = {iri: [] for iri in iris}
    time = 0
    steps = [0, 1000, 1000, 1000, 2000, 5000] if "ties" in features else [1000, 1000, 2000, 5000]
    count = choices.pick([0, 1, 2, 3, *(n for n in range(4, most + 1) for _ in range(4))])
    for i in range(count):
        time += choices.pick(steps)
        triples = observations(choices, features, names, names[i * len(names) // count])
        streams[choices.pick(iris)].append((time, f"{NS}event/{i}", triples))
    return streams


def stream_features(streams: dict[str, Arrivals]) -> Iterator[str]:
    """What the events are remarkable for."""
    events = [event for arrivals in streams.values() for event in arrivals]
    if len({time for time, _, _ in events}) < len(events):
        yield "ties"
    terms = [o for _, _, triples in events for _, _, o in triples]
    if {term("k1"), term("k2")} <= set(terms):
        yield "several-keys"
    if any(isinstance(o, Literal) and not re.fullmatch("[0-9]", o) for o in terms):
        yield "lexical-forms"


# --- sequences ------------------------------------------------------------------------------------


class Grammar:
    """Draws sequences; remembers the features used."""

    def __init__(self, choices: Choices, features: frozenset[str]) -> None:
        self.choices = choices
        self.pick = choices.pick
        self.operators: list[Operator] = [op for op in OPERATORS if op in features]
        self.kinds: list[Kind] = [kind for kind in KINDS if kind in features]
        self.features = features
        self.used: set[str] = set()
        self.names: list[str] = []
        self.left = choices.pick([2, 2, 3, 3, 3, 4, 4, 5, 6])  # GPM names still to be placed

    def use(self, *features: str, one_in: int = 2) -> bool:
        """Whether to use what needs the given features."""
        if not self.features.issuperset(features) or not self.choices.chance(one_in):
            return False
        self.used.update(features)
        return True

    # sequences

    def sequence(self, size: int, depth: int, top: bool = False) -> ast.Sequence:
        steps = [self.step(depth)]
        while len(steps) < size and self.left > 0 and not self.choices.chance(4):
            steps.append(self.step(depth))
        ops = [self.op() for _ in steps[1:]]
        if not top and all(may_be_empty(s) for s in steps):
            steps[0] = ast.Step(steps[0].atom, None)
        return self.negate(ast.Sequence(tuple(steps), tuple(ops)), depth, top)

    def op(self) -> ast.Op:
        kind = self.pick(self.operators)
        gap = None
        if self.use("gap", one_in=6):
            gap = ast.Duration(self.pick(range(6)), "SECONDS")
        self.used.add(kind)
        return ast.Op(kind, gap)

    def step(self, depth: int) -> ast.Step:
        atom = self.atom(depth)
        if not self.choices.chance(4):
            return ast.Step(atom)
        options = {"+": (1, None), "*": (0, None), "?": (0, 1)}
        mark = self.pick(sorted(self.features & {"+", "*", "?", "{n,m}"}) or [""])
        if not mark:
            return ast.Step(atom)
        self.used.add(mark)
        if isinstance(atom, ast.Bracket):
            self.used.add("repeated-bracket")
        minimum, maximum = options.get(mark) or self.pick(
            [(2, 2), (1, 2), (0, 2), (2, 3), (2, None)]
        )
        return ast.Step(atom, ast.Quantifier(minimum, maximum))

    def atom(self, depth: int) -> ast.Ref | ast.Bracket:
        if depth and self.left > 1 and self.use("nested", one_in=3):
            kind = self.pick([None, *self.kinds])
            self.used.add(kind or "nested")
            count = 1 if kind is None else self.pick([2, 2, 2, 3])
            operands = [self.sequence(3 if kind is None else 2, depth - 1) for _ in range(count)]
            return ast.Bracket(kind, tuple(operands))
        return ast.Ref(self.name())

    def name(self) -> str:
        self.left -= 1
        fresh = [n for n in NAMES if n not in self.names]
        if self.names and (not fresh or self.use("same-GPM-twice", one_in=10)):
            return str(self.pick(self.names))
        self.names.append(fresh[0])
        return fresh[0]

    # negation

    def negate(self, sequence: ast.Sequence, depth: int, top: bool) -> ast.Sequence:
        """With negated steps put in where they are allowed."""
        steps, ops = list(sequence.steps), list(sequence.ops)
        for i in range(len(steps), -1, -1):
            left = steps[i - 1] if i else None
            right = steps[i] if i < len(steps) else None
            if len(self.names) < len(NAMES) and self._negatable(left, right, top):
                self._put(steps, ops, i, depth)
        return ast.Sequence(tuple(steps), tuple(ops))

    def _negatable(self, left: ast.Step | None, right: ast.Step | None, top: bool) -> bool:
        if left is not None and may_be_empty(edge(left, -1)):
            return False
        if right is not None and may_be_empty(edge(right, 0)):
            return False
        if left is None or right is None:
            return top and self.use("!-first" if left is None else "!-last", one_in=8)
        return self.use("!", one_in=6)

    def _put(self, steps: list[ast.Step], ops: list[ast.Op], i: int, depth: int) -> None:
        negated = ast.Step(self.negated_atom(depth), None, True)
        op = ast.Op(self.pick(self.operators))
        if i == len(steps):
            ops.append(op)
        elif i == 0:
            ops.insert(0, op)
        else:  # the bound of the gap stays with the operator before what follows
            ops.insert(i - 1, op)
        steps.insert(i, negated)

    def negated_atom(self, depth: int) -> ast.Ref | ast.Bracket:
        if not self.use("!-bracket", one_in=4):
            return ast.Ref(self.name())
        kind = self.pick([None, *self.kinds])
        operands = [self.sequence(2, 0) for _ in range(1 if kind is None else 2)]
        return ast.Bracket(kind, tuple(operands))


def may_be_empty(step: ast.Step) -> bool:
    if step.quantifier is not None and step.quantifier.minimum == 0:
        return True
    match step.atom:
        case ast.Bracket(None, (inner,)):
            return all(may_be_empty(s) for s in inner.steps if not s.negated)
        case _:
            return False


def edge(step: ast.Step, end: int) -> ast.Step:
    """The step at an end of a transparent bracket, or the step itself."""
    match step:
        case ast.Step(ast.Bracket(None, (inner,)), None, False):
            return edge(inner.steps[end], end)
        case _:
            return step


def sequence_text(sequence: ast.Sequence) -> str:
    parts = [step_text(sequence.steps[0])]
    for op, step in zip(sequence.ops, sequence.steps[1:], strict=True):
        gap = f"[{op.gap.amount} {op.gap.unit}]" if op.gap else ""
        parts.append(f"{op.kind}{gap} {step_text(step)}")
    return " ".join(parts)


def step_text(step: ast.Step) -> str:
    match step.atom:
        case ast.Ref(name):
            text = name
        case ast.Bracket(kind, operands):
            text = "(" + f" {kind} ".join(map(sequence_text, operands)) + ")"
    if step.negated:
        return text + "!"
    match step.quantifier:
        case None:
            return text
        case ast.Quantifier(minimum, None):
            return text + {0: "*", 1: "+"}.get(minimum, f"{{{minimum},}}")
        case ast.Quantifier(0, 1):
            return text + "?"
        case ast.Quantifier(n, m):
            return text + (f"{{{n}}}" if n == m else f"{{{n},{m}}}")


# --- graph patterns -------------------------------------------------------------------------------


@dataclass
class Gpm:
    """A GPM being drawn: its own variable, all it binds, its triples and its filters."""

    name: str
    own: str
    binds: set[str]
    text: list[str]
    filters: list[str] = field(default_factory=list)


class Patterns:
    """Draws the GPMs of a sequence: first their triples, then filters over what others bind."""

    def __init__(self, grammar: Grammar, keys: tuple[str, ...], sequence: ast.Sequence) -> None:
        self.grammar = grammar
        self.keys = keys
        self.steps = unfold(sequence)
        self.positive = positive_names(self.steps)
        self.gpms = {name: self.bare(name) for name in grammar.names}
        binds = {name: frozenset(gpm.binds) for name, gpm in self.gpms.items()}
        find_group_variables(self.steps, binds, frozenset(keys))
        self.groups = group_variables(self.steps)
        first: dict[str, Place] = {}
        for name, place in places(self.steps, binds, Place()):
            first.setdefault(name, place)
        for name, place in first.items():
            self.filter(self.gpms[name], replace(place, names=place.names - {name}))

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
        binds = set(re.findall(r"\?(\w+)", " ".join(text)))
        return Gpm(name, value.lstrip("?"), binds, text)

    def extras(self, low: str, subject: str, pairs: list[str]) -> Iterator[str]:
        """What is more than a basic graph pattern."""
        use = self.grammar.use
        if use("OPTIONAL", one_in=12):
            yield f"OPTIONAL {{ {subject.replace('[]', f'?o{low}')} ex:w ?w{low} }}"
        if use("UNION", one_in=12):
            yield f"{{ ?u{low} ex:w 1 }} UNION {{ ?u{low} ex:w 2 }}"
        if use("GRAPH", one_in=12):
            key = next((v for v in ("?k", "?key") if any(v in p.split() for p in pairs)), "ex:k1")
            yield f"GRAPH ex:kb {{ {key} ex:limit ?l{low} }}"

    # filters

    def filter(self, gpm: Gpm, place: Place) -> None:
        use, pick = self.grammar.use, self.grammar.pick
        own = f"?{gpm.own}" if gpm.own in gpm.binds else gpm.own
        if self.grammar.choices.chance(6):
            gpm.filters.append(f"{own} {self.compare()} {pick(range(5))}")
        seen = sorted(v for v in place.seen if v[0] in "vx" and v not in gpm.binds)
        if seen and use("stateful-filter", one_in=3):
            change = pick(["", "", " + 1", " - 1"])
            gpm.filters.append(f"{own} {self.compare()} ?{pick(seen)}{change}")
        if gpm.own in place.group and use("PREV", one_in=2):
            rises = f"{own} {self.compare()} PREV({own})"
            gpm.filters.append(pick([rises, *[f"COALESCE({rises}, true)"] * 2]))
        finished = sorted(self.groups & place.seen - place.around - gpm.binds)
        if finished and use("aggregate", one_in=3):
            self.grammar.used.add("aggregate-in-filter")
            gpm.filters.append(
                f"{self.aggregate(pick(finished))} {self.compare()} {pick(range(4))}"
            )
        if place.names and use("TIMESTAMP", one_in=12):
            self.grammar.used.add("TIMESTAMP-in-filter")
            moment = '"1970-01-01T00:00:04Z"^^xsd:dateTime'
            gpm.filters.append(f"TIMESTAMP({pick(sorted(place.names))}) {self.compare()} {moment}")

    def compare(self) -> str:
        return str(self.grammar.pick(["<", ">", "<=", "<=", ">=", ">=", "=", "!=", "!="]))

    def aggregate(self, variable: str) -> str:
        """SAMPLE is left out: any value of the list would be right."""
        numeric = ["SUM", "MIN", "MAX", "AVG"] if variable[0] in "vxwl" else []
        name = self.grammar.pick(["COUNT", "FIRST", "LAST", *numeric])
        distinct = "DISTINCT " if name == "COUNT" and self.grammar.choices.chance(4) else ""
        return f"{name}({distinct}?{variable})"

    def text(self, gpm: Gpm, on: str) -> str:
        body = " ".join([*gpm.text, *(f"FILTER({f})" for f in gpm.filters)])
        return f"  DEFINE GPM {gpm.name} ON {on} {{ {body} }}"


@dataclass(frozen=True)
class Place:
    """Where a GPM name stands first.

    `seen`: the variables bound before it; `names`: the GPMs that TIMESTAMP may ask for; `group`:
    the group variables of the steps around it, `around`: of those and the steps inside them.
    """

    seen: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    group: frozenset[str] = frozenset()
    around: frozenset[str] = frozenset()


def places(
    steps: list[Step], binds: Mapping[str, frozenset[str]], before: Place
) -> Iterator[tuple[str, Place]]:
    """Every GPM name with its place, in the order of the text.

    For a negated step, which sees the whole match, `before.seen` is what comes before it still:
    good enough to draw from.
    """
    for step in steps:
        here = before
        if step.repeats:
            here = replace(
                before, group=before.group | step.group, around=before.around | step.inside
            )
        if step.negated:
            here = replace(here, names=frozenset() if here.around else here.names)
        after = here
        if isinstance(step.atom, str):
            yield step.atom, here
            after = _past(here, step.atom, binds)
        for inner in parts(step.atom):
            start = here if isinstance(step.atom, Choice) and step.atom.kind == "|" else after
            for name, place in places(inner, binds, start):
                yield name, place
                after = _past(after, name, binds)
        if not step.negated:
            before = replace(before, seen=after.seen, names=after.names)


def _past(place: Place, name: str, binds: Mapping[str, frozenset[str]]) -> Place:
    return replace(place, seen=place.seen | binds[name], names=place.names | {name})


# --- queries --------------------------------------------------------------------------------------

UNITS = {"SECONDS": 1, "MILLISECONDS": 1000}


@st.composite
def cases(draw: st.DrawFn, features: frozenset[str] = EVERYTHING, most_events: int = 10) -> Case:
    """A query and a streamset for it, as a Hypothesis strategy."""
    return case(Choices(lambda n: draw(st.integers(0, n - 1))), features, most_events)


def case(choices: Choices, features: frozenset[str] = EVERYTHING, most_events: int = 10) -> Case:
    """A query and a streamset for it."""
    grammar = Grammar(choices, features)
    keys: tuple[str, ...] = ()
    if grammar.use("PARTITION", one_in=4):
        keys = ("k", "g") if grammar.use("PARTITION-2", one_in=3) else ("k",)
    sequence = grammar.sequence(4, 2, top=True)
    patterns = Patterns(grammar, keys, sequence)
    count = choices.pick([1, 1, 2, 3] if "several-streams" in features else [1])
    if count > 1:
        grammar.used.add("several-streams")
    iris = STREAMS[:count]
    head = [
        f"PREFIX ex: <{NS}>",
        "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>",
        "SELECT " + _selection(grammar, patterns),
        _window(grammar, patterns.steps),
        _partition(grammar, keys),
        _skip(grammar, patterns),
        *(f"FROM STREAM S{i} <{iri}>" for i, iri in enumerate(iris, 1)),
        "FROM NAMED ex:kb" if "GRAPH" in grammar.used else "",
        f"WHERE {{ SEQ({sequence_text(sequence)})",
        *(patterns.text(gpm, _on(grammar, count)) for gpm in patterns.gpms.values()),
        "}",
        _having(grammar, patterns),
    ]
    query = "\n".join(line for line in head if line)
    streams = streamset(choices, features, grammar.names, iris, most_events)
    kb = knowledge() if "GRAPH" in grammar.used else {}
    grammar.used.update(stream_features(streams))
    return Case(query, frozenset(grammar.used), streams, kb)


def _on(grammar: Grammar, count: int) -> str:
    names = [f"S{i + 1}" for i in range(count)]
    if (
        count > 1
        and not grammar.choices.chance(3)
        and grammar.use("several-streams-per-GPM", one_in=1)
    ):
        return ", ".join(names)
    return str(grammar.pick(names))


def _selection(grammar: Grammar, patterns: Patterns) -> str:
    words = []
    if grammar.use("DISTINCT", one_in=6):
        words.append("DISTINCT")
    strategy = grammar.pick(
        ["", "", "", "", *sorted(grammar.features & {"NEXT", "LAST", "MAX", "STRICT"})]
    )
    if strategy:
        grammar.used.add(strategy)
        words.append(strategy)
    bound = sorted({v for n in patterns.positive for v in patterns.gpms[n].binds})
    items = _expressions(grammar, patterns, bound)
    if not items and not grammar.use("SELECT-vars", one_in=3):
        return " ".join([*words, "*"])
    shown = grammar.choices.some(bound, 3)
    return " ".join([*words, *(f"?{v}" for v in shown), *items]) if shown or items else "*"


def _expressions(grammar: Grammar, patterns: Patterns, bound: list[str]) -> list[str]:
    values: list[str] = []
    numeric = [v for v in bound if v[0] in "vxwl"]
    grouped = sorted(patterns.groups & set(bound))
    if numeric and grammar.use("SELECT-expr", one_in=4):
        values.append(f"?{grammar.pick(numeric)} + ?{grammar.pick(numeric)}")
    if grouped and grammar.use("aggregate", one_in=2):
        values.append(patterns.aggregate(grammar.pick(grouped)))
    if grouped and grammar.use("LIST", one_in=3):
        values.append(f"LIST(?{grammar.pick(grouped)})")
    if grouped and grammar.use("aggregate", one_in=6):
        values.append(f'GROUP_CONCAT(?{grammar.pick(grouped)}; SEPARATOR=",")')
    if grammar.use("TIMESTAMP", one_in=4):
        values.append(f"TIMESTAMP({grammar.pick(sorted(patterns.positive))})")
    return [f"({value} AS ?e{i})" for i, value in enumerate(values)]


def _window(grammar: Grammar, steps: list[Step]) -> str:
    at_end = steps[0].negated or steps[-1].negated
    kinds = {"WITHIN", "TUMBLING", "TUMBLING-FROM", *([] if at_end else ["EVENTS"])}
    kind = grammar.pick(["WITHIN", *sorted(kinds & grammar.features)])
    grammar.used.add(kind)
    if kind == "EVENTS":
        return f"WITHIN {grammar.pick([2, 3, 4, 5, 6, 8])} EVENTS"
    unit = grammar.pick(["SECONDS", "SECONDS", "MILLISECONDS"])
    length = f"WITHIN {grammar.pick([1, 2, 3, 5, 8, 8, 20, 20]) * UNITS[unit]} {unit}"
    match kind:
        case "WITHIN":
            return length
        case "TUMBLING":
            return f"{length} TUMBLING"
        case _:
            start = grammar.pick(["1970-01-01T00:00:02Z", "1970-01-01T00:00:01.5Z"])
            return f'{length} TUMBLING FROM "{start}"^^xsd:dateTime'


def _partition(grammar: Grammar, keys: tuple[str, ...]) -> str:
    return f"PARTITION BY ({' '.join(f'?{k}' for k in keys)})" if keys else ""


def _skip(grammar: Grammar, patterns: Patterns) -> str:
    kinds = {"CONSUME", "TO-NEXT-EVENT", "PAST-LAST-EVENT", "TO-FIRST", "TO-LAST"}
    kind = grammar.pick(["", "", "", "", *sorted(kinds & grammar.features)])
    if not kind:
        return ""
    grammar.used.add(kind)
    if kind == "CONSUME":
        return "AFTER MATCH CONSUME"
    name = f" {grammar.pick(sorted(patterns.positive))}" if kind in ("TO-FIRST", "TO-LAST") else ""
    return f"AFTER MATCH SKIP {kind.replace('-', ' ')}{name}"


def _having(grammar: Grammar, patterns: Patterns) -> str:
    if not grammar.use("HAVING", one_in=6):
        return ""
    bound = {v for n in patterns.positive for v in patterns.gpms[n].binds}
    grouped = sorted(patterns.groups & bound)
    if grouped and grammar.pick([True, False]):
        return f"HAVING ({patterns.aggregate(grammar.pick(grouped))} {patterns.compare()} 2)"
    plain = sorted(v for v in bound if v[0] in "vx")
    left = f"?{grammar.pick(plain)}" if plain else "1"
    right = f"?{grammar.pick(plain)}" if plain and grammar.pick([True, False]) else "2"
    return f"HAVING ({left} {patterns.compare()} {right})"
