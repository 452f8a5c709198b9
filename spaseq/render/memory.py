"""How much memory a query needs, told beforehand: what its window holds times the size of that."""

from __future__ import annotations

from spaseq.automaton.program.window import Counted
from spaseq.plan.query_plan import QueryPlan

BYTES = 1500
"""Of a solution that waits in the evaluator `registers`, its texts included, as measured; the other
evaluators need less."""


def memory_text(plan: QueryPlan, rate: float | None = None) -> str:
    """What stage 2 keeps at most of the solutions of the window, in words.

    `rate` is how many solutions come per second; without it the text is a formula.
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
