"""Plans by templates: one of the queries that differ in constants only is parsed and planned.

Planning a query takes milliseconds, nearly all of it parsing and the choice of an evaluator. A
query that differs from a planned one in constants only gets a `MemberPlan`, made of its constants.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

from spaseq.errors import QueryText
from spaseq.expr.extension import registered
from spaseq.lang.parser import MOST_CHARACTERS, parse_source
from spaseq.lang.resolve import resolve
from spaseq.lang.shapes import Shape, Shaped
from spaseq.lang.text_templates import TextTemplate, outline
from spaseq.plan.pattern_plan import KeptGroups, PatternPlan
from spaseq.plan.planner import plan_query, signature
from spaseq.plan.query_plan import CompileOptions, EvaluatorName, Identity, QueryPlan, SequencePlan
from spaseq.plan.signatures import Signature
from spaseq.records import record

_MOST_ALIKE = 32
"""Maximum number of templates of one outline; further queries are planned."""

_MOST_OUTLINES = 4096
"""Maximum number of outlines; the oldest are dropped."""


@record
class PlanTemplate:
    """A planned query, and the texts that differ from it in constants only.

    Of such a text, only the groups of `texts` are kept.
    """

    like: QueryPlan
    texts: TextTemplate
    options: CompileOptions

    def plan(self, text: str, name: str) -> MemberPlan | None:
        """The plan of a text, whose answers have the name `name`; None if it does not fit."""
        given = self.texts.given(text)
        if given is None:
            return None
        return MemberPlan.of(self, given, name, Identity(name, name, None), True)

    def planned(self, given: str, title: str) -> QueryPlan:
        """The plan of a text that is parsed and planned."""
        source = QueryText(self.texts.text(given))
        query = parse_source(source).query
        assert query is not None
        return plan_query(resolve(query, source), title, self.options)


class MemberPlan(QueryPlan):
    """The plan of a query that fits a template (`spaseq.plan.templates`).

    Another query's plan gives it the parts that depend on no constant. Its graph patterns and its
    sequence are planned at their first use; a run of its family does not use them, as the family
    has a plan. Its constants are computed at each use. So it takes few bytes. `dataclasses.replace`
    makes a `QueryPlan` of it.
    """

    __slots__ = ("_given", "_has_shape", "_signature", "_template", "_title", "_whole")

    _given: str
    _has_shape: bool
    _signature: Signature | None
    _template: PlanTemplate
    _title: str
    _whole: QueryPlan | None

    def __new__(cls, *values: Any, **fields: Any) -> Any:
        """A `QueryPlan` of the values of all fields, for `dataclasses.replace`."""
        return QueryPlan(*values, **fields)

    @classmethod
    def of(
        cls, template: PlanTemplate, given: str, title: str, identity: Identity, has_shape: bool
    ) -> MemberPlan:
        """The plan of a query that has `given` in the groups of the template.

        Its state depends on `title`, even if it gets another identity.
        """
        made: MemberPlan = object.__new__(cls)
        put, like = object.__setattr__, template.like
        put(made, "_template", template)
        put(made, "_given", given)
        put(made, "_title", title)
        put(made, "_whole", None)
        put(made, "_signature", None)
        put(made, "_has_shape", has_shape)
        put(made, "identity", identity)
        put(made, "inputs", like.inputs)
        put(made, "answers", like.answers)
        put(made, "expressions", like.expressions)
        put(made, "disabled", like.disabled)
        put(made, "levels", like.levels)
        put(made, "changing", like.changing)
        put(made, "is_member", like.is_member)
        return made

    @property
    def patterns(self) -> PatternPlan:
        """Stage 1 of the single query."""
        return self.whole.patterns

    @property
    def sequence(self) -> SequencePlan:
        """Stage 2 of the single query."""
        return self.whole.sequence

    @property
    def signature(self) -> Signature:
        """The hashes of the query, computed at the first use, by logs and checkpoints."""
        if self._signature is None:
            template, given = self._template, self._given
            text = partial(template.texts.canonical, given)
            made = signature(template.like, self._title, text)
            object.__setattr__(self, "_signature", made)
        assert self._signature is not None
        return self._signature

    @property
    def shape(self) -> Shape | None:
        return self._template.like.shape if self._has_shape else None

    @property
    def shaped(self) -> Shaped | None:
        """The shape with the constants, which are made at each call."""
        if self.shape is None:
            return None
        return Shaped(self.shape, self._template.texts.constants(self._given))

    @property
    def constant_texts(self) -> tuple[str, ...]:
        return self._template.texts.constant_texts(self._given)

    @property
    def evaluator(self) -> EvaluatorName:
        return self._template.like.evaluator

    @property
    def whole(self) -> QueryPlan:
        """The plan of the single query, made at the first use."""
        if self._whole is None:
            planned = self._template.planned(self._given, self.identity.title)
            object.__setattr__(self, "_whole", planned)
        assert self._whole is not None
        return self._whole

    def with_identity(self, identity: Identity) -> QueryPlan:
        return MemberPlan.of(self._template, self._given, self._title, identity, self._has_shape)

    def without_shape(self) -> QueryPlan:
        return MemberPlan.of(self._template, self._given, self._title, self.identity, False)

    def __reduce__(self) -> tuple[Callable[..., MemberPlan], tuple[Any, ...]]:
        state = self._template, self._given, self._title, self.identity, self._has_shape
        return MemberPlan.of, state


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
    """Whether a query may have a template: only a query among several with default options."""
    special = options.partial or options.evaluator is not None or options.schema is not None
    return options.several and not special and len(text) <= MOST_CHARACTERS


def _may_be_empty(plan: QueryPlan) -> bool:
    """Whether a finding may depend on a constant in HAVING, which an empty window may satisfy."""
    if not plan.inputs.windows:
        return False
    kept = [each for each in plan.patterns.kept if isinstance(each, KeptGroups)]
    return len(kept) < len(plan.patterns.gpms) or not all(each.group.keys for each in kept)


def _key(text: str, options: CompileOptions) -> object:
    """Queries with equal keys may be of one template."""
    return outline(text), tuple(options.disable), options.pushed, registered()
