"""Parts of a plan in the words of its query: prefixes, conditions, windows, sequences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from spaseq.algebra.constants import is_part
from spaseq.algebra.nodes import Filter, Pattern, PatternTerm, TriplePattern, is_reserved
from spaseq.automaton.program.window import Counted, Sliding, Tumbling, Window
from spaseq.lang import ast
from spaseq.lang.format import ExpressionText, PatternText, repetition
from spaseq.lang.format_triples import TermText
from spaseq.lang.sequence import (
    BinaryStep,
    Chain,
    ChainStep,
    GpmStep,
    Negation,
    Repeat,
    SequenceOperator,
)
from spaseq.lang.variables import conjuncts, rewritten
from spaseq.plan.pattern_plan import EachEventExtent, Extent, GpmPlan, PanesExtent, SessionExtent
from spaseq.rdf.terms.term import RDF
from spaseq.rdf.terms.times import format_time, in_largest_unit
from spaseq.records import record


@record
class QueryWords:
    """Writes the parts of a plan with the prefixes of a query."""

    prologue: ast.Prologue

    def iri(self, iri: str) -> str:
        """A prefixed name, or the IRI in angle brackets."""
        return TermText(self.prologue).iri(iri)

    def predicate(self, iri: str) -> str:
        """The IRI of a predicate; `a` for rdf:type."""
        return "a" if iri == f"{RDF}type" else self.iri(iri)

    def condition(self, expr: ast.Expr) -> str:
        """An expression on one line."""
        lines = self._expressions().text(expr).split("\n")
        return " ".join(filter(None, map(str.strip, lines)))

    def filters(self, gpm: GpmPlan) -> list[str]:
        """The FILTERs of a GPM that read only its event, each conjunct by itself."""
        return self.conditions(_filters(gpm.pattern)) if gpm.correlation is None else []

    def looking_back(self, gpm: GpmPlan) -> list[str]:
        """The FILTERs of a GPM that may read earlier steps, each conjunct by itself."""
        conditions = [*gpm.conditions]
        if gpm.correlation is not None:
            names: dict[str, ast.Node] = dict(gpm.correlation.parameters)
            written = (rewritten(e, lambda n: _named(n, names)) for e in _filters(gpm.pattern))
            conditions = [*written, *conditions]
        return self.conditions(conditions)

    def conditions(self, exprs: Iterable[ast.Expr]) -> list[str]:
        """The conjuncts of some conditions, each by itself."""
        return [self.condition(expr) for expr in conjuncts(exprs)]

    def path(self, path: ast.Path) -> str:
        """A property path."""
        return TermText(self.prologue).path(path)

    def triple(self, triple: TriplePattern) -> str:
        """A triple pattern of the algebra."""
        subject, predicate, object_ = triple.terms
        if is_part(triple):
            part = str(predicate)[len("<triple ") : -1]
            return f"the {part} of {self.term(subject)} is {self.term(object_)}"
        verb = "a" if predicate == f"<{RDF}type>" else self.term(predicate)
        return f"{self.term(subject)} {verb} {self.term(object_)}"

    def term(self, term: PatternTerm) -> str:
        """A term of the algebra: a variable, or the N-Triples text of a constant."""
        if not isinstance(term, str):
            return term.name if is_reserved(term.name) else f"?{term.name}"
        return self.iri(term[1:-1]) if term[:1] == "<" and term[:2] != "<<" else term

    def _expressions(self) -> ExpressionText:
        return PatternText(TermText(self.prologue), Counter()).expressions


def _filters(pattern: Pattern) -> Iterator[ast.Expr]:
    """The FILTERs of a whole pattern."""
    while isinstance(pattern, Filter):
        yield pattern.expr
        pattern = pattern.pattern


def _named(node: ast.Node, names: Mapping[str, ast.Node]) -> ast.Node | None:
    """The term of a variable; None for other nodes."""
    return names.get(node.name) if isinstance(node, ast.Var) else None


def duration_text(ms: int) -> str:
    """A duration in the largest unit that leaves no rest.

    >>> duration_text(900_000), duration_text(90_000)
    ('15 MINUTES', '90 SECONDS')
    """
    amount, unit = in_largest_unit(ms)
    return f"{amount:,} {unit}"


def window_text(window: Window) -> str:
    """The text after WITHIN.

    >>> window_text(Tumbling(3_600_000, 60_000))
    '1 HOURS TUMBLING FROM 1970-01-01T00:01:00Z'
    """
    match window:
        case Counted(events):
            return f"{events:,} EVENTS"
        case Sliding(0):
            return "0 SECONDS: all events of a match have one time"
        case Sliding(length):
            return duration_text(length)
        case Tumbling(length, origin):
            start = f" FROM {format_time(origin)}" if origin else ""
            return f"{duration_text(length)} TUMBLING{start}"


def extent_words(extent: Extent) -> str:
    """The extent of FROM WINDOW as in a query.

    >>> extent_words(PanesExtent(600_000, 60_000, 0))
    'RANGE 10 MINUTES SLIDE 1 MINUTES'
    """
    match extent:
        case SessionExtent(gap):
            return f"SESSION {duration_text(gap)}"
        case EachEventExtent(None, events):
            return f"RANGE {events:,} EVENTS EACH EVENT"
        case EachEventExtent(int() as length):
            return f"RANGE {duration_text(length)} EACH EVENT"
        case PanesExtent(length, slide, origin):
            text = f"RANGE {duration_text(length)}"
            text += f" SLIDE {duration_text(slide)}" if slide != length or origin else ""
            return f"{text} FROM {format_time(origin)}" if origin else text
    raise AssertionError(extent)


def operator_text(join: SequenceOperator) -> str:
    """A sequence operator with its gap bound, as in a query."""
    return join.kind if join.gap_ms is None else f"{join.kind}[{duration_text(join.gap_ms)}]"


def sequence_text(chain: Chain) -> str:
    """A sequence as in a query.

    >>> from spaseq.compile import compile_query
    >>> plan = compile_query('''SELECT * WITHIN 1 HOURS FROM STREAM S <e:s>
    ...     SEQ(A;[5 SECONDS] (A, A)+) { DEFINE GPM A ON S { ?x <e:is> ?y } }''')
    >>> sequence_text(plan.sequence.chain)
    'A;[5 SECONDS] (A, A)+'
    """
    parts = []
    for number, link in enumerate(chain.links):
        lead = f"{operator_text(link.join)} " if number else ""
        parts.append(lead + step_text(link.step))
    return "".join(parts)


def step_text(step: ChainStep) -> str:
    """A step of a sequence as in a query."""
    match step:
        case GpmStep(use):
            return use.gpm
        case BinaryStep(kind, operands):
            return f"({f' {kind} '.join(map(sequence_text, operands))})"
        case Negation(body=body):
            return f"{_atom(body)}!"
        case Repeat(body=body):
            return _atom(body) + _quantifier(step)


def _atom(body: Chain) -> str:
    """A repeated or negated body, in brackets if it has several steps."""
    text = sequence_text(body)
    alone = len(body.links) == 1 and isinstance(body.links[0].step, GpmStep | BinaryStep)
    return text if alone else f"({text})"


def _quantifier(repeat: Repeat) -> str:
    greedy = "+" if repeat.greedy else ""
    operator = "" if repeat.own is None else f"[{_own(repeat.own)}]"
    until = "" if repeat.until is None else f" UNTIL {sequence_text(repeat.until.body)}"
    return f"{repetition(repeat.minimum, repeat.maximum)}{greedy}{operator}{until}"


def _own(join: SequenceOperator) -> str:
    return join.kind if join.gap_ms is None else f"{join.kind} {duration_text(join.gap_ms)}"


def filters_of(pattern: ast.GroupGraphPattern) -> Iterator[ast.Expr]:
    """The FILTERs of a group, without the FILTERs of nested groups."""
    return (element.expr for element in pattern.elements if isinstance(element, ast.Filter))


def variables_text(names: Sequence[str]) -> str:
    """Variables, with commas between them."""
    return ", ".join(f"?{name}" for name in names)
