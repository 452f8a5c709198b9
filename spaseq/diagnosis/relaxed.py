"""Relaxed forms of the first steps of a sequence: the constraints of its last step are added one by
one.

The first form requires only events of the last step after the steps before it. Each further form
adds a constraint, in the order in which a report tries causes: equal values, FILTERs, one time,
contiguity, gap bounds, the window, repetitions, negated steps, UNTIL, greedy loops. The last form
is the first steps as they are written. A form has every match of the forms after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field, replace

from spaseq.automaton.program.window import Counted, Sliding
from spaseq.lang import ast
from spaseq.lang import sequence as seq
from spaseq.lang.ast.pattern_nodes import OpKind
from spaseq.lang.resolve import Resolved
from spaseq.lang.scope import scopes
from spaseq.lang.sequence import Chain, Link, SequenceOperator, occurrences
from spaseq.plan.levels import unused
from spaseq.plan.pattern_plan import GpmPlan
from spaseq.plan.query_plan import AfterMatch, AnswerPlan, QueryPlan
from spaseq.plan.sequencing import UNDECIDED, program_for
from spaseq.records import record

_EVER_MS = 2**52
"""A window that holds every pair of events."""

_MOST_STATES = 200
"""Repetitions that need more states than this are counted: a diagnosis makes many automata."""

ALL_REPETITIONS = 2**31
"""A lower bound of a loop is less than this."""

COPY = "'"
"""Ends the name of a GPM's relaxed copy, where the steps before use the GPM, too."""


@record
class Constraints:
    """The constraints that a form keeps; without arguments none of them.

    `conditions` is the number of the last step's conditions that count, in the order of the text;
    `negations`, `untils` and `greedy` are the ids of steps that count.
    """

    joins: bool = False
    conditions: int = 0
    simultaneity: bool = False
    contiguity: bool = False
    gaps: bool = False
    window: bool = False
    repetition: int = 1  # maximum of a loop's lower bound
    negations: frozenset[int] = frozenset()
    untils: frozenset[int] = frozenset()
    greedy: frozenset[int] = frozenset()


@record
class Stage:
    """A constraint that comes on; `of` is the condition, or the step's id, if it is one of many."""

    kind: str
    constraints: Constraints
    of: int | None = None


@record
class StepCondition:
    """A condition of a GPM on earlier steps; None is a pattern that reads their variables."""

    gpm: str
    expr: ast.Expr | None


@record
class Form:
    """A query to search for; `copies` says of which GPM each added GPM takes the solutions."""

    plan: QueryPlan
    copies: Mapping[int, int] = field(default_factory=dict)


