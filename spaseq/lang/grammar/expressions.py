"""Expressions, with SPAseq's own functions, and inline data: VALUES (SPARQL 1.2 section 19.8)."""

from __future__ import annotations

from collections.abc import Sequence

from pyparsing import Forward, ParserElement

from spaseq.errors import Span
from spaseq.lang import ast, lexical
from spaseq.lang.functions import AGGREGATES, BUILT_INS, GROUP_PICKS
from spaseq.lang.grammar.rules import (
    BOOLEAN,
    CLOSE_TERM,
    EMPTY_BRACKETS,
    IRI,
    LITERAL,
    NAME,
    NUMBER,
    OPEN_TERM,
    RDF_LITERAL,
    STRING,
    VAR,
    Word,
    just,
    keyword,
    mark,
    rule,
    symbols,
    words,
)
from spaseq.lang.grammar.triples import VERB_IRI, VERB_SIMPLE
from spaseq.lang.names import WrittenIri
from spaseq.records import record


@record
class _Row:
    span: Span
    cells: tuple[ast.Iri | ast.Literal | ast.TripleTerm | None, ...]


def _row(span: Span, *cells: ast.Iri | ast.Literal | ast.TripleTerm | Word) -> _Row:
    return _Row(span, tuple(None if isinstance(cell, Word) else cell for cell in cells))


def _values(span: Span, *tokens: ast.Var | _Row) -> ast.Values:
    variables = tuple(token for token in tokens if isinstance(token, ast.Var))
    rows = tuple(token.cells for token in tokens if isinstance(token, _Row))
    return ast.Values(variables, rows, span=span)


def _term(span: Span, subject: ast.Iri, predicate: ast.Iri, object_: ast.Term) -> ast.TripleTerm:
    return ast.TripleTerm(subject, predicate, object_, span=span)


_CONSTANT_TERM = Forward()
_CONSTANT_TERM <<= rule(
    OPEN_TERM + IRI + VERB_IRI + (IRI | LITERAL | _CONSTANT_TERM) + CLOSE_TERM, _term
)
_CELL = IRI | LITERAL | _CONSTANT_TERM | words("UNDEF")
_ONE_VARIABLE = VAR + mark("{") + rule(just(_CELL), _row)[...] + mark("}")
_SEVERAL = (
    (EMPTY_BRACKETS | mark("(") + VAR[1, ...] + mark(")"))
    + mark("{")
    + rule(EMPTY_BRACKETS | mark("(") + _CELL[1, ...] + mark(")"), _row)[...]
    + mark("}")
)

INLINE_DATA = rule(keyword("VALUES") + (_ONE_VARIABLE | _SEVERAL), _values)


A_FUNCTION = "a function"

EXPRESSION = Forward()
GROUP_GRAPH_PATTERN = Forward()  # defined in `patterns`; EXISTS uses it

# --- operators -------------------------------------------------------------------------------


def _binary(span: Span, first: ast.Expr, *rest: Word | ast.Expr) -> ast.Expr:
    """The left-associative tree of `first op operand ...`, all operators of one precedence."""
    result = first
    for op, operand in zip(rest[::2], rest[1::2], strict=True):
        inner = Span(span.start, operand.span.end)
        result = ast.Arithmetic(op.text, result, operand, span=inner)  # type: ignore
    return result


def _split(tokens: Sequence[Word | ast.Expr], ops: str) -> list[list[Word | ast.Expr]]:
    """Runs of tokens; a run begins at the start and at each of the operators in `ops`."""
    runs: list[list[Word | ast.Expr]] = [[]]
    for token in tokens:
        if isinstance(token, Word) and token.text in ops.split():
            runs.append([token])
        else:
            runs[-1].append(token)
    return runs


def _numeric(span: Span, *tokens: Word | ast.Expr) -> ast.Expr:
    terms: list[Word | ast.Expr] = []
    for run in _split(tokens, "+ -"):
        sign, factors = (run[:1], run[1:]) if terms else ([], run)
        terms += [*sign, _binary(_around(factors), *factors)]  # type: ignore[arg-type]
    return _binary(span, *terms)  # type: ignore[arg-type]


def _logical(span: Span, *tokens: Word | ast.Expr) -> ast.Expr:
    conjunctions = [_conjunction(run) for run in _split(tokens, "||")]
    return conjunctions[0] if len(conjunctions) == 1 else ast.Or(tuple(conjunctions), span=span)


def _conjunction(tokens: Sequence[Word | ast.Expr]) -> ast.Expr:
    operands = tuple(token for token in tokens if not isinstance(token, Word))
    return operands[0] if len(operands) == 1 else ast.And(operands, span=_around(operands))


def _around(tokens: Sequence[Word | ast.Expr]) -> Span:
    return Span(tokens[0].span.start, tokens[-1].span.end)


def _relational(span: Span, left: ast.Expr, *rest: Word | ast.Expr) -> ast.Expr:
    match rest:
        case ():
            return left
        case [Word("IN" | "NOT" as word), *options]:
            return ast.In(left, tuple(options), word == "NOT", span=span)  # type: ignore[arg-type]
        case [Word(op), right]:
            return ast.Compare(op, left, right, span=span)  # type: ignore[arg-type]
    raise AssertionError(rest)


def _unary(span: Span, op: Word, operand: ast.Expr) -> ast.Expr:
    if op.text == "!":
        return ast.Not(operand, span=span)
    return ast.Sign(op.text, operand, span=span)  # type: ignore[arg-type]


# --- calls -----------------------------------------------------------------------------------


def _call(span: Span, name: Word, *args: ast.Expr) -> ast.Call:
    return ast.Call(name.text, args, span=span)


@record
class _Separator:
    span: Span
    text: Word


