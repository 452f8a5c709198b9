"""What is made of a program is made once, for the planner and for stage 2."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from spaseq.automaton.program import any_order
from spaseq.automaton.program.nfa import GpmColumns, Program
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


def _in_order(plan: QueryPlan, late: bool) -> Program:
    gpms = [GpmColumns(g.variables, g.conditions, g.certain) for g in plan.patterns.gpms]
    streams = [g.streams for g in plan.patterns.gpms]
    return any_order.in_every_order(plan.sequence.program, gpms, streams, late)


def test_the_orders_of_a_bracket_are_made_once_without_late_filters(
    plan: QueryPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = _in_order(plan, late=True)
    monkeypatch.delattr(any_order, "Product")  # making them again would fail
    assert known is not plan.sequence.program
    assert _in_order(plan, late=False) is known


def test_late_filters_stand_only_where_they_may() -> None:
    # A is the first operand, and its FILTER looks at the second one
    first, last = "FILTER (?h > ?l) }\n    DEFINE GPM C", "}\n    DEFINE GPM C"
    text = TEXT.replace(first, last).replace(":low ?l }", ":low ?l FILTER (?h > ?l) }")
    for order in (True, False), (False, True):
        plan = compile_query(text)
        found = {late: _in_order(plan, late) for late in order}
        labels = [edge.label for edge in found[True].edges]
        assert any(getattr(label, "late", ()) for label in labels)
        assert not any(getattr(edge.label, "late", ()) for edge in found[False].edges)