@record
class FirstSteps:
    """The steps of a sequence up to a link of its normal form.

    `before` are the links before that link, `last` is the link, `negated` are the negated steps in
    last place of the whole sequence.
    """

    resolved: Resolved
    plan: QueryPlan
    before: tuple[Link, ...]
    last: Link
    negated: tuple[Link, ...] = ()

    @property
    def chain(self) -> Chain:
        """All links."""
        return Chain((*self.before, self.last, *self.negated))

    @property
    def names(self) -> tuple[str, ...]:
        """The GPMs of the last step that are not negated, in the order of the text."""
        uses = occurrences(Chain((self.last,)))
        return tuple(dict.fromkeys(use.gpm for use in uses if use.negation is None))

    @property
    def conditions(self) -> tuple[StepCondition, ...]:
        """The conditions of the last step on other events."""
        gpms = {gpm.name: gpm for gpm in self.plan.patterns.gpms}
        tests = [StepCondition(n, expr) for n in self.names for expr in gpms[n].conditions]
        tests += [StepCondition(n, None) for n in self.names if gpms[n].correlation is not None]
        return tuple(tests)

    def stages(self) -> Iterator[Stage]:
        """The constraints in the order in which they come on; the last form has them all."""
        now = Constraints(joins=True)
        yield Stage("equality-join-empty", now)
        for number in range(len(self.conditions)):
            now = replace(now, conditions=number + 1)
            yield Stage("condition-false", now, number)
        now = replace(now, simultaneity=True)
        yield Stage("simultaneity", now)
        now = replace(now, contiguity=True)
        yield Stage("contiguity", now)
        now = replace(now, gaps=True)
        yield Stage("gap-bound", now)
        now = replace(now, window=True)
        yield Stage("window", now)
        now = replace(now, repetition=ALL_REPETITIONS)
        yield Stage("repetition", now)
        loops = [step for step in seq.steps(self.chain) if isinstance(step, seq.Repeat)]
        negations = [s.id for s in seq.steps(self.chain) if isinstance(s, seq.Negation)]
        untils = [loop.until.id for loop in loops if loop.until is not None]
        for number in [n for n in negations if n not in untils]:
            now = replace(now, negations=now.negations | {number})
            yield Stage("negation", now, number)
        for number in untils:
            now = replace(now, untils=now.untils | {number})
            yield Stage("until", now, number)
        for loop in loops:
            if loop.greedy:
                now = replace(now, greedy=now.greedy | {loop.id})
                yield Stage("greedy", now, loop.id)

    # --- forms ------------------------------------------------------------------------------------

    def trying_all_events(self) -> FirstSteps | None:
        """The same steps with `:` for each `;` between two of them; None if there is none."""
        links = (*self.before, self.last)
        wide = tuple(
            replace(link, join=replace(link.join, kind=":"))
            if number and link.join.kind == ";" and not isinstance(link.step, seq.Negation)
            else link
            for number, link in enumerate(links)
        )
        if wide == links:
            return None
        return replace(self, before=wide[:-1], last=wide[-1])

    def form(self, constraints: Constraints) -> Form:
        """The query with some constraints."""
        relaxed = _Relaxed(constraints)
        before = relaxed.earlier(self.before)
        copied = self._copied(before, constraints)
        last = _renamed(relaxed.link(self.last), copied)
        return self._form(Chain((*before, last, *relaxed.earlier(self.negated))), constraints)

    def alone(self) -> Form:
        """Only the events of the last step, in any partition; `;` finds them as well as `:`."""
        nothing = Constraints()
        return self._form(
            Chain((_Relaxed(nothing, ";").link(self.last),)), nothing, partitioned=False
        )

    def _copied(self, before: tuple[Link, ...], constraints: Constraints) -> frozenset[str]:
        """The GPMs that the last step needs as relaxed copies."""
        if constraints.joins and constraints.conditions == len(self.conditions):
            return frozenset()
        used = {use.gpm for use in occurrences(Chain(before))}
        return frozenset(used & {*self.names})

    def _form(self, chain: Chain, constraints: Constraints, partitioned: bool = True) -> Form:
        plan, resolved = self.plan, self.resolved
        relaxed = {name: self._relaxed_gpm(name, constraints) for name in self.names}
        used = {use.gpm for use in occurrences(chain)}
        gpms: list[GpmPlan] = []
        for gpm in plan.patterns.gpms:
            own = relaxed.get(gpm.name, gpm) if gpm.name + COPY not in used else gpm
            gpms.append(own if gpm.name in used else unused(gpm, plan))
        copies: dict[int, int] = {}
        for number, gpm in enumerate(plan.patterns.gpms):
            if gpm.name + COPY in used:
                copies[len(gpms)] = number
                gpms.append(replace(relaxed[gpm.name], name=gpm.name + COPY))
        chain = _renumbered(chain)
        binds: dict[str, Collection[str]] = {**resolved.binds}
        if not constraints.joins:
            binds |= dict.fromkeys(self.names, ())
        binds |= {gpms[copy].name: binds[gpms[own].name] for copy, own in copies.items()}
        partition = plan.sequence.partition if partitioned else ()
        scope = scopes(chain, binds, partition)
        program = program_for(chain, scope, tuple(gpms), _MOST_STATES)
        window = plan.sequence.window
        waits = any(a.negations or a.exits for s in program.automaton.states for a in s.acceptances)
        if not constraints.window or (waits and isinstance(window, Counted)):
            window = Sliding(_EVER_MS)
        needs_instants = program.strict or isinstance(window, Counted)
        sequence = replace(
            plan.sequence,
            chain=chain,
            scope=scope,
            program=program,
            window=window,
            partition=partition,
            needs_instants=needs_instants,
            evaluator=UNDECIDED,
        )
        columns = plan.patterns.columns
        return Form(
            replace(
                plan,
                patterns=replace(plan.patterns, gpms=tuple(gpms), columns=columns),
                sequence=sequence,
                answers=AnswerPlan((), False, "ALL", AfterMatch("NO SKIP"), None, None),
                expressions=replace(plan.expressions, groups=frozenset(program.owner)),
            ),
            copies,
        )

    def _relaxed_gpm(self, name: str, constraints: Constraints) -> GpmPlan:
        """A GPM of the last step with the constraints that count."""
        gpm = next(gpm for gpm in self.plan.patterns.gpms if gpm.name == name)
        if not constraints.joins:
            return replace(gpm, variables=(), certain=frozenset(), conditions=(), correlation=None)
        on = self.conditions[: constraints.conditions]
        mine = [condition for condition in on if condition.gpm == name]
        conditions = tuple(c.expr for c in mine if c.expr is not None)
        if gpm.correlation is None or any(c.expr is None for c in mine):
            return replace(gpm, conditions=conditions)
        return replace(gpm, variables=gpm.variables[:-1], conditions=conditions, correlation=None)


