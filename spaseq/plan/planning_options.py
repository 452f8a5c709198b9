"""The caller's choices that a plan depends on."""

from __future__ import annotations

from collections.abc import Iterable

from spaseq.rdf.schema import Schema
from spaseq.records import record


@record
class CompileOptions:
    """How a query is compiled.

    `file` is the file name in findings. Tests use `evaluator` to force one. `schema` is the schema
    of entailment. `disable` names rules of the planner (`spaseq.plan.rules`) to leave out. `pushed`
    says that events come one by one. With `partial` the plan has the levels that partial matches
    need. `several` says that the query runs beside others.
    """

    file: str | None = None
    evaluator: str | None = None
    schema: Schema | None = None
    disable: Iterable[str] = ()
    pushed: bool = False
    partial: bool = False
    several: bool = False


AS_USUAL = CompileOptions()
