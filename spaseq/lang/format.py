"""The canonical text of a query: one clause per line, IRIs with prefixes where possible;
expressions with as few brackets as possible, and one element of a group graph pattern per line.

The canonical text parses to an equal tree, and formatting it again changes nothing. It has neither
the comments of the query nor its labels of blank nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from spaseq.lang import ast
from spaseq.lang.format_triples import TermText, TriplesText, flag, string, uses_of_blank_nodes
from spaseq.rdf.geosparql import AGGREGATE_IRIS
from spaseq.records import record

# Precedences, loosest first. An operand that binds more loosely than its place gets brackets.
OR, AND, RELATION, SUM, PRODUCT, UNARY, PRIMARY = range(7)

_QUANTIFIERS = {(1, None): "+", (0, None): "*", (0, 1): "?"}


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


def format_query(query: ast.Query) -> str:
    """The canonical text of a query that was parsed without errors (docs/lookup.md#grammar).

    >>> from spaseq.lang.parser import parse
    >>> print(format_query(parse('select * within 1 hour from stream S <http://e/s> '
    ...                          'seq(A) { define gpm A on S { ?s ?p 1 } }')), end="")
    SELECT *
    WITHIN 1 HOURS
    FROM STREAM S <http://e/s>
    WHERE {
      SEQ(A)
      DEFINE GPM A ON S {
        ?s ?p 1 .
      }
    }
    """
    terms = TermText(query.prologue)
    prologue = list(_prologue(query.prologue))
    lines = [*prologue, *([""] if prologue else []), *_header(query, terms), _body(query, terms)]
    if query.having is not None:
        expressions = PatternText(terms, uses_of_blank_nodes([query.having])).expressions
        lines.append(f"HAVING({expressions.text(query.having)})")
    return "\n".join(lines) + "\n"


def with_window(text: str, window: ast.TimeWindow, other: ast.TimeWindow) -> str:
    """The canonical text of a query, with its window replaced by another one.

    >>> short, long = (ast.TimeWindow(ast.TimeSpan(n, "HOURS")) for n in (1, 2))
    >>> with_window("SELECT *\\nWITHIN 1 HOURS\\nFROM STREAM S <http://e/s>", short, long)
    'SELECT *\\nWITHIN 2 HOURS\\nFROM STREAM S <http://e/s>'
    """
    return text.replace(f"\nWITHIN {_window(window)}\n", f"\nWITHIN {_window(other)}\n", 1)


def _prologue(prologue: ast.Prologue) -> Iterator[str]:
    if prologue.version is not None:
        yield f"VERSION {string(prologue.version)}"
    if prologue.base is not None:
        yield f"BASE <{prologue.base}>"
    for prefix in prologue.prefixes:
        yield f"PREFIX {prefix.prefix}: <{prefix.iri}>"


def _header(query: ast.Query, terms: TermText) -> Iterator[str]:
    if query.register is not None:
        yield f"REGISTER STREAM {terms.iri(query.register.value)} AS"
    yield _form(query.form, terms)
    if query.window is not None:
        yield f"WITHIN {_window(query.window)}"
    if query.partition:
        yield f"PARTITION BY ({' '.join(terms.term(var) for var in query.partition)})"
    if query.skip is not None:
        yield f"AFTER MATCH {_skip(query.skip)}"
    for stream in query.streams:
        yield f"FROM STREAM {stream.name} {terms.iri(stream.iri.value)}"
    for window in query.windows:
        yield _from_window(window, terms)
    for kb in query.kbs:
        yield f"FROM NAMED {terms.iri(kb.iri.value)}"


def _form(form: ast.Form, terms: TermText) -> str:
    match form:
        case ast.Construct(template):
            patterns = PatternText(terms, uses_of_blank_nodes(template))
            return f"CONSTRUCT {block(patterns.triples(template))}"
        case ast.Maintain(graph, deleted, inserted):
            patterns = PatternText(terms, uses_of_blank_nodes((*deleted, *inserted)))
            lines = [f"MAINTAIN GRAPH {terms.iri(graph.value)} AS"]
            for word, triples in (("DELETE", deleted), ("INSERT", inserted)):
                lines += [f"{word} {block(patterns.triples(triples))}"] if triples else []
            return "\n".join(lines)
        case ast.Select(items, distinct, strategy):
            patterns = PatternText(terms, Counter())
            words = ["SELECT", *(["DISTINCT"] if distinct else [])]
            words += [strategy] if strategy != "ALL" else []
            words += ["*"] if items is None else [patterns.select_item(item) for item in items]
            return " ".join(words)


def _window(window: ast.TimeWindow | ast.CountWindow) -> str:
    match window:
        case ast.CountWindow(events):
            return f"{events} EVENTS"
        case ast.TimeWindow(length, tumbling, origin):
            text = _duration(length) + (" TUMBLING" if tumbling else "")
            return text if origin is None else f"{text} FROM {string(origin)}"


def _from_window(window: ast.FromWindow, terms: TermText) -> str:
    streams = ", ".join(stream.name for stream in window.streams)
    text = f"FROM WINDOW {window.name} ON {streams} {_extent(window.extent)}"
    if window.key is None:
        return text
    patterns = PatternText(terms, uses_of_blank_nodes([window.key]))
    return f"{text} KEY {patterns.group(window.key)}"


def _extent(extent: ast.Panes | ast.EachEvent | ast.Session) -> str:
    match extent:
        case ast.Session(gap):
            return f"SESSION {_duration(gap)}"
        case ast.EachEvent(int() as events):
            return f"RANGE {events} EVENTS EACH EVENT"
        case ast.EachEvent(ast.TimeSpan() as length):
            return f"RANGE {_duration(length)} EACH EVENT"
        case ast.Panes(length, slide, origin):
            text = f"RANGE {_duration(length)}"
            text += "" if slide is None else f" SLIDE {_duration(slide)}"
            return text if origin is None else f"{text} FROM {string(origin)}"
    raise AssertionError(extent)


def _duration(duration: ast.TimeSpan) -> str:
    return f"{duration.amount} {duration.unit}"


def _skip(skip: ast.Skip) -> str:
    form = skip.kind if skip.kind in ("NO SKIP", "CONSUME") else f"SKIP {skip.kind}"
    if skip.gpm is not None:
        form += f" {skip.gpm.name}"
    if skip.mute is None:
        return form
    mute = f"MUTE {_duration(skip.mute)}"
    return mute if skip.kind == "NO SKIP" else f"{form} {mute}"


def _body(query: ast.Query, terms: TermText) -> str:
    gpms = (_gpm(gpm, terms) for gpm in query.gpms)
    return f"WHERE {block([f'SEQ({format_sequence(query.sequence)})', *gpms])}"


def _gpm(gpm: ast.Gpm, terms: TermText) -> str:
    streams = ", ".join(f"{s.change} {s.name}" if s.change else s.name for s in gpm.streams)
    patterns = PatternText(terms, uses_of_blank_nodes([gpm.pattern]))
    return f"DEFINE GPM {gpm.name} ON {streams} {patterns.group(gpm.pattern)}"


def format_sequence(sequence: ast.Sequence) -> str:
    """The canonical text of a sequence expression."""
    first, *rest = (_step(step) for step in sequence.steps)
    return first + "".join(f"{_op(op)} {step}" for op, step in zip(sequence.ops, rest, strict=True))


def _op(op: ast.Op) -> str:
    return op.kind if op.gap is None else f"{op.kind}[{_duration(op.gap)}]"


def _step(step: ast.Step) -> str:
    match step.atom:
        case ast.Ref(name):
            atom = name
        case ast.Bracket(kind, operands):
            atom = f"({f' {kind} '.join(format_sequence(operand) for operand in operands)})"
    return atom + ("!" if step.negated else _quantifier(step.quantifier))


def _quantifier(quantifier: ast.Quantifier | None) -> str:
    if quantifier is None:
        return ""
    greedy = "+" if quantifier.greedy else ""
    operator = "" if quantifier.own is None else _own(quantifier.own)
    until = "" if quantifier.until is None else f" UNTIL {quantifier.until.name}"
    return repetition(quantifier.minimum, quantifier.maximum) + greedy + operator + until


def _own(op: ast.Op) -> str:
    return f"[{op.kind}]" if op.gap is None else f"[{op.kind} {_duration(op.gap)}]"


def repetition(minimum: int, maximum: int | None) -> str:
    """The bounds of a repetition as in a query.

    >>> repetition(1, None), repetition(2, 2), repetition(0, 3), repetition(2, None)
    ('+', '{2}', '{0,3}', '{2,}')
    """
    most = "" if maximum is None else maximum
    bounds = minimum if minimum == maximum else f"{minimum},{most}"
    return _QUANTIFIERS.get((minimum, maximum), f"{{{bounds}}}")
