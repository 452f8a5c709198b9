"""Comparisons of values that are never equal and have no order, such as a number and a string."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

from spaseq.lang import ast
from spaseq.lang.names import XSD
from spaseq.lang.variables import walk_patterns

Kind: TypeAlias = Literal["number", "string", "time", "duration"]

_NUMERIC = ("integer", "decimal", "double", "float", "long", "int", "short", "byte",
            "nonNegativeInteger", "positiveInteger", "unsignedInt", "unsignedLong")  # fmt: skip
_DATATYPES: dict[str | None, Kind] = {
    None: "string",
    **{XSD + name: "number" for name in _NUMERIC},
    **dict.fromkeys((XSD + "dateTime", XSD + "dateTimeStamp"), "time"),
    **dict.fromkeys((XSD + "dayTimeDuration", XSD + "duration"), "duration"),
    XSD + "string": "string",
}
_FUNCTIONS: dict[str, Kind] = {
    **dict.fromkeys(("CEIL", "FLOOR", "ROUND", "STRLEN", "RAND", "COUNT"), "number"),
    **dict.fromkeys(("YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS"), "number"),
    **dict.fromkeys(("STR", "LANG", "TZ", "STRUUID", "GROUP_CONCAT"), "string"),
    **dict.fromkeys(("MD5", "SHA1", "SHA256", "SHA384", "SHA512"), "string"),
    "NOW": "time",
    "TIMEZONE": "duration",
}
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_ORDER = ("<", "<=", ">", ">=")
_NAMES = {"number": "a number", "string": "a string", "time": "a time", "duration": "a duration"}
_HINTS: dict[frozenset[str], str] = {
    frozenset({"number", "duration"}): 'write a duration as "PT5S"^^xsd:dayTimeDuration',
    frozenset({"number", "time"}): 'write a time as "2020-01-31T00:00:00Z"^^xsd:dateTime',
    frozenset({"string", "time"}): 'write a time as "2020-01-31T00:00:00Z"^^xsd:dateTime',
    frozenset({"string", "duration"}): 'write a duration as "PT5S"^^xsd:dayTimeDuration',
    frozenset({"time", "duration"}): "subtract two times first",
}


def vain_comparisons(node: ast.Node) -> Iterator[tuple[ast.Compare, str]]:
    """The comparisons below a node whose result never varies, each with what to say about it."""
    for inner in walk_patterns(node):
        if isinstance(inner, ast.Compare) and (message := _message(inner)) is not None:
            yield inner, message


def _message(compare: ast.Compare) -> str | None:
    left, right = kind_of(compare.left), kind_of(compare.right)
    if left is not None and right is not None and left != right:
        result = "always" if compare.op == "!=" else "never"
        hint = _hint(compare, left, right)
        return f"this {result} holds: {_NAMES[left]} is compared with {_NAMES[right]}; {hint}"
    for one, other in ((compare.left, compare.right), (compare.right, compare.left)):
        written = _number_in_quotes(one)
        if compare.op in _ORDER and written and isinstance(other, ast.Var | ast.Prev):
            return (
                f'this never holds for a number: "{written}" is a string; write {written} '
                "without quotation marks"
            )
    return None


def _hint(compare: ast.Compare, left: Kind, right: Kind) -> str:
    for side in (compare.left, compare.right):
        written = _number_in_quotes(side)
        if written and "number" in (left, right):
            return f"write {written} without quotation marks"
        if isinstance(side, ast.Call) and side.function == "STR" and "number" in (left, right):
            return "leave STR out, or write xsd:decimal(...) around it"
    return _HINTS.get(frozenset({left, right}), "cast one of them, as in xsd:decimal(...)")


def _number_in_quotes(expr: ast.Expr) -> str | None:
    match expr:
        case ast.Literal(lexical, None, None) if _NUMBER.fullmatch(lexical):
            return lexical
    return None


def kind_of(expr: ast.Expr) -> Kind | None:
    """The kind that every value of an expression has; None if that is not certain.

    >>> kind_of(ast.Arithmetic("+", ast.Var("x"), ast.Literal("1", XSD + "integer")))
    'number'
    """
    match expr:
        case ast.Literal(_, datatype, None):
            return _DATATYPES.get(datatype)
        case ast.Literal():
            return "string"
        case ast.Timestamp():
            return "time"
        case ast.Call(function, _) | ast.Aggregate(function, _):
            return _FUNCTIONS.get(function)
        case ast.FunctionCall(ast.Iri(iri), _):
            return _DATATYPES.get(iri)
        case ast.Sign(_, operand):
            return kind_of(operand)
        case ast.Arithmetic(op, left, right):
            return _of_arithmetic(op, kind_of(left), kind_of(right))
    return None


def _of_arithmetic(op: str, left: Kind | None, right: Kind | None) -> Kind | None:
    match op, left, right:
        case "+" | "-", "number", _:
            return "number"
        case "+" | "-", _, "number":
            return "number"
        case "-", "time", "time":
            return "duration"
        case "*" | "/", "number", "number":
            return "number"
    return None
