"""Generated cases: queries over the whole grammar, and streamsets that often match them.

A case has a query's text and the features it uses, so that a run can print how often it exercised
each feature. `features` restricts the drawn constructs. Refused queries are not drawn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from rdflib import Graph

from tests.oracle.choices import Choices
from tests.oracle.draw_events import (
    NS,
    STREAMS,
    Arrivals,
    Crowd,
    knowledge,
    stream_features,
    streamset,
)
from tests.oracle.draw_patterns import Patterns
from tests.oracle.draw_sequences import LOOPS, Grammar
from tests.oracle.sequence_text import sequence_text
from tests.oracle.steps import Step, waits_for_the_close

STEP_1_TEXT = """
    , ; + * ? {n,m} ! | & AND nested repeated-bracket stateful-filter equality-join PREV
    several-streams several-streams-per-GPM WITHIN PARTITION several-keys SELECT-vars
    same-GPM-twice ties
"""
FURTHER_TEXT = """
    : gap !-first !-last !-bracket TUMBLING TUMBLING-FROM EVENTS NEXT LAST MAX STRICT DISTINCT
    CONSUME TO-NEXT-EVENT PAST-LAST-EVENT TO-FIRST TO-LAST HAVING SELECT-expr aggregate LIST
    TIMESTAMP PARTITION-2 OPTIONAL UNION GRAPH BIND VALUES sub-SELECT MINUS EXISTS lexical-forms
    CONSTRUCT ALL NO-SKIP MUTE NOW durations triple-terms late-BIND
"""
FUNCTIONS_TEXT = "COUNT SUM AVG MIN MAX GROUP_CONCAT FIRST LAST LIST PREV TIMESTAMP NOW"
"""Functions of group variables and GPMs. Not SAMPLE: any value of the list would be right."""
FUNCTIONS = frozenset(FUNCTIONS_TEXT.split())
STEP_1 = frozenset(STEP_1_TEXT.split())
EVERYTHING = STEP_1 | LOOPS | frozenset(FURTHER_TEXT.split())

ANY_LOOP = "any of the loops"


@dataclass(frozen=True)
class Case:
    """One example: a query, its features, and its input."""

    query: str
    features: frozenset[str]
    streams: dict[str, Arrivals]
    kb: dict[str, Graph] = field(default_factory=dict)

    def with_fewer_events(self) -> Iterator[Case]:
        """For each event, the case without it."""
        for stream, events in self.streams.items():
            for i in range(len(events)):
                yield replace(self, streams={**self.streams, stream: events[:i] + events[i + 1 :]})


UNITS = {"SECONDS": 1, "MILLISECONDS": 1000}


def case(choices: Choices, features: frozenset[str] = EVERYTHING, most_events: int = 10) -> Case:
    """A query and a streamset for it."""
    grammar = Grammar(choices, features)
    keys: tuple[str, ...] = ()
    if grammar.use("PARTITION", one_in=4):
        keys = ("k", "g") if grammar.use("PARTITION-2", one_in=3) else ("k",)
    sequence = grammar.whole()
    patterns = Patterns(grammar, keys, sequence)
    several = "several-streams" in features and not grammar.calm
    count = choices.pick([1, 1, 2, 3] if several else [1])
    if count > 1:
        grammar.used.add("several-streams")
    iris = STREAMS[:count]
    construct = grammar.use("CONSTRUCT", one_in=12)
    head = [
        f"PREFIX ex: <{NS}>",
        "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>",
        f"CONSTRUCT {{ {template(choices, _variables(patterns))} }}"
        if construct
        else "SELECT " + _selection(grammar, patterns),
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
    crowd = Crowd(grammar.names, grammar.loops, most_events)
    streams = streamset(choices, features, crowd, iris)
    kb = knowledge() if "GRAPH" in grammar.used else {}
    grammar.used.update(stream_features(streams))
    if grammar.used & LOOPS:
        grammar.used.add(ANY_LOOP)
    grammar.used.update(f"{name}()" for name in FUNCTIONS if f"{name}(" in query)
    return Case(query, frozenset(grammar.used), streams, kb)


def _variables(patterns: Patterns) -> list[str]:
    text = " ".join(line for gpm in patterns.gpms.values() for line in gpm.text)
    return sorted(set(re.findall(r"\?\w+", text)))


def template(choices: Choices, variables: list[str], blanks: bool = True) -> str:
    """The triples of a CONSTRUCT template; some answers omit some of them."""
    things = [*variables, *variables, "?nothing", "ex:thing"] + ["_:n1", "_:n2"] * blanks
    subjects, objects = [*things, "7"], [*things, '"text"@en', "7"]
    predicates = ["ex:p", "ex:p", "ex:q", "a", *variables[:1]]
    triples = [
        f"{choices.pick(subjects)} {choices.pick(predicates)} {choices.pick(objects)}"
        for _ in range(choices.pick([1, 2, 2, 3]))
    ]
    if not blanks:  # a triple that a reader can match
        triples.append(f"ex:thing ex:p {choices.pick(variables)}")
    return " . ".join(triples)


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
        [*plain(grammar), "ALL", *sorted(grammar.features & {"NEXT", "LAST", "MAX", "STRICT"})]
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


def plain(grammar: Grammar) -> list[str]:
    """Chances for no word at all, where a word would take answers away."""
    return [""] * (12 if grammar.loops else 3)


def _expressions(grammar: Grammar, patterns: Patterns, bound: list[str]) -> list[str]:
    values: list[str] = []
    numeric = [v for v in bound if v[0] in "vxwln"]
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
    if grammar.use("NOW", one_in=8):
        values.append("NOW()")
    if grammar.use("durations", one_in=8):
        one, other = (grammar.pick(sorted(patterns.positive)) for _ in range(2))
        later = grammar.pick([f"TIMESTAMP({other})", "NOW()"])
        values.append(f"({later} - TIMESTAMP({one})){grammar.pick(['', '', ' * 2', ' / 4'])}")
    return [f"({value} AS ?{_letter(value)}{i})" for i, value in enumerate(values)]


def _letter(expression: str) -> str:
    """The first letter of a variable's name: e if the value is prescribed but not the term."""
    return "t" if re.match("FIRST|LAST|COUNT|GROUP_CONCAT|TIMESTAMP|NOW", expression) else "e"


