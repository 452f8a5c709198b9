"""The plan of a query that is equal to another one but for constants, made without planning it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spaseq.errors import QueryText
from spaseq.lang.parser import parse_source
from spaseq.lang.resolve import resolve
from spaseq.lang.shapes import Shaped
from spaseq.plan.planner import plan_query
from spaseq.plan.planning_options import CompileOptions
from spaseq.plan.query_plan import EvaluatorName, Identity, PatternPlan, QueryPlan, SequencePlan
from spaseq.records import record


@record
class WrittenQuery:
    """The text of a query without errors, and how it is compiled."""

    text: str
    options: CompileOptions

    def plan(self, title: str) -> QueryPlan:
        """The query's plan."""
        source = QueryText(self.text, self.options.file or "<query>")
        query = parse_source(source).query
        assert query is not None
        return plan_query(resolve(query, source), title, self.options)


class MemberPlan(QueryPlan):
    """The plan of a query that has been recognised by a template (`spaseq.plan.templates`).

    Another query's plan, `like`, gives it the parts that depend on no constant. Its graph patterns
    and its sequence are planned when somebody asks for them; a run of its family does not, as the
    family has a plan. `dataclasses.replace` makes a `QueryPlan` of it.
    """

    __slots__ = ("_like", "_whole", "_written")

    _like: QueryPlan
    _whole: QueryPlan | None
    _written: WrittenQuery

    def __new__(cls, *values: Any, **fields: Any) -> Any:
        """A `QueryPlan` of the values of all fields, as `dataclasses.replace` asks for."""
        return QueryPlan(*values, **fields)

    @classmethod
    def of(
        cls, like: QueryPlan, written: WrittenQuery, identity: Identity, shaped: Shaped | None
    ) -> MemberPlan:
        """The plan of a query whose template has the plan `like`."""
        made: MemberPlan = object.__new__(cls)
        put = object.__setattr__
        put(made, "_like", like)
        put(made, "_written", written)
        put(made, "_whole", None)
        put(made, "identity", identity)
        put(made, "shaped", shaped)
        put(made, "inputs", like.inputs)
        put(made, "answers", like.answers)
        put(made, "expressions", like.expressions)
        put(made, "disabled", like.disabled)
        put(made, "levels", like.levels)
        put(made, "is_member", like.is_member)
        return made

    @property
    def patterns(self) -> PatternPlan:
        """Stage 1 of the query by itself."""
        return self.whole.patterns

    @property
    def sequence(self) -> SequencePlan:
        """Stage 2 of the query by itself."""
        return self.whole.sequence

    @property
    def evaluator(self) -> EvaluatorName:
        return self._like.evaluator

    @property
    def whole(self) -> QueryPlan:
        """The plan of the query by itself, planned at the first call."""
        if self._whole is None:
            object.__setattr__(self, "_whole", self._written.plan(self.identity.title))
        assert self._whole is not None
        return self._whole

    def with_identity(self, identity: Identity) -> QueryPlan:
        return MemberPlan.of(self._like, self._written, identity, self.shaped)

    def without_shape(self) -> QueryPlan:
        return MemberPlan.of(self._like, self._written, self.identity, None)

    def __reduce__(self) -> tuple[Callable[..., MemberPlan], tuple[Any, ...]]:
        return MemberPlan.of, (self._like, self._written, self.identity, self.shaped)
