"""The spaseq query of an RSP-QL or C-SPARQL query."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spaseq.lang import ast
from spaseq.lang.findings import Findings
from spaseq.lang.functions import SET_FUNCTIONS
from spaseq.lang.rspql.merged_graphs import Places, Rewriter, flattened, term_variables, with_times
from spaseq.lang.rspql.remarks import remarks
from spaseq.lang.rspql.rsp_reader import RspQuery, StreamWindow, WindowExtent, stop
from spaseq.lang.spelling import suggested
from spaseq.lang.variables import (
    pattern_variables,
    rewritten,
    walk,
    walk_patterns,
)
from spaseq.rdf.terms.times import in_largest_unit
from spaseq.records import record

_CHANGES: dict[str, Any] = {"RSTREAM": None, "ISTREAM": "NEW", "DSTREAM": "GONE"}
_NAMES = ("A", "B", "C", "D", "E", "F", "G")


@record
class Translated:
    """A translated query, and the remarks for its reader."""

    query: ast.Query
    notes: tuple[str, ...]


def translated(query: RspQuery, findings: Findings) -> Translated:
    """The spaseq query.

    Raises:
        QueryError: something has no counterpart; each such thing with its place.
    """
    translation = _Translation(query, findings)
    made = translation.made()
    stop(findings)
    return Translated(made, tuple(dict.fromkeys([*query.notes, *translation.notes])))


@dataclass
class _Translation:
    query: RspQuery
    findings: Findings
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        query = self.query
        select = with_times(_with_meanings(query.select))
        self.select = select
        counts = any(map(_counts, walk_patterns(select)))
        known = {n.name for n in walk(select) if isinstance(n, ast.Var)}
        self.rewriter = Rewriter(query.blocks, self.refuse, known, counts)
        nodes = [n for n in walk_patterns(select) if isinstance(n, ast.GraphGraphPattern)]
        self.blocks = [n for n in nodes if n.span.start in query.blocks]
        self.streams: dict[str, str] = {}
        self.windows: list[ast.FromWindow] = []

    def refuse(self, message: str, node: ast.Node, suggestion: str | None = None) -> None:
        self.findings.error(message, node.span, code="no-counterpart", suggestion=suggestion)

    def made(self) -> ast.Query:
        self._check()
        stop(self.findings)
        used = self._used()
        if len(used) == 1 or self._is_one_graph:
            gpms = self._on_one_window(used)
        elif self._is_any_window:
            gpms = self._on_any_window(used)
        elif self._is_conjunction:
            gpms = self._on_each_window(used)
        else:
            gpms = self._on_events(used)
        stop(self.findings)
        self.notes += remarks(self.query, self.select, used, self._is_aggregate)
        return self._assembled(gpms)

    # --- windows ----------------------------------------------------------------------------------

    def _check(self) -> None:
        query = self.query
        if not query.windows:
            message = "there is no window: a query without one reads stored data only"
            self.refuse(message, query.form)
        for window in query.windows:
            extent = window.extent
            if extent.strange:
                self.refuse(extent.strange, extent)
            elif not extent.each_event and (extent.length_ms < 1 or extent.slide_ms < 1):
                self.refuse("a duration of a window is 0", extent)
        if query.merges and any(window.name for window in query.windows):
            self.refuse("FROM STREAM and FROM NAMED WINDOW cannot stand together", query.windows[0])
        names = [w.name.value for w in query.windows if w.name]
        for number, window in enumerate(w for w in query.windows if w.name):
            if window.name and window.name.value in names[:number]:
                self.refuse("another window has this name", window.name)
        self._check_graphs()
        for block in self.blocks:
            if isinstance(block.name, ast.Iri) and block.name.value not in names:
                near = suggested(block.name.value, names)
                shown = None if near is None else f"<{near}>"
                self.refuse("no window has this name", block.name, shown)
        if query.windows and not self.blocks and not query.merges and self._stored:
            message = "no WINDOW block reads a window, and patterns outside of WINDOW match FROM"
            self.refuse(message, query.select.pattern)

    def _check_graphs(self) -> None:
        """Refuse GRAPH of graphs without FROM NAMED."""
        known = [graph.iri.value for graph in self.query.graphs if graph.named]
        for node in walk_patterns(self.query.select):
            if not isinstance(node, ast.GraphGraphPattern) or node in self.blocks:
                continue
            if isinstance(node.name, ast.Var):
                if self._stored:
                    message = "a GRAPH with a variable would see the graphs of FROM, too: name one"
                    self.refuse(message, node.name)
            elif node.name.value not in known:
                near = suggested(node.name.value, known)
                shown = None if near is None else f"<{near}>"
                self.refuse("no FROM NAMED names this graph", node.name, shown)

    @property
    def _stored(self) -> list[ast.Iri]:
        """The graphs that make the default graph."""
        return [graph.iri for graph in self.query.graphs if not graph.named]

    @property
    def _is_one_graph(self) -> bool:
        """Whether all windows are merged: in C-SPARQL, and without WINDOW blocks."""
        return not self.blocks

    def _used(self) -> list[StreamWindow]:
        """The windows that some block reads."""
        windows = list(self.query.windows)
        if self.blocks and all(isinstance(block.name, ast.Iri) for block in self.blocks):
            names = {block.name.value for block in self.blocks if isinstance(block.name, ast.Iri)}
            used = [w for w in windows if w.name and w.name.value in names]
            for window in windows:
                if window not in used and window.name:
                    self.notes.append(f"The window <{window.name.value}> is left out: no WINDOW "
                                      "block reads it.")  # fmt: skip
            return used
        return windows

    def _stream(self, window: StreamWindow) -> str:
        """The name of a window's stream."""
        iri = window.stream.value
        if iri not in self.streams:
            self.streams[iri] = _name(iri, "S", self._names())
        return self.streams[iri]

    def _names(self) -> list[str]:
        return [*self.streams.values(), *(w.name for w in self.windows), *_NAMES]

    def _window(self, windows: Sequence[StreamWindow]) -> str:
        """The name of a window on the streams of some windows, with the longest range of them."""
        streams = tuple(dict.fromkeys(map(self._stream, windows)))
        extent = max((w.extent for w in windows), key=lambda e: e.length_ms)
        names = [w.name.value for w in windows if w.name]
        name = _name(names[0] if len(names) == 1 else "", "W", self._names())
        refs = tuple(map(ast.Ref, streams))
        self.windows.append(ast.FromWindow(name, refs, _extent(extent)))
        return name

    def _equal(self, windows: Sequence[StreamWindow], ranges: bool, what: str) -> None:
        """Refuse windows with different slides, or with different ranges."""
        first = windows[0].extent
        for window in windows[1:]:
            extent = window.extent
            if (extent.slide_ms, extent.each_event) != (first.slide_ms, first.each_event):
                message = f"{what} need equal STEPs: windows close together or never"
                self.refuse(message, extent)
            elif ranges and extent.length_ms != first.length_ms:
                self.refuse(f"{what} need equal RANGEs: they are one graph", extent)

    # --- the four ways ----------------------------------------------------------------------------

    def _on_one_window(self, used: Sequence[StreamWindow]) -> list[ast.Gpm]:
        """One GPM on one window, whose graph is that of all streams."""
        what = "streams that are merged" if self.query.merges else "patterns without WINDOW"
        self._equal(used, True, what)
        name = self._window(used)
        stored = self._stored
        inside = Places(window=True)
        outside = Places(stored=stored)
        if not self.blocks:
            outside = Places(window=True, stored=stored)
        if not self.blocks and not self.query.merges:
            self.notes.append("No WINDOW block reads a window: the pattern is matched in the "
                              "window, as yasper does. By RSP-QL's definition it is matched in "
                              "the default graph, which is empty.")  # fmt: skip
        if self.query.merges and (len(used) > 1 or stored):
            self.notes.append("C-SPARQL merges all streams and stored graphs: a triple pattern "
                              "matches in each of them.")  # fmt: skip
        pattern = self._rewritten(outside, lambda block: [inside])
        return [self._gpm([name], self._projected(pattern))]

    def _on_any_window(self, used: Sequence[StreamWindow]) -> list[ast.Gpm]:
        """One GPM on several windows, for one block WINDOW ?w."""
        names = [self._window([window]) for window in used]
        outside = Places(stored=self._stored)
        pattern = self._rewritten(outside, lambda block: [Places(window=True)])
        return [self._gpm(names, self._projected(pattern))]

    def _on_each_window(self, used: Sequence[StreamWindow]) -> list[ast.Gpm]:
        """A GPM for each window, all at one time."""
        self._equal(used, False, "WINDOW blocks that are joined")
        gpms: list[ast.Gpm] = []
        outside = Places(stored=self._stored)
        rest = [e for e in self.select.pattern.elements if not self._is_block(e)]
        for window in used:
            blocks = [b for b in self.blocks if window.name and b.name == window.name]
            elements: list[ast.Element] = [*blocks, *(rest if window is used[-1] else ())]
            group = ast.GroupGraphPattern(tuple(elements))
            new_pattern = self.rewriter.rewrite(group, outside, lambda block: [Places(window=True)])
            name = self._window([window])
            gpms.append(self._gpm([name], flattened(new_pattern), len(gpms)))
        return gpms

    def _on_events(self, used: Sequence[StreamWindow]) -> list[ast.Gpm]:
        """One GPM on one window for all streams, with the events of each stream apart."""
        self._equal(used, False, "WINDOW blocks of one query")
        longest = max(window.extent.length_ms for window in used)
        name = self._window(used)
        places = {
            window.name.value: Places(
                streams=[
                    (
                        self._stream(window),
                        None if window.extent.length_ms == longest else window.extent.length_ms,
                    )
                ]
            )
            for window in used
            if window.name
        }

        def of_block(block: ast.GraphGraphPattern) -> Sequence[Places]:
            if isinstance(block.name, ast.Iri):
                return [places[block.name.value]]
            return [*places.values()]

        pattern = self._rewritten(Places(stored=self._stored), of_block)
        self.notes.append("The windows are one window on all streams: each triple pattern looks at "
                          "the events of its stream.")  # fmt: skip
        return [self._gpm([name], self._projected(pattern))]

    def _is_block(self, element: ast.Element) -> bool:
        return isinstance(element, ast.GraphGraphPattern) and element in self.blocks

    @property
    def _is_any_window(self) -> bool:
        """Whether there is one block WINDOW ?w, beside FILTERs, BINDs and stored data."""
        names = [block.name for block in self.blocks]
        plain = self._is_plain and self.query.operator == "RSTREAM"
        return plain and len(names) == 1 and isinstance(names[0], ast.Var)

    @property
    def _is_conjunction(self) -> bool:
        """Whether blocks with names are joined, beside FILTERs, BINDs and stored data."""
        named = all(isinstance(block.name, ast.Iri) for block in self.blocks)
        return named and self._is_plain and self.query.operator == "RSTREAM"

    @property
    def _is_plain(self) -> bool:
        if self._needs_select or self.query.form.kind == "ASK":
            return False
        elements = self.select.pattern.elements
        plain = ast.Filter | ast.Bind | ast.Triples
        return all(self._is_block(e) or isinstance(e, plain) for e in elements) and all(
            block in elements for block in self.blocks
        )

    # --- patterns ---------------------------------------------------------------------------------

    def _rewritten(self, outside: Places, of_block: Any) -> ast.GroupGraphPattern:
        for block in self.blocks:
            if isinstance(block.name, ast.Var):
                self._check_name(block.name)
        new_pattern = self.rewriter.rewrite(self.select.pattern, outside, of_block)
        return flattened(new_pattern)

    def _check_name(self, name: ast.Var) -> None:
        """WINDOW ?w matches any window, and ?w has no value."""
        select = self.query.select
        names = [n for n in walk(select) if isinstance(n, ast.Var) and n.name == name.name]
        inside = {id(block.name) for block in self.blocks}
        for use in names:
            if id(use) not in inside and use.span not in {b.name.span for b in self.blocks}:
                self.refuse(f"?{name.name} has no value here: it stands for any window", use)
        self.notes.append(f"WINDOW ?{name.name} is any window of the query; ?{name.name} has no "
                          "value.")  # fmt: skip

    @property
    def _is_aggregate(self) -> bool:
        select = self.select
        exprs = [*(i.expr for i in select.items or ()), *select.having]
        exprs += [order.expr for order in select.order_by]
        nodes = (n for expr in exprs if expr is not None for n in walk(expr))
        return any(map(_counts, nodes)) or bool(select.group_by)

    @property
    def _needs_select(self) -> bool:
        """Whether the projection belongs into the GPM, as something is done with its solutions."""
        select = self.select
        modified = select.distinct or select.reduced or select.values is not None
        limited = select.limit is not None or select.offset is not None
        return self._is_aggregate or modified or limited

    def _projected(self, pattern: ast.GroupGraphPattern) -> ast.GroupGraphPattern:
        """The pattern of a GPM that has the whole of the query's algebra."""
        select, form = self.select, self.query.form
        if form.kind == "ASK":
            return self._asked(pattern)
        names = [item.var.name for item in select.items or () if item.var]
        if form.kind == "CONSTRUCT":
            names = [v for v in term_variables(form.template) if v in pattern_variables(pattern)]
        seen = pattern_variables(pattern)
        narrower = self.query.operator != "RSTREAM" and (set(names) or seen) != seen
        if not self._needs_select and not narrower:
            return pattern
        items: tuple[ast.SelectItem, ...] | None = select.items
        if form.kind == "CONSTRUCT":
            items = tuple(ast.SelectItem(ast.Var(name)) for name in names)
        elif items is None and self._hidden:
            items = self._visible(seen)
        order = select.order_by if select.limit is not None or select.offset is not None else ()
        made = replace(select, items=items, pattern=pattern, order_by=order)
        return ast.GroupGraphPattern((made,))

    def _asked(self, pattern: ast.GroupGraphPattern) -> ast.GroupGraphPattern:
        """ASK as a value: true or false at each close."""
        select = self.select
        if self._is_aggregate:
            keys = tuple(i for i in select.group_by if i.var)
            count = ast.SelectItem(ast.Var("n"), ast.Aggregate("COUNT", None))
            made = replace(select, items=keys or (count,), pattern=pattern, order_by=())
            pattern = ast.GroupGraphPattern((made,))
        return ast.GroupGraphPattern((ast.Bind(ast.Exists(pattern), ast.Var("ask")),))

    @property
    def _hidden(self) -> set[str]:
        """Variables that the query does not have."""
        return {*self.rewriter.fresh.values(), *self.rewriter.times}

    def _visible(self, seen: Collection[str]) -> tuple[ast.SelectItem, ...]:
        written = [n.name for n in walk(self.select.pattern) if isinstance(n, ast.Var)]
        names = [v for v in dict.fromkeys(written) if v in seen]
        return tuple(ast.SelectItem(ast.Var(name)) for name in names)

    def _gpm(self, windows: Sequence[str], pattern: ast.GroupGraphPattern, number: int = 0) -> Any:
        change = _CHANGES[self.query.operator]
        sources = tuple(ast.GpmSource(name, change) for name in windows)
        return ast.Gpm(_NAMES[number], sources, pattern)

    # --- the whole --------------------------------------------------------------------------------

    def _assembled(self, gpms: Sequence[ast.Gpm]) -> ast.Query:
        query = self.query
        steps = [ast.Step(ast.Ref(gpm.name)) for gpm in gpms]
        sequence = ast.Sequence((steps[0],), ())
        if len(steps) > 1:
            operands = tuple(ast.Sequence((step,), ()) for step in steps)
            sequence = ast.Sequence((ast.Step(ast.Bracket("&", operands)),), ())
        register = query.register.iri if query.register else None
        assert register is None or isinstance(register, ast.Iri)
        streams = ((name, ast.Iri(iri)) for iri, name in self.streams.items())
        graphs = dict.fromkeys(graph.iri.value for graph in query.graphs)
        return ast.Query(
            prologue=query.prologue,
            form=self._form(gpms),
            sequence=sequence,
            gpms=tuple(gpms),
            streams=tuple(ast.FromStream(*stream) for stream in streams),
            kbs=tuple(ast.FromKb(ast.Iri(iri)) for iri in graphs),
            register=register if query.form.kind == "CONSTRUCT" else None,
            window=ast.TimeWindow(ast.TimeSpan(0, "SECONDS")) if len(gpms) > 1 else None,
            windows=tuple(self.windows),
        )

    def _form(self, gpms: Sequence[ast.Gpm]) -> ast.Form:
        form, items = self.query.form, self.select.items
        if form.kind == "CONSTRUCT":
            return ast.Construct(form.template)
        if form.kind == "ASK":
            return ast.Select((ast.SelectItem(ast.Var("ask")),))
        if items is None:
            seen = frozenset[str]().union(*(pattern_variables(gpm.pattern) for gpm in gpms))
            return ast.Select(self._visible(seen) if self._hidden else None)
        if any(isinstance(e, ast.SubSelect) for e in gpms[0].pattern.elements):
            inner = {n for gpm in gpms for n in pattern_variables(gpm.pattern)}
            if all(item.var and item.var.name in inner for item in items):
                items = tuple(ast.SelectItem(item.var) for item in items)
        return ast.Select(items)