def _window(grammar: Grammar, steps: list[Step]) -> str:
    counted = [] if waits_for_the_close(steps) else ["EVENTS"]
    kinds = {"WITHIN", "TUMBLING", "TUMBLING-FROM", *counted}
    kind = grammar.pick(["WITHIN", *sorted(kinds & grammar.features)])
    grammar.used.add(kind)
    if kind == "EVENTS":
        return f"WITHIN {grammar.pick([5, 6, 8] if grammar.loops else [2, 3, 4, 5, 6, 8])} EVENTS"
    unit = grammar.pick(["SECONDS", "SECONDS", "MILLISECONDS"])
    lengths = [3, 8, 8, 20, 20, 20] if grammar.loops else [1, 2, 3, 5, 8, 8, 20, 20]
    length = f"WITHIN {grammar.pick(lengths) * UNITS[unit]} {unit}"
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
    kind = grammar.pick([*plain(grammar), "NO-SKIP", *sorted(kinds & grammar.features)])
    if not kind:
        return ""
    grammar.used.add(kind)
    mute = _mute(grammar)
    if kind in ("NO-SKIP", "CONSUME"):
        form = "" if mute and grammar.choices.chance(2) and kind == "NO-SKIP" else kind
        return f"AFTER MATCH {form.replace('-', ' ')}{mute}"
    name = f" {grammar.pick(sorted(patterns.positive))}" if kind in ("TO-FIRST", "TO-LAST") else ""
    return f"AFTER MATCH SKIP {kind.replace('-', ' ')}{name}{mute}"


def _mute(grammar: Grammar) -> str:
    if not grammar.use("MUTE", one_in=2):
        return ""
    return grammar.pick(
        [" MUTE 1 SECONDS", " MUTE 2000 MILLISECONDS", " MUTE 5 SECONDS", " MUTE 1 DAYS"]
    )


def _having(grammar: Grammar, patterns: Patterns) -> str:
    if not grammar.use("HAVING", one_in=6):
        return ""
    bound = {v for n in patterns.positive for v in patterns.gpms[n].binds}
    grouped = sorted(patterns.groups & bound)
    if grouped and grammar.choices.chance(2):
        return f"HAVING ({patterns.aggregate(grammar.pick(grouped))} {patterns.compare()} 2)"
    plain = sorted(v for v in bound if v[0] in "vx")
    left = f"?{grammar.pick(plain)}" if plain else "1"
    right = f"?{grammar.pick(plain)}" if plain and grammar.choices.chance(2) else "2"
    return f"HAVING ({left} {patterns.compare()} {right})"
