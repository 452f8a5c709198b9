"""How many generated queries no kernel runs, by reason.

    python -m tests.oracle.evaluator_shares [--queries 10000] [--seed 1] [--without late-BIND]

The queries are the first ones of `test_differential`. Names of variables and GPMs are left out of
the reasons.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator

from spaseq.automaton.program.nfa import GpmColumns
from spaseq.automaton.registers.compiled.run_tables import run_tables
from spaseq.compile import check_query
from spaseq.plan.evaluators import obstacle_to_compiled_registers, program_of
from spaseq.plan.query_plan import QueryPlan
from tests.oracle.choices import seeded
from tests.oracle.strategies import EVERYTHING, case

_NAMES = re.compile(r"\?\w+|\b[A-Z]+\d*(?= (?:is|has|may|uses|shares)\b)|(?<=negated )[A-Z]\w*")


def plans(queries: int, seed: str, without: frozenset[str]) -> Iterator[QueryPlan]:
    """The plans of queries generated `without` some features; refused queries are left out."""
    for number in range(queries):
        plan = check_query(case(seeded(f"{seed}:{number}"), EVERYTHING - without).query).plan
        if plan is not None:
            yield plan


def reason_for_python(plan: QueryPlan) -> str | None:
    """Why the planner chose an evaluator in Python for a plan; None if it chose a kernel."""
    evaluator = plan.sequence.evaluator.name
    if evaluator.startswith("compiled-"):
        return None
    reason = obstacle_to_compiled_registers(plan) or "its steps can be matched in any order"
    return _NAMES.sub("_", reason)


def asks(plan: QueryPlan) -> bool:
    """Whether the register kernel runs a plan, and Python evaluates some of its FILTERs."""
    sequence = plan.sequence
    if sequence.evaluator.name != "compiled-registers":
        return False
    gpms = [GpmColumns(g.variables, g.conditions, g.certain) for g in plan.patterns.gpms]
    return bool(run_tables(program_of(plan), gpms, sequence.partition, sequence.window).asked)


def main() -> None:
    """Count the queries, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--without", nargs="*", default=(), metavar="FEATURE")
    options = parser.parse_args()
    evaluators, reasons, asking = Counter[str](), Counter[str](), 0
    for plan in plans(options.queries, options.seed, frozenset(options.without)):
        evaluators[plan.sequence.evaluator.name] += 1
        asking += asks(plan)
        if reason := reason_for_python(plan):
            reasons[reason] += 1
    total = evaluators.total()
    print(f"{total} queries, {reasons.total()} ({reasons.total() / total:.1%}) in Python")
    for name, number in evaluators.most_common():
        print(f"{number:6}  {number / total:6.1%}  {name}")
    print(f"{asking:6}  {asking / total:6.1%}  compiled-registers with asked tests")
    print()
    for name, number in reasons.most_common():
        print(f"{number:6}  {number / total:6.1%}  {name}")


if __name__ == "__main__":
    main()
