"""A query with its plan and its automaton, as JSON values."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from spaseq.errors import SpaseqError
from spaseq.rdf.terms.times import format_time
from spaseq.render.explain import Explanation, explained
from spaseq.serve.query_files import checked_query
from spaseq.serve.service import QueryView, StreamView

Json = dict[str, Any]


def query_json(query: QueryView) -> Json:
    """A query in the list of queries."""
    return {
        "name": query.name,
        "state": query.state,
        "since": _time(query.since),
        "streams": list(query.streams),
        "answers": query.answers,
        "live": query.live,
        "reason": query.reason,
    }


def stream_json(stream: StreamView) -> Json:
    """A stream in the list of streams."""
    return {
        "name": stream.name,
        "iri": stream.iri,
        "accepted": stream.accepted,
        "bad": stream.bad,
        "late": stream.late,
        "watermark": _time(stream.watermark),
        "source": stream.source,
        "lag": stream.lag,
    }


def detailed_json(query: QueryView) -> Json:
    """A query with its text, plan and automaton."""
    found = query_json(query)
    found["text"] = query.text
    diagnostics, data = _explained(query.name, query.text)
    automaton = data.get("automaton")
    found["diagnostics"] = list(diagnostics)
    found["plan"] = {name: value for name, value in data.items() if name != "automaton"}
    found["automaton"] = None if automaton is None else _counted(automaton)
    return found


def drawing(query: QueryView) -> str:
    """The automaton of a query as SVG."""
    return explanation(query.name, query.text).to("svg")


def explanation(name: str, text: str) -> Explanation:
    """What a query becomes."""
    return explained(checked_query(name, text))


@lru_cache(256)
def _explained(name: str, text: str) -> tuple[tuple[Json, ...], Json]:
    """(warnings, explanation) of a query; nobody may change them."""
    try:
        checked = checked_query(name, text)
    except SpaseqError:  # a version before read the text otherwise
        return (), {}
    return tuple(d.to_json() for d in checked.diagnostics), explained(checked).data


def _counted(automaton: Json) -> Json:
    """An automaton whose states and edges have places for counts."""
    return {
        **automaton,
        "states": [
            {**state, "label": state["takes"] or "", "partial_matches": None}
            for state in automaton["states"]
        ],
        "edges": [{**edge, "count": None} for edge in automaton["edges"]],
    }


def _time(ms: int | None) -> str | None:
    return None if ms is None else format_time(ms)
