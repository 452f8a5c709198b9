"""The cases of the golden files, and what they become."""

from __future__ import annotations

import re
from pathlib import Path

from spaseq.algebra.schema import Schema
from spaseq.compile import CompileOptions, compile_query
from spaseq.kb.ontology import entailing_schema
from spaseq.plan.query_plan import QueryPlan
from spaseq.render.algebra_text import algebra_text
from spaseq.render.automaton import automaton_text
from spaseq.render.plan_text import plan_text

DIRECTORY = Path(__file__).parent
CASES = sorted(DIRECTORY.glob("case-*.rq"))
STAGES = {".algebra": algebra_text, ".plan": plan_text, ".automaton": automaton_text}

_OPTION = re.compile(r"# (disable|evaluator|pushed|ontology)(?:: (.*))?")


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
    )


def _schema(ontology: str | None) -> Schema | None:
    if ontology is None:
        return None
    return entailing_schema([str(DIRECTORY / ontology)], "rdfs")


def plan_of(case: Path) -> QueryPlan:
    """The plan of a case."""
    text = case.read_text("utf-8")
    return compile_query(text, case.stem, options_of(text))


def rendered(case: Path) -> dict[str, str]:
    """The text of each stage of a case, by the suffix of its file."""
    plan = plan_of(case)
    return {suffix: render(plan) + "\n" for suffix, render in STAGES.items()}