def _counts(node: ast.Node) -> bool:
    return isinstance(node, ast.Aggregate) and node.function in SET_FUNCTIONS


def _with_meanings(select: ast.SubSelect) -> ast.SubSelect:
    """The query with the expressions of SELECT instead of their names in HAVING."""
    named = {i.var.name: i.expr for i in select.items or () if i.var and i.expr is not None}
    known = pattern_variables(select.pattern)

    def change(node: ast.Node) -> ast.Node | None:
        if isinstance(node, ast.Var) and node.name not in known:
            return named.get(node.name)
        return None

    having = tuple(rewritten(expr, change) for expr in select.having)
    return replace(select, having=having)


def _extent(extent: WindowExtent) -> ast.Panes | ast.EachEvent:
    if extent.each_event:
        return ast.EachEvent(extent.each_event)
    slide = None if extent.slide_ms == extent.length_ms else _span(extent.slide_ms)
    return ast.Panes(_span(extent.length_ms), slide)


def _span(ms: int) -> ast.TimeSpan:
    """A duration in the greatest unit that says it in a whole number."""
    span: tuple[int, Any] = in_largest_unit(ms)
    return ast.TimeSpan(*span)


def _name(iri: str, otherwise: str, known: Iterable[str]) -> str:
    """A name for a stream or window: the last word of its IRI, or another one."""
    words = re.findall(r"[A-Za-z]\w*", re.split(r"[/#:]", iri.rstrip("/#"))[-1])
    name = words[-1] if words and words[-1].upper() not in _WORDS else otherwise
    taken = {k.upper() for k in known}
    number = 1
    candidate = name
    while candidate.upper() in taken:
        number += 1
        candidate = f"{name}{number}"
    return candidate


_WORDS = {
    "SEQ", "FROM", "STREAM", "WINDOW", "NAMED", "ON", "RANGE", "SLIDE", "KEY", "SESSION", "WHERE",
    "DEFINE", "GPM", "NEW", "GONE", "EVENT", "EVENTS", "AND", "UNTIL", "HAVING", "SELECT",
}  # fmt: skip
"""Words that a reader would not take for names."""
