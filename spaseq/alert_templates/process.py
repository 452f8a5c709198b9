"""The process that renders the templates of one sink: a line of JSON in, a line of JSON out.

The first line has the template; the others an answer and its query each. It ends with its input. It
ends itself if a template takes far too long, so that nothing is left of a server that was killed.
"""

from __future__ import annotations

import json
import math
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
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


_LONGEST_S = 15.0
_MOST_TEXT = 4_000_000  # characters of a rendered text


def main() -> None:
    """Answer each line."""
    _say({})
    given = json.loads(sys.stdin.readline())
    _limit_memory(int(given["memory"]))
    templates: list[Any] = []

    def compiled() -> None:
        templates.append(environment(given["ending"]).from_string(given["source"]))

    def rendered() -> str:
        answer, query = shown(asked["answer"]), asked["query"]
        text: str = templates[0].render(answer=answer, query=query, vars=given["vars"])
        if given["ending"] == "json":
            json.loads(text)
        return text

    _say(_reply(compiled))
    for line in sys.stdin:
        asked = json.loads(line)
        _say(_reply(rendered))


def _reply(do: Callable[[], str | None]) -> dict[str, object]:
    """The result of a function, or the reason of its failure."""
    signal.setitimer(signal.ITIMER_REAL, _LONGEST_S)
    try:
        text = do() or ""
    except MemoryError:
        return {"error": "it needs more memory than a template may have"}
    except json.JSONDecodeError as error:
        return {"error": f"what it makes is no JSON: {error}"}
    except RecursionError:
        return {"error": "it calls itself too often"}
    except Exception as error:
        line = getattr(error, "lineno", None)
        where = f"line {line}: " if line else ""
        return {"error": f"{where}{type(error).__name__}: {error}"[:500]}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if len(text) > _MOST_TEXT:
        return {"error": f"it makes more than {_MOST_TEXT:,} characters"}
    return {"text": text}


def _limit_memory(size: int) -> None:
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _say(reply: Mapping[str, object]) -> None:
    sys.stdout.write(f"{json.dumps(reply)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
