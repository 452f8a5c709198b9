"""Answers as a bounded table of HTML, in which no term can be markup."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from spaseq.algebra.answers import Answer
from spaseq.message_text import one_line
from spaseq.rdf.terms.term import plain_text
from spaseq.rdf.terms.times import format_time

_COLUMNS = 20
_CHARACTERS = 100


def answers_html(
    title: str, variables: Sequence[str], answers: Sequence[tuple[str, Answer]], more: bool
) -> str:
    """A table with a row for each (name of the query, answer).

    Args:
        title: stands above the table.
        variables: the projected variables; the table shows the first twenty.
        answers: the rows.
        more: whether there are more answers than these.
    """
    shown, several = variables[:_COLUMNS], len({query for query, _ in answers}) > 1
    graphs = any(answer.graph is not None for _, answer in answers)
    heads = [
        *(["query"] if several else []),
        *(f"?{name}" for name in shown),
        *(["..."] if len(variables) > _COLUMNS else []),
        *(["event", "triples"] if graphs else []),
        "start",
        "end",
        "events",
    ]
    rows = []
    for query, answer in answers:
        values = dict(answer.bindings)
        cells = [query] if several else []
        cells += [plain_text(values[name]) if name in values else "" for name in shown]
        cells += ["..."] if len(variables) > _COLUMNS else []
        if graphs:
            cells += [answer.event or "", str(len(answer.graph or ()))]
        cells += [format_time(answer.first[0]), format_time(answer.end[0]), str(len(answer.trace))]
        rows.append(_row("td", cells))
    body = f"<thead>{_row('th', heads)}</thead><tbody>{''.join(rows)}</tbody>"
    table = f'<table class="dataframe">{body}</table>' if answers else ""
    note = "<p>... and more</p>" if more else ""
    return f'<div class="spaseq-answers"><p>{_cell(title)}</p>{table}{note}</div>'


def _row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{_cell(text)}</{tag}>' for text in cells)}</tr>"


def _cell(text: str) -> str:
    """A text, cut and escaped."""
    short = text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}..."
    return escape(one_line(short))
