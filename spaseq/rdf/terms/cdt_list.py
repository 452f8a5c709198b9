"""`cdt:List` literals: writing and reading the lexical form of a list of terms.

Items are N-Triples terms or `null`, as in `["a", <http://e/b>, null]` (SPARQL CDTs, section on
lists). The reader accepts full N-Triples terms only, no abbreviated numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_IRI = r'<[^<>"{}|^`\\\x00-\x20]*>'
_ITEM = re.compile(
    rf'null|{_IRI}|_:[^\s,\]]+|"(?:[^"\\]|\\.)*"(?:\^\^{_IRI}|@[A-Za-z0-9-]+)?', re.DOTALL
)
_COMMA = re.compile(r"\s*,\s*")


def list_lexical(items: Sequence[str | None]) -> str:
    """The lexical form of a `cdt:List` of N-Triples texts; None stands for `null`."""
    return "[" + ", ".join("null" if item is None else item for item in items) + "]"


def list_items(lexical: str) -> list[str | None]:
    """The N-Triples texts in the lexical form of a `cdt:List`, None for `null`.

    ValueError if the form is not valid.
    """
    body = lexical.strip()
    if body[:1] != "[" or body[-1:] != "]" or len(body) < 2:
        raise ValueError(f"{lexical!r} is not a list")
    body = body[1:-1].strip()
    items: list[str | None] = []
    at = 0
    while at < len(body):
        item = _ITEM.match(body, at)
        if item is None:
            raise ValueError(f"{lexical!r} is not a list of terms")
        items.append(None if item.group() == "null" else item.group())
        at = item.end()
        if at == len(body):
            break
        comma = _COMMA.match(body, at)
        if comma is None or comma.end() == len(body):
            raise ValueError(f"{lexical!r} is not a list of terms")
        at = comma.end()
    return items
