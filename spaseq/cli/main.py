"""The `spaseq` command, its subcommands and exit statuses."""

from __future__ import annotations

import sys

import click

from spaseq.cli.check import check
from spaseq.cli.explain import explain
from spaseq.cli.fmt import fmt
from spaseq.cli.run import run
from spaseq.cli.warm import warm
from spaseq.errors import SpaseqError

INTERRUPTED = 130
USAGE = 2


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="spaseq")
def cli() -> None:
    """Notice sequences of meaningful things in streams of RDF graphs.

    \b
    Replay streams to their end, on Spark:
      spaseq run query.rq --stream S1=events.nq --kb kb.ttl

    \b
    Exit status: 0 done, 1 the query has errors, 2 wrong usage, 3 an input is unusable,
    4 failure or limit while running, 130 interrupted.
    """


for command in (run, check, explain, fmt, warm):
    cli.add_command(command)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    try:
        status = cli.main(arguments, prog_name="spaseq", standalone_mode=False)
        sys.exit(status if isinstance(status, int) else 0)
    except SpaseqError as error:
        click.echo(f"spaseq: {error}" if error.exit_status != 1 else str(error), err=True)
        sys.exit(error.exit_status)
    except click.exceptions.Abort:
        click.echo("spaseq: interrupted", err=True)
        sys.exit(INTERRUPTED)
    except KeyboardInterrupt:
        click.echo("spaseq: interrupted", err=True)
        sys.exit(INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(USAGE)
    except BrokenPipeError:
        # The reader of our output has gone; nothing is left to do.
        sys.stderr.close()
        sys.exit(0)
