"""The parts of a pattern that SPARQL endpoints evaluate, as SPARQL text, and the paths that they
cannot evaluate.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import count

from spaseq.algebra import nodes as n
from spaseq.algebra.constants import is_part
from spaseq.algebra.entailment import entailed
from spaseq.algebra.groups import translate_group
from spaseq.algebra.nodes import expressions
from spaseq.lang import ast
from spaseq.lang.format import ExpressionText
from spaseq.lang.format_triples import TermText
from spaseq.lang.variables import exists_uses, rewritten, walk
from spaseq.rdf.schema import Schema

_TERMS = TermText(ast.Prologue())


def remote_parts(
    pattern: n.Pattern, endpoints: Collection[str], schema: Schema | None = None
) -> Iterator[n.Graph | n.Service]:
    """The outermost parts that an endpoint evaluates: SERVICE, and graphs that are endpoints.

    `endpoints` are the IRIs of these graphs. The pattern itself has been rewritten with `schema`;
    the patterns of EXISTS have not.
    """
    match pattern:
        case n.Service():
            yield pattern
        case n.Graph(str() as name) if name[1:-1] in endpoints:
            yield pattern
        case n.Graph(ast.Var()) if endpoints:
            yield pattern
        case _:
            for inner in (*_tested(pattern, schema), *n.children(pattern)):
                yield from remote_parts(inner, endpoints, schema)


def asks_endpoints(pattern: n.Pattern, endpoints: Collection[str]) -> bool:
    """Whether evaluating a pattern needs requests to an endpoint."""
    return next(remote_parts(pattern, endpoints), None) is not None


def unsayable_paths(pattern: n.Pattern, schema: Schema) -> Iterator[tuple[str, str]]:
    """Repeated paths over entailed inverses, which SPARQL cannot express.

    Each is a pair: the repeated property, and a property that is read backwards. No step of such a
    path may start at a literal, and SPARQL cannot say so. It need not if all properties that are
    read backwards are declared to be object properties, which relate no literals.
    """
    for inner in (*_tested(pattern, schema), *n.children(pattern)):
        if not isinstance(inner, n.Service):  # SERVICE is sent as it was written
            yield from unsayable_paths(inner, schema)
    if isinstance(pattern, n.Path):
        for part in (p for p in walk(pattern.path) if isinstance(p, ast.PathFromNode)):
            names = [p.value for p in walk(part) if isinstance(p, ast.Iri)]
            backwards = (
                p.path.value
                for p in walk(part)
                if isinstance(p, ast.PathInverse) and isinstance(p.path, ast.Iri)
            )
            for name in backwards:
                if f"<{name}>" not in schema.object_properties:
                    yield names[0], name
                    break


def _tested(pattern: n.Pattern, schema: Schema | None) -> Iterator[n.Pattern]:
    """The patterns of EXISTS in a node's own expressions."""
    for expr in expressions(pattern):
        for use in exists_uses(expr):
            yield entailed(translate_group(use.pattern), schema)


def pattern_text(pattern: n.Pattern, schema: Schema | None = None) -> str:
    """The inside of a group graph pattern that translates to this pattern.

    IRIs are written in full. Variables for blank nodes, and variables of the translation, get names
    that no other variable of the pattern has. The pattern itself has been rewritten with `schema`;
    the patterns of EXISTS have not.
    """
    return _Writer(schema, count(), pattern).pattern(pattern)


