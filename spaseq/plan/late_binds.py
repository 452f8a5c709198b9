"""BINDs and EXISTS over earlier steps, without a correlated GPM.

The variables of BINDs are computed of each match. A GPM such as
`{ ?r :speed ?w BIND(?w - ?v AS ?d) FILTER(?d < -20) }`, where an earlier step binds ?v, would be a
correlated GPM, evaluated for each partial match. The same matches come of
`{ ?r :speed ?w FILTER(?w - ?v < -20) }`, and ?d is known of each match: ?w - ?v.

So would one with `FILTER EXISTS { GRAPH :map { ?r :next ?before } }`, where an earlier step binds
?before. Triples without variables of their own are a join.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from spaseq.algebra.translate import split_gpm
from spaseq.automaton.program.outer_steps import required_gpms
from spaseq.expr.uses import is_volatile
from spaseq.lang import ast
from spaseq.lang import sequence as seq
from spaseq.lang.resolve import Resolved
from spaseq.lang.scope import seen_before
from spaseq.lang.sequence import Occurrence
from spaseq.lang.variables import (
    conjuncts,
    exists_uses,
    expression_variables,
    group_function_uses,
    now_uses,
    pattern_variables,
    plainly_bound,
    prev_uses,
    rewritten,
    timestamp_uses,
    triple_variables,
    variables_of,
    walk,
)
from spaseq.lang.windows import is_on_windows
from spaseq.plan.query_plan import ComputedVariable


def with_joined_exists(resolved: Resolved) -> Resolved:
    """The query with the triples of an EXISTS in place of its FILTER, where they are a join.

    That is where each of their variables is bound by the GPM, or is a single variable that an
    earlier step surely binds (for a negated step: any step). The way from the former to the latter
    goes from subjects to objects: an object may have any number of subjects, and each would be a
    solution of every event.
    """
    if ast.Exists not in resolved.kinds or any(
        isinstance(step, seq.BinaryStep) and step.kind != "|" for step in seq.steps(resolved.chain)
    ):
        return resolved
    query, binds = resolved.query, dict(resolved.binds)
    gpms, sure = list[ast.Gpm](), dict[str, frozenset[str]]()  # by the names of GPMs before
    for gpm in query.gpms:
        sure[gpm.name] = plainly_bound(gpm.pattern)
        if not is_on_windows(gpm, query):
            known = _surely_known(resolved, gpm.name, sure)
            gpm = replace(gpm, pattern=_joined(gpm.pattern, known, sure[gpm.name]))
            binds[gpm.name] |= pattern_variables(gpm.pattern)
        gpms.append(gpm)
    return replace(resolved, query=replace(query, gpms=tuple(gpms)), binds=binds)


def _surely_known(
    resolved: Resolved, gpm: str, sure: Mapping[str, frozenset[str]]
) -> frozenset[str]:
    """The single variables, bound by other GPMs, that each match has when a GPM is taken."""
    uses = [use for use in resolved.scope.occurrences if use.gpm == gpm]
    positive = [use for use in uses if use.negation is None]
    if positive and len(positive) < len(uses):
        return frozenset()
    first = min((use.id for use in positive), default=None)
    before = required_gpms(resolved.chain) & sure.keys() - {gpm}
    for use in resolved.scope.occurrences:
        if first is not None and use.negation is None and use.id > first:
            before -= {use.gpm}
    variables = frozenset[str]().union(*(sure[name] for name in before))
    return (variables & resolved.scope.singles) - resolved.binds[gpm]


def _joined(
    group: ast.GroupGraphPattern, known: frozenset[str], own: frozenset[str]
) -> ast.GroupGraphPattern:
    """A group without each EXISTS that is a join; its triples are the last elements.

    A FILTER applies to the whole group, and does not end a basic graph pattern.
    """
    elements, joins = list[ast.Element](), list[ast.Element]()
    for element in group.elements:
        if not isinstance(element, ast.Filter):
            elements.append(element)
            continue
        rest = list[ast.Expr]()
        for expr in conjuncts([element.expr]):
            if isinstance(expr, ast.Exists) and not expr.negated:
                triples = _plain_triples(expr.pattern)
                if triples is not None and _are_join(triples, known, own):
                    joins += expr.pattern.elements
                    continue
            rest.append(expr)
        if rest:
            elements.append(ast.Filter(rest[0] if len(rest) == 1 else ast.And(tuple(rest))))
    return ast.GroupGraphPattern((*elements, *joins))


def _plain_triples(group: ast.GroupGraphPattern) -> tuple[ast.Triple, ...] | None:
    """The triples of a group, also those in graphs of the knowledge base.

    None for other groups, and if it has blank nodes or paths: it may have a solution twice.
    """
    found: tuple[ast.Triple, ...] = ()
    for element in group.elements:
        match element:
            case ast.Triples(triples):
                terms = [term for t in triples for term in (t.subject, t.predicate, t.object)]
                if not all(isinstance(term, ast.Var | ast.Iri | ast.Literal) for term in terms):
                    return None
                found += triples
            case ast.GraphGraphPattern(ast.Iri(), inner):
                more = _plain_triples(inner)
                if more is None:
                    return None
                found += more
            case _:
                return None
    return found


def _are_join(triples: Sequence[ast.Triple], known: frozenset[str], own: frozenset[str]) -> bool:
    """Whether triples lead from a GPM's own variables to known ones, and have no others."""
    variables = triple_variables(ast.Triples(tuple(triples)))
    reached = variables & own
    for _ in triples:
        for triple in triples:
            if isinstance(triple.subject, ast.Var) and triple.subject.name in reached:
                reached |= triple_variables(ast.Triples((triple,)))
    return not variables.isdisjoint(known) and variables <= (known | own) & reached


