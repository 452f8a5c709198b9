"""`spaseq serve`: a server for standing queries over live streams."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spaseq.cli.option_groups import Chosen, OptionGroup, PartOption, grouped_command
from spaseq.errors import UsageError
from spaseq.extras import missing
from spaseq.options import RUNTIMES
from spaseq.startup import keep_arrow_from_pandas

if TYPE_CHECKING:
    from spaseq.runtime.spark.standing.standing_engine import SparkEngines

LOG_FORMATS = ("text", "json")


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options of the command line besides the configuration."""

    listen: str | None = None
    data: Path | None = None
    runtime: str = "local"
    master: str | None = None
    log_format: str = "text"
    rebuild: bool = False


SERVER = OptionGroup(
    "Server",
    (
        PartOption(
            ServeOptions,
            "--listen",
            metavar="HOST:PORT",
            help="The address to serve, instead of the configuration's.",
        ),
        PartOption(
            ServeOptions,
            "--data",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="The directory of logs, state and answers, instead of the configuration's.",
        ),
        PartOption(
            ServeOptions,
            "--runtime",
            type=click.Choice(RUNTIMES),
            help="Where queries run.",
            show_default=True,
        ),
        PartOption(
            ServeOptions,
            "--master",
            metavar="URL",
            help="With --runtime spark: the cluster, if not local.",
        ),
        PartOption(
            ServeOptions,
            "--rebuild",
            is_flag=True,
            help="Rebuild the state from the logs, as they are.",
        ),
        PartOption(
            ServeOptions,
            "--log-format",
            type=click.Choice(LOG_FORMATS),
            help="How lines of the log are written to standard error.",
            show_default=True,
        ),
    ),
)


@grouped_command(SERVER)
@click.argument("configuration", required=False, type=click.Path(path_type=Path), metavar="CONFIG")
@click.option(
    "--check",
    is_flag=True,
    help="Read the configuration, queries, lifts and knowledge bases, connect to sources and "
    "sinks, start Spark if it is to be used, report all mistakes, and end.",
)
@click.option(
    "--init",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write an example that runs as it is into a new directory, and end.",
)
def serve(configuration: Path | None, check: bool, init: Path | None, chosen: Chosen) -> None:
    """Keep queries running over live streams: HTTP, a page, sources and sinks.

    \b
    An example that runs as it is:
      spaseq serve --init demo && spaseq serve demo/spaseq.toml

    SIGTERM and SIGINT end the server: its state is saved, and the status is 0.
    """  # fmt: skip
    if init is not None:
        from spaseq.cli.trial import write_example

        if configuration is not None or check:
            raise UsageError("--init DIR goes with nothing else")
        click.echo(f"spaseq serve {write_example(init)}")
        return
    if configuration is None:
        raise UsageError("which configuration? spaseq serve --init DIR writes an example")
    options = chosen[ServeOptions]
    if options.runtime == "local" and options.master is not None:
        raise UsageError("--master goes with --runtime spark")
    if missing("serve"):
        raise UsageError(f"spaseq serve needs {missing('serve')}")
    if options.runtime == "local":
        keep_arrow_from_pandas()
    _serve(configuration, check, options)


def _serve(path: Path, check: bool, options: ServeOptions) -> None:
    # Commands that serve nothing need not wait for these imports.
    from spaseq.runtime.live.live_engine import LiveEngine
    from spaseq.serve.assembly import listen_of, parts_of
    from spaseq.serve.configuration import read_configuration
    from spaseq.serve.history import log_to_stderr
    from spaseq.serve.http_server import bound_socket
    from spaseq.serve.server import serve as serve_until_stopped

    given = {"listen": options.listen, "data": options.data, "rebuild": options.rebuild or None}
    changed = {name: value for name, value in given.items() if value is not None}
    configuration, engines = read_configuration(path, os.environ, changed), _engines(options)
    if check:
        from spaseq.cli.trial import try_out

        for line in try_out(configuration, path.parent):
            click.echo(line)
        if engines is not None:
            click.echo(engines.checked())
        return
    log_to_stderr(options.log_format)
    parts = parts_of(configuration, path.parent, engines or LiveEngine)
    listening = bound_socket(listen_of(configuration))
    serve_until_stopped(parts, listening)


def _engines(options: ServeOptions) -> SparkEngines | None:
    """The maker of engines on Spark, if queries run there."""
    if options.runtime == "local":
        return None
    from spaseq.runtime.spark.standing.standing_engine import SparkEngines

    return SparkEngines(options.master)
