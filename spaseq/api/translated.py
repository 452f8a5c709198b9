"""`spaseq.translate`: queries of RSP-QL and C-SPARQL as queries of spaseq."""

from __future__ import annotations

from pathlib import Path

from spaseq.api.queries import read_query
from spaseq.compile import CompileOptions, check_query
from spaseq.errors import QueryError
from spaseq.lang.rspql.translate import translate_text


def translate(query: str | Path, *, base: str | None = None) -> str:
    """The text of the spaseq query that says what a query of RSP-QL or C-SPARQL says.

    The text begins with comments. They say where an RSP engine answers otherwise (docs/rspql.md).

    Args:
        query: the text of the query, or the `Path` of its file.
        base: what relative IRIs are resolved against if the query has no BASE; by default
            `http://example.org/`.

    Raises:
        QueryError: the text is no such query, or something in it has no counterpart; with the place
            of each error. What the check refuses, such as a function that there is not, has its
            place in the translation.
        InputError: the file cannot be read.
    """
    name = str(query) if isinstance(query, Path) else "<query>"
    text = read_query(query) if isinstance(query, Path) else query
    made = translate_text(text, name, base)
    checked = check_query(made, options=CompileOptions(file=f"translation of {name}"))
    if checked.errors:
        raise QueryError(checked.errors)
    return made