Binds = Mapping[str, ast.Expr]
"""The expressions of variables, which read no variable of another BIND."""


_MOST_NODES = 256
"""Maximum size of an expression that takes the place of a variable: each BIND may double it."""


def without_late_binds(
    resolved: Resolved, partial: bool = False
) -> tuple[Resolved, tuple[ComputedVariable, ...]]:
    """The query without the BINDs that look at earlier steps, and the variables that they bind.

    FILTERs have the expressions in the places of the variables. Where `partial` matches are
    wanted, single variables that read loops stay: they tell a match from one that is part of it.
    """
    computed = [*_candidates(resolved, partial)]
    if not computed:
        return resolved, ()
    binds = {each.name: each.expr for each in computed}
    query = resolved.query
    gpms = tuple(replace(gpm, pattern=_inlined_group(gpm.pattern, binds)) for gpm in query.gpms)
    changed = replace(
        resolved,
        query=replace(query, gpms=gpms),
        binds={name: bound - binds.keys() for name, bound in resolved.binds.items()},
    )
    touched = {gpm.name for gpm, before in zip(gpms, query.gpms, strict=True) if gpm != before}
    seen = seen_before(changed.chain, changed.scope, changed.binds)
    for gpm in gpms:
        if gpm.name in touched:
            before = frozenset(seen.get(gpm.name, ()))
            if split_gpm(gpm, before).correlation is not None:
                return resolved, ()
    positive = {use.gpm for use in resolved.scope.occurrences if use.negation is None}
    return changed, tuple(each for each in computed if each.gpm in positive)


def _candidates(resolved: Resolved, partial: bool) -> Iterator[ComputedVariable]:
    """The BINDs that may be left out."""
    if ast.Bind not in resolved.kinds:
        return
    gpms = {gpm.name: gpm for gpm in resolved.query.gpms}
    binds: dict[str, ast.Expr] = {}
    for name in dict.fromkeys(use.gpm for use in resolved.scope.occurrences):
        gpm, uses = gpms[name], _Uses(resolved, name)
        if is_on_windows(gpm, resolved.query) or not uses.are_plain:
            continue
        for place, element in enumerate(gpm.pattern.elements):
            if isinstance(element, ast.Bind):
                expr = _inlined(element.expr, binds)
                if len([*walk(expr)]) > _MOST_NODES or (partial and uses.read_loops(expr)):
                    continue
                if uses.read_values(element.var, not now_uses(expr)) and uses.look_back(
                    expr, gpm.pattern, place
                ):
                    binds[element.var.name] = expr
                    each = tuple(sorted(uses.bound_alone(expr)))
                    repeated = each if uses.are_repeated else None
                    yield ComputedVariable(element.var.name, name, expr, repeated)


