"""A common form for answers of engine and oracle, for comparison."""

from __future__ import annotations

import re
from datetime import datetime

from spaseq.algebra.answers import Answer as EngineAnswer
from tests.oracle.answers import Answer
from tests.oracle.patterns import CDT_LIST

_TYPED = re.compile(r'"(.*)"\^\^<(.*)>', re.DOTALL)
_XSD = "http://www.w3.org/2001/XMLSchema#"


def by_value(text: str) -> str:
    """A computed term by its value, because its lexical form is not prescribed."""
    found = _TYPED.fullmatch(text)
    if not found:
        return text
    lexical, datatype = found.groups()
    match datatype.removeprefix(_XSD):
        case "integer" | "decimal" | "double" | "float":
            return f"number {float(lexical):.9g}"
        case "dateTime":
            return f"time {datetime.fromisoformat(lexical.replace('Z', '+00:00')).timestamp()}"
        case _ if datatype == str(CDT_LIST):
            return re.sub(r"\s", "", text)
        case _:
            return text


def comparable(answer: Answer | EngineAnswer) -> tuple[object, ...]:
    """All parts of an answer that must be equal, apart from the order of projection.

    An answer need not contain variables that are not projected.
    """
    if isinstance(answer, Answer):
        trace = [(i.instant[0], i.instant[1], i.gpm, i.stream, i.event) for i in answer.trace]
    else:
        trace = [(i.time, i.k, i.gpm, i.stream, i.event) for i in answer.trace]
    bindings = sorted((v, by_value(x) if v.startswith("e") else x) for v, x in answer.bindings)
    shown = {v for v, _ in answer.bindings}
    values = answer.singles, answer.lists
    rest = (tuple(item for item in part if item[0] in shown) for part in values)
    return (tuple(answer.first), tuple(answer.end), tuple(trace), tuple(bindings), *rest)
