"""How graph patterns over a lifted stream are evaluated, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from spaseq.algebra import nodes as n
from spaseq.algebra.constants import is_part
from spaseq.algebra.nodes import PatternTerm
from spaseq.lang import ast
from spaseq.lang.variables import variables_of
from spaseq.lift.lift_plan import ROW_NUMBER, LiftPlan
from spaseq.lift.lifted_graphs import Way, unified
from spaseq.lift.pruned_lifts import needed_variables
from spaseq.lift.row_groups import asked_rows, asked_text, bounds
from spaseq.plan.pattern_plan import GpmPlan
from spaseq.plan.predicates import stream_patterns, stream_predicates
from spaseq.plan.query_plan import QueryPlan
from spaseq.render.query_words import variables_text


def lift_text(plan: QueryPlan, lifts: Sequence[tuple[str, LiftPlan]]) -> str:
    """The use of the rows of each lifted stream, by its IRI."""
    return "\n".join(line for iri, lift in lifts for line in _of_stream(plan, iri, lift))


def _of_stream(plan: QueryPlan, iri: str, lift: LiftPlan) -> Iterator[str]:
    number = plan.inputs.streams.index(iri)
    yield f"stream {plan.inputs.stream_names[number]}"
    for gpm in plan.patterns.gpms:
        if number in gpm.streams:
            yield f"  {gpm.name}: {_of_gpm(plan, gpm, lift)}"
    fields = lift.fields.wanted - {ROW_NUMBER}
    asked = stream_predicates([plan], iri)
    read = fields if asked is None else needed_variables(lift, asked) & fields
    yield f"  read: {_listed(read)}"
    if fields - read:
        yield f"  not read from Parquet if no row can be bad by them: {_listed(fields - read)}"
    tested = bounds(lift)
    if tested:
        yield f"  row groups of Parquet are left out by {' && '.join(map(str, tested))}"
    patterns = stream_patterns([plan], iri)
    rows = None if tested or patterns is None else asked_rows(patterns, lift)
    if rows is not None:
        yield (
            "  row groups of Parquet are read for their times only, if no row can be bad, "
            f"unless a row may have {asked_text(rows)}"
        )


def _of_gpm(plan: QueryPlan, gpm: GpmPlan, lift: LiftPlan) -> str:
    """How a GPM is evaluated over the rows of a lift."""
    if not plan.patterns.evaluation.virtual:
        return "triples are made: the rule virtual-triples is disabled"
    reason = _at_once(lift)
    if reason is not None:
        return f"triples are made: {reason}"
    template = [t.terms for t in lift.template if t.inside]
    words = []
    for part in _parts(gpm.core):
        if isinstance(part, n.Path):
            words.append("triples are made for a path")
            continue
        if any(map(is_part, part.triples)):
            words.append("triples are made for a triple term with variables")
            continue
        ways = unified(part.triples, template)
        if ways is None:
            words.append("triples are made: the template matches in too many ways")
        elif part.triples and not ways:
            words.append("no row matches")
        elif part.triples:
            count = f"{len(part.triples)} triple pattern{'s' * (len(part.triples) != 1)}"
            union = f" in {len(ways)} ways" if len(ways) > 1 else ""
            words.append(f"{count} from {_listed(_fields(ways, lift))}{union}")
    return "; ".join(dict.fromkeys(words)) or "reads no triple"


def _at_once(lift: LiftPlan) -> str | None:
    """Why a lift makes the triples of all events; None if it makes them on demand."""
    if not all(isinstance(e, ast.Bind | ast.Filter) for e in lift.elements):
        return "UNNEST or VALUES"
    terms = [term for t in lift.template for term in t.terms]
    if any(isinstance(t, ast.Var) and n.is_reserved(t.name) for t in terms):
        return "blank nodes, or triple terms with variables"
    if any(isinstance(t.terms[1], ast.Var) for t in lift.template):
        return "a variable as predicate"
    return None


def _parts(pattern: n.Pattern) -> Iterator[n.BGP | n.Path]:
    """The basic graph patterns and paths of a pattern that read the event, outside EXISTS."""
    waiting = [pattern]
    while waiting:
        match waiting.pop(0):
            case n.Graph():
                continue
            case n.BGP() | n.Path() as part:
                yield part
            case node:
                waiting += n.children(node)


def _fields(ways: Iterable[Way], lift: LiftPlan) -> frozenset[str]:
    """The fields of the rows that ways of a pattern read."""
    terms: list[PatternTerm] = []
    for way in ways:
        terms += [term for number in way.triples for term in _inside(lift)[number]]
    binds = lift.binds
    waiting = {term.name for term in terms if isinstance(term, ast.Var)}
    fields: set[str] = set()
    while waiting:
        name = waiting.pop()
        fields.add(name)
        waiting |= variables_of(binds[name]) - fields if name in binds else set()
    return frozenset(fields - binds.keys())


def _inside(lift: LiftPlan) -> list[tuple[PatternTerm, PatternTerm, PatternTerm]]:
    return [t.terms for t in lift.template if t.inside]


def _listed(names: Iterable[str]) -> str:
    return variables_text(sorted(names)) or "no field"
