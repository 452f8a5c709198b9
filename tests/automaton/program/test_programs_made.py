"""What is made of a program is made once, for the planner and for stage 2."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from spaseq.automaton.registers import compilable_runs
from spaseq.compile import compile_query
from spaseq.plan.evaluators import program_of
from spaseq.plan.query_plan import QueryPlan
from spaseq.stages.machine_of_plan import machine_of

TEXT = """PREFIX : <http://e/> SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s>
    WHERE { SEQ((A AND B); C)
    DEFINE GPM A ON S { ?a :low ?l }
    DEFINE GPM B ON S { ?b :high ?h FILTER (?h > ?l) }
    DEFINE GPM C ON S { ?c :high ?g FILTER (?g > ?h) } }"""


@pytest.fixture
def plan() -> QueryPlan:
    return compile_query(TEXT)


def _run_tables(plan: QueryPlan) -> object:
    machine = machine_of(plan, lambda *_: (), None)
    return compilable_runs.tested_program(
        machine.program, machine.gpms, machine.partition, machine.window
    )


def test_stage_2_has_the_program_that_the_planner_made(
    plan: QueryPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert plan.sequence.evaluator.name == "compiled-registers"
    monkeypatch.delattr(compilable_runs, "_Testing")  # making it again would fail
    assert program_of(plan) is program_of(plan)
    assert _run_tables(plan) is _run_tables(plan)


def test_other_gpms_have_another_program(plan: QueryPlan) -> None:
    a, b, c = plan.patterns.gpms
    gpms = a, replace(b, conditions=()), c
    other = replace(plan, patterns=replace(plan.patterns, gpms=gpms))
    assert _run_tables(other) is not _run_tables(plan)


def test_a_pickle_has_the_program_as_it_was_planned(plan: QueryPlan) -> None:
    program = plan.sequence.program
    as_new = replace(program)
    assert len(pickle.dumps(program)) == len(pickle.dumps(as_new))
    again = pickle.loads(pickle.dumps(plan))
    assert repr(again.sequence.program) == repr(program)
    assert repr(program_of(again)) == repr(program_of(plan))
