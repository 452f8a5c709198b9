"""The parts of the options of `spaseq run` that only the command line has, and counts as options.

The parts of `spaseq.options` go to the runtimes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from spaseq.cli.option_groups import PartOption
from spaseq.connectors import is_sink
from spaseq.errors import UsageError
from spaseq.records import record
from spaseq.sinks import form_of_path
from spaseq.sinks.jsonl import JsonLines


@record
class InputTexts:
    """The values of --stream, --kb, --lift, --types, --csv, --context and --context-map."""

    streams: tuple[str, ...] = ()
    kbs: tuple[str, ...] = ()
    lifts: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    csv: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    context_map: tuple[str, ...] = ()


@record
class OutputOptions:
    """Where answers and counts go; `given_form` is the format that --format names."""

    out: str = "-"
    given_form: str | None = None
    columns: str | None = None
    stats: str | None = None
    why: str | None = None
    metrics_port: int | None = None

    @property
    def form(self) -> str:
        """The format of the answers: the given one, or the one that the file's ending says.

        Raises:
            UsageError: the ending is unknown.
        """
        if self.given_form is not None:
            return self.given_form
        return JsonLines.form if is_sink(self.out) else form_of_path(self.out)


@record
class SideOptions:
    """Where bad input, late events and partial matches go."""

    bad: str | None = None
    late: str | None = None
    partial: str | None = None
    strict: bool = False


@record
class FollowFlags:
    """The options of a followed run."""

    follow: bool = False
    checkpoint: str | None = None
    rebuild: bool = False
    buckets: int | None = None


@record
class QuerySet:
    """A directory of queries, and one of a server's data, with its logs and its queries."""

    directory: str | None = None
    logs: str | None = None

    def files(self) -> tuple[Path, ...]:
        """The query files that it has.

        Raises:
            UsageError: it is no directory.
        """
        if self.directory is None:
            return ()
        if not Path(self.directory).is_dir():
            raise UsageError(f"--queries {self.directory}: it is no directory")
        return tuple(sorted(Path(self.directory).glob("[!.]*.rq")))


def count(part: type, *names: str, least: int = 1, **attributes: Any) -> PartOption:
    """An option whose value is a number of things, `least` or more."""
    return PartOption(part, *names, type=click.IntRange(least), metavar="N", **attributes)
