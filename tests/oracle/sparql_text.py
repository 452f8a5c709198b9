"""Writes parsed patterns and expressions back as SPARQL 1.1 for rdflib.

PREV, TIMESTAMP, NOW, LIST, FIRST, LAST and aggregates over group variables are not SPARQL, or
rdflib has another meaning. Each is written as a fresh variable, and `Writer.specials` maps the
variable to its node. rdflib knows little of durations, so times and durations are compared and
computed in milliseconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, TypeAlias

from spaseq.lang import ast
from tests.oracle.triple_terms import PLACES

XSD = "http://www.w3.org/2001/XMLSchema#"
XSD_STRING = f"{XSD}string"


@dataclass(frozen=True)
class Milliseconds:
    """The milliseconds since the epoch of TIMESTAMP or NOW."""

    time: ast.Timestamp | ast.Call


Special: TypeAlias = ast.Prev | ast.Timestamp | ast.Aggregate | ast.Call | Milliseconds

_LENGTH = re.compile(
    r"(-?)P(?:([0-9]+)D)?(?:T(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:[.][0-9]+)?)S)?)?"
)


def length_ms(lexical: str) -> Decimal | None:
    """The milliseconds of an xsd:dayTimeDuration; None for another text."""
    found = _LENGTH.fullmatch(lexical)
    if found is None or lexical[-1] in "PT":
        return None
    sign, *fields = found.groups()
    units = (86_400_000, 3_600_000, 60_000, 1_000)
    parts = (Decimal(n or 0) * unit for n, unit in zip(fields, units, strict=True))
    total = sum(parts, Decimal(0))
    return -total if sign else total


class Writer:
    """Text of AST nodes. Use one writer per query text, because it numbers special variables."""

    def __init__(self) -> None:
        self.specials: dict[str, Special] = {}
        self._inside_select = 0
        self._triple_terms = 0
        self._parts: list[str] = []

    def special(self, node: Special) -> str:
        for name, known in self.specials.items():
            if known == node:
                return f"?{name}"
        name = f"oracle_special_{len(self.specials)}"
        self.specials[name] = node
        return f"?{name}"

    # --- terms ---------------------------------------------------------------------------------

    def term(self, term: ast.Term) -> str:
        match term:
            case ast.Var(name):
                return f"?{name}"
            case ast.Iri(value):
                return f"<{value}>"
            case ast.BlankNode(label):
                return "_:" + re.sub(r"\W", "_", f"b{label}")
            case ast.TripleTerm():
                self._triple_terms += 1
                name = f"_:oracle_term_{self._triple_terms}"
                for place, inner in zip(PLACES, term.terms, strict=True):
                    self._parts.append(f"{name} <{place}> {self.term(inner)}")
                return name
            case ast.Literal(lexical, datatype, language):
                quoted = '"' + "".join(_ESCAPES.get(c, c) for c in lexical) + '"'
                if language:
                    return f"{quoted}@{language}"
                if datatype and datatype != XSD_STRING:
                    return f"{quoted}^^<{datatype}>"
                return quoted

    # --- expressions ---------------------------------------------------------------------------

    def expr(self, expr: ast.Expr) -> str:
        match expr:
            case ast.Compare(op, left, right) if self._both_in_ms(left, right):
                return f"({self.in_ms(left)} {op} {self.in_ms(right)})"
            case ast.Call("NOW", ()):
                return self.special(expr)
            case ast.Var() | ast.Iri() | ast.Literal():
                return self.term(expr)
            case ast.Or(operands):
                return "(" + " || ".join(map(self.expr, operands)) + ")"
            case ast.And(operands):
                return "(" + " && ".join(map(self.expr, operands)) + ")"
            case ast.Not(operand):
                return f"(! {self.expr(operand)})"
            case ast.Compare(op, left, right) | ast.Arithmetic(op, left, right):
                return f"({self.expr(left)} {op} {self.expr(right)})"
            case ast.Sign(op, operand):
                return f"({op} {self.expr(operand)})"
            case ast.In(operand, options, negated):
                word = "NOT IN" if negated else "IN"
                return f"({self.expr(operand)} {word} ({', '.join(map(self.expr, options))}))"
            case ast.Call(function, args):
                return f"{function}({', '.join(map(self.expr, args))})"
            case ast.FunctionCall(function, args, distinct):
                word = "DISTINCT " if distinct else ""
                return f"<{function.value}>({word}{', '.join(map(self.expr, args))})"
            case ast.Exists(pattern, negated):
                return f"{'NOT ' if negated else ''}EXISTS {self.group(pattern)}"
            case ast.Aggregate():
                return self.aggregate(expr)
            case ast.Prev() | ast.Timestamp():
                return self.special(expr)

    def _both_in_ms(self, left: ast.Expr, right: ast.Expr) -> bool:
        return kind_in_ms(left) is not None and kind_in_ms(left) == kind_in_ms(right)

    def in_ms(self, expr: ast.Expr) -> str:
        """An expression of a kind that `kind_in_ms` knows, as a number of milliseconds."""
        match expr:
            case ast.Literal(lexical):
                return f"{length_ms(lexical):f}"
            case ast.Timestamp() | ast.Call():
                return self.special(Milliseconds(expr))
            case ast.Arithmetic(op, left, right):
                parts = (self.in_ms(e) if kind_in_ms(e) else self.expr(e) for e in (left, right))
                return f"({f' {op} '.join(parts)})"
        raise NotImplementedError(expr)

    def aggregate(self, node: ast.Aggregate) -> str:
        if node.function in ("FIRST", "LAST", "LIST") or not self._inside_select:
            return self.special(node)
        operand = "*" if node.operand is None else self.expr(node.operand)
        separator = ""
        if node.separator is not None:
            separator = f"; SEPARATOR = {self.term(ast.Literal(node.separator))}"
        word = "DISTINCT " if node.distinct else ""
        return f"{node.function}({word}{operand}{separator})"

    # --- paths ---------------------------------------------------------------------------------

    def path(self, path: ast.Var | ast.Path) -> str:
        match path:
            case ast.Var() | ast.Iri():
                return self.term(path)
            case ast.PathSequence(parts):
                return "(" + "/".join(map(self.path, parts)) + ")"
            case ast.PathAlternative(parts):
                return "(" + "|".join(map(self.path, parts)) + ")"
            case ast.PathInverse(inner):
                return f"(^{self.path(inner)})"
            case ast.PathRepeat(inner, modifier):
                return f"({self.path(inner)}{modifier})"
            case ast.PathNegated(forward, inverse):
                members = [self.term(i) for i in forward] + [f"^{self.term(i)}" for i in inverse]
                return f"!({'|'.join(members)})"

    # --- patterns ------------------------------------------------------------------------------

    def group(self, group: ast.GroupGraphPattern) -> str:
        return "{ " + " ".join(map(self.element, group.elements)) + " }"

    def triple(self, triple: ast.Triple) -> str:
        return (
            f"{self.term(triple.subject)} {self.path(triple.predicate)} {self.term(triple.object)}"
        )

    def element(self, element: ast.Element) -> str:
        match element:
            case ast.Triples(triples):
                lines = [self.triple(t) for t in triples]
                lines, self._parts = lines + self._parts, []
                return "".join(f"{line} . " for line in lines)
            case ast.Filter(expr):
                return f"FILTER({self.expr(expr)})"
            case ast.OptionalGraphPattern(pattern):
                return f"OPTIONAL {self.group(pattern)}"
            case ast.GroupOrUnionGraphPattern(alternatives):
                return " UNION ".join(map(self.group, alternatives))
            case ast.MinusGraphPattern(pattern):
                return f"MINUS {self.group(pattern)}"
            case ast.GraphGraphPattern(name, pattern):
                return f"GRAPH {self.term(name)} {self.group(pattern)}"
            case ast.Bind(expr, var):
                return f"BIND({self.expr(expr)} AS {self.term(var)})"
            case ast.Values():
                return self.values(element)
            case ast.SubSelect():
                return "{ " + self.select(element) + " }"
            case ast.GroupGraphPattern():
                return self.group(element)
            case ast.ServiceGraphPattern():
                raise NotImplementedError("SERVICE")

    def values(self, values: ast.Values) -> str:
        names = " ".join(map(self.term, values.variables))
        rows = (" ".join("UNDEF" if x is None else self.term(x) for x in r) for r in values.rows)
        return f"VALUES ({names}) {{ {' '.join(f'({row})' for row in rows)} }}"

    def item(self, item: ast.SelectItem) -> str:
        if item.expr is None:
            assert item.var is not None
            return self.term(item.var)
        if item.var is None:
            return f"({self.expr(item.expr)})"
        return f"({self.expr(item.expr)} AS {self.term(item.var)})"

    def select(self, select: ast.SubSelect) -> str:
        self._inside_select += 1
        word = "DISTINCT " if select.distinct else "REDUCED " if select.reduced else ""
        items = "*" if select.items is None else " ".join(map(self.item, select.items))
        parts = [f"SELECT {word}{items} WHERE {self.group(select.pattern)}"]
        if select.group_by:
            parts.append("GROUP BY " + " ".join(map(self.item, select.group_by)))
        if select.having:
            parts.append("HAVING " + " ".join(f"({self.expr(e)})" for e in select.having))
        if select.order_by:
            parts.append("ORDER BY " + " ".join(map(self.condition, select.order_by)))
        if select.limit is not None:
            parts.append(f"LIMIT {select.limit}")
        if select.offset is not None:
            parts.append(f"OFFSET {select.offset}")
        if select.values is not None:
            parts.append(self.values(select.values))
        self._inside_select -= 1
        return " ".join(parts)

    def condition(self, condition: ast.OrderCondition) -> str:
        return f"{'DESC' if condition.descending else 'ASC'}({self.expr(condition.expr)})"


def kind_in_ms(expr: ast.Expr) -> Literal["time", "duration"] | None:
    """Whether an expression is a time or a duration that is computed in milliseconds."""
    match expr:
        case ast.Timestamp() | ast.Call("NOW", ()):
            return "time"
        case ast.Literal(lexical, datatype) if datatype == f"{XSD}dayTimeDuration":
            return None if length_ms(lexical) is None else "duration"
        case ast.Arithmetic(op, left, right):
            match op, kind_in_ms(left), kind_in_ms(right):
                case ("-", "time", "time") | ("+" | "-", "duration", "duration"):
                    return "duration"
                case "*" | "/", "duration", None:
                    return "duration"
                case "*", None, "duration":
                    return "duration"
                case ("+" | "-", "time", "duration") | ("+", "duration", "time"):
                    return "time"
    return None


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
