"""The cases of the golden files, and what they become."""

from __future__ import annotations

import re
from pathlib import Path

from spaseq.compile import CompileOptions, check_query
from spaseq.kb.quads import entailing_schema
from spaseq.lang import ast
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.schema import Schema
from spaseq.render.plan_text import plan_text
from spaseq.render.query_words import QueryWords
from spaseq.render.trees import algebra_text, automaton_text

DIRECTORY = Path(__file__).parent
CASES = sorted(DIRECTORY.glob("case-*.rq"))
STAGES = (".algebra", ".plan", ".automaton")

_OPTION = re.compile(r"# (disable|evaluator|pushed|several|ontology)(?:: (.*))?")


def options_of(text: str) -> CompileOptions:
    """The options in the comments at the top of a case."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        option = _OPTION.fullmatch(line)
        if option is None:
            break
        found[option[1]] = option[2] or ""
    return CompileOptions(
        evaluator=found.get("evaluator"),
        schema=_schema(found.get("ontology")),
        disable=tuple(found["disable"].split(", ")) if "disable" in found else (),
        pushed="pushed" in found,
        several="several" in found,
    )


def _schema(ontology: str | None) -> Schema | None:
    if ontology is None:
        return None
    return entailing_schema([str(DIRECTORY / ontology)], "rdfs")


def checked(case: Path) -> tuple[QueryPlan, ast.Query]:
    """The plan and the syntax tree of a case."""
    text = case.read_text("utf-8")
    found = check_query(text, case.stem, options_of(text))
    assert found.plan is not None and found.query is not None, found.errors
    return found.plan, found.query


def rendered(case: Path) -> dict[str, str]:
    """The text of each stage of a case, by the suffix of its file."""
    plan, query = checked(case)
    words = QueryWords(query.prologue)
    texts = algebra_text(plan), plan_text(plan, words), automaton_text(plan, words)
    return {suffix: f"{text}\n" for suffix, text in zip(STAGES, texts, strict=True)}
