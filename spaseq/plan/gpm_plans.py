"""The GPMs of a query as algebra, and as parts of a plan; and its windows: extents, contents, and
GPMs on window events.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from spaseq.algebra import nodes as n
from spaseq.algebra.entailment import entailed
from spaseq.algebra.groups import translate_group
from spaseq.algebra.needs import predicates_of_expression, predicates_read, together
from spaseq.algebra.nodes import certain, possible, visible
from spaseq.algebra.substitution import sensitive
from spaseq.algebra.translate import EVENT, GpmAlgebra, membership_pattern, split_gpm
from spaseq.errors import Diagnostic
from spaseq.lang import ast
from spaseq.lang.resolve import Resolved
from spaseq.lang.scope import seen_before
from spaseq.lang.variables import is_now, rewritten, walk
from spaseq.lang.windows import is_of_changes, is_on_windows, own_partition, windows_of
from spaseq.plan.pattern_plan import (
    ContentPlan,
    EachEventExtent,
    Extent,
    GpmPlan,
    Membership,
    PanesExtent,
    SessionExtent,
    WindowPlan,
    WindowSource,
)
from spaseq.plan.query_plan import SequencePlan
from spaseq.rdf.schema import Schema
from spaseq.rdf.terms.term import XSD_DATE_TIME, literal_text
from spaseq.rdf.terms.times import parse_time


def gpm_algebra(
    resolved: Resolved, schema: Schema | None = None, awaited: bool = False
) -> dict[str, GpmAlgebra]:
    """The algebra of each GPM that the sequence uses, by name, in the order of the text.

    `awaited` is that of `split_gpm`.
    """
    seen = seen_before(resolved.chain, resolved.scope, resolved.binds)
    used = {o.gpm for o in resolved.scope.occurrences}

    def algebra(gpm: ast.Gpm) -> GpmAlgebra:
        before = frozenset(seen.get(gpm.name, ()))
        if windows_of(gpm, resolved.query):
            return algebra_on_windows(gpm, resolved, before, schema)
        return split_gpm(gpm, before, schema, awaited)

    return {gpm.name: algebra(gpm) for gpm in resolved.query.gpms if gpm.name in used}


def gpm_plans(resolved: Resolved, schema: Schema | None) -> tuple[GpmPlan, ...]:
    """The GPMs that the sequence uses, in the order of the text."""
    algebra = gpm_algebra(resolved, schema)
    gpms = {gpm.name: gpm for gpm in resolved.query.gpms}
    return tuple(_gpm_plan(resolved, gpms[name], of_gpm) for name, of_gpm in algebra.items())


def with_awaited(
    resolved: Resolved, schema: Schema | None, plans: tuple[GpmPlan, ...]
) -> tuple[GpmPlan, ...]:
    """The GPMs, each with its `awaited` form if it has one.

    There is none for a GPM that asks no endpoint, that comes first in the sequence, or whose
    endpoints bind a variable of PARTITION BY.
    """
    algebra = gpm_algebra(resolved, schema, awaited=True)
    partition = {v.name for v in resolved.query.partition}
    gpms = {gpm.name: gpm for gpm in resolved.query.gpms}
    made = []
    for plan in plans:
        awaited = algebra[plan.name]
        waits = plan.correlation is None and awaited.correlation is not None
        if waits and partition & plan.certain <= awaited.certain:
            plan = replace(plan, awaited=_gpm_plan(resolved, gpms[plan.name], awaited))
        made.append(plan)
    return tuple(made)


def membership_plans(
    resolved: Resolved,
    schema: Schema | None,
    gpms: tuple[GpmPlan, ...],
    sequence: SequencePlan,
) -> tuple[Membership, ...]:
    """The patterns that decide the partitions of events; none if stage 1 need not know them.

    Stage 1 has to know the partitions of all events if stage 2 needs the instants of all events, or
    if a GPM, which must be a negated one, does not bind every variable of PARTITION BY. All GPMs
    that may bind these variables count, also the GPMs that the sequence does not use.
    """
    partition = set(sequence.partition)
    spread = any(not partition <= gpm.certain for gpm in gpms)
    if not partition or not (spread or sequence.needs_instants):
        return ()
    memberships = (
        Membership(gpm.name, _streams(resolved, gpm), membership_pattern(gpm, schema))
        for gpm in resolved.query.gpms
        if not is_on_windows(gpm, resolved.query)
    )
    return tuple(m for m in memberships if partition <= visible(possible(m.pattern)))


def _streams(resolved: Resolved, gpm: ast.Gpm) -> tuple[int, ...]:
    streams = [s.name for s in resolved.query.streams]
    return tuple(sorted({streams.index(r.name) for r in gpm.streams if r.name in streams}))


def _gpm_plan(resolved: Resolved, gpm: ast.Gpm, algebra: GpmAlgebra) -> GpmPlan:
    positive = {o.gpm for o in resolved.scope.occurrences if o.negation is None}
    variables = sorted(algebra.possible)
    if algebra.correlation is not None:
        variables.append(EVENT)
    return GpmPlan(
        gpm.name,
        _streams(resolved, gpm),
        algebra.pattern,
        tuple(variables),
        algebra.certain,
        algebra.deferred,
        gpm.name not in positive,
        algebra.correlation,
        windows=sources_of(gpm, resolved.query),
        needed=values_needed(algebra, (v.name for v in resolved.query.partition)),
    )


NOW = n.parameter(0)
"""The variable that replaces NOW() in a GPM on windows: the time of the window event."""


def algebra_on_windows(
    gpm: ast.Gpm, resolved: Resolved, seen: frozenset[str], schema: Schema | None
) -> GpmAlgebra:
    """The algebra of a GPM with a window as source; `seen` may be bound before it.

    A GPM on NEW or GONE is evaluated by itself. The variables of PARTITION BY have values on every
    window event. So has NOW(): a pattern that depends on these values only is not correlated.
    """
    partition = frozenset(v.name for v in resolved.query.partition)
    keys = partition if is_on_windows(gpm, resolved.query) else frozenset[str]()
    if is_of_changes(gpm):
        pattern = entailed(translate_group(_without_now(gpm.pattern)), schema)
        names = visible(possible(pattern)), visible(certain(pattern))
        return GpmAlgebra(pattern, (), names[0] | keys, names[1] | keys)
    algebra = split_gpm(gpm, seen | keys, schema)
    if algebra.correlation is not None and is_on_windows(gpm, resolved.query):
        timed = replace(gpm, pattern=_without_now(gpm.pattern))
        alone = split_gpm(timed, seen - keys, schema)
        if alone.correlation is None:
            algebra = replace(alone, deferred=tuple(map(_with_now, alone.deferred)))
    return replace(algebra, possible=algebra.possible | keys, certain=algebra.certain | keys)


def _without_now(group: ast.GroupGraphPattern) -> ast.GroupGraphPattern:
    return rewritten(group, lambda node: ast.Var(NOW) if is_now(node) else None)


def _with_now(expr: ast.Expr) -> ast.Expr:
    now = ast.Call("NOW", ())
    return rewritten(expr, lambda node: now if node == ast.Var(NOW) else None)


def sources_of(gpm: ast.Gpm, query: ast.Query) -> tuple[WindowSource, ...]:
    """The windows that a GPM stands on."""
    names = [window.name for window in query.windows]
    sources = (WindowSource(names.index(r.name), r.change) for r in gpm.streams if r.name in names)
    return tuple(dict.fromkeys(sources))


def values_needed(algebra: GpmAlgebra, partition: Iterable[str]) -> tuple[str, ...]:
    """The variables whose values are substituted in a pattern on window events, sorted."""
    return tuple(sorted(sensitive(algebra.pattern) & {*partition, NOW}))


def check_changes(
    resolved: Resolved, seen: dict[str, set[str]], schema: Schema | None
) -> list[Diagnostic]:
    """Findings of GPMs on NEW or GONE and on another source, where their meaning would differ."""
    errors = []
    for gpm in resolved.query.gpms:
        if not is_of_changes(gpm) or all(ref.change for ref in gpm.streams):
            continue
        usual = split_gpm(gpm, frozenset(seen.get(gpm.name, ())), schema)
        reads_now = any(map(is_now, walk(gpm.pattern)))
        if usual.correlation is not None or usual.deferred or reads_now:
            message = (
                f"GPM {gpm.name} depends on other steps or on NOW(), and stands on NEW or GONE of "
                "a window beside another source: define a GPM for each, and join them by |"
            )
            errors.append(Diagnostic("error", "mixed-sources", message, gpm.span, resolved.source))
    return errors


# --- windows --------------------------------------------------------------------------------------


def window_plans(
    resolved: Resolved, gpms: tuple[GpmPlan, ...], schema: Schema | None
) -> tuple[tuple[WindowPlan, ...], tuple[ContentPlan, ...]]:
    """The windows of a query, and the content of their events from stage 1.

    Windows with equal streams and keys share their contents.
    """
    query = resolved.query
    streams = [stream.name for stream in query.streams]
    counted = {ref.name for gpm in query.gpms for ref in gpm.streams}
    contents: dict[tuple[tuple[int, ...], n.Pattern], ContentPlan] = {}
    places: list[tuple[tuple[int, ...], n.Pattern]] = []
    partition = tuple(sorted(v.name for v in own_partition(query)))
    for number, window in enumerate(query.windows):
        own = tuple(sorted({streams.index(ref.name) for ref in window.streams}))
        key = n.UNIT if window.key is None else entailed(translate_group(window.key), schema)
        if partition:
            key = n.Distinct(n.Project(key, partition))
        read = _predicates(number, gpms, schema)
        known = contents.get((own, key))
        if known is not None:
            both = [None if p is None else frozenset(p) for p in (known.predicates, read)]
            merged = together(both)
            read = None if merged is None else tuple(sorted(merged))
        plan = GpmPlan(
            window.name, own, key, (*partition, EVENT), frozenset(partition), negated=True
        )
        contents[own, key] = ContentPlan(plan, read, tuple(i for i in own if streams[i] in counted))
        places.append((own, key))
    order = list(contents)
    windows = tuple(
        WindowPlan(
            window.name, place[0], extent_of(window.extent), contents[place], order.index(place)
        )
        for window, place in zip(query.windows, places, strict=True)
    )
    return windows, tuple(contents.values())


def _predicates(
    window: int, gpms: tuple[GpmPlan, ...], schema: Schema | None
) -> tuple[str, ...] | None:
    """The predicates (N-Triples texts, sorted) that the GPMs on a window read; None for all."""
    readers = [gpm for gpm in gpms if any(source.window == window for source in gpm.windows)]
    predicates = together(
        [
            *(predicates_read(gpm.pattern, schema) for gpm in readers),
            *(predicates_of_expression(e, schema) for gpm in readers for e in gpm.conditions),
        ]
    )
    return None if predicates is None else tuple(sorted(predicates))


def extent_of(extent: ast.Panes | ast.EachEvent | ast.Session) -> Extent:
    """The extent of a window without errors, in milliseconds."""
    match extent:
        case ast.Session(gap):
            return SessionExtent(gap.ms)
        case ast.EachEvent(int() as events):
            return EachEventExtent(None, events)
        case ast.EachEvent(ast.TimeSpan() as length):
            return EachEventExtent(length.ms, None)
        case ast.Panes(length, slide, origin):
            start = 0
            if origin is not None:
                parsed = parse_time(literal_text(origin, XSD_DATE_TIME))
                assert parsed is not None
                start = parsed
            return PanesExtent(length.ms, (slide or length).ms, start)
    raise AssertionError(extent)
