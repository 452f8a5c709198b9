"""Which operands of aggregates have queues (MIN, MAX) or twins (of DISTINCT) in the kernel."""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.lang import ast
from spaseq.plan.query_plan import KeptGroups
from spaseq.records import record

_SIGNS = {"MIN": 1, "MAX": -1}


@record
class TrackedOperands:
    """(operand, sign) of each queue, and the operand of each sum of distinct terms.

    Sums of distinct terms stand behind the sums of the `operands`.
    """

    operands: int
    queues: Sequence[tuple[int, int]]
    twins: Sequence[int]

    @classmethod
    def of(cls, kept: KeptGroups, operands: int) -> TrackedOperands:
        """Those of the kept groups of a GPM, given the number of all operands."""
        queues = dict[tuple[int, int], None]()
        twins = dict[int, None]()
        for (_, aggregate), operand in zip(kept.group.aggregates, kept.operands, strict=True):
            if operand is not None and aggregate.function in _SIGNS:
                queues[operand, _SIGNS[aggregate.function]] = None
            elif operand is not None and _sums_terms(aggregate):
                twins[operand] = None
        return cls(operands, [*queues], [*twins])

    def queue(self, aggregate: ast.Aggregate, operand: int) -> int | None:
        """The queue of an aggregate, None if it has none."""
        sign = _SIGNS.get(aggregate.function)
        return None if sign is None else self.queues.index((operand, sign))

    def distinct(self, aggregate: ast.Aggregate, operand: int) -> int | None:
        """The place of the sum of distinct terms that an aggregate needs, None if it needs none."""
        return self.operands + self.twins.index(operand) if _sums_terms(aggregate) else None


def _sums_terms(aggregate: ast.Aggregate) -> bool:
    return aggregate.function in ("COUNT", "SUM", "AVG") and aggregate.distinct
