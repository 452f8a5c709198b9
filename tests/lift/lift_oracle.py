"""Brute-force evaluation of lifts, written from docs/lift.md alone; it shares no code with spaseq.

A lift is data: elements of WHERE and a template, made of tuples. `text_of` writes it as SPARQL, and
`event_of` evaluates it over one row. A term is (kind, value, datatype), unbound is None.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from itertools import count
from typing import Any

XSD = "http://www.w3.org/2001/XMLSchema#"
NUMBERS = {"integer", "decimal"}


class Wrong(Exception):
    """An error of an expression."""


class BadRow(Exception):
    """The row is bad."""


def iri(value: str) -> tuple[str, str, str]:
    return "iri", value, ""


def plain(value: str) -> tuple[str, str, str]:
    return "literal", value, "string"


def number(value: int | Decimal) -> tuple[str, str, str]:
    if isinstance(value, int):
        return "literal", str(value), "integer"
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "literal", "0" if text in ("-0", "") else text, "decimal"


def value_of(term: Any) -> Any:
    kind, text, datatype = term
    if kind == "iri":
        raise Wrong
    if datatype == "integer":
        return int(text)
    if datatype == "decimal":
        return Decimal(text)
    return text == "true" if datatype == "boolean" else text


def evaluated(expr: Any, row: dict[str, Any]) -> Any:
    """The term of an expression."""
    match expr:
        case ("var", name):
            if row.get(name) is None:
                raise Wrong
            return row[name]
        case ("const", term):
            return term
        case ("str", inner):
            return plain(evaluated(inner, row)[1])
        case ("concat", *parts):
            terms = [evaluated(part, row) for part in parts]
            if any(kind != "literal" or datatype != "string" for kind, _, datatype in terms):
                raise Wrong
            return plain("".join(text for _, text, _ in terms))
        case ("iri", inner):
            kind, text, datatype = evaluated(inner, row)
            if kind == "literal" and datatype != "string":
                raise Wrong
            if not re.match("[a-z]+:", text) or not all(map(may_be_in_iri, text)):
                raise Wrong
            return iri(text)
        case ("cast", kind, inner):
            return cast(kind, evaluated(inner, row))
        case ("+", left, right):
            a, b = value_of(evaluated(left, row)), value_of(evaluated(right, row))
            if not is_number(a) or not is_number(b):
                raise Wrong
            return number(a + b)
        case ("coalesce", *parts):
            for part in parts:
                try:
                    return evaluated(part, row)
                except Wrong:
                    continue
            raise Wrong
        case ("if", condition, then, otherwise):
            return evaluated(then if holds(condition, row) else otherwise, row)
    raise AssertionError(expr)


def is_number(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def cast(kind: str, term: Any) -> Any:
    value = value_of(term)
    if isinstance(value, bool):
        return number(int(value) if kind == "integer" else Decimal(int(value)))
    if isinstance(value, str):
        pattern = r"[+-]?[0-9]+" if kind == "integer" else r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"
        value = value.strip(" \t\r\n")
        if not re.fullmatch(pattern, value, re.ASCII):
            raise Wrong
        try:
            value = Decimal(value)
        except InvalidOperation:
            raise Wrong from None
    return number(int(value) if kind == "integer" else Decimal(value))


def may_be_in_iri(character: str) -> bool:
    """Whether a character may stand in an IRI (RFC 3987, section 2.2, ucschar)."""
    code = ord(character)
    if code < 0x80:
        return code > 0x20 and character not in '<>"{}|^`\\\x7f'
    if code < 0x10000:
        return 0xA0 <= code < 0xE000 or 0xF900 <= code < 0xFDD0 or 0xFDF0 <= code < 0xFFF0
    return code & 0xFFFF < 0xFFFE and code < 0xF0000 and not 0xE0000 <= code < 0xE1000


def holds(test: Any, row: dict[str, Any]) -> bool:
    match test:
        case ("bound", name):
            return row.get(name) is not None
        case ("not", inner):
            return not holds(inner, row)
        case ("<" | "=" as op, left, right):
            one, other = evaluated(left, row), evaluated(right, row)
            if op == "=" and "iri" in (one[0], other[0]):
                return bool(one == other)
            a, b = value_of(one), value_of(other)
            if is_number(a) != is_number(b) or isinstance(a, bool) != isinstance(b, bool):
                if op == "=":  # values of two known types are not equal (W3C's open-eq tests)
                    return False
                raise Wrong
            return bool(a < b if op == "<" else a == b)
    raise AssertionError(test)


def solutions(elements: Any, row: dict[str, Any]) -> list[dict[str, Any]]:
    """The solutions of WHERE over one row."""
    found = [dict(row)]
    for element in elements:
        match element:
            case ("bind", expr, name):
                for solution in found:
                    try:
                        solution[name] = evaluated(expr, solution)
                    except Wrong:
                        solution[name] = None
            case ("values", names, table):
                found = [
                    joined
                    for solution in found
                    for cells in table
                    if (joined := join(solution, dict(zip(names, cells, strict=True)))) is not None
                ]
            case ("unnest", items, item):
                unnested = []
                for solution in found:
                    listed = solution.get(items)
                    if listed is None:
                        continue
                    if not isinstance(listed, list):
                        raise BadRow
                    unnested += [{**solution, item: element} for element in listed]
                found = unnested
    for element in elements:
        if element[0] == "filter":
            found = [solution for solution in found if passes(element[1], solution)]
    return found


def passes(test: Any, solution: dict[str, Any]) -> bool:
    try:
        return holds(test, solution)
    except Wrong:
        return False


def join(solution: dict[str, Any], cells: dict[str, Any]) -> dict[str, Any] | None:
    out = dict(solution)
    for name, term in cells.items():
        if term is not None and out.get(name) is not None and out[name] != term:
            return None
        out[name] = term if term is not None else out.get(name)
    return out


def event_of(lift: Any, row: dict[str, Any]) -> Any:
    """(name, time, triples) of a row; None if it is no event.

    Raises:
        BadRow: the row is bad.
    """
    elements, graph, template = lift
    found = solutions(elements, row)
    if not found:
        return None
    names, times, triples = set(), set(), set()
    fresh = count()
    for solution in found:
        blank = ("blank", str(next(fresh)), "")
        if graph is not None and solution.get(graph) is not None:
            names.add(solution[graph])
        for s, p, o in template:
            s, o = (
                blank if t == ("blank",) else solution.get(t[1]) if t[0] == "var" else t[1]
                for t in (s, o)
            )
            if s is None or o is None or s[0] == "literal":
                continue
            if p == "time":
                times.add(o)
            if p != "time" or graph is None:
                triples.add((s, p, o))
    if graph is not None and (len(names) != 1 or next(iter(names))[0] != "iri"):
        raise BadRow
    if any(kind != "literal" or datatype != "integer" for kind, _, datatype in times):
        raise BadRow
    if len({int(text) for _, text, _ in times}) != 1 or all(p == "time" for _, p, _ in triples):
        raise BadRow
    name = next(iter(names))[1] if graph is not None else None
    return name, int(next(iter(times))[1]), triples


# --- as SPARQL -----------------------------------------------------------------------------------


def text_of(lift: Any) -> str:
    """The lift as its users write it."""
    elements, graph, template = lift
    triples = [(p == "time", f"{node(s)} <http://e/{p}> {node(o)} .") for s, p, o in template]
    inside = " ".join(t for timed, t in triples if not timed)
    outside = " ".join(t for timed, t in triples if timed)
    body = f"{inside} {outside}" if graph is None else f"GRAPH ?{graph} {{ {inside} }} {outside}"
    where = "\n".join(element_text(e) for e in elements)
    return f"PREFIX xsd: <{XSD}>\nCONSTRUCT {{ {body} }}\nWHERE {{ {where} }}"


def node(term: Any) -> str:
    return "_:n" if term == ("blank",) else f"?{term[1]}" if term[0] == "var" else written(term[1])


def written(term: Any) -> str:
    if term is None:
        return "UNDEF"
    kind, text, datatype = term
    if kind == "iri":
        return f"<{text}>"
    escaped = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    )
    return f'"{escaped}"' + ("" if datatype == "string" else f"^^xsd:{datatype}")


def element_text(element: Any) -> str:
    match element:
        case ("bind", expr, name):
            return f"BIND ({expr_text(expr)} AS ?{name})"
        case ("filter", test):
            return f"FILTER ({test_text(test)})"
        case ("unnest", items, item):
            return f"UNNEST ?{items} AS ?{item}"
        case ("values", names, table):
            rows = " ".join(f"({' '.join(map(written, cells))})" for cells in table)
            return f"VALUES ({' '.join('?' + n for n in names)}) {{ {rows} }}"
    raise AssertionError(element)


def test_text(test: Any) -> str:
    match test:
        case ("bound", name):
            return f"BOUND(?{name})"
        case ("not", inner):
            return f"!({test_text(inner)})"
        case (op, left, right):
            return f"{expr_text(left)} {op} {expr_text(right)}"
    raise AssertionError(test)


def expr_text(expr: Any) -> str:
    match expr:
        case ("var", name):
            return f"?{name}"
        case ("const", term):
            return written(term)
        case ("cast", kind, inner):
            return f"xsd:{kind}({expr_text(inner)})"
        case ("+", left, right):
            return f"({expr_text(left)} + {expr_text(right)})"
        case ("if", condition, then, otherwise):
            return f"IF({test_text(condition)}, {expr_text(then)}, {expr_text(otherwise)})"
        case (name, *parts):
            return f"{name.upper()}({', '.join(map(expr_text, parts))})"
    raise AssertionError(expr)
