"""The rule kept-groups."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from spaseq.plan import window_groups, window_joins
from spaseq.plan.pattern_plan import (
    ContentPlan,
    GpmPlan,
    JoinEdge,
    JoinedPart,
    KeptGroups,
    KeptJoin,
)
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.sequencing import pattern_plan
from spaseq.plan.split_patterns import reads


def kept_groups(plan: QueryPlan) -> QueryPlan:
    """Groups and joins of EVENT are kept from window to window: a close costs only the changes.

    >>> from spaseq.compile import CompileOptions, compile_query
    >>> query = '''SELECT * FROM STREAM S <http://e/s> FROM WINDOW W ON S RANGE 1 HOURS
    ...     WHERE { SEQ(A) DEFINE GPM A ON W { { SELECT ?x (AVG(?y) AS ?mean)
    ...     { EVENT { ?x <http://e/is> ?y } } GROUP BY ?x } } }'''
    >>> plan = compile_query(query, options=CompileOptions(disable=["kept-groups"]))
    >>> plan.patterns.kept
    ()
    >>> [own.group.keys for own in kept_groups(plan).patterns.kept]
    [('x',)]
    """
    gpms = enumerate(plan.patterns.gpms)
    chosen = [n for n, gpm in gpms if gpm.windows and reason_against(plan, gpm) is None]
    return keeping(plan, chosen) if chosen else plan


def keeping(plan: QueryPlan, chosen: Sequence[int]) -> QueryPlan:
    """The plan that keeps groups and joins only of the chosen GPMs (indexes)."""
    patterns = plan.patterns
    anew = {
        source.window
        for number, gpm in enumerate(patterns.gpms)
        if number not in chosen
        for source in gpm.windows
    }
    contents: list[ContentPlan] = []
    windows = []
    for number, window in enumerate(plan.inputs.windows):
        place = None
        if number in anew:
            place = _placed(contents, window.held)
        windows.append(replace(window, content=place))
    kept = [_kept(plan, number, contents) for number in chosen]
    made = pattern_plan(patterns.gpms, patterns.memberships, tuple(contents), tuple(kept))
    return replace(
        plan,
        inputs=replace(plan.inputs, windows=tuple(windows)),
        patterns=replace(made, evaluation=patterns.evaluation),
    )


def keeping_lasting(plan: QueryPlan, graphs: Collection[str]) -> QueryPlan:
    """The plan that keeps nothing of GPMs that read some graphs (IRIs), which may change.

    The kept part of an event was joined with the graphs at that time, not at a close. Groups that
    are joined with the graphs stay, as that join is done at a close.
    """
    if not (graphs and plan.inputs.windows):  # the plan of a member need not be made
        return plan
    kept = [each.gpm for each in plan.patterns.kept]
    patterns = {gpm: window_groups.kept_part(plan.patterns.gpms[gpm].pattern) for gpm in kept}
    lasting = [gpm for gpm in kept if not reads(patterns[gpm], graphs)]
    if lasting == kept:
        return plan
    return keeping(plan, [] if plan.sequence.needs_instants else lasting)


def reason_against(plan: QueryPlan, gpm: GpmPlan) -> str | None:
    """The reason why a GPM on windows is evaluated anew at each close; None if its groups or join
    are kept.

    If the sequence counts window events, all GPMs on windows are kept, or none is.
    """
    own = _reason_against(plan, gpm)
    if own is None and plan.sequence.needs_instants:
        others = (other for other in plan.patterns.gpms if other.windows)
        if any(_reason_against(plan, other) is not None for other in others):
            return "the sequence counts window events, and another GPM on windows is evaluated anew"
    return own


def _reason_against(plan: QueryPlan, gpm: GpmPlan) -> str | None:
    for_all = window_groups.reason_for_all(plan, gpm)
    if for_all is not None:
        return for_all
    if window_groups.group_of(gpm.pattern) is not None:
        return window_groups.reason_against(gpm)
    return window_joins.reason_against(gpm)


def _kept(plan: QueryPlan, number: int, contents: list[ContentPlan]) -> KeptGroups | KeptJoin:
    """The kept part of a GPM (an index), made of contents, which are added."""
    gpm = plan.patterns.gpms[number]
    if window_groups.group_of(gpm.pattern) is not None:
        content = window_groups.content_of(plan, gpm)
        return window_groups.kept_of(plan, number, _placed(contents, content))
    join = window_joins.join_of(gpm.pattern)
    assert join is not None
    names = plan.inputs.stream_names
    made = window_joins.contents_of(plan, gpm, join)
    parts = tuple(
        JoinedPart(_placed(contents, content), names.index(part.stream) if part.stream else None)
        for part, content in zip(join.parts, made, strict=True)
    )
    edges = tuple(
        JoinEdge(e.first, e.second, tuple(window_joins.column_of(plan, v) for v in e.variables))
        for e in window_joins.edges_of(join.parts) or ()
    )
    columns = window_joins.columns_of(gpm, join)
    return KeptJoin(number, parts, edges, columns, join.pattern, join.joined)


def _placed(contents: list[ContentPlan], content: ContentPlan) -> int:
    """The index of a content among some, to which it is added unless an equal one is there."""
    for place, known in enumerate(contents):
        same = known.gpm.pattern, known.gpm.streams, known.gpm.variables, known.operands
        if same == (content.gpm.pattern, content.gpm.streams, content.gpm.variables,
                    content.operands):  # fmt: skip
            return place
    contents.append(content)
    return len(contents) - 1
