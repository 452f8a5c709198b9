"""The columns of solutions, as a plan names them."""

from __future__ import annotations

from spaseq.records import record


@record
class SolutionColumns:
    """The variables that have a column of terms, and the variables that have one of numbers."""

    variables: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()  # variables in conditions between steps