def _aggregate(span: Span, name: Word, *tokens: Word | _Separator | ast.Expr) -> ast.Aggregate:
    distinct, operand, separator = False, None, None
    for token in tokens:
        match token:
            case Word(text):
                distinct = distinct or text == "DISTINCT"  # the only other word is `*`
            case _Separator(_, word):
                separator = word.text
            case expr:
                operand = expr
    return ast.Aggregate(name.text, operand, distinct, separator, span=span)


def _iri_or_function(
    span: Span, iri: WrittenIri, args: _Arguments | None = None
) -> WrittenIri | ast.FunctionCall:
    if args is None:
        return iri
    return ast.FunctionCall(iri, args.args, args.distinct, span=span)  # type: ignore[arg-type]


class _Arguments:
    """The argument list of a call by IRI."""

    def __init__(self, span: Span, *tokens: Word | ast.Expr) -> None:
        self.span = span
        self.distinct = any(isinstance(token, Word) for token in tokens)
        self.args = tuple(token for token in tokens if not isinstance(token, Word))


def _exists(span: Span, *tokens: Word | ast.GroupGraphPattern) -> ast.Exists:
    *negation, group = tokens
    return ast.Exists(group, bool(negation), span=span)  # type: ignore[arg-type]


def _function(*names: str) -> ParserElement:
    return words(*names, name=A_FUNCTION)


def _bracketed(element: ParserElement) -> ParserElement:
    return mark("(") + element + mark(")")


def _list_of(element: ParserElement) -> ParserElement:
    return element + (mark(",") + element)[...]


_DISTINCT = words("DISTINCT")
_EXPRESSION_LIST = EMPTY_BRACKETS | _bracketed(_list_of(EXPRESSION))

_ARGUMENTS = rule(EMPTY_BRACKETS | _bracketed(_DISTINCT[0, 1] + _list_of(EXPRESSION)), _Arguments)
_EXISTS = rule(keyword("EXISTS") + GROUP_GRAPH_PATTERN, _exists) | rule(
    words("NOT", name="NOT EXISTS") + keyword("EXISTS") + GROUP_GRAPH_PATTERN, _exists
)
_SEPARATOR = rule(mark(";") + keyword("SEPARATOR") + mark("=") + STRING, _Separator)
_SPASEQ_CALL = (
    rule(_function("PREV") + _bracketed(VAR), lambda span, _, var: ast.Prev(var, span=span))
    | rule(_function(*GROUP_PICKS) + _bracketed(VAR), _aggregate)
    | rule(
        _function("TIMESTAMP") + _bracketed(NAME),
        lambda span, _, gpm: ast.Timestamp(ast.Ref(gpm.text, span=gpm.span), span=span),
    )
)
_AGGREGATE = (
    rule(
        _function("COUNT")
        + _bracketed(_DISTINCT[0, 1] + (symbols(r"\*", "'*'", "*") | EXPRESSION)),
        _aggregate,
    )
    | rule(
        _function("GROUP_CONCAT") + _bracketed(_DISTINCT[0, 1] + EXPRESSION + _SEPARATOR[0, 1]),
        _aggregate,
    )
    | rule(
        _function(*(AGGREGATES - {"COUNT", "GROUP_CONCAT"}))
        + _bracketed(_DISTINCT[0, 1] + EXPRESSION),
        _aggregate,
    )
)
_BUILT_IN = rule(_function(*BUILT_INS) + _EXPRESSION_LIST, _call)

BRACKETED_EXPRESSION = _bracketed(EXPRESSION)
CALL = _SPASEQ_CALL | _AGGREGATE | _BUILT_IN | _EXISTS
FUNCTION_CALL = rule(IRI + _ARGUMENTS, _iri_or_function)
CONSTRAINT = BRACKETED_EXPRESSION | CALL | FUNCTION_CALL

_TRIPLE_TERM = Forward()
_TRIPLE_TERM <<= rule(
    OPEN_TERM
    + (VAR | IRI)
    + VERB_SIMPLE
    + (VAR | IRI | NUMBER | BOOLEAN | RDF_LITERAL | _TRIPLE_TERM)
    + CLOSE_TERM,
    lambda span, *terms: ast.Call("TRIPLE", terms, span=span),
)
_PRIMARY = (
    VAR
    | NUMBER
    | BRACKETED_EXPRESSION
    | BOOLEAN
    | CALL
    | RDF_LITERAL
    | _TRIPLE_TERM
    | rule(IRI + _ARGUMENTS[0, 1], _iri_or_function, keeps_one=True)
)
_UNARY = Forward()
_UNARY <<= (
    _PRIMARY
    | rule(symbols(r"!(?!=)", "'!'", "!") + _UNARY, _unary)
    | rule(symbols("[+-]", "'!'", "+-") + _PRIMARY, _unary)
)
_NUMERIC = rule(
    _UNARY + (symbols(r"[-+*/]", "an operator", "-+*/") + _UNARY)[...], _numeric, keeps_one=True
)
# SPARQL takes the longest token: `<?a&&?b>` is an IRI, not a comparison.
_COMPARATOR = symbols(rf"(?!{lexical.IRI_REF})(?:<=|>=|!=|=|<|>)", "an operator", "<>!=")
_MEMBERSHIP = (words("IN") | words("NOT", name="NOT IN") + keyword("IN")) + _EXPRESSION_LIST
_RELATIONAL = rule(
    _NUMERIC + (_COMPARATOR + _NUMERIC | _MEMBERSHIP)[0, 1], _relational, keeps_one=True
)

EXPRESSION <<= rule(
    _RELATIONAL + (symbols(r"\|\||&&", "an operator", "|&") + _RELATIONAL)[...],
    _logical,
    keeps_one=True,
)
