"""The rule kept-groups."""

from __future__ import annotations

from dataclasses import replace

from spaseq.plan.query_plan import ContentPlan, KeptGroups, QueryPlan
from spaseq.plan.sequencing import pattern_plan
from spaseq.plan.window_groups import content_of, kept_of, reason_against


def kept_groups(plan: QueryPlan) -> QueryPlan:
    """Groups over EVENT are kept from window to window: a close costs the groups that changed.

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
    patterns = plan.patterns
    chosen = [
        number
        for number, gpm in enumerate(patterns.gpms)
        if gpm.windows and reason_against(plan, gpm) is None
    ]
    if not chosen:
        return plan
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
        if number in anew and window.content is not None:
            place = _placed(contents, patterns.contents[window.content])
        windows.append(replace(window, content=place))
    kept = list[KeptGroups]()
    for number in chosen:
        content = content_of(plan, patterns.gpms[number])
        kept.append(kept_of(plan, number, _placed(contents, content)))
    made = pattern_plan(patterns.gpms, patterns.memberships, tuple(contents), tuple(kept))
    return replace(
        plan,
        inputs=replace(plan.inputs, windows=tuple(windows)),
        patterns=replace(made, evaluation=patterns.evaluation),
    )


def _placed(contents: list[ContentPlan], content: ContentPlan) -> int:
    """The place of a content among some, to which it is added unless an equal one is there."""
    for place, own in enumerate(contents):
        same = own.gpm.pattern, own.gpm.streams, own.gpm.variables, own.operands
        if same == (content.gpm.pattern, content.gpm.streams, content.gpm.variables,
                    content.operands):  # fmt: skip
            return place
    contents.append(content)
    return len(contents) - 1
