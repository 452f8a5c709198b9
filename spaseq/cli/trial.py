"""`spaseq serve --check`: whether a server with a configuration would start, and reach others; and
`spaseq serve --init`: an example that runs as it is.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from glob import has_magic
from itertools import chain
from pathlib import Path

from spaseq.api.queries import read_query
from spaseq.compile import Checked
from spaseq.connectors import is_sink, is_source, sink_at, source_at
from spaseq.connectors.address import Address
from spaseq.errors import InputError, QueryError, SpaseqError
from spaseq.plan.query_plan import QueryPlan
from spaseq.query_tests.case_file import found_files, read_test_file
from spaseq.query_tests.case_run import outcomes
from spaseq.runtime.live.query_changes import Planner
from spaseq.serve.assembly import parts_of
from spaseq.serve.configuration import Configuration
from spaseq.serve.query_files import SUFFIX, checked_query, is_name, missing_streams
from spaseq.storage.user_files import write_copy

EXAMPLE = Path(__file__).parents[1] / "serve" / "example"
"""The files of the example."""

CONFIGURATION = "spaseq.toml"

_PORTS = {
    "kafka": 9092,
    "nats": 4222,
    "mqtt": 1883,
    "mqtts": 8883,
    "postgresql": 5432,
    "smtp": 25,
    "smtps": 465,
}
_SECURE = ("https", "wss", "sse+https", "ldes+https")
_TIMEOUT_S = 5.0


def write_example(directory: Path) -> Path:
    """Write the example into a new or empty directory; returns the path of its configuration.

    Raises:
        UsageError: the directory has files.
        InputError: it cannot be written.
    """
    write_copy(EXAMPLE, directory)
    return directory / CONFIGURATION


def try_out(configuration: Configuration, directory: Path) -> list[str]:
    """The results of the check, in lines.

    Raises:
        SpaseqError: with all errors.
    """
    parts = parts_of(configuration, directory)
    wrong: list[str] = []
    files = sorted(parts.queries.glob(f"*{SUFFIX}")) if parts.queries.is_dir() else []
    plans, refused = _plans(parts.plan, files)
    wrong += chain.from_iterable(refused.values())
    tests = found_files([parts.queries]) if parts.queries.is_dir() else []
    ran = 0
    for path in tests:
        count, failed = _failed_tests(path)
        ran += count
        wrong += failed
    wrong += _missing_places(configuration)
    if wrong:
        raise InputError("\n".join(wrong))
    counts = {
        "stream": len(configuration.streams),
        "knowledge base": len(configuration.kb.keys() | configuration.graphs.keys()),
        "quer": len(files),
        "sink": len(configuration.sinks),
        "test": ran,
    }
    given = {str(table["iri"]) for table in configuration.streams.values()}
    given |= {plan.identity.register for plan in plans.values() if plan.identity.register}
    warnings = [
        finding.render()
        for path, plan in plans.items()
        if not given.issuperset(plan.outer_streams)
        for finding in missing_streams(_checked(path), given)
    ]
    well = _counted(len(warnings), "warning") if warnings else "all is well"
    checked = ", ".join(_counted(count, what) for what, count in counts.items())
    return [*warnings, f"{checked}: {well}"]


def _checked(path: Path) -> Checked:
    return checked_query(path.name.removesuffix(SUFFIX), read_query(path))


def _plans(
    plan: Planner, files: Sequence[Path]
) -> tuple[dict[Path, QueryPlan], dict[Path, list[str]]]:
    """The plans of queries, and the errors of the others.

    A query that reads a graph may come before the one that maintains it.
    """
    plans, refused, maintained = dict[Path, QueryPlan](), dict[Path, list[str]](), set[str]()
    left = files
    while left:
        known, refused = {*maintained}, {}
        for path in left:
            found = _planned(plan, path, maintained)
            if isinstance(found, list):
                refused[path] = found
            else:
                plans[path] = found
                maintained.update(() if found.maintained is None else (found.maintained,))
        left = [] if known == maintained else [*refused]
    return plans, refused


def _planned(plan: Planner, path: Path, maintained: set[str]) -> QueryPlan | list[str]:
    """The plan of a query, which may read the graphs `maintained`; else its error."""
    name = path.name.removesuffix(SUFFIX)
    if not is_name(name):
        return [f"{path}: a query's name has letters, digits, _ . and -, at most 100"]
    try:
        return plan(name, read_query(path), maintained)
    except QueryError as error:
        return [f"{path}: {d.render()}" for d in error.diagnostics]
    except SpaseqError as error:
        return [f"{path}: {error}"]


def _failed_tests(path: Path) -> tuple[int, list[str]]:
    """The number of tests in a file, and its mistakes or failures."""
    try:
        ended = list(outcomes(read_test_file(path)))
    except SpaseqError as error:
        return 0, [str(error)]
    return len(ended), [
        f"{path}:{outcome.line}: test {outcome.test.name!r}: {outcome.failure}"
        for outcome in ended
        if outcome.failure
    ]


def _missing_places(configuration: Configuration) -> Iterator[str]:
    """The sources and sinks that cannot be reached, and the paths that are not there."""
    for table in configuration.streams.values():
        given = table.get("source", "")
        yield from _unreachable(given)
        if given and not (is_source(given) or os.path.exists(given) or has_magic(given)):
            yield f"{given}: no such file or directory"
    for table in configuration.sinks.values():
        yield from _unreachable(table["to"])
        parent = Path(table["to"]).parent
        if not (is_sink(table["to"]) or parent.is_dir()):
            yield f"{table['to']}: there is no directory {parent}"


def _unreachable(url: str) -> Iterator[str]:
    """Why a source or sink cannot be reached; nothing if it can, or if it is a path."""
    if is_source(url):
        address = source_at(url).address
    elif is_sink(url):
        address = sink_at(url).address
    else:
        return
    reasons = [_fault(address, host) for host in address.host.split(",")]
    if all(reasons):
        yield f"{address}: nobody answers ({'; '.join(filter(None, reasons))})"


def _fault(address: Address, host: str) -> str | None:
    name, _, port = host.rpartition(":") if host.rpartition(":")[2].isdecimal() else (host, "", "")
    usual = _PORTS.get(address.scheme, 443 if address.scheme in _SECURE else 80)
    try:
        with socket.create_connection((name.strip("[]"), int(port or usual)), _TIMEOUT_S):
            return None
    except OSError as error:
        return error.strerror or str(error)


def _counted(count: int, what: str) -> str:
    ending = {"quer": ("y", "ies")}.get(what, ("", "s"))
    return f"{count} {what}{ending[count != 1]}"