@record
class _Relaxed:
    """Rewrites links so that they keep some constraints only."""

    constraints: Constraints
    skip: OpKind = ":"  # what operators become before contiguity comes on

    def earlier(self, links: tuple[Link, ...]) -> tuple[Link, ...]:
        """Links before the last step: they lose negated steps, UNTIL and greed only."""
        return tuple(self._dropped(link) for link in links if self._stays(link))

    def link(self, link: Link) -> Link:
        """The last link."""
        return Link(self._step(link.step), self._join(link.join))

    def _stays(self, link: Link) -> bool:
        step = link.step
        return not isinstance(step, seq.Negation) or step.id in self.constraints.negations

    def _dropped(self, link: Link) -> Link:
        """A link whose negated steps, UNTIL and greed count only on request."""
        match link.step:
            case seq.Repeat() as loop:
                body = Chain(self.earlier(loop.body.links))
                return replace(link, step=self._loop(loop, body, loop.own))
            case seq.BinaryStep(kind, operands):
                kept = tuple(Chain(self.earlier(o.links)) for o in operands)
                return replace(link, step=seq.BinaryStep(kind, kept))
            case _:
                return link

    def _loop(self, loop: seq.Repeat, body: Chain, operator: SequenceOperator | None) -> seq.Repeat:
        on = self.constraints
        until = loop.until if loop.until is not None and loop.until.id in on.untils else None
        greedy = loop.greedy and loop.id in on.greedy
        return replace(loop, body=body, own=operator, until=until, greedy=greedy)

    def _chain(self, chain: Chain) -> Chain:
        return Chain(tuple(self.link(link) for link in chain.links if self._stays(link)))

    def _step(self, step: seq.ChainStep) -> seq.ChainStep:
        match step:
            case seq.Repeat() as loop:
                relaxed = self._loop(loop, self._chain(loop.body), self._own(loop))
                return replace(relaxed, minimum=min(self.constraints.repetition, loop.minimum))
            case seq.BinaryStep(kind, operands):
                kept = tuple(self._chain(operand) for operand in operands)
                if kind == "&" and not self.constraints.simultaneity:
                    return _at_any_time(kept)
                return seq.BinaryStep(kind, kept)
            case _:
                return step

    def _own(self, loop: seq.Repeat) -> SequenceOperator | None:
        """The operator between repetitions.

        Outside the window there would be too many sets of repetitions to search under `:`.
        """
        on = self.constraints
        if on.window or loop.maximum == 1:
            return loop.own
        written = loop.own or loop.body.links[0].join
        kind = written.kind if on.contiguity and written.kind == "," else ";"
        return SequenceOperator(kind, written.gap_ms if on.gaps else None)

    def _join(self, join: SequenceOperator) -> SequenceOperator:
        on = self.constraints
        return SequenceOperator(
            join.kind if on.contiguity else self.skip, join.gap_ms if on.gaps else None
        )


def _at_any_time(operands: tuple[Chain, ...]) -> seq.BinaryStep:
    """`&` without its one time: both operands in any order, or at one time."""
    anywhere = SequenceOperator(":")
    both = Chain((Link(seq.BinaryStep("&", operands), anywhere),))
    either = Chain((Link(seq.BinaryStep("AND", operands), anywhere),))
    return seq.BinaryStep("|", (both, either))


def _renamed(link: Link, names: Collection[str]) -> Link:
    """A link that takes copies of some GPMs."""
    step = link.step
    if isinstance(step, seq.GpmStep):
        use = step.occurrence
        step = seq.GpmStep(replace(use, gpm=use.gpm + COPY)) if use.gpm in names else step
    elif not isinstance(step, seq.Negation):
        step = seq.with_inner(
            step, lambda chain: Chain(tuple(_renamed(inner, names) for inner in chain.links))
        )
    return replace(link, step=step)


def _renumbered(chain: Chain) -> Chain:
    """The chain with its negated steps numbered from 0, as an automaton counts them."""
    ids = sorted({step.id for step in seq.steps(chain) if isinstance(step, seq.Negation)})
    return _with_numbers(chain, {old: new for new, old in enumerate(ids)})


def _with_numbers(chain: Chain, numbers: Mapping[int, int]) -> Chain:
    return Chain(tuple(replace(li, step=_with_number(li.step, numbers)) for li in chain.links))


def _with_number(step: seq.ChainStep, numbers: Mapping[int, int]) -> seq.ChainStep:
    match step:
        case seq.GpmStep(use):
            within = None if use.negation is None else numbers[use.negation]
            return seq.GpmStep(replace(use, negation=within))
        case seq.Repeat(body=body, until=until):
            if until is not None:
                until = _negation(until, numbers)
            return replace(step, body=_with_numbers(body, numbers), until=until)
        case seq.Negation():
            return _negation(step, numbers)
        case seq.BinaryStep(kind, operands):
            return seq.BinaryStep(kind, tuple(_with_numbers(o, numbers) for o in operands))


def _negation(step: seq.Negation, numbers: Mapping[int, int]) -> seq.Negation:
    inside = None if step.inside is None else numbers[step.inside]
    body = _with_numbers(step.body, numbers)
    return replace(step, id=numbers[step.id], body=body, inside=inside)


# --- the first steps of a query -------------------------------------------------------------------


def all_first_steps(resolved: Resolved, plan: QueryPlan) -> list[FirstSteps]:
    """The first steps up to each step that is not negated; the last have the whole sequence."""
    links = plan.sequence.chain.links
    places = [i for i, link in enumerate(links) if not isinstance(link.step, seq.Negation)]
    prefixes = [FirstSteps(resolved, plan, links[:i], links[i]) for i in places]
    prefixes[-1] = replace(prefixes[-1], negated=links[places[-1] + 1 :])
    return prefixes
