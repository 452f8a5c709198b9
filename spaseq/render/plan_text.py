"""The physical plan of a query as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spaseq.algebra import nodes as n
from spaseq.algebra.constants import is_constant
from spaseq.algebra.entailment import entailed
from spaseq.algebra.groups import translate_group
from spaseq.algebra.nodes import expressions, is_reserved
from spaseq.algebra.substitution import given, lifted, sensitive
from spaseq.automaton.program.window import Counted
from spaseq.expr.aggregates import WITHOUT_COLUMNS
from spaseq.expr.uses import is_volatile
from spaseq.lang import ast
from spaseq.lang.variables import exists_uses
from spaseq.message_text import public_address
from spaseq.plan.evaluators import is_threshold_sequence
from spaseq.plan.pattern_plan import GpmPlan, KeptGroups
from spaseq.plan.query_plan import ComputedVariable, ProjectedVariable, QueryPlan
from spaseq.plan.rules import NAMES
from spaseq.plan.rules.kept_groups import reason_against
from spaseq.plan.split_patterns import reads
from spaseq.plan.window_groups import kept_part, reads_around
from spaseq.rdf.schema import Schema
from spaseq.render.query_words import (
    QueryWords,
    duration_text,
    extent_words,
    variables_text,
    window_text,
)
from spaseq.render.rule_effects import effects, shared_patterns

BYTES = 1500
"""Measured size of a solution that waits in the evaluator `registers`, its texts included.

