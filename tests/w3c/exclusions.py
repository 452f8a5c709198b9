"""What of the suites is not run, and why: by the kind of test, by what a query is, and by name.

A reason that holds for whole kinds is given once, and every test it keeps out is listed with it by
`python -m tests.w3c`. A test excluded by NAME that is not in the suites, or passes, is a failure.
"""

from __future__ import annotations

from itertools import pairwise

from spaseq.lang.scan import scan
from tests.w3c.manifests import Test
from tests.w3c.queries import as_construct

KINDS = {
    "UpdateEvaluationTest": "a GPM changes nothing",
    "PositiveUpdateSyntaxTest11": "a GPM changes nothing",
    "NegativeUpdateSyntaxTest11": "a GPM changes nothing",
    "ProtocolTest": "about a server",
    "ServiceDescriptionTest": "about a server",
    "GraphStoreProtocolTest": "about a server",
    "PositiveEntailmentTest": "whether one graph entails another is not asked",
    "NegativeEntailmentTest": "whether one graph entails another is not asked",
}
"""By the kind of test."""

FORMS = {
    "CONSTRUCT": "a GPM has solutions, not graphs",
    "DESCRIBE": "a GPM has solutions, not graphs",
}
"""By the form of a query; CONSTRUCT queries whose graph is compared are run by the engine."""

ORDERED = "one event is made of each solution, so that ORDER BY and LIMIT have nothing to act on"

FROM = "a GPM's dataset is the event and the graphs of FROM NAMED, not what FROM fetches"
"""Syntax tests whose query has FROM; evaluation tests have those files as data."""

SERVICE = "asks an endpoint that the suite does not describe"
NESTED = "SERVICE inside SERVICE is for the endpoint to answer"
WITHDRAWN = "withdrawn by the working group"
REGIME = "its data holds its own ontology; entailment is tested against owlrl instead"

NAMES: dict[str, str] = {}
"""By `suite/folder/name`."""

NOT_BY_ENGINE = {
    "sparql10/graph/graph-not-exist": "LANGUAGE refuses a graph that FROM NAMED does not name",
}
"""By `suite/folder/name`: run by the graph-pattern evaluator, but not by the whole engine."""


def why_excluded(test: Test, way: str = "") -> str | None:
    """The reason why a test is not run (in one way), if there is one."""
    if test.id in NAMES:
        return NAMES[test.id]
    if way == "engine" and test.id in NOT_BY_ENGINE:
        return NOT_BY_ENGINE[test.id]
    if test.withdrawn:
        return WITHDRAWN
    if test.kind in KINDS:
        return KINDS[test.kind]
    if test.suite.startswith("rdf") or test.action is None:
        return None
    if test.regime:
        return REGIME
    if way == "construct":
        return None if as_construct(test.text(), test.base) is not None else ORDERED
    return _about_query(test)


def _about_query(test: Test) -> str | None:
    words = [lexeme.keyword for lexeme in scan(test.text())]
    if test.negative:  # what is wrong may hide what it is
        return FORMS.get(next((w for w in words if w in (*FORMS, "SELECT", "ASK")), ""))
    form = next((w for w in words if w in (*FORMS, "SELECT", "ASK")), "")
    if form in FORMS:
        return FORMS[form]
    if not test.is_query and "FROM" in words:
        return FROM
    if test.is_query and "SERVICE" in words:
        return _about_services(test)
    return None


def _about_services(test: Test) -> str | None:
    """Endpoints that a test brings along are served; nobody has to be there for SILENT ones."""
    lexemes = [lexeme for lexeme in scan(test.text()) if lexeme.kind != "comment"]
    depth, opened, all_silent = 0, None, True
    for lexeme, following in pairwise(lexemes):
        if lexeme.keyword == "SERVICE":
            if opened is not None:
                return NESTED
            opened = depth
            all_silent &= following.keyword == "SILENT"
        depth += lexeme.is_punct("{") - lexeme.is_punct("}")
        if lexeme.is_punct("}") and depth == opened:
            opened = None
    return None if test.services or all_silent else SERVICE
