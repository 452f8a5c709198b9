"""Name resolution and refusals (docs/lookup.md#refusals): errors of queries that parse.

`resolve` reports all errors that follow from the syntax tree and the normal form of the sequence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from spaseq.errors import Diagnostic, QueryText, Span
from spaseq.lang import ast
from spaseq.lang.iris import is_absolute
from spaseq.lang.scope import Scope, scopes
from spaseq.lang.sequence import Chain, can_be_empty, has_single_gpm, normalise, occurrences
from spaseq.lang.spelling import suggested
from spaseq.lang.step_refusals import check_loops, check_negations
from spaseq.lang.variables import (
    exists_uses,
    expression_variables,
    filters_of,
    graph_names,
    group_function_uses,
    kinds_of,
    pattern_variables,
    prev_uses,
    timestamp_uses,
    walk_patterns,
)
from spaseq.lang.windows import check_windows, is_on_windows
from spaseq.rdf.terms.term import XSD_DATE_TIME, literal_text
from spaseq.rdf.terms.times import LONGEST_MS, parse_time
from spaseq.records import record

Findings = Iterator[Diagnostic]


@record
class Resolved:
    """A checked query. `binds[g]` holds the variables that GPM g may bind.

    `kinds` are the classes of its nodes, without those inside blocks of triples, for quick tests.
    """

    query: ast.Query
    source: QueryText
    chain: Chain
    scope: Scope
    binds: dict[str, frozenset[str]]
    kinds: frozenset[type[ast.Node]]
    diagnostics: tuple[Diagnostic, ...]


def resolve(
    query: ast.Query,
    source: QueryText,
    broken_gpms: Collection[str] = (),
    broken_clauses: Collection[str] = (),
) -> Resolved:
    """Resolve all names of a query and report violations of the language.

    `broken_gpms` and `broken_clauses` name the GPMs and clauses with syntax errors, which are not
    checked.
    """
    chain = normalise(query.sequence)
    partition = frozenset(v.name for v in query.partition)
    binds = {
        g.name: pattern_variables(g.pattern) | (partition if is_on_windows(g, query) else set())
        for g in query.gpms
    }
    scope = scopes(chain, binds, partition)
    kinds, broken = kinds_of(query), frozenset(broken_gpms)
    resolver = _Resolver(query, source, chain, scope, binds, kinds, broken, broken_clauses)
    diagnostics = sorted(resolver.findings(), key=lambda d: (d.span.start, d.severity))
    return Resolved(query, source, chain, scope, binds, kinds, tuple(diagnostics))


@record
class _Resolver:
    query: ast.Query
    source: QueryText
    chain: Chain
    scope: Scope
    binds: dict[str, frozenset[str]]
    kinds: frozenset[type[ast.Node]]
    broken: frozenset[str]
    broken_clauses: Collection[str]

    def findings(self) -> Findings:
        yield from self._header()
        yield from self._gpms()
        has_streams = "streams" not in self.broken_clauses and "windows" not in self.broken_clauses
        yield from check_windows(self.query, self.source, self.kinds, has_streams)
        if "sequence" not in self.broken_clauses:
            yield from self._sequence()
            yield from check_negations(self.chain, self.query, self.source)
            yield from check_loops(self.chain, self.query, self.source)
        yield from self._gpm_expressions()
        yield from self._outputs()

    def error(
        self, code: str, message: str, span: Span, names: Collection[str] = (), near: str = ""
    ) -> Diagnostic:
        suggestion = suggested(near, names) if near else None
        expected = tuple(sorted(names))[:8]
        return Diagnostic("error", code, message, span, self.source, expected, suggestion)

    # --- header ---------------------------------------------------------------------------------

    def _header(self) -> Findings:
        query = self.query
        is_asked = query.window is None and not has_single_gpm(self.chain)
        if is_asked and "window" not in self.broken_clauses:
            span = query.form.span
            yield self.error(
                "missing-window",
                "WITHIN is required: without a window, the state would grow without limit",
                Span(span.start, min(span.end, span.start + 6)),
                ["WITHIN 5 MINUTES", "WITHIN 100 EVENTS"],
            )
        window = query.window
        length = window.events if isinstance(window, ast.CountWindow) else 1
        if isinstance(window, ast.TimeWindow):
            length = window.length.amount
            # All events of a match may have one time.
            length = length if window.tumbling else max(length, 1)
        if window is not None and length < 1:
            message = "an empty window holds no match: write a number of at least 1"
            yield self.error("empty-window", message, window.span)
        if isinstance(window, ast.TimeWindow):
            yield from self._duration(window.length)
        if isinstance(window, ast.CountWindow) and length > LONGEST_MS:
            message = "a window has at most 2**60 events"
            yield self.error("long-window", message, window.span)
        if isinstance(window, ast.TimeWindow) and window.origin is not None:
            literal = literal_text(window.origin, XSD_DATE_TIME)
            if parse_time(literal) is None:
                message = f"{window.origin!r} is not a dateTime"
                start = self.source.text.find(window.origin, window.span.start, window.span.end)
                span = Span(start, start + len(window.origin)) if start >= 0 else window.span
                yield self.error("not-a-time", message, span, ["2020-01-31T00:00:00Z"])
        yield from self._duplicates([(s.name, s.span) for s in query.streams], "stream")
        names: dict[str, str] = {}
        for stream in query.streams:
            first = names.setdefault(stream.iri.value, stream.name)
            if first != stream.name:
                message = f"this stream already has the name {first}"
                yield self.error("duplicate-stream", message, stream.iri.span)
        if not query.streams and "streams" not in self.broken_clauses:
            yield self.error(
                "missing-stream",
                "the query reads no stream: write FROM STREAM S <iri> before WHERE",
                query.form.span,
            )
        yield from self._registered()
        if isinstance(query.form, ast.Maintain):
            yield from self._maintained(query.form)

    def _maintained(self, form: ast.Maintain) -> Findings:
        graph = form.graph
        if not is_absolute(graph.value):
            message = "MAINTAIN GRAPH takes an absolute IRI, because other queries read the graph"
            yield self.error("relative-graph", message, graph.span)
        if self.query.register is not None:
            message = "a query that maintains a graph has no answers, so it registers no stream"
            yield self.error("maintain-registers", message, self.query.register.span)
        for kb in self.query.kbs:
            if kb.iri.value == graph.value:
                message = "a query cannot read the graph that it maintains"
                yield self.error("own-graph", message, kb.span)

    def _registered(self) -> Findings:
        register = self.query.register
        if register is None:
            return
        if not is_absolute(register.value):
            message = "REGISTER STREAM takes an absolute IRI, because other queries use it"
            yield self.error("relative-stream", message, register.span)
        for stream in self.query.streams:
            if stream.iri.value == register.value:
                message = "a query cannot read the stream that it registers"
                yield self.error("own-stream", message, stream.span)

    def _duplicates(self, names: list[tuple[str, Span]], kind: str) -> Findings:
        seen: set[str] = set()
        for name, span in names:
            if name in seen:
                yield self.error(f"duplicate-{kind}", f"{kind} {name} is defined twice", span)
            seen.add(name)

    # --- GPMs -----------------------------------------------------------------------------------

    def _gpms(self) -> Findings:
        streams = {s.name for s in self.query.streams} | {w.name for w in self.query.windows}
        broken = "streams" in self.broken_clauses or "windows" in self.broken_clauses
        kbs = {k.iri.value for k in self.query.kbs}
        has_graphs = ast.GraphGraphPattern in self.kinds
        yield from self._duplicates([(g.name, g.span) for g in self.query.gpms], "GPM")
        for gpm in self.query.gpms:
            for ref in gpm.streams:
                if streams and ref.name not in streams and not broken and not ref.change:
                    kinds = "stream or window" if self.query.windows else "stream"
                    message = f"no {kinds} is called {ref.name}"
                    yield self.error("unknown-stream", message, ref.span, streams, ref.name)
            for name in graph_names(gpm.pattern) if has_graphs else ():
                if isinstance(name, ast.Var) or "kbs" in self.broken_clauses:
                    continue
                if name.value not in kbs:
                    message = f"no FROM NAMED names the graph <{name.value}>"
                    wrapped = {f"<{k}>" for k in kbs}
                    yield self.error("unknown-kb", message, name.span, wrapped, f"<{name.value}>")

    def _sequence(self) -> Findings:
        names = {g.name for g in self.query.gpms} | self.broken
        for use in self.scope.occurrences:
            if use.gpm not in names and "gpms" not in self.broken_clauses:
                message = f"no GPM is called {use.gpm}"
                yield self.error("unknown-gpm", message, use.span, names, use.gpm)
        yield from self._brackets(self.query.sequence)
        if all(o.negation is not None for o in self.scope.occurrences):
            message = "a query of negations only has no matches: add a step that is not negated"
            yield self.error("only-negations", message, self.query.sequence.span)

    def _duration(self, given: ast.TimeSpan) -> Findings:
        if given.ms > LONGEST_MS:
            message = "this duration is longer than 36 million years (2**60 milliseconds)"
            yield self.error("long-duration", message, given.span)

    def _brackets(self, sequence: ast.Sequence) -> Findings:
        for op in sequence.ops:
            if op.gap is not None:
                yield from self._duration(op.gap)
        for step in sequence.steps:
            quantifier = step.quantifier
            most = quantifier.maximum if quantifier else None
            if quantifier and most is not None and most < quantifier.minimum:
                yield self.error(
                    "empty-repetition",
                    f"at least {quantifier.minimum} and at most {most}: "
                    "the bounds exclude each other",
                    step.span,
                )
            if isinstance(step.atom, ast.Bracket):
                inner = ast.Sequence(steps=(ast.Step(atom=step.atom),), ops=())
                if quantifier and _may_lack_events(inner):
                    message = "a repeated step must match at least one event"
                    yield self.error("empty-step", message, step.span)
                for operand in step.atom.operands:
                    if step.atom.kind and _may_lack_events(operand):
                        yield self.error(
                            "empty-operand",
                            f"an operand of {step.atom.kind} must match at least one event",
                            operand.span,
                        )
                    yield from self._brackets(operand)

    # --- expressions ----------------------------------------------------------------------------

    def _gpm_expressions(self) -> Findings:
        """PREV, aggregates and TIMESTAMP where they have no meaning."""
        if self.kinds.isdisjoint((ast.Prev, ast.Aggregate, ast.Timestamp)):
            return
        used = {o.gpm for o in self.scope.occurrences}
        for gpm in self.query.gpms:
            if gpm.name not in used or gpm.name in self.broken:
                continue
            for expr in _expressions_of(gpm.pattern):
                yield from self._timestamps(expr)
                yield from self._group_uses(expr, gpm.name)

    def _group_uses(self, expr: ast.Expr, gpm: str) -> Findings:
        uses = [o for o in self.scope.occurrences if o.gpm == gpm]
        owners = dict(self.scope.owner)
        for negation in self.scope.negations(uses[0].negation if uses else None):
            owners |= self.scope.negation_owner[negation]
        for prev in prev_uses(expr):
            owner = owners.get(prev.var.name)
            if owner is None:
                yield self.error(
                    "not-a-group-variable",
                    f"PREV(?{prev.var.name}): ?{prev.var.name} is not bound in a repeated step"
                    f"{self._repeat_it(prev.var.name)}",
                    prev.span, {f"?{v}" for v in owners}, f"?{prev.var.name}",
                )  # fmt: skip
            elif not any(owner in o.repeats for o in uses):
                yield self.error(
                    "prev-outside",
                    f"PREV(?{prev.var.name}) has a meaning only inside the step that repeats it",
                    prev.span,
                )
        for use in group_function_uses(expr):
            yield from self._aggregate(use, owners)

    def _aggregate(self, use: ast.Aggregate, owners: dict[str, int]) -> Findings:
        if use.operand is None:  # `COUNT(*)`, which the check of expressions reports
            return
        names = expression_variables(use.operand)
        plain = sorted(names - set(owners))
        if plain or not names:
            hint = self._repeat_it(*plain[:1])
            why = f"?{plain[0]} is not bound in a repeated step{hint}" if plain else "names none"
            yield self.error(
                "not-a-group-variable",
                f"{use.function} ranges over a group variable, but {why}",
                use.span, {f"?{v}" for v in owners},
            )  # fmt: skip
        elif len(names) > 1:
            yield self.error(
                "not-a-group-variable",
                f"{use.function} ranges over one group variable, not over {len(names)}",
                use.span,
            )

    def _repeat_it(self, *names: str) -> str:
        """The advice to repeat the step that binds a variable."""
        uses = self.scope.occurrences
        step = next((u.gpm for n in names for u in uses if n in self.binds.get(u.gpm, ())), None)
        return "" if step is None else f"; repeat its step, as in {step}+"

    def _timestamps(self, expr: ast.Expr) -> Findings:
        names = {g.name for g in self.query.gpms}
        for stamp in timestamp_uses(expr):
            if stamp.gpm.name not in names:
                message = f"no GPM is called {stamp.gpm.name}"
                yield self.error("unknown-gpm", message, stamp.span, names, stamp.gpm.name)

    def _outputs(self) -> Findings:
        """SELECT, HAVING, PARTITION BY and AFTER MATCH."""
        query = self.query
        names = {g.name for g in query.gpms}
        if query.skip and query.skip.gpm and query.skip.gpm.name not in names:
            ref = query.skip.gpm
            message = f"no GPM is called {ref.name}"
            yield self.error("unknown-gpm", message, ref.span, names, ref.name)
        exprs: list[ast.Expr] = [query.having] if query.having else []
        if isinstance(query.form, ast.Select):
            exprs += [i.expr for i in query.form.items or () if i.expr]
            yield from self._select_names(query.form)
        for expr in exprs:
            yield from self._timestamps(expr)
            for use in group_function_uses(expr):
                yield from self._aggregate(use, dict(self.scope.owner))
            for prev in prev_uses(expr):
                yield self.error(
                    "prev-outside", "PREV has a meaning only inside a repeated step", prev.span
                )
            for exists in exists_uses(expr):
                yield self.error(
                    "exists-outside",
                    "EXISTS can stand only in a GPM: SELECT and HAVING have no event",
                    exists.span,
                )
        positive = {o.gpm for o in self.scope.occurrences if o.negation is None} - self.broken
        for var in query.partition:
            for name in sorted(positive & names):
                if var.name not in self.binds[name]:
                    yield self.error(
                        "unbound-partition",
                        f"PARTITION BY ?{var.name}: GPM {name} does not bind ?{var.name}; every "
                        "GPM that is not negated must",
                        var.span, {f"?{v}" for v in self.binds[name]}, f"?{var.name}",
                    )  # fmt: skip

    def _select_names(self, form: ast.Select) -> Findings:
        seen = set(self.scope.owner) | set(self.scope.singles)
        for item in form.items or ():
            if item.expr is not None and item.var is not None:
                if item.var.name in seen:
                    yield self.error(
                        "duplicate-variable",
                        f"?{item.var.name} already has a value; AS needs a new name",
                        item.var.span,
                    )
                seen.add(item.var.name)


def _expressions_of(pattern: ast.GroupGraphPattern) -> Iterator[ast.Expr]:
    """The expressions of FILTER and BIND in a GPM, also inside EXISTS."""
    yield from filters_of(pattern)
    for node in walk_patterns(pattern):
        match node:
            case ast.Exists(inner):
                yield from filters_of(inner)
            case ast.Bind(expr):
                yield expr


def _may_lack_events(sequence: ast.Sequence) -> bool:
    """Whether a sequence has a match without events, though not all its steps are negated."""
    chain = normalise(sequence)
    uses = list(occurrences(chain))
    return can_be_empty(chain) and not (uses and all(o.negation is not None for o in uses))