The other evaluators need less.
"""


def memory_text(plan: QueryPlan, rate: float | None = None) -> str:
    """Maximum memory of the solutions of the window in stage 2, in words.

    `rate` is the number of solutions per second; without it the text is a formula.
    """
    where = "" if plan.sequence.key.variables is None else ", over all keys"
    if isinstance(plan.sequence.window, Counted):
        kept = f"the solutions of {plan.sequence.window.events:,} events"
        each = " of each partition" if plan.sequence.partition else ""
        return f"{kept}{each}, about {BYTES:,} bytes each{where}"
    seconds = plan.sequence.window.horizon / 1000
    if rate is None:
        return (
            f"r x {seconds:,g} s x about {BYTES:,} bytes{where}; r is how many solutions of "
            f"{', '.join(gpm.name for gpm in plan.patterns.gpms)} come per second (--rate)"
        )
    size = rate * seconds * BYTES
    return (
        f"{rate:,g} solutions/s x {seconds:,g} s x about {BYTES:,} bytes = {size / 2**20:,.1f} MB"
        f"{where}"
    )


def plan_text(plan: QueryPlan, words: QueryWords, rate: float | None = None) -> str:
    """Inputs, both stages, answers, and the rules that have changed something.

    `words` has the prefixes of the query. `rate` is the number of solutions per second for which
    the memory is estimated.
    """
    parts = (
        _inputs(plan, words),
        _stage1(plan, words),
        _stage2(plan, rate),
        _answers(plan, words),
        _rules(plan),
    )
    return "\n".join(line for part in parts for line in part)


def _inputs(plan: QueryPlan, words: QueryWords) -> Iterator[str]:
    identity, inputs = plan.identity, plan.inputs
    if plan.maintained is None:
        registered = ", a stream that other queries of the run can read"
        yield f"answers    {identity.name}{registered if identity.register else ''}"
    else:
        yield f"maintains  <{plan.maintained}>, and has no answers"
    streams = plan.outer_streams  # the streams of changes come after them
    given = (column[: len(streams)] for column in (inputs.stream_names, inputs.predicates))
    for iri, name, predicates in zip(streams, *given, strict=True):
        yield f"stream     {name} <{iri}>"
        yield f"  reads    {_predicates(predicates, words)}"
    changing = plan.changing
    for kb in inputs.kbs:
        late = ", as it is at each event's time: "
        if changing is not None and changing.by_windows:
            late = ", as it is when a window closes"
        elif changing is not None and changing.splits is None:
            late += "GPMs are evaluated anew after each change, which takes a millisecond and more"
        else:
            late += "joined with many events at once"
        is_changing = changing is not None and kb in changing.graphs
        yield f"knowledge  <{kb}>{late if is_changing else ''}"
    for service in inputs.services:
        yield f"endpoint   <{public_address(service)}>"
    schema = plan.expressions.schema
    if schema is not None:
        count = len(schema.axioms)
        yield f"entailment rdfs, by {count} axioms: patterns are rewritten, events are not"
    for window in inputs.windows:
        names = ", ".join(inputs.stream_names[stream] for stream in window.streams)
        yield f"levels     {window.name} on {names}: {extent_words(window.extent)}"
        if window.content is not None:
            yield f"  holds    {_content(plan, window.content, words)}"
        number = inputs.windows.index(window)
        for gpm, against in window_gpms(plan, number):
            if against is None:
                yield f"  keeps    {_kept_text(plan, gpm)}"
            else:
                yield f"  anew     {gpm}: {against}"
    yield f"window     {window_text(plan.sequence.window)}"


def window_gpms(plan: QueryPlan, window: int) -> Iterator[tuple[str, str | None]]:
    """(GPM on a window, the reason why it is evaluated anew at each close); None if its groups are
    kept.
    """
    kept = {each.gpm for each in plan.patterns.kept}
    for number, gpm in enumerate(plan.patterns.gpms):
        if any(source.window == window for source in gpm.windows):
            disabled = "kept-groups is disabled"
            yield gpm.name, None if number in kept else reason_against(plan, gpm) or disabled


def _kept_text(plan: QueryPlan, gpm: str) -> str:
    kept = next(kept for kept in plan.patterns.kept if plan.patterns.gpms[kept.gpm].name == gpm)
    pattern = plan.patterns.gpms[kept.gpm].pattern
    of_knowledge = reads(kept_part(pattern), plan.inputs.kbs)
    where = " with graphs that stay as they are" if of_knowledge else ""
    if isinstance(kept, KeptGroups):
        more = ", and all of them after a change of the knowledge" if reads_around(pattern) else ""
        return f"the groups of {gpm}{where}: a close costs those that changed{more}"
    parts = len(kept.parts)
    if parts == 1:
        return f"the solutions of {gpm}{where}: a close costs those that come and go"
    return (
        f"the join of {gpm}, of {parts} parts{where}: a close costs the solutions that come and go"
    )


def _content(plan: QueryPlan, content: int, words: QueryWords) -> str:
    """The content that stage 2 keeps of the events of a window."""
    kept = plan.patterns.contents[content].predicates
    read = None if kept is None else tuple(text[1:-1] for text in kept)
    return f"its events, with the triples of {_predicates(read, words)}"


def _predicates(predicates: tuple[str, ...] | None, words: QueryWords) -> str:
    if predicates is None:
        return "all predicates"
    return " ".join(map(words.predicate, predicates)) or "no triples"


def _rules(plan: QueryPlan) -> Iterator[str]:
    for name, changes in effects(plan):
        for change in changes:
            yield f"rule       {name}: {change}"
    for name in NAMES:
        if name in plan.disabled:
            yield f"rule       {name} (disabled)"


def _stage1(plan: QueryPlan, words: QueryWords) -> Iterator[str]:
    yield "stage 1    ingest and graph patterns, in parallel, per event"
    for gpm in sorted(plan.patterns.gpms, key=lambda gpm: bool(gpm.windows)):
        yield f"  {_gpm(plan, gpm)}"
        for condition in words.filters(gpm):
            yield f"    filter {condition}"
        for condition in words.looking_back(gpm):
            yield f"    if     {condition}"
    yield f"  pushed one by one: {pushed_text(plan)}"
    for names, triples in shared_patterns(plan):
        yield f"  shared by {', '.join(names)}: {' . '.join(map(words.triple, triples))}"


def pushed_text(plan: QueryPlan) -> str:
    """How events are matched that a program pushes one by one."""
    schema, reasons = plan.expressions.schema, list[str]()
    for gpm in (each for each in plan.patterns.gpms if each.streams):
        reason = None
        if not gpm.certain.issuperset(plan.sequence.partition):
            reason = _partition_needs(plan, gpm, schema)
        reason = needs_columns(gpm.core, schema) or reason
        if reason is not None:
            reasons.append(f"{gpm.name} ({reason})")
    for content in plan.patterns.contents:
        if content.operands is None:
            return "in columns, as windows hold the events"
        reason = needs_columns(content.gpm.pattern, schema)
        if reason is not None:
            reasons.append(f"what windows keep for {content.gpm.name} ({reason})")
    if plan.changing is not None:
        return "in columns, as graphs change"
    if not reasons:
        return "without columns" + (", but for window events" if plan.inputs.windows else "")
    return f"in columns where an event may match {', '.join(reasons)}; else without"


def _partition_needs(plan: QueryPlan, gpm: GpmPlan, schema: Schema | None) -> str | None:
    """The part that needs columns where a GPM may leave PARTITION BY unbound; None if there is
    none.
    """
    if not {*plan.sequence.partition} <= {*gpm.variables}:
        return "it leaves PARTITION BY unbound"
    each = (
        m.pattern for m in plan.patterns.memberships if not {*m.streams}.isdisjoint(gpm.streams)
    )
    needed = next(filter(None, (needs_columns(pattern, schema) for pattern in each)), None)
    return None if needed is None else f"it may leave PARTITION BY unbound, {needed}"


def _stage2(plan: QueryPlan, rate: float | None) -> Iterator[str]:
    sequence = plan.sequence
    key = variables_text(sequence.key.variables or ()) or "one partition"
    yield f"stage 2    sequence, by {key} ({sequence.key.reason})"
    yield f"  evaluator {evaluator_text(plan)}: {sequence.evaluator.reason}"
    if sequence.needs_instants:
        yield "  fed with solutions and the instants of all other events"
    else:
        yield "  fed with solutions only"
    yield f"  memory   {memory_text(plan, rate)}"


def evaluator_text(plan: QueryPlan) -> str:
    """The name of the evaluator, with its kernel if it has several."""
    name, kernel = plan.sequence.evaluator.name, kernel_of(plan)
    return name if kernel is None else f"{name} ({kernel} kernel)"


def kernel_of(plan: QueryPlan) -> str | None:
    """Which kernel `compiled-registers` uses; None for other evaluators."""
    if plan.sequence.evaluator.name != "compiled-registers":
        return None
    return "threshold-sequence" if is_threshold_sequence(plan) else "register"


def _answers(plan: QueryPlan, words: QueryWords) -> Iterator[str]:
    answers = plan.answers
    if answers.strategy != "ALL":
        yield f"selection  {answers.strategy}"
    if not answers.after_match.keeps_all:
        skip = answers.after_match
        kind = "" if skip.kind == "NO SKIP" else skip.kind
        mute = f"MUTE {duration_text(skip.mute_ms)}" if skip.mute_ms else ""
        yield f"skip       {' '.join(filter(None, [kind, skip.gpm, mute]))}"
    for variable in answers.computed:
        when = "match with" if variable.each is None else "event in a match of"
        yield f"compute    {computed_text(variable, words)} for each {when} {variable.gpm}"
    if answers.having is not None:
        yield f"having     {words.condition(answers.having)}"
    if answers.template is not None and answers.template.graph is not None:
        yield "changes    the graph, for each match"
        for number, triple in enumerate(answers.template.triples):
            word = "delete" if number < answers.template.deleted else "insert"
            yield f"  {word}   {' '.join(map(words.term, triple.terms))}"
        return
    if answers.template is not None:
        yield "construct  one graph event for each match"
        for triple in answers.template.triples:
            yield f"  {' '.join(map(words.term, triple.terms))}"
        return
    distinct = "distinct " if answers.distinct else ""
    shown = ", ".join(projected_text(item, words) for item in answers.projection)
    yield f"project    {distinct}{shown or 'nothing'}"


def projected_text(item: ProjectedVariable, words: QueryWords) -> str:
    """An item of SELECT as in the query."""
    if item.expr is None:
        return f"?{item.name}"
    return f"({words.condition(item.expr)} AS ?{item.name})"


def computed_text(variable: ComputedVariable, words: QueryWords) -> str:
    """A variable of BIND with what stands for it in FILTERs."""
    return f"({words.condition(variable.expr)} AS ?{variable.name})"


def _gpm(plan: QueryPlan, gpm: GpmPlan) -> str:
    streams = ", ".join(plan.sources_of(gpm))
    binds = _names(gpm.variables)
    on = _names(v for v in gpm.variables if v not in gpm.private)
    line = f"{gpm.name} on {streams} binds {binds or 'nothing'}; passes on {on or 'no values'}"
    if gpm.private:
        line += f" ({_names(sorted(gpm.private))} only where one event has several solutions)"
    if gpm.correlation is None:
        return line
    return f"{line}; its core only, the rest in stage 2: {gpm.correlation.reason}"


def _names(variables: Iterable[str]) -> str:
    return variables_text([v for v in variables if not is_reserved(v)])


def needs_columns(pattern: n.Pattern, schema: Schema | None = None) -> str | None:
    """The part of a pattern that needs columns on a single event, in words; None if there is none.

    A part that reads no event is joined, of whatever kind.
    """
    match pattern:
        case n.Service():
            return "SERVICE"
        case _ if is_constant(pattern):
            return None
        case n.Path():
            return "a property path"
        case n.Group(_, _, aggregates):
            for _, aggregate in aggregates:
                if aggregate.function not in WITHOUT_COLUMNS:
                    return f"{aggregate.function} in a sub-SELECT"
    place = _PLACES.get(type(pattern))
    here = (_in_expression(expr, place, schema) for expr in expressions(pattern))
    inner = (needs_columns(part, schema) for part in n.children(pattern))
    return next((reason for some in (here, inner) for reason in some if reason), None)


_PLACES = {n.Extend: "BIND", n.OrderBy: "ORDER BY", n.Group: "an aggregate"}
"""The place of an expression whose value is used, and not only its truth, in words."""


def _in_expression(expr: ast.Expr, place: str | None, schema: Schema | None) -> str | None:
    if is_volatile(expr):
        return "RAND, UUID, STRUUID or BNODE"
    for use in exists_uses(expr):
        if place is not None:
            return f"EXISTS in {place}"
        pattern, conditions = lifted(entailed(translate_group(use.pattern), schema))
        known = given(pattern, sensitive(pattern))
        if known is None:
            return "EXISTS with a GRAPH whose inner scopes mention variables from outside"
        inner = (_in_expression(condition, None, schema) for condition in conditions)
        reason = needs_columns(known, schema) or next(filter(None, inner), None)
        if reason is not None:
            return reason
    return None
