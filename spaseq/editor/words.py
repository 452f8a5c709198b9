"""The words of the language with their meanings, one sentence each.

A test compares these tables with the words of the grammar, so none can be forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping

from spaseq.lang.ast.pattern_nodes import OPERATORS as SEQUENCE_OPERATORS
from spaseq.lang.functions import AGGREGATES, BUILT_INS, GROUP_PICKS, MEANINGS

_DURATION = "A unit of time, in WITHIN and in gap bounds."

KEYWORDS: Mapping[str, str] = {
    "BASE": "The IRI that relative IRIs of the query are relative to.",
    "VERSION": "The version of SPARQL that the query is written in.",
    "PREFIX": "A short name for the begin of IRIs.",
    "REGISTER": "REGISTER STREAM iri AS: the answers are a stream that other queries can read.",
    "SELECT": "An answer is a row of values.",
    "CONSTRUCT": "An answer is a graph, made from this template.",
    "MAINTAIN": "MAINTAIN GRAPH iri AS: each answer changes this graph of the knowledge base.",
    "DELETE": "The triples that an answer takes out of the graph; unbound variables are wildcards.",
    "INSERT": "The triples that an answer puts into the graph.",
    "WITHIN": "How far apart the first and the last event of a match may be.",
    "PARTITION": "PARTITION BY: events with equal values of these variables are matched together.",
    "AFTER": "AFTER MATCH: which later answers an answer forbids.",
    "FROM": "FROM STREAM names a stream, FROM NAMED a graph of the knowledge base.",
    "WHERE": "The body of the query: the sequence and its graph patterns.",
    "SEQ": "How events follow each other; the names are names of GPMs.",
    "DEFINE": "DEFINE GPM name ON streams { ... }: what one event looks like.",
    "GPM": "A graph pattern with a name, and the streams whose events it looks at.",
    "ON": "The streams whose events this GPM looks at.",
    "HAVING": "Which matches count as answers, or in a sub-query, which groups.",
    "STREAM": "A sequence of RDF graph events under one IRI.",
    "NAMED": "FROM NAMED: a graph of the knowledge base.",
    "AS": "The name of a value, or the end of REGISTER STREAM.",
    "BY": "The variables of PARTITION BY, GROUP BY or ORDER BY.",
    "DISTINCT": "Equal rows count once.",
    "REDUCED": "Equal rows may count once.",
    "ALL": "All answers of one end are given; this is the default.",
    "NEXT": "SELECT NEXT: of the answers of one end, the one that took the next events. "
    "TO NEXT EVENT: the answers after it begin at a later event.",
    "LAST": "SELECT LAST: of the answers of one end, the one with the latest events. "
    "Elsewhere the last event, or LAST(?x), the last value of a group variable.",
    "MAX": "SELECT MAX: answers whose events are not all in another one. MAX(?x): the maximum.",
    "STRICT": "SELECT STRICT: answers whose events follow each other directly.",
    "MILLISECONDS": _DURATION,
    "MILLISECOND": _DURATION,
    "SECONDS": f"{_DURATION} SECONDS(?t): the seconds of a time.",
    "SECOND": _DURATION,
    "MINUTES": f"{_DURATION} MINUTES(?t): the minutes of a time.",
    "MINUTE": _DURATION,
    "HOURS": f"{_DURATION} HOURS(?t): the hours of a time.",
    "HOUR": _DURATION,
    "DAYS": _DURATION,
    "DAY": f"{_DURATION} DAY(?t): the day of a time.",
    "EVENTS": "WITHIN n EVENTS: a window that counts events.",
    "EVENT": "EVENT { ... } looks at the events of a window one by one. Elsewhere the word after "
    "NEXT, LAST and EACH, or one event in WITHIN.",
    "WINDOW": "FROM WINDOW name ON streams: the last events of streams, as a separate stream.",
    "RANGE": "How far back a window reaches, in time or in events.",
    "SLIDE": "How often a window closes; without it, windows follow each other.",
    "EACH": "EACH EVENT: a window for each event, which is its last.",
    "SESSION": "Windows of events that are less than this gap apart.",
    "KEY": "KEY { ... }: which partition an event of a window is in.",
    "NEW": "NEW W: the solutions that the window before did not have.",
    "GONE": "GONE W: the solutions that the window before had, and this one has not.",
    "AT": "EVENT AT ?t: the time of an event of a window.",
    "TUMBLING": "Windows are adjacent; a match lies in one of them.",
    "MATCH": "AFTER MATCH: which later answers an answer forbids.",
    "NO": "NO SKIP: an answer forbids no other one; this is the default.",
    "SKIP": "Which events are not the begin of later answers.",
    "CONSUME": "An answer uses up its past: later answers begin after its last event.",
    "MUTE": "An answer drops the answers that end less than this time after it.",
    "TO": "SKIP TO: where later answers may begin.",
    "PAST": "SKIP PAST LAST EVENT: later answers begin after the last event of this one.",
    "FIRST": "SKIP TO FIRST A: the first event of A. FIRST(?x): the first value.",
    "AND": "(A AND B): a match of each, in any order, without a common event.",
    "UNTIL": "B+ UNTIL U: the loop ends where an event matches U.",
    "FILTER": "A condition that solutions must meet.",
    "OPTIONAL": "A pattern that need not match; its variables may stay unbound.",
    "UNION": "Solutions of one pattern or of the other one.",
    "MINUS": "Takes away the solutions that this pattern matches, too.",
    "GRAPH": "A pattern over a graph of the knowledge base.",
    "SERVICE": "A pattern that a SPARQL endpoint answers.",
    "SILENT": "An endpoint that fails binds nothing, and the solution stays.",
    "BIND": "BIND(expression AS ?x) gives a variable a value.",
    "VALUES": "Values of variables, written out as a table.",
    "UNDEF": "No value in this cell of VALUES.",
    "EXISTS": "Whether a pattern has a solution.",
    "NOT": "NOT EXISTS: whether a pattern has no solution; NOT IN: whether a value is not listed.",
    "IN": "Whether a value is in a list.",
    "GROUP": "GROUP BY of a sub-query.",
    "ORDER": "ORDER BY of a sub-query.",
    "ASC": "Ascending order.",
    "DESC": "Descending order.",
    "LIMIT": "The number of rows that a sub-query has at most.",
    "OFFSET": "The number of rows of a sub-query that are left out.",
    "SEPARATOR": "The text between the values of GROUP_CONCAT.",
    "TRUE": "The boolean value true.",
    "FALSE": "The boolean value false.",
}

OPERATORS: Mapping[str, str] = {
    **{sign: words.meaning for sign, words in SEQUENCE_OPERATORS.items()},
    "|": "Alternatives: a match of one of them.",
    "&": "Conjunction: matches whose events all have one time.",
    "!": "Negation: no such event in between.",
    "+": "Once or more often; a second + makes the loop greedy.",
    "*": "Any number of times, also none.",
    "?": "Once or not at all.",
}
"""The signs of a sequence."""

_OPTIONAL_ARGUMENTS = "..."


def _signature(name: str) -> str:
    if name in AGGREGATES:
        return f"{name}([DISTINCT] expression)"
    if name in GROUP_PICKS or name in ("PREV", "BOUND"):
        return f"{name}(?variable)"
    if name == "TIMESTAMP":
        return "TIMESTAMP(GPM)"
    least, most = BUILT_INS[name]
    needed = ["a", "b", "c", "d"][:least]
    more = [_OPTIONAL_ARGUMENTS] if most is None else [f"[{x}]" for x in "abcd"[least:most]]
    return f"{name}({', '.join([*needed, *more])})"


FUNCTIONS: Mapping[str, str] = {
    name: f"{_signature(name)}: {meaning}." for name, meaning in MEANINGS.items()
}
"""Each function's arguments and meaning."""
