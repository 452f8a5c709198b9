"""Excluded tests of the suites, with reasons: by kind of test, by form of query, and by name.

A reason for a whole kind of tests is written once; `python -m tests.w3c` lists it for every test
that it excludes. A test in NAMES that is not in the suites, or that passes, is a failure.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from spaseq.errors import SpaseqError
from spaseq.lang.scan import scan
from tests.w3c.manifests import UNREADABLE, Test
from tests.w3c.queries import as_construct, form_of
from tests.w3c.regimes import why_not_entailed

FORMATS = re.compile(
    r"Test(NQuads|NTriples|Turtle|Tri[gG]|XML)(Positive|Negative)?(Syntax|Eval|C14N)"
)
"""Kinds of tests for readers."""

SYNTAX = re.compile(r"(Positive|Negative)SyntaxTest(11|12)?")
"""Kinds of tests for the parser."""

KINDS = {
    "UpdateEvaluationTest": "a GPM changes nothing",
    "PositiveUpdateSyntaxTest11": "a GPM changes nothing",
    "NegativeUpdateSyntaxTest11": "a GPM changes nothing",
    "PositiveUpdateSyntaxTest": "a GPM changes nothing",
    "NegativeUpdateSyntaxTest": "a GPM changes nothing",
    "ProtocolTest": "about a server",
    "ServiceDescriptionTest": "about a server",
    "GraphStoreProtocolTest": "about a server",
    "PositiveEntailmentTest": "whether one graph entails another is not asked",
    "NegativeEntailmentTest": "whether one graph entails another is not asked",
}
"""Reasons by the kind of test."""

FORMS = {"DESCRIBE": "a GPM has solutions, not graphs"}
"""Reasons by the form of a query."""

ORDERED = "one event is made of each solution, so that ORDER BY and LIMIT have nothing to act on"

FROM = "a GPM's dataset is the event and the graphs of FROM NAMED, not what FROM fetches"
"""Syntax tests whose query has FROM; evaluation tests have those files as data."""

SERVICE = "asks an endpoint that the suite does not describe"
NESTED = "SERVICE inside SERVICE is for the endpoint to answer"
WITHDRAWN = "withdrawn by the working group"
NO_RESULT = "the manifest gives no result"
RESULT_FORMAT = "results in this format are not compared"

RESULTS = (".srx", ".srj", ".tsv", ".csv", ".ttl", ".rdf", ".nt")

NAMES: dict[str, str] = {}
"""Reasons by `suite/folder/name`."""

NOT_BY_ENGINE = {
    "sparql10/graph/graph-not-exist": (
        "a graph that FROM NAMED does not name is refused, see"
        " docs/meaning.md#graphs-of-the-knowledge-base"
    ),
}
"""Reasons by `suite/folder/name` for tests that only the graph-pattern evaluator runs."""


def why_excluded(test: Test, way: str = "") -> str | None:
    """The reason why a test is not run (in one way), if any.

    An unreadable file is not a reason: the test runs and reports it.
    """
    try:
        return _why(test, way)
    except (OSError, ValueError, SyntaxError, LookupError, StopIteration, SpaseqError):
        return None


def _why(test: Test, way: str) -> str | None:
    if test.id in NAMES:
        return NAMES[test.id]
    if way == "engine" and test.id in NOT_BY_ENGINE:
        return NOT_BY_ENGINE[test.id]
    if test.withdrawn:
        return WITHDRAWN
    if test.kind in KINDS:
        return KINDS[test.kind]
    if not (runs := FORMATS.fullmatch(test.kind)) and not SYNTAX.fullmatch(test.kind):
        if test.kind == UNREADABLE:
            return None  # the test fails
        if not test.is_query:
            return f"nothing here runs tests of the kind {test.kind}"
    if test.action is None:
        return None
    if test.action.startswith(("http://", "https://")):
        return f"its file is in another place: {test.action}"
    if runs:
        return None
    if test.is_query and (reason := _about_result(test)) is not None:
        return reason
    if (reason := why_not_entailed(test)) is not None:
        return reason
    if way == "construct":
        return None if as_construct(test.text(), test.base) is not None else ORDERED
    return _about_query(test)


def _about_result(test: Test) -> str | None:
    if test.result is None:
        return NO_RESULT
    return None if Path(test.result).suffix in RESULTS else RESULT_FORMAT


def _about_query(test: Test) -> str | None:
    words = [lexeme.keyword for lexeme in scan(test.text())]
    if not test.is_query and form_of(test.text()) == "CONSTRUCT":
        return None if as_construct(test.text(), test.base) is not None else ORDERED
    if test.negative:  # the error may hide the form of the query
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
    """A reason about SERVICE. A test's endpoints are served; SILENT ones need not exist."""
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
