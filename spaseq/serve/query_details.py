"""A query with its plan and its automaton, as JSON values."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Any

from spaseq.automaton.run.live_states import LiveStates
from spaseq.errors import SpaseqError
from spaseq.rdf.terms.times import format_time
from spaseq.render.explain import Explanation, explained
from spaseq.render.picture.diagram import UNKNOWN, drawn_counts
from spaseq.render.plan_json import automaton_json
from spaseq.runtime.live.run_views import QueryView, QueryWaits, StreamView
from spaseq.serve.query_files import checked_query, missing_streams

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
        "reason": query.reason or None,
    }


def stream_json(stream: StreamView) -> Json:
    """A stream in the list of streams."""
    return {
        "name": stream.name,
        "iri": stream.iri,
        "accepted": stream.accepted,
        "bad": stream.bad,
        "late": stream.late,
        "duplicates": stream.duplicates,
        "watermark": _time(stream.watermark),
        "source": stream.source,
        "lag": stream.lag,
    }


def waiting_json(waits: QueryWaits) -> Json:
    """What a query waits for."""
    windows = [{"closes": _time(close)} for close in waits.windows]
    return {"windows": windows, "held": waits.held, "streams": list(waits.streams)}


def detailed_json(
    query: QueryView, states: LiveStates | None, waits: QueryWaits | None, given: Collection[str]
) -> Json:
    """A query with its text, plan and automaton, where its partial matches are, and what it waits
    for, if known. `given` are the streams that there are (IRIs).
    """
    details = query_json(query)
    details["waiting"] = None if waits is None else waiting_json(waits)
    details["text"] = query.text
    details["muted"], details["withheld"] = query.muted, query.withheld
    diagnostics, plan, shown = _explained(query.name, query.text)
    details["diagnostics"], details["plan"], details["automaton"] = list(diagnostics), plan, None
    if shown is not None and not {*query.streams} <= {*given}:
        missing = missing_streams(checked_query(query.name, query.text), given)
        details["diagnostics"] += [finding.to_json() for finding in missing]
    if shown is not None:
        live = UNKNOWN if states is None else drawn_counts(shown.picture, shown.plan, states)
        details["automaton"] = automaton_json(shown.picture, live)
    return details


def drawing(query: QueryView) -> str:
    """The automaton of a query as SVG."""
    return explanation(query.name, query.text).to("svg")


def explanation(name: str, text: str) -> Explanation:
    """What a query becomes."""
    return explained(checked_query(name, text))


@lru_cache(256)
def _explained(name: str, text: str) -> tuple[tuple[Json, ...], Json, Explanation | None]:
    """(warnings, plan, explanation) of a query; nobody may change them."""
    try:
        checked = checked_query(name, text)
    except SpaseqError:  # a version before read the text otherwise
        return (), {}, None
    shown = explained(checked)
    plan = {name: value for name, value in shown.data.items() if name != "automaton"}
    return tuple(d.to_json() for d in checked.diagnostics), plan, shown


def _time(ms: int | None) -> str | None:
    return None if ms is None else format_time(ms)
