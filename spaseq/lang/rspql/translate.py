"""The text of an RSP-QL or C-SPARQL query as the text of a spaseq query."""

from __future__ import annotations

from textwrap import wrap

from spaseq.errors import QueryError, QueryText
from spaseq.lang.findings import TooManyErrors
from spaseq.lang.format import format_query
from spaseq.lang.rspql.rsp_reader import read
from spaseq.lang.rspql.translation import translated

_WIDTH = 100


def translate_text(text: str, name: str = "<query>", base: str | None = None) -> str:
    """The equivalent spaseq query, with comments on differences.

    Args:
        text: the query.
        name: the name of the query in messages, usually its path.
        base: the base IRI if the query has no BASE; by default `http://example.org/`.

    Raises:
        QueryError: the text is no such query, or a part has no counterpart; each error has its
            place.

    >>> print(translate_text("SELECT ?s FROM STREAM <http://e/s> [RANGE 1m STEP 10s] "
    ...                      "WHERE { ?s <http://e/p> 1 }"), end="")
    # Translated from C-SPARQL by spaseq translate.
    # - Windows close at multiples of their slide since 1970, the first one with the first event;
    #   engines choose that.
    SELECT ?s
    FROM STREAM s <http://e/s>
    FROM WINDOW W ON s RANGE 1 MINUTES SLIDE 10 SECONDS
    WHERE {
      SEQ(A)
      DEFINE GPM A ON W {
        ?s <http://e/p> 1 .
      }
    }
    """
    try:
        query, findings = read(QueryText(text, name), base)
        translation = translated(query, findings)
    except TooManyErrors as stop:
        raise QueryError(stop.findings.in_order()) from None
    language = "C-SPARQL" if query.merges else "RSP-QL"
    lines = [f"# Translated from {language} by spaseq translate."]
    for note in translation.notes:
        lines += wrap(note, _WIDTH, initial_indent="# - ", subsequent_indent="#   ",
                      break_long_words=False, break_on_hyphens=False)  # fmt: skip
    return "\n".join(lines) + "\n" + format_query(translation.query)
