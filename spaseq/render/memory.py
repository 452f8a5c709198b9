"""Estimate of the memory of a query: the solutions in its window times the size of a solution."""

from __future__ import annotations

from spaseq.automaton.program.window import Counted
from spaseq.plan.query_plan import QueryPlan

BYTES = 1500
"""Measured size of a solution that waits in the evaluator `registers`, its texts included.

The other evaluators need less.
"""


def memory_text(plan: QueryPlan, rate: float | None = None) -> str:
    """The most memory that the solutions of the window need in stage 2, in words.

    `rate` is the number of solutions per second; without it the text is a formula.
    """
    where = "" if plan.sequence.key.variables is None else ", over all keys"
    if isinstance(plan.sequence.window, Counted):
        kept = f"the solutions of {plan.sequence.window.events:,} events"
        each = " of each partition" if plan.sequence.partition else ""
        return f"{kept}{each}, about {BYTES:,} bytes each{where}"
    seconds = plan.sequence.window.horizon / 1000
    if rate is None:
        return (
            f"r x {seconds:,g} s x about {BYTES:,} bytes{where}; r is how many solutions of "
            f"{_names(plan)} come per second (--rate)"
        )
    size = rate * seconds * BYTES
    return (
        f"{rate:,g} solutions/s x {seconds:,g} s x about {BYTES:,} bytes = {size / 2**20:,.1f} MB"
        f"{where}"
    )


def _names(plan: QueryPlan) -> str:
    return ", ".join(gpm.name for gpm in plan.patterns.gpms)
