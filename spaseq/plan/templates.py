"""Plans by templates: of equal queries but for constants, one is parsed and planned.

Planning a query takes milliseconds, nearly all of it parsing and the choice of an evaluator. A
query that is equal to a planned one but for constants gets a `MemberPlan`, made of its constants.
"""

from __future__ import annotations

from functools import cached_property

from spaseq.errors import QueryText
from spaseq.expr.extension import registered
from spaseq.lang.parser import MOST_CHARACTERS, parse_source
from spaseq.lang.text_templates import TextTemplate, outline
from spaseq.plan.member_plan import PlanTemplate
from spaseq.plan.planning_options import CompileOptions
from spaseq.plan.query_plan import KeptGroups, QueryPlan

_MOST_ALIKE = 32
"""The most templates of one outline; queries beyond them are planned."""

_MOST_OUTLINES = 4096
"""The most outlines that are known; the oldest are forgotten."""


class QueryTemplates:
    """The templates of queries that have been planned."""

    def __init__(self) -> None:
        self._known: dict[object, list[_PlannedQuery]] = {}

    def plan(self, text: str, name: str, options: CompileOptions) -> QueryPlan | None:
        """The plan of a query that fits a template, which has no findings; None if none fits."""
        for known in self._known.get(_key(text, options), ()) if _may(text, options) else ():
            plan = known.plan(text, name)
            if plan is not None:
                return plan
        return None

    def learn(self, text: str, plan: QueryPlan, options: CompileOptions) -> None:
        """Make a template of a query that was planned without findings."""
        if not _may(text, options) or not plan.is_member or _may_be_empty(plan):
            return
        alike = self._known.setdefault(_key(text, options), [])
        if len(alike) < _MOST_ALIKE:
            alike.append(_PlannedQuery(text, plan, options))
        if len(self._known) > _MOST_OUTLINES:
            del self._known[next(iter(self._known))]


class _PlannedQuery:
    """A planned query; its template is made when another query may fit it."""

    def __init__(self, text: str, plan: QueryPlan, options: CompileOptions) -> None:
        self._text, self._plan, self._options = text, plan, options

    def plan(self, text: str, name: str) -> QueryPlan | None:
        """The plan of a query that fits."""
        return None if self._template is None else self._template.plan(text, name)

    @cached_property
    def _template(self) -> PlanTemplate | None:
        query = parse_source(QueryText(self._text)).query
        assert query is not None and self._plan.shaped is not None
        constants = self._plan.shaped.constants, self._plan.constant_texts
        texts = TextTemplate.of(self._text, query, *constants)
        return None if texts is None else PlanTemplate(self._plan, texts, self._options)


def _may(text: str, options: CompileOptions) -> bool:
    """Whether a query may have a template: only a query of several without further wishes has."""
    special = options.partial or options.evaluator is not None or options.schema is not None
    return options.several and not special and len(text) <= MOST_CHARACTERS


def _may_be_empty(plan: QueryPlan) -> bool:
    """Whether a finding may depend on what HAVING compares with: an empty window may pass it."""
    if not plan.inputs.windows:
        return False
    kept = [each for each in plan.patterns.kept if isinstance(each, KeptGroups)]
    return len(kept) < len(plan.patterns.gpms) or not all(each.group.keys for each in kept)


def _key(text: str, options: CompileOptions) -> object:
    """Queries with equal keys may be of one template."""
    return outline(text), tuple(options.disable), options.pushed, registered()