class _Uses:
    """The uses of a GPM in the sequence."""

    def __init__(self, resolved: Resolved, gpm: str) -> None:
        self._query, self._scope, self._bound = resolved.query, resolved.scope, resolved.binds
        self._gpm, self._chain = gpm, resolved.chain
        self._positive = [use for use in self._scope.occurrences if use.negation is None]
        uses = [use for use in self._scope.occurrences if use.gpm == gpm]
        self._first, self._repeats = min(use.id for use in uses), uses[0].repeats
        self._are_negated = all(use.negation is not None for use in uses)
        self._are_several = len(uses) > 1
        are_positive = all(use.negation is None for use in uses)
        self.are_repeated = are_positive and any(use.repeats for use in uses)
        self.are_plain = self._are_negated or (
            are_positive and (not self.are_repeated or (len(uses) == 1 and self._is_in_each()))
        )
        """Whether all are negated, or one is in each repetition of a step, or none is repeated."""

    def _is_in_each(self) -> bool:
        """Whether each repetition of the only repeated step around the GPM has an event of it."""
        bodies = {s.id: s.body for s in seq.steps(self._chain) if isinstance(s, seq.Repeat)}
        return len(self._repeats) == 1 and self._gpm in required_gpms(bodies[self._repeats[0]])

    def look_back(self, expr: ast.Expr, group: ast.GroupGraphPattern, place: int) -> bool:
        """Whether an expression reads earlier steps, and has the same value in the whole match.

        It stands at a place among the elements of the GPM's group.
        """
        before, after = group.elements[:place], group.elements[place:]
        sure = plainly_bound(ast.GroupGraphPattern(before))
        names, own = expression_variables(expr), self._bound[self._gpm]
        later = names & pattern_variables(ast.GroupGraphPattern(after))
        if is_volatile(expr) or exists_uses(expr) or not later <= sure:
            return False
        previous = {use.var.name for use in prev_uses(expr)}
        aggregated = set[str]().union(*map(expression_variables, group_function_uses(expr)))
        times = {use.gpm.name for use in timestamp_uses(expr)}
        if not (previous or aggregated or times or now_uses(expr) or not names <= own):
            return False
        if self._are_negated:
            return True
        alone = self.bound_alone(expr)
        in_loop = self.are_repeated and alone <= sure
        return (
            (previous <= alone if in_loop else not previous and not self.are_repeated)
            and not (now_uses(expr) and self._are_several)
            and self._gpm not in times  # it would be that of the step before
            and aggregated.isdisjoint(own)
            and all(self._is_early(use) for v in names for use in self._binders(v))
            and all(self._is_early(use) for use in self._positive if use.gpm in times)
        )

    def read_loops(self, expr: ast.Expr) -> bool:
        """Whether the GPM binds single variables, and an expression reads repeated steps."""
        if self._are_negated or self.are_repeated:
            return False
        times = {use.gpm.name for use in timestamp_uses(expr)}
        repeated = {use.gpm for use in self._positive if use.repeats}
        is_single = expression_variables(expr) <= self._scope.singles
        return not (is_single and times.isdisjoint(repeated))

    def bound_alone(self, expr: ast.Expr) -> set[str]:
        """The variables of an expression that no other GPM binds."""
        names = expression_variables(expr)
        return {v for v in names if all(use.gpm == self._gpm for use in self._binders(v))}

    def _binders(self, name: str) -> list[Occurrence]:
        """The steps that may bind a variable."""
        return [use for use in self._positive if name in self._bound[use.gpm]]

    def _is_early(self, use: Occurrence) -> bool:
        """Whether a step has its last event before the GPM is taken; or is the GPM."""
        is_before = use.id < self._first and not {*use.repeats} & {*self._repeats}
        return is_before or use.gpm == self._gpm

    def read_values(self, variable: ast.Var, anywhere: bool) -> bool:
        """Whether only FILTERs, other BINDs and the answers read a variable.

        FILTERs and BINDs of other GPMs may read it only if it is known `anywhere` after it.
        """
        if variable in self._query.partition:
            return False
        readers = [g for g in self._query.gpms if variable.name in variables_of(g.pattern)]
        return all(
            _reads_value(gpm.pattern, variable, gpm.name == self._gpm)
            and (gpm.name == self._gpm or (anywhere and self._come_before(gpm.name)))
            for gpm in readers
        )

    def _come_before(self, gpm: str) -> bool:
        """Whether the GPM has one event in each match, before another GPM is taken."""
        uses = (use for use in self._scope.occurrences if use.gpm == gpm)
        is_required = self._gpm in required_gpms(self._chain) and not self.are_repeated
        return is_required and all(use.id > self._first for use in uses)


def _reads_value(group: ast.GroupGraphPattern, variable: ast.Var, binds: bool) -> bool:
    """Whether a group reads a variable only in its FILTERs and BINDs, as a value.

    Only if it `binds` the variable, it has one BIND of it.
    """
    binders = 0
    for element in group.elements:
        match element:
            case ast.Filter(expr):
                exprs = [expr]
            case ast.Bind(expr, var):
                binders += var == variable
                exprs = [expr]
            case _:
                if variable.name in variables_of(ast.GroupGraphPattern((element,))):
                    return False
                continue
        if not all(_is_value(expr, variable) for expr in exprs):
            return False
    return binders == binds


def _is_value(expr: ast.Expr, variable: ast.Var) -> bool:
    """Whether an expression reads a variable's value only, where an expression may stand."""
    if any(variable.name in variables_of(use.pattern) for use in exists_uses(expr)):
        return False
    special = (
        node
        for node in walk(expr)
        if isinstance(node, ast.Prev | ast.Aggregate)
        or (isinstance(node, ast.Call) and node.function == "BOUND")
    )
    return not any(variable in walk(node) for node in special)


def _inlined_group(group: ast.GroupGraphPattern, binds: Binds) -> ast.GroupGraphPattern:
    """A group without the BINDs of some variables, whose expressions stand in their places."""
    elements: list[ast.Element] = []
    for element in group.elements:
        match element:
            case ast.Filter(expr):
                elements.append(ast.Filter(_inlined(expr, binds)))
            case ast.Bind(expr, var):
                if var.name not in binds:
                    elements.append(ast.Bind(_inlined(expr, binds), var))
            case _:
                elements.append(element)
    return ast.GroupGraphPattern(tuple(elements))


def _inlined(expr: ast.Expr, binds: Binds) -> ast.Expr:
    return rewritten(expr, lambda n: binds.get(n.name) if isinstance(n, ast.Var) else None)
