"""Runs a test of the suites in every possible way, and gives the outcomes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from spaseq.errors import QueryText
from spaseq.lang.parser import parse_source
from tests.w3c import evaluation, formats
from tests.w3c.exclusions import FORMATS, SYNTAX, why_excluded
from tests.w3c.manifests import Test
from tests.w3c.queries import as_construct, as_gpm, form_of


@dataclass(frozen=True)
class Outcome:
    """The outcome of one way of running a test; `reason` explains an exclusion or a failure."""

    test: Test
    way: str
    verdict: Literal["passed", "excluded", "failed"]
    reason: str = ""


def ways(test: Test) -> list[str]:
    """The ways to run a test: graph-pattern evaluator and engine, the parser, or readers."""
    if FORMATS.fullmatch(test.kind):
        return formats.readers(test)
    if SYNTAX.fullmatch(test.kind):
        return ["parser"]
    if not test.is_query:
        return ["none"]
    return ["construct"] if _form(test) == "CONSTRUCT" else ["evaluator", "engine"]


def _form(test: Test) -> str:
    """The form of a query; "" if it is unreadable, which the run then reports."""
    try:
        return form_of(test.text()) if test.action else ""
    except (OSError, UnicodeDecodeError, SyntaxError):
        return ""


def outcomes(test: Test) -> Iterator[Outcome]:
    """The outcomes of all ways of running a test."""
    for way in ways(test):
        yield outcome(test, way)


def outcome(test: Test, way: str) -> Outcome:
    """The outcome of one way of running a test."""
    try:
        if (reason := why_excluded(test, way)) is not None:
            return Outcome(test, way, "excluded", reason)
        wrong = _wrong(test, way)
    except Exception as error:
        wrong = f"{type(error).__name__}: {error}"
    return Outcome(test, way, "passed" if wrong is None else "failed", wrong or "")


def _wrong(test: Test, way: str) -> str | None:
    if test.problem or test.action is None:
        return test.problem or "the manifest names no file"
    match way:
        case "parser":
            return _parsed(test)
        case "construct":
            made, graph = evaluation.constructed(test), evaluation.expected_graph(test)
            return None if formats.canonical(made) == formats.canonical(graph) else f"made {made}"
        case "evaluator":
            found, wanted = evaluation.by_evaluator(test), evaluation.expected(test)
            right = evaluation.same(found, wanted, test)
        case "engine":
            found, wanted = evaluation.by_engine(test), evaluation.expected(test)
            right = evaluation.same(found, wanted, test, as_sets=True)
        case _:
            return _read(test, way)
    return None if right else f"found {found}, expected {wanted}"


def _parsed(test: Test) -> str | None:
    errors = parse_source(QueryText(_as_query(test), test.name)).errors
    if test.negative:
        return None if errors else "accepted"
    return "\n".join(d.render() for d in errors) or None


def _as_query(test: Test) -> str:
    if _form(test) == "CONSTRUCT":
        with suppress(IndexError, StopIteration, ValueError):  # it has no template
            return as_construct(test.text(), test.base) or ""
    return as_gpm(test.text(), test.base)


def _read(test: Test, reader: str) -> str | None:
    if test.kind.endswith("C14N"):
        lines, canonical = formats.canonical_lines(test)
        made = None if lines is None else [f"{line} ." for line in lines]
        return None if made == canonical else f"wrote {made}, expected {canonical}"
    found = formats.read(test, reader)
    if test.negative:
        return None if found is None else "accepted"
    if found is None:
        return "refused"
    wanted = formats.wanted(test, reader)
    if wanted is None or formats.canonical(found) == formats.canonical(wanted):
        return None
    return f"found {found}, expected {wanted}"
