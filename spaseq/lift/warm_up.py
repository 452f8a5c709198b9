"""Warm-up of the kernels that read JSON lines: one call compiles or loads each of them."""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.lift.json_columns import JsonScanner
from spaseq.limits import DEFAULT_LIMITS


def steps() -> Iterator[str]:
    """Call each kernel once and yield its name when it is ready."""
    JsonScanner(frozenset("a"), frozenset(), DEFAULT_LIMITS).columns(b'{"a": 1}')
    yield "scan_lines"
    JsonScanner(frozenset("a"), frozenset(), DEFAULT_LIMITS).columns(b'{"a": "x"}')
    yield "gathered"
