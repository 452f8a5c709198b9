"""Graph patterns whose every part is measured, for `spaseq explain --analyze`."""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.algebra import nodes as n
from spaseq.compiled.arrays import Bools
from spaseq.expr.compile import Options
from spaseq.gpm.graphs.triple_source import TripleSource
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.patterns.active_graph import ActiveGraph
from spaseq.gpm.patterns.conjunction import Conjunction
from spaseq.gpm.patterns.operators import PatternOperators
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.lang import ast
from spaseq.measures import Measures
from spaseq.plan.query_plan import PatternEvaluation

_PLAIN = n.BGP | n.Join | n.Filter
"""A conjunction is no node: its triple patterns, operands and conditions are."""


class MeasuredOperators(PatternOperators):
    """Evaluates patterns as `PatternOperators` does, and measures each part."""

    def __init__(
        self,
        knowledge: KnowledgeBase,
        options: Options,
        evaluation: PatternEvaluation,
        measures: Measures,
    ) -> None:
        super().__init__(knowledge, options, evaluation)
        self._measures = measures

    def _evaluate(self, pattern: n.Pattern, active: ActiveGraph) -> Solutions:
        if isinstance(pattern, _PLAIN):
            return super()._evaluate(pattern, active)
        with self._measures.inside(pattern) as measure:
            found = super()._evaluate(pattern, active)
            measure.took(found.size, bytes_of(found))
        return found

    def _basic(self, parts: Conjunction, source: TripleSource) -> Iterator[Solutions]:
        if not isinstance(source, VerticalPartition):
            yield from super()._basic(parts, source)
        elif parts.bgp is not None:
            with self._measures.inside(parts.triples) as measure:
                found = parts.bgp.solutions(source)
                measure.took(found.size, bytes_of(found))
            yield found

    def _test(self, expr: ast.Expr, found: Solutions, active: ActiveGraph) -> Bools:
        with self._measures.inside(expr) as measure:
            passed = super()._test(expr, found, active)
            measure.took(int(passed.sum()), rows_in=found.size)
        return passed


def bytes_of(found: Solutions) -> int:
    """The bytes of the columns of some solutions."""
    own = 0 if found.event is None else int(found.event.nbytes)
    return own + sum(int(column.nbytes) for column in found.columns.values())
