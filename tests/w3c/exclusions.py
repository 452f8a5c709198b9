"""What of the suites is not run, and why: by the kind of test, by what a query is, and by name.

A reason that holds for whole kinds is given once, and every test it keeps out is listed with it by
`python -m tests.w3c`. A test excluded by NAME that is not in the suites, or passes, is a failure.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from spaseq.errors import SpaseqError
from spaseq.lang.scan import scan
from tests.w3c.manifests import UNREADABLE, Test
from tests.w3c.queries import as_construct
from tests.w3c.regimes import why_not_entailed

FORMATS = re.compile(r"Test(NQuads|NTriples|Turtle|Tri[gG]|XML)(Positive|Negative)?(Syntax|Eval)")
"""Kinds of tests that readers are given."""

SYNTAX = re.compile(r"(Positive|Negative)SyntaxTest(11|12)?")
"""Kinds of tests that the parser is given."""

KINDS = {
    "UpdateEvaluationTest": "a GPM changes nothing",
    "PositiveUpdateSyntaxTest11": "a GPM changes nothing",
    "NegativeUpdateSyntaxTest11": "a GPM changes nothing",
    "ProtocolTest": "about a server",
    "ServiceDescriptionTest": "about a server",
    "GraphStoreProtocolTest": "about a server",
    "PositiveEntailmentTest": "whether one graph entails another is not asked",
    "NegativeEntailmentTest": "whether one graph entails another is not asked",
    "TestNQuadsPositiveC14N": "about a writer of canonical N-Quads",
    "TestNTriplesPositiveC14N": "about a writer of canonical N-Triples",
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
NO_RESULT = "the manifest gives no result"
RESULT_FORMAT = "results in this format are not compared"
VERSION = "RDF 1.2 and SPARQL 1.2: triple terms, base directions and what comes with them"

RESULTS = (".srx", ".srj", ".tsv", ".csv", ".ttl", ".rdf", ".nt")

NEW = re.compile(
    r"<<|\{\||\|\}|\s~|@[A-Za-z]+(-[A-Za-z0-9]+)*--|(?im:^\s*@?version\b)"
    r"|(?i:\b(triple|istriple|subject|predicate|object|langdir|strlangdir|haslang|haslangdir)\s*\()"
)
"""Signs of the new versions, looked for in folders whose name says 12."""

NAMES: dict[str, str] = {}
"""By `suite/folder/name`."""

NOT_BY_ENGINE = {
    "sparql10/graph/graph-not-exist": (
        "a graph that FROM NAMED does not name is refused, see"
        " docs/language.md#graphs-of-the-knowledge-base"
    ),
}
"""By `suite/folder/name`: run by the graph-pattern evaluator, but not by the whole engine."""


def why_excluded(test: Test, way: str = "") -> str | None:
    """The reason why a test is not run (in one way), if there is one.

    What cannot be read is no reason: running the test says so.
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
            return None  # it fails
        if not test.is_query:
            return f"nothing here runs tests of the kind {test.kind}"
    if test.action is None:
        return None
    if test.action.startswith(("http://", "https://")):
        return f"its file is in another place: {test.action}"
    if "12" in f"{test.suite}/{test.place}" and not test.negative and NEW.search(test.text()):
        return VERSION
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
