"""Serves the counts of a run as Prometheus text."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from spaseq.errors import UsageError
from spaseq.runtime.job.job import Stats

_TEXT = "text/plain; version=0.0.4; charset=utf-8"


def prometheus_text(stats: Stats) -> str:
    """The counts so far, and the gauges of the last batch, in Prometheus' text format."""
    lines: list[str] = []

    def add(name: str, kind: str, about: str, values: Mapping[str, float], label: str = "") -> None:
        if values:
            lines.append(f"# HELP spaseq_{name} {about}")
            lines.append(f"# TYPE spaseq_{name} {kind}")
        for key, value in values.items():
            labels = f'{{{label}="{escaped(key)}"}}' if label else ""
            lines.append(f"spaseq_{name}{labels} {value}")

    add("events_total", "counter", "Events read.", {"": stats.events})
    add("triples_total", "counter", "Triples read.", {"": stats.triples})
    add("answers_total", "counter", "Answers found.", {"": stats.matches})
    add("suppressed_total", "counter", "Answers that the limit left out.", {"": stats.suppressed})
    muted = stats.muted
    add("query_muted_total", "counter", "Answers that MUTE left out, by query.", muted, "query")
    add("bad_total", "counter", "Malformed input.", {"": stats.bad})
    add("filtered_total", "counter", "Rows that lifts left out.", {"": stats.filtered})
    add("partial_total", "counter", "Partial matches given.", {"": stats.partial})
    add("late_total", "counter", "Events behind their stream's watermark.", {"": stats.late})
    repeated = {"": stats.repeated}
    add("repeated_requests_total", "counter", "Requests to endpoints sent again.", repeated)
    add("bad_geometries_total", "counter", "Bad geometries.", {"": stats.bad_geometries})
    add("batches_total", "counter", "Batches done.", {"": stats.batches})
    add("stage_seconds_total", "counter", "Seconds of work, by stage.", stats.stages, "stage")
    add(
        "batch_seconds",
        "gauge",
        "Seconds of the last batch, by phase of Spark.",
        stats.phases,
        "phase",
    )
    answers, seconds = stats.answers, stats.query_seconds
    add("query_answers_total", "counter", "Answers found, by query.", answers, "query")
    about = "Seconds of work, by query or family."
    add("query_seconds_total", "counter", about, seconds, "query")
    slow = {} if stats.slowest is None else dict([stats.slowest])
    add("slow_query", "gauge", "Share of the work, of a query that takes most.", slow, "query")
    add("partial_matches", "gauge", "Waiting partial matches.", stats.live_runs, "query")
    add("state_bytes", "gauge", "State in the state store.", stats.state_bytes, "query")
    known = {s: m / 1000 for s, m in stats.watermarks.items() if m is not None}
    add("watermark_seconds", "gauge", "Watermark, since 1970.", known, "stream")
    last = max(known.values(), default=0.0)
    lag = {stream: last - mark for stream, mark in known.items()}
    add("watermark_lag_seconds", "gauge", "Behind the foremost stream.", lag, "stream")
    return "\n".join(lines) + "\n"


@contextmanager
def metrics_served(stats: Stats, port: int) -> Iterator[int]:
    """Serve the counts at `/metrics` of the loopback interface; yields the port.

    Args:
        stats: the counts, which change while they are served.
        port: 0 for any free port.

    Raises:
        UsageError: the port is not free.
    """

    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer  # few runs need it

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_metrics = self.path.split("?")[0] in ("/", "/metrics")
            body = prometheus_text(stats).encode() if is_metrics else b""
            self.send_response(200 if is_metrics else 404)
            self.send_header("Content-Type", _TEXT)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing: stderr is for people."""

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError as error:
        raise UsageError(f"--metrics-port {port}: {error.strerror}") from error
    thread = threading.Thread(target=server.serve_forever, daemon=True, name="spaseq-metrics")
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def escaped(text: str) -> str:
    """The escaped value of a label."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
