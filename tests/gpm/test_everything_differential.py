"""Random patterns of every construct, compared with rdflib and Oxigraph on the same graphs.

A difference from one engine must be a bug or limit that is listed here, and the other engine must
agree with spaseq. A difference from both engines is a failure. The test runs a few hundred
examples, or thousands in a slow run (`pytest -m slow`).
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import pytest
from hypothesis import HealthCheck, Phase, assume, example, given, settings

from spaseq.algebra.groups import translate_group
from spaseq.algebra.substitution import substituted
from spaseq.errors import QueryError
from spaseq.expr.values import decode, encode
from spaseq.gpm.evaluator import GpmEvaluator
from tests.gpm import draw_everything as d
from tests.gpm.graphs import (
    Kb,
    Row,
    Triple,
    batch_of,
    by_rdflib,
    group_of,
    knowledge_of,
    oxigraph,
    solutions,
)
from tests.w3c.evaluation import NUMBER

RDFLIB = {
    "STR and xsd:string of a blank node are its label, not an error": r"STR\(|xsd:string",
    "ISNUMERIC of an unbound variable is false, not an error": r"ISNUMERIC",
    "aggregates and GROUP_CONCAT pass over errors": r"GROUP_CONCAT|SUM|AVG|MIN|MAX|COUNT",
    "bindings flow into nested groups, OPTIONAL and EXISTS": r"OPTIONAL|EXISTS|\{.*\{",
    "xsd:dateTime without a zone is compared with one that has it": r"[<>=]|IN \(",
    "arithmetic, casts and functions accept terms of other types": r"[-+*/]|xsd:|[A-Z_]{2,}\(",
}
"""Bugs and limits of rdflib, each with an expression that recognises affected patterns."""

OXIGRAPH = {
    "a path alternative is one match where both sides are": r":p\|:q|\(:p\|",
    "no path of length zero from a term that the graph lacks": r"<[^>]*> \S*:\S*[?*]",
    "a negated property set is one match where other patterns bind both ends": r"![:(^]",
    "errors and types of numbers: decimals overflow, xsd:decimal(1.5E0)": r"xsd:|[-+*/]|SUM|AVG",
}
"""Bugs and limits of Oxigraph, each with an expression that recognises affected patterns."""

Rows = list[Counter[Row]]

UNHURRIED = settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking patterns takes too long
)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Silence rdflib, which logs every literal with an invalid lexical form."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def by_value(rows: Sequence[Mapping[Row, int]]) -> Rows:
    """The solutions with numbers in canonical form."""
    return [Counter(_counted(event)) for event in rows]


def _counted(event: Mapping[Row, int]) -> dict[Row, int]:
    found: dict[Row, int] = {}
    for row, count in event.items():
        plain = frozenset((v, _number(text)) for v, text in row)
        found[plain] = found.get(plain, 0) + count
    return found


def _number(text: str) -> str:
    try:
        return encode(decode(text)) if NUMBER.search(text) else text
    except ValueError:
        return text


def binding(rows: Rows) -> Rows:
    """The solutions with at least one binding; rdflib's results omit the others."""
    return [Counter({row: n for row, n in event.items() if row}) for event in rows]


def with_plain_doubles(
    events: Sequence[Sequence[Triple]], kb: Kb, pattern: str
) -> tuple[str, list[list[Triple]], Kb] | None:
    """The question with doubles in the form of the other engines; None if nothing changes.

    Both engines keep a double's value, not its lexical form: there STR(1.5E0) is "1.5".
    """

    def plain(triples: Sequence[Triple]) -> list[Triple]:
        return [tuple(t.replace('"1.5E0"^^', '"1.5"^^') for t in triple) for triple in triples]

    if "1.5E0" not in f"{events}{kb}{pattern}":
        return None
    written = pattern.replace("1.5E0", '"1.5"^^xsd:double')
    return written, [plain(e) for e in events], {name: plain(graph) for name, graph in kb.items()}


def explained(pattern: str, bugs: Mapping[str, str]) -> bool:
    return any(re.search(sign, pattern) for sign in bugs.values())


def check(events: Sequence[Sequence[Triple]], kb: Kb, pattern: str) -> None:
    try:
        ours = by_value(solutions(pattern, events, kb))
    except QueryError:  # BOUND(1), SELECT (1 AS ?n) where ?n is bound
        assume(False)
    theirs = by_value(oxigraph(pattern, events, kb))
    try:
        others = binding(by_value(by_rdflib(pattern, events, kb)))
    except Exception as crash:  # rdflib crashed, so it gives no result
        assert explained(pattern, RDFLIB), crash
        others = None
    same = ours == theirs, binding(ours) == others
    if not any(same) and (plain := with_plain_doubles(events, kb, pattern)):
        ours = by_value(solutions(*plain))
        same = ours == theirs, binding(ours) == others
    told = f"{pattern}\n{events}\n{kb}\nours     {ours}\nOxigraph {theirs}\nrdflib   {others}"
    assert any(same), told
    assert same[0] or explained(pattern, OXIGRAPH), told
    assert same[1] or explained(pattern, RDFLIB), told


@pytest.mark.filterwarnings("ignore")
@given(d.events, d.kbs, d.groups)
@example([[]], {}, "{ VALUES ?x { <http://e/a> UNDEF } }")
@pytest.mark.thorough
@settings(UNHURRIED, max_examples=150)
def test_some(events: list[list[Triple]], kb: Kb, pattern: str) -> None:
    check(events, kb, pattern)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@given(d.events, d.kbs, d.groups)
@settings(UNHURRIED, max_examples=5000, derandomize=False)
def test_many(events: list[list[Triple]], kb: Kb, pattern: str) -> None:
    check(events, kb, pattern)


@pytest.mark.filterwarnings("ignore")
@given(d.events, d.kbs, d.substitutable_groups, d.bindings)
@example([[]], {}, "{ ?y :p? ?z . }", {"y": "<http://e/a>"})
@settings(UNHURRIED, max_examples=100)
def test_values_substituted_by_us_are_values_written_for_oxigraph(
    events: list[list[Triple]], kb: Kb, pattern: str, values: dict[str, str]
) -> None:
    written = re.sub(r"\?([xyz])\b", lambda m: values.get(m[1], m[0]), pattern)
    try:
        theirs = by_value(oxigraph(written, events, kb))
    except (SyntaxError, QueryError):  # BOUND(<http://e/a>)
        assume(False)
    algebra = substituted(translate_group(group_of(pattern)), values)
    found = GpmEvaluator(algebra, knowledge_of(kb)).evaluate(batch_of(events))
    ours: Rows = [Counter() for _ in events]
    for i, event in enumerate(found.event.tolist()):
        codes = {v: int(c[i]) for v, c in found.columns.items() if v not in values}
        ours[event][frozenset((v, found.terms[c]) for v, c in codes.items() if c >= 0)] += 1
    same = by_value(ours) == theirs
    assert same or explained(written, OXIGRAPH), f"{pattern}\n{values}\n{events}"
