"""Rendering of an answer by a template: Jinja2's sandbox, with escaping by the template's
extension.

Only the process that renders (`process.py`) imports this, as compiling a template may take memory,
too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from jinja2.sandbox import ImmutableSandboxedEnvironment

_NUMBERS: Mapping[str, Callable[[str], object]] = {
    **dict.fromkeys(("integer", "int", "long", "short", "byte", "nonNegativeInteger"), int),
    **dict.fromkeys(("decimal", "double", "float"), float),
}
_XSD = "http://www.w3.org/2001/XMLSchema#"


class JsonText(str):
    """Text that is JSON already, and is not escaped again."""


def environment(ending: str) -> ImmutableSandboxedEnvironment:
    """The sandbox for templates of an ending; it reads no files."""
    made = ImmutableSandboxedEnvironment(
        autoescape=ending == "html", finalize=_inside_string if ending == "json" else None
    )
    if ending == "json":
        made.filters["tojson"] = _to_json
    return made


def shown(answer: Mapping[str, Any]) -> dict[str, Any]:
    """An answer as a template sees it: plain values beside the RDF terms.

    >>> five = {"type": "literal", "value": "5", "datatype": _XSD + "integer"}
    >>> shown({"id": "a", "bindings": {"v": five}})["bindings"]
    {'v': 5}
    """
    terms = answer.get("bindings", {})
    plain = {name: plain_value(term) for name, term in terms.items()}
    return {**answer, "bindings": plain, "terms": terms}


def plain_value(term: Any) -> Any:
    """The value of a term in SPARQL JSON: a number, a truth value, a list, or else its text."""
    if isinstance(term, list):
        return [plain_value(item) for item in term]
    if term is None:
        return ""
    text, datatype = term["value"], term.get("datatype", "").removeprefix(_XSD)
    if not isinstance(text, str):  # a triple term
        return {part: plain_value(member) for part, member in text.items()}
    if datatype == "boolean":
        return text in ("true", "1")
    try:
        number: Any = _NUMBERS.get(datatype, str)(text)
    except ValueError:
        return text
    return text if isinstance(number, float) and not math.isfinite(number) else number


def _to_json(value: Any, indent: int | None = None) -> JsonText:
    return JsonText(json.dumps(value, ensure_ascii=False, indent=indent))


def _inside_string(value: Any) -> Any:
    """A value as the inside of a JSON string."""
    if isinstance(value, JsonText):
        return value
    return json.dumps(str(value), ensure_ascii=False)[1:-1]
