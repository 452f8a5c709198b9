"""`spaseq.parse`: a query as an object that explains itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Literal, Unpack

from spaseq.api.explain import explain
from spaseq.api.streams import StreamInput
from spaseq.lang import ast
from spaseq.lang.parser import parse as parse_text
from spaseq.options import KbInput, RunKeywords
from spaseq.records import record
from spaseq.render.explain import Explanation


@record
class ParsedQuery(ast.Query):
    """The syntax tree of a query. `spaseq.run` and the other calls take it in place of its text."""

    def explain(
        self,
        streams: Mapping[str, StreamInput] | None = None,
        kb: Mapping[str, KbInput] | None = None,
        runtime: Literal["spark", "local"] = "local",
        *,
        full: bool = False,
        rate: float | None = None,
        **options: Unpack[RunKeywords],
    ) -> Explanation:
        """The plan of the query, with its automaton as a picture, as `spaseq.explain` gives it."""
        return explain(self, streams, kb, runtime, full=full, rate=rate, **options)


def parse(text: str, name: str = "<query>") -> ParsedQuery:
    """The syntax tree of a query.

    Args:
        text: the query.
        name: the name of the query in messages, usually its path.

    Raises:
        QueryError: with every syntax error of the query.

    >>> query = parse("SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ(A) {"
    ...               "DEFINE GPM A ON S { ?s ?p ?o } }")
    >>> query.gpms[0].name, query.explain().data["window"]["text"]
    ('A', '1 HOURS')
    """
    query = parse_text(text, name)
    return ParsedQuery(**{field.name: getattr(query, field.name) for field in fields(query)})
