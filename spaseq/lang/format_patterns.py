"""Canonical text of expressions, with as few brackets as possible, and of group graph patterns, one
element per line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from spaseq.lang import ast
from spaseq.lang.format_triples import TermText, TriplesText, flag, string
from spaseq.places.vocabulary import AGGREGATE_IRIS
from spaseq.records import record

# Precedences, loosest first. An operand that binds more loosely than its place gets brackets.
OR, AND, RELATION, SUM, PRODUCT, UNARY, PRIMARY = range(7)


@record
class ExpressionText:
    """Writes expressions; `group` writes the pattern of EXISTS."""

    terms: TermText
    group: Callable[[ast.GroupGraphPattern], str]

    def text(self, expr: ast.Expr, place: int = OR) -> str:
        """An expression, in brackets if it binds more loosely than `place`."""
        text, binds = self._text(expr)
        return text if binds >= place else f"({text})"

    def constraint(self, expr: ast.Expr) -> str:
        """An expression after FILTER: in brackets, unless it is EXISTS."""
        text = self.text(expr)
        return f" {text}" if isinstance(expr, ast.Exists) else f"({text})"

    def _text(self, expr: ast.Expr) -> tuple[str, int]:
        """The text without outer brackets, and its precedence."""
        match expr:
            case ast.Or(operands):
                return " || ".join(self.text(operand, AND) for operand in operands), OR
            case ast.And(operands):
                return " && ".join(self.text(operand, RELATION) for operand in operands), AND
            case ast.Compare(op, left, right):
                return f"{self.text(left, SUM)} {op} {self.text(right, SUM)}", RELATION
            case ast.In(operand, options, negated):
                operator = f"{flag('NOT', negated)}IN"
                return f"{self.text(operand, SUM)} {operator} ({self._list(options)})", RELATION
            case ast.Arithmetic(op, left, right):
                binds = SUM if op in "+-" else PRODUCT
                return f"{self.text(left, binds)} {op} {self.text(right, binds + 1)}", binds
            case ast.Not(operand):
                return f"!{self.text(operand, PRIMARY)}", UNARY
            case ast.Sign(op, operand):
                return self._sign(op, operand), UNARY
            case _:
                return self._primary(expr), PRIMARY

    def _primary(self, expr: ast.Expr) -> str:
        match expr:
            case ast.Var() | ast.Iri() | ast.Literal():
                return self.terms.term(expr)
            case ast.Call(function, args):
                return f"{function}({self._list(args)})"
            case ast.FunctionCall(function, args, distinct):
                items = flag("DISTINCT", distinct) + self._list(args)
                return f"{self.terms.iri(function.value)}({items})"
            case ast.Exists(pattern, negated):
                return f"{flag('NOT', negated)}EXISTS {self.group(pattern)}"
            case ast.Aggregate():
                return self._aggregate(expr)
            case ast.Prev(var):
                return f"PREV({self.terms.term(var)})"
            case ast.Timestamp(gpm):
                return f"TIMESTAMP({gpm.name})"
        raise AssertionError(expr)

    def _sign(self, op: str, operand: ast.Expr) -> str:
        text = self.text(operand, PRIMARY)
        is_number = text[0].isdigit() or text[0] == "."  # `-1` would be one number
        return f"{op}({text})" if is_number else f"{op}{text}"

    def _aggregate(self, aggregate: ast.Aggregate) -> str:
        operand = "*" if aggregate.operand is None else self.text(aggregate.operand)
        distinct = flag("DISTINCT", aggregate.distinct)
        separator = ""
        if aggregate.separator is not None:
            separator = f"; SEPARATOR={string(aggregate.separator)}"
        name = aggregate.function
        if name in AGGREGATE_IRIS:
            name = self.terms.iri(name)
        return f"{name}({distinct}{operand}{separator})"

    def _list(self, expressions: Iterable[ast.Expr]) -> str:
        return ", ".join(self.text(expr) for expr in expressions)


def block(items: Iterable[str]) -> str:
    """Items, each of one or more lines, indented between braces."""
    inside = "".join(f"\n{item}" for item in items)
    return "{" + inside.replace("\n", "\n  ") + "\n}" if inside else "{ }"


@record
class PatternText:
    """Writes the patterns of one GPM; `uses` counts the uses of its blank nodes."""

    terms: TermText
    uses: Counter[str]

    @property
    def expressions(self) -> ExpressionText:
        """The writer of this GPM's expressions."""
        return ExpressionText(self.terms, self.group)

    def group(self, group: ast.GroupGraphPattern) -> str:
        """A group from brace to brace."""
        return block(line for element in group.elements for line in self._element(element))

    def triples(self, triples: tuple[ast.Triple, ...]) -> list[str]:
        """Triples as statements, each ending in a dot."""
        return TriplesText(triples, self.uses, self.terms).statements()

    def select_item(self, item: ast.SelectItem) -> str:
        """`?v`, `(expr AS ?v)`, or `(expr)` in GROUP BY."""
        if item.expr is None:
            return self.expressions.text(item.var) if item.var else ""
        name = "" if item.var is None else f" AS {self.terms.term(item.var)}"
        return f"({self.expressions.text(item.expr)}{name})"

    def _element(self, element: ast.Element) -> list[str]:
        match element:
            case ast.Triples(triples):
                return self.triples(triples)
            case ast.GroupGraphPattern():
                return [self.group(element)]
            case ast.GroupOrUnionGraphPattern(alternatives):
                return [" UNION ".join(self.group(group) for group in alternatives)]
            case ast.SubSelect():
                return list(self._sub_select(element))
            case _:
                return [self._keyword_element(element)]

    def _keyword_element(self, element: ast.Element) -> str:
        match element:
            case ast.Filter(expr):
                return f"FILTER{self.expressions.constraint(expr)}"
            case ast.OptionalGraphPattern(pattern):
                return f"OPTIONAL {self.group(pattern)}"
            case ast.MinusGraphPattern(pattern):
                return f"MINUS {self.group(pattern)}"
            case ast.GraphGraphPattern(name, pattern):
                return f"GRAPH {self.terms.term(name)} {self.group(pattern)}"
            case ast.ServiceGraphPattern(name, pattern, silent):
                endpoint = f"{flag('SILENT', silent)}{self.terms.term(name)}"
                return f"SERVICE {endpoint} {self.group(pattern)}"
            case ast.EventGraphPattern(stream, event, time, pattern):
                words = "EVENT " if stream is None else f"EVENT ON {stream.name} "
                words += "" if event is None else f"{self.terms.term(event)} "
                words += "" if time is None else f"AT {self.terms.term(time)} "
                return f"{words}{self.group(pattern)}"
            case ast.Bind(expr, var):
                return f"BIND({self.expressions.text(expr)} AS {self.terms.term(var)})"
            case ast.Values():
                return self._values(element)
        raise AssertionError(element)

    def _values(self, values: ast.Values) -> str:
        rows = [" ".join(self._cell(cell) for cell in row) for row in values.rows]
        names = " ".join(self.terms.term(var) for var in values.variables)
        if len(values.variables) == 1:
            return f"VALUES {names} {{ {' '.join(rows)} }}"
        return f"VALUES ({names}) {block(f'({row})' for row in rows)}"

    def _cell(self, cell: ast.Iri | ast.Literal | ast.TripleTerm | None) -> str:
        return "UNDEF" if cell is None else self.terms.term(cell)

    def _sub_select(self, query: ast.SubSelect) -> Iterator[str]:
        modifier = flag("DISTINCT", query.distinct) + flag("REDUCED", query.reduced)
        yield f"SELECT {modifier}{self._items(query.items)}"
        yield f"WHERE {self.group(query.pattern)}"
        if query.group_by:
            yield f"GROUP BY {' '.join(self.select_item(item) for item in query.group_by)}"
        if query.having:
            yield f"HAVING {' '.join(f'({self.expressions.text(e)})' for e in query.having)}"
        if query.order_by:
            yield f"ORDER BY {' '.join(self._order(order) for order in query.order_by)}"
        if query.limit is not None:
            yield f"LIMIT {query.limit}"
        if query.offset is not None:
            yield f"OFFSET {query.offset}"
        if query.values is not None:
            yield self._values(query.values)

    def _items(self, items: tuple[ast.SelectItem, ...] | None) -> str:
        return "*" if items is None else " ".join(self.select_item(item) for item in items)

    def _order(self, order: ast.OrderCondition) -> str:
        text = self.expressions.text(order.expr)
        if order.descending:
            return f"DESC({text})"
        return text if isinstance(order.expr, ast.Var) else f"({text})"
