"""The parts of the options of `spaseq run` that only the command line has, and counts as options.

The parts of `spaseq.options` go to the runtimes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from spaseq.cli.option_groups import PartOption
from spaseq.errors import UsageError
from spaseq.records import record


@record
class InputTexts:
    """The values of --stream, --kb, --lift, --types, --context and --context-map."""

    streams: tuple[str, ...] = ()
    kbs: tuple[str, ...] = ()
    lifts: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    context_map: tuple[str, ...] = ()


@record
class OutputOptions:
    """Where answers and counts go."""

    out: str = "-"
    form: str = "jsonl"
    columns: str | None = None
    stats: str | None = None
    why: str | None = None
    metrics_port: int | None = None


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
    buckets: int | None = None


@record
class QuerySet:
    """A directory of queries."""

    directory: str | None = None

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
