"""The counts of a server in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Mapping

from spaseq.runtime.job.metrics import prometheus_text
from spaseq.runtime.live.standing_run import StandingRun

STATES = ("running", "catching up", "failed", "paused")


def metrics_text(run: StandingRun) -> str:
    """The counts of a run, of its queries and of its streams."""
    queries, streams = run.queries(), run.streams()
    parts = [prometheus_text(run.stats)]

    def add(name: str, kind: str, about: str, values: Mapping[str, float | None], by: str) -> None:
        known = {key: value for key, value in values.items() if value is not None}
        if known:
            lines = [f'spaseq_{name}{{{by}="{_escaped(k)}"}} {v}\n' for k, v in known.items()]
            head = f"# HELP spaseq_{name} {about}\n# TYPE spaseq_{name} {kind}\n"
            parts.append(head + "".join(lines))

    counts = {state: sum(query.state == state for query in queries) for state in STATES}
    add("queries", "gauge", "Queries, by their state.", counts, "state")
    answers = {query.name: query.answers for query in queries}
    add("query_answers_total", "counter", "Answers of a query.", answers, "query")
    withheld = {query.name: query.withheld for query in queries if query.withheld}
    about = "Answers of the past that sinks did not get."
    add("query_withheld_total", "counter", about, withheld, "query")
    live = {query.name: query.live for query in queries}
    add("query_partial_matches", "gauge", "Partial matches of a query.", live, "query")
    accepted = {stream.name: stream.accepted for stream in streams}
    add("stream_accepted_total", "counter", "Events accepted.", accepted, "stream")
    bad = {stream.name: stream.bad for stream in streams}
    add("stream_bad_total", "counter", "Malformed input of a stream.", bad, "stream")
    late = {stream.name: stream.late for stream in streams}
    add("stream_late_total", "counter", "Late events of a stream.", late, "stream")
    dropped = {stream.name: stream.duplicates for stream in streams}
    add("stream_duplicates_total", "counter", "Events dropped by dedup.", dropped, "stream")
    lag = {stream.name: stream.lag for stream in streams}
    add("stream_lag", "gauge", "Messages that wait to be evaluated.", lag, "stream")
    parts.append(
        "# HELP spaseq_problems Problems that /health lists.\n# TYPE spaseq_problems gauge\n"
        f"spaseq_problems {len(run.problems())}\n"
    )
    return "".join(parts)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
