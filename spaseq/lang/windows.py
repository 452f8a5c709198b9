"""Refusals and warnings of windows, of EVENT, and of NEW and GONE (docs/windows.md)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from operator import eq, ge, gt, le, lt, ne

from spaseq.errors import Diagnostic, QueryText, Span
from spaseq.lang import ast
from spaseq.lang.functions import AGGREGATES
from spaseq.lang.spelling import suggested
from spaseq.lang.variables import (
    children,
    expression_variables,
    is_made,
    nested_groups,
    pattern_variables,
    walk,
    walk_patterns,
)
from spaseq.rdf.terms.term import XSD_DATE_TIME, literal_text
from spaseq.rdf.terms.times import LONGEST_MS, parse_time
from spaseq.records import record

Findings = Iterator[Diagnostic]

_COUNTING = ("COUNT", "SUM", "AVG", "GROUP_CONCAT")
"""The aggregates that depend on how often a solution is there."""


def windows_of(gpm: ast.Gpm, query: ast.Query) -> tuple[ast.FromWindow, ...]:
    """The windows among the sources of a GPM."""
    known = {window.name: window for window in query.windows}
    return tuple(known[ref.name] for ref in gpm.streams if ref.name in known)


def is_on_windows(gpm: ast.Gpm, query: ast.Query) -> bool:
    """Whether all sources of a GPM are windows."""
    return bool(gpm.streams) and len(windows_of(gpm, query)) == len(gpm.streams)


def is_of_changes(gpm: ast.Gpm) -> bool:
    """Whether a source of a GPM is NEW or GONE of a window."""
    return any(ref.change for ref in gpm.streams)


def check_windows(
    query: ast.Query, source: QueryText, kinds: frozenset[type[ast.Node]], has_streams: bool
) -> Findings:
    """The refusals of the windows of a query.

    `kinds` are the classes of its nodes; `has_streams` says that its FROM STREAM are known.
    """
    yield from _Check(query, source, kinds, has_streams).findings()


def lint_windows(query: ast.Query, source: QueryText) -> Findings:
    """The warnings about windows of a query without errors."""
    yield from _Lint(query, source).findings()


def own_partition(query: ast.Query) -> tuple[ast.Var, ...]:
    """The variables of PARTITION BY, without the one that a family of queries has."""
    return tuple(v for v in query.partition if not is_made(v.name))


@record
class _Check:
    query: ast.Query
    source: QueryText
    kinds: frozenset[type[ast.Node]]
    has_streams: bool

    def findings(self) -> Findings:
        for window in self.query.windows:
            yield from self._window(window)
        for gpm in self.query.gpms:
            yield from self._gpm(gpm)

    def error(
        self, code: str, message: str, span: Span, names: Collection[str] = (), near: str = ""
    ) -> Diagnostic:
        suggestion = suggested(near, names) if near else None
        return Diagnostic(
            "error", code, message, span, self.source, tuple(sorted(names))[:8], suggestion
        )

    # --- FROM WINDOW ----------------------------------------------------------------------------

    def _window(self, window: ast.FromWindow) -> Findings:
        names = [s.name for s in self.query.streams] + [w.name for w in self.query.windows]
        if names.count(window.name) > 1:
            message = f"another stream or window is called {window.name}"
            yield self.error("duplicate-window", message, window.span)
        yield from self._streams(window)
        yield from self._extent(window.extent)
        yield from self._key(window)
        readers = {ref.name for gpm in self.query.gpms for ref in gpm.streams}
        if self.query.gpms and window.name not in readers:
            message = f"no GPM reads the window {window.name}"
            yield self.error("unread-window", message, window.span)

    def _streams(self, window: ast.FromWindow) -> Findings:
        streams = {s.name for s in self.query.streams}
        windows = {w.name for w in self.query.windows}
        for ref in window.streams:
            if ref.name in streams or not self.has_streams:
                continue
            if ref.name in windows:
                message = f"{ref.name} is a window: a window stands on streams only"
                yield self.error("window-on-window", message, ref.span)
            else:
                message = f"no stream is called {ref.name}"
                yield self.error("unknown-stream", message, ref.span, streams, ref.name)

    def _extent(self, extent: ast.Panes | ast.EachEvent | ast.Session) -> Findings:
        for node in (n for n in walk(extent) if isinstance(n, ast.TimeSpan)):
            if node.ms < 1:
                message = "this duration is 0: write at least 1"
                yield self.error("empty-window", message, node.span)
            elif node.ms > LONGEST_MS:
                message = "this duration is longer than 36 million years (2**60 milliseconds)"
                yield self.error("long-duration", message, node.span)
        events = extent.length if isinstance(extent, ast.EachEvent) else None
        if isinstance(events, int) and not 1 <= events <= LONGEST_MS:
            message = "a window has at least one event, and at most 2**60"
            yield self.error("empty-window", message, extent.span)
        origin = extent.origin if isinstance(extent, ast.Panes) else None
        if origin is not None and parse_time(literal_text(origin, XSD_DATE_TIME)) is None:
            message = f"{origin!r} is not a dateTime"
            yield self.error("not-a-time", message, extent.span, {"2020-01-31T00:00:00Z"})

    def _key(self, window: ast.FromWindow) -> Findings:
        partition, key = own_partition(self.query), window.key
        if key is None:
            if partition:
                names = " ".join(f"?{v.name}" for v in partition)
                message = (
                    f"the window {window.name} needs a KEY {{ ... }} that binds {names}: "
                    "it says which partitions an event is in"
                )
                yield self.error("missing-key", message, window.span)
            return
        if not partition:
            message = "KEY has a meaning only with PARTITION BY"
            yield self.error("needless-key", message, key.span)
        for element in key.elements:
            if not isinstance(element, ast.Triples | ast.Filter):
                message = "KEY takes triple patterns and FILTERs only"
                yield self.error("key-pattern", message, element.span)
        for node in walk_patterns(key):
            if isinstance(node, ast.Exists | ast.Prev | ast.Timestamp | ast.Aggregate) or (
                isinstance(node, ast.Call) and node.function == "NOW"
            ):
                message = "a FILTER of KEY looks at the event's triples only"
                yield self.error("key-pattern", message, node.span)
        bound = pattern_variables(key)
        for var in partition:
            if var.name not in bound:
                message = f"KEY does not bind ?{var.name} of PARTITION BY"
                yield self.error("missing-key", message, key.span, {f"?{v}" for v in bound})

    # --- GPMs -----------------------------------------------------------------------------------

    def _gpm(self, gpm: ast.Gpm) -> Findings:
        known = {window.name for window in self.query.windows}
        for ref in gpm.streams:
            if ref.change and ref.name not in known and self.has_streams:
                message = f"{ref.change} stands before a window, and {ref.name} is none"
                yield self.error("not-a-window", message, ref.span, known, ref.name)
        if not self.kinds.isdisjoint((ast.EventGraphPattern, ast.ServiceGraphPattern)):
            yield from self._events(gpm, gpm.pattern, is_on_windows(gpm, self.query))
        if is_of_changes(gpm):
            yield from self._looks_back(gpm)

    def _events(
        self, gpm: ast.Gpm, node: ast.Node, on_windows: bool, around: str | None = None
    ) -> Findings:
        if isinstance(node, ast.EventGraphPattern):
            if not on_windows:
                message = (
                    f"EVENT looks at the events of a window, but not all that GPM {gpm.name} "
                    "stands on are windows"
                )
                yield self.error("event-outside", message, node.span)
            elif around is not None:
                yield self.error("event-inside", f"EVENT cannot stand in {around}", node.span)
            yield from self._event_stream(gpm, node)
            around = "another EVENT"
        elif isinstance(node, ast.GraphGraphPattern):
            around = around or "GRAPH"
        elif isinstance(node, ast.ServiceGraphPattern):
            around = around or "SERVICE"
            if windows_of(gpm, self.query):
                message = "SERVICE cannot stand in a GPM on a window yet"
                yield self.error("service-on-window", message, node.span)
        if not isinstance(node, ast.Triples):
            for child in children(node):
                yield from self._events(gpm, child, on_windows, around)

    def _event_stream(self, gpm: ast.Gpm, node: ast.EventGraphPattern) -> Findings:
        if node.stream is None:
            return
        for window in windows_of(gpm, self.query):
            names = {ref.name for ref in window.streams}
            if node.stream.name not in names:
                message = f"{node.stream.name} is no stream of the window {window.name}"
                yield self.error("unknown-stream", message, node.stream.span, names, "")

    def _looks_back(self, gpm: ast.Gpm) -> Findings:
        """Findings of a GPM on NEW or GONE, which is evaluated by itself."""
        others = {
            v
            for other in self.query.gpms
            if other.name != gpm.name
            for v in pattern_variables(other.pattern)
        }
        others -= {v.name for v in self.query.partition}
        inside = _bound_inside(gpm.pattern)
        hint = f"GPM {gpm.name} is on NEW or GONE, so it is evaluated by itself"
        for expr in _expressions(gpm.pattern):
            for name in sorted((expression_variables(expr) & others) - inside):
                message = f"?{name} is bound by another step only, and {hint}"
                yield self.error("foreign-variable", message, expr.span)
        for node in _own_nodes(gpm.pattern):
            if isinstance(node, ast.Prev | ast.Timestamp | ast.Aggregate):
                yield self.error("foreign-variable", f"this looks at other steps, but {hint}",
                                 node.span)  # fmt: skip


def _bound_inside(group: ast.GroupGraphPattern) -> frozenset[str]:
    """The variables that a group or a group inside it binds."""
    groups = (n for n in walk_patterns(group) if isinstance(n, ast.GroupGraphPattern))
    subs = (n for n in walk_patterns(group) if isinstance(n, ast.SubSelect))
    named = (i.var.name for s in subs for i in (*(s.items or ()), *s.group_by) if i.var)
    return frozenset(named).union(*(pattern_variables(g) for g in groups))


def _expressions(node: ast.Node) -> Iterator[ast.Expr]:
    """All expressions of a pattern, including sub-queries and EXISTS."""
    for inner in walk_patterns(node):
        match inner:
            case ast.Filter(expr) | ast.Bind(expr) | ast.OrderCondition(expr):
                yield expr
            case ast.SelectItem(expr=ast.Node() as expr):
                yield expr
            case ast.SubSelect(having=having):
                yield from having


def _own_nodes(node: ast.Node) -> Iterator[ast.Node]:
    """The nodes of a pattern, without the aggregates of its sub-queries."""
    yield node
    if isinstance(node, ast.Triples):
        return
    for child in children(node):
        if isinstance(node, ast.SubSelect) and child is not node.pattern:
            yield from (n for n in walk(child) if isinstance(n, ast.Prev | ast.Timestamp))
        else:
            yield from _own_nodes(child)


@record
class _Lint:
    query: ast.Query
    source: QueryText

    def warning(self, code: str, message: str, span: Span) -> Diagnostic:
        return Diagnostic("warning", code, message, span, self.source)

    def findings(self) -> Findings:
        for window in self.query.windows:
            match window.extent:
                case ast.Panes(length, ast.TimeSpan() as slide) if slide.ms > length.ms:
                    message = "SLIDE is longer than RANGE: events between two windows are in none"
                    yield self.warning("skipping-window", message, window.extent.span)
        for gpm in self.query.gpms:
            if windows_of(gpm, self.query):
                yield from self._gpm(gpm)

    def _gpm(self, gpm: ast.Gpm) -> Findings:
        elsewhere = {
            v for o in self.query.gpms if o is not gpm for v in pattern_variables(o.pattern)
        }
        for node in walk_patterns(gpm.pattern):
            if isinstance(node, ast.SubSelect):
                yield from self._of_nothing(gpm, node)
                yield from self._collapsing(node)
                yield from self._hidden(node, elsewhere)

    def _of_nothing(self, gpm: ast.Gpm, query: ast.SubSelect) -> Findings:
        """AVG and SUM of an empty window are 0, MIN and MAX unbound."""
        may_be_empty = any(isinstance(w.extent, ast.Panes) for w in windows_of(gpm, self.query))
        if query.group_by or not may_be_empty or not _holds_on_nothing(query.having):
            return
        for use in _aggregates(query):
            if use.function in ("AVG", "SUM"):
                passes = ", which HAVING lets pass" if query.having else ""
                message = (
                    f"{use.function} of an empty window is 0{passes}: add GROUP BY or "
                    "HAVING (COUNT(*) > 0) if only windows with events count"
                )
                yield self.warning("aggregate-of-nothing", message, use.span)

    def _collapsing(self, query: ast.SubSelect) -> Findings:
        """Equal triples of several events count once, unless EVENT reads each event."""
        uses = [u for u in _aggregates(query) if u.function in _COUNTING and not u.distinct]
        if uses and _reads_union(query.pattern):
            message = (
                f"{uses[0].function} counts a triple that several events have once: "
                "write EVENT { ... } to count each event's"
            )
            yield self.warning("collapsing-triples", message, uses[0].span)

    def _hidden(self, query: ast.SubSelect, elsewhere: set[str]) -> Findings:
        inside = _bound_inside(query.pattern) | {i.var.name for i in query.items or () if i.var}
        inside |= {v.name for v in self.query.partition}
        for expr in query.having:
            for name in sorted((expression_variables(expr) & elsewhere) - inside):
                message = (
                    f"HAVING of a sub-query does not see ?{name} of another step: "
                    "test it in a FILTER behind the sub-query"
                )
                yield self.warning("hidden-variable", message, expr.span)


def _aggregates(query: ast.SubSelect) -> list[ast.Aggregate]:
    parts = (*(query.items or ()), *query.having)
    nodes = (node for part in parts for node in walk(part))
    return [n for n in nodes if isinstance(n, ast.Aggregate) and n.function in AGGREGATES]


def _holds_on_nothing(having: Sequence[ast.Expr]) -> bool:
    """Whether conditions surely hold for the aggregates of an empty window; True without any."""
    return all(_outcome_on_nothing(expr) is True for expr in having)


def _outcome_on_nothing(expr: ast.Expr) -> bool | None:
    """The result of a condition on an empty window; None if that is unknown, or an error."""
    match expr:
        case ast.Not(operand):
            outcome = _outcome_on_nothing(operand)
            return None if outcome is None else not outcome
        case ast.And(operands):
            outcomes = [*map(_outcome_on_nothing, operands)]
            return False if False in outcomes else None if None in outcomes else True
        case ast.Or(operands):
            outcomes = [*map(_outcome_on_nothing, operands)]
            return True if True in outcomes else None if None in outcomes else False
        case ast.Compare(op, left, right):
            sides = _number_on_nothing(left), _number_on_nothing(right)
            if sides[0] is None or sides[1] is None:
                return None
            return bool(_COMPARED[op](sides[0], sides[1]))
    return None


def _number_on_nothing(expr: ast.Expr) -> float | None:
    """A number, or an aggregate that is 0 where there is nothing."""
    match expr:
        case ast.Aggregate("AVG" | "SUM" | "COUNT"):
            return 0.0
        case ast.Sign("-", ast.Literal() as operand):
            value = _number_on_nothing(operand)
            return None if value is None else -value
        case ast.Literal(lexical) if _NUMBER.fullmatch(lexical):
            return float(lexical)
    return None


_COMPARED = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def _reads_union(group: ast.GroupGraphPattern) -> bool:
    """Whether triple patterns of a group stand outside EVENT, GRAPH and sub-queries."""
    for element in group.elements:
        match element:
            case ast.Triples():
                return True
            case (
                ast.EventGraphPattern()
                | ast.GraphGraphPattern()
                | ast.ServiceGraphPattern()
                | ast.SubSelect()
            ):
                continue
            case _ if any(map(_reads_union, nested_groups(element))):
                return True
    return False