class _Writer:
    """Writes one pattern. No other pattern has the numbers of its reserved variables."""

    def __init__(self, schema: Schema | None, numbers: Iterator[int], whole: n.Pattern) -> None:
        self._schema, self._numbers = schema, numbers
        self._reserved: dict[str, str] = {}
        self._composed: dict[str, list[n.PatternTerm]] = {}  # triple terms with variables
        self._collect(whole)

    def _collect(self, pattern: n.Pattern) -> None:
        for triple in pattern.triples if isinstance(pattern, n.BGP) else ():
            if is_part(triple) and isinstance(triple.subject, ast.Var):
                self._composed.setdefault(triple.subject.name, []).append(triple.object)
        for inner in n.children(pattern):
            self._collect(inner)

    def pattern(self, pattern: n.Pattern) -> str:
        match pattern:
            case n.BGP(triples):
                stated = [triple for triple in triples if not is_part(triple)]
                return " ".join(f"{' '.join(self.term(t) for t in x.terms)} ." for x in stated)
            case n.Path(subject, path, object_):
                return f"{self.term(subject)} {_TERMS.path(path)} {self.term(object_)} ."
            case n.Join(left, right):
                return f"{self.operand(left)} {self.operand(right)}"
            case n.LeftJoin(left, right, expr):
                inner = self.group(right) if expr is None else self.filtered(right, expr)
                return f"{self.operand(left)} OPTIONAL {inner}"
            case n.Filter(expr, inner):
                return f"{self.operand(inner)} FILTER{self.constraint(expr)}"
            case n.Union(left, right):
                return f"{self.group(left)} UNION {self.group(right)}"
            case n.Minus(left, right):
                return f"{self.operand(left)} MINUS {self.group(right)}"
            case n.Graph(name, inner):
                return f"GRAPH {self.term(name)} {self.group(inner)}"
            case n.Service(name, inner, silent):
                word = "SILENT " if silent else ""
                asked = _Writer(None, self._numbers, inner).group(inner)  # not entailed
                return f"SERVICE {word}{self.term(name)} {asked}"
            case n.Extend(inner, variable, expr):
                bind = f"BIND({self.expression(expr)} AS {self.variable(variable)})"
                return f"{self.group(inner)} {bind}"
            case n.Table(variables, rows):
                return values_text([self.variable(v) for v in variables], rows)
            case _:
                return f"{{ {self.select(pattern)} }}"

    def operand(self, pattern: n.Pattern) -> str:
        """The pattern beside other patterns: triples stand alone, any other pattern in a group."""
        match pattern:
            case n.BGP() | n.Path() | n.Graph() | n.Service():
                return self.pattern(pattern)
        return self.group(pattern)

    def group(self, pattern: n.Pattern) -> str:
        return f"{{ {self.pattern(pattern)} }}"

    def filtered(self, pattern: n.Pattern, expr: ast.Expr) -> str:
        """The group of an OPTIONAL, with the condition, which sees the variables of both sides."""
        return f"{{ {self.operand(pattern)} FILTER{self.constraint(expr)} }}"

    def select(self, pattern: n.Pattern) -> str:
        """A sub-SELECT with all clauses of one SELECT."""
        clauses, distinct, names = "", "", "*"
        if isinstance(pattern, n.Slice):
            limit = "" if pattern.limit is None else f" LIMIT {pattern.limit}"
            clauses, pattern = f"{limit} OFFSET {pattern.offset}", pattern.pattern
        if isinstance(pattern, n.Distinct):
            distinct, pattern = "DISTINCT ", pattern.pattern
        if isinstance(pattern, n.Project):
            # SPARQL cannot project nothing. The caller hides this name.
            wanted = pattern.variables or ("_:nothing",)
            names, pattern = " ".join(map(self.variable, wanted)), pattern.pattern
        if isinstance(pattern, n.OrderBy):
            keys = " ".join(map(self.order, pattern.conditions))
            clauses, pattern = f" ORDER BY {keys}{clauses}", pattern.pattern
        if isinstance(pattern, n.Group):
            aggregates = (
                f"({self.expression(a)} AS {self.variable(v)})" for v, a in pattern.aggregates
            )
            keys = " ".join(map(self.variable, pattern.keys))
            grouped = " ".join([keys, *aggregates]).strip()
            by = f" GROUP BY {keys}" if keys else ""
            inner = f"{{ SELECT {grouped} WHERE {self.group(pattern.pattern)}{by} }}"
        else:
            inner = self.pattern(pattern)
        return f"SELECT {distinct}{names} WHERE {{ {inner} }}{clauses}"

    def order(self, condition: ast.OrderCondition) -> str:
        text = self.expression(condition.expr)
        return f"DESC({text})" if condition.descending else f"ASC({text})"

    # --- terms and expressions ------------------------------------------------------------------

    def term(self, term: n.PatternTerm) -> str:
        return self.variable(term.name) if isinstance(term, ast.Var) else term

    def variable(self, name: str) -> str:
        if name in self._composed:
            return f"<<( {' '.join(map(self.term, self._composed[name]))} )>>"
        if not n.is_reserved(name):
            return f"?{name}"
        if name not in self._reserved:
            self._reserved[name] = f"spaseq__{next(self._numbers)}"
        return f"?{self._reserved[name]}"

    def constraint(self, expr: ast.Expr) -> str:
        return self._expressions.constraint(self._renamed(expr))

    def expression(self, expr: ast.Expr) -> str:
        return self._expressions.text(self._renamed(expr))

    @property
    def _expressions(self) -> ExpressionText:
        return ExpressionText(_TERMS, self._tested)

    def _tested(self, group: ast.GroupGraphPattern) -> str:
        """The pattern of an EXISTS, whose blank nodes occur nowhere else."""
        pattern = entailed(translate_group(group), self._schema)
        return _Writer(self._schema, self._numbers, pattern).group(pattern)

    def _renamed(self, expr: ast.Expr) -> ast.Expr:
        def change(node: ast.Node) -> ast.Node | None:
            if isinstance(node, ast.Var) and n.is_reserved(node.name):
                return ast.Var(self.variable(node.name)[1:])
            return None

        return rewritten(expr, change)


def values_text(variables: Sequence[str], rows: Sequence[Sequence[str | None]]) -> str:
    """VALUES over variables (with their `?`) and N-Triples texts, None for UNDEF."""
    lines = (" ".join("UNDEF" if text is None else text for text in row) for row in rows)
    return f"VALUES ({' '.join(variables)}) {{ {' '.join(f'({line})' for line in lines)} }}"
