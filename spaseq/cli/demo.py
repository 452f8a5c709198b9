"""`spaseq demo`: alerts of an example that comes with the package, with explanations."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, cast

import click

from spaseq.first_steps.demo_alerts import DEMO, KB, RULE, STREAMS, alerts
from spaseq.storage.user_files import write_copy

_SHOWN = 3


@click.command(context_settings={"max_content_width": 100})
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--all", "everything", is_flag=True, help="Show all alerts, not only the first three."
)
@click.option(
    "--runtime",
    type=click.Choice(["local", "spark"]),
    default="local",
    show_default=True,
    help="In this process, or on Spark.",
)
def demo(directory: Path | None, everything: bool, runtime: str) -> None:
    """Run an example that comes with spaseq, and explain its alerts.

    Two streams of an afternoon, payments by card and telephone calls, meet a knowledge base of
    holders and banks. With DIR, the query and its data are written into that new directory.
    """
    if directory is not None:
        write_copy(DEMO, directory)
    click.echo(RULE)
    all_alerts = list(alerts(cast(Literal["local", "spark"], runtime)))
    for alert in all_alerts if everything else all_alerts[:_SHOWN]:
        click.echo(alert)
    rest = "" if everything else f"; spaseq demo --all shows the other {len(all_alerts) - _SHOWN}"
    click.echo(f"\n{len(all_alerts)} alerts{rest}.")
    if directory is None:
        click.echo("spaseq demo DIR writes the query and its data into a new directory DIR.")
        return
    streams = " ".join(f"--stream {name}={directory / file}" for name, file in STREAMS.items())
    kb = " ".join(f"--kb {directory / file}" for file in KB.values())
    click.echo(f"Wrote {directory}: {', '.join(sorted(p.name for p in directory.iterdir()))}")
    click.echo("Next:")
    click.echo(f"  spaseq run {directory / 'query.rq'} {streams} {kb} --runtime local --format csv")
    click.echo(f"  spaseq explain {directory / 'query.rq'}")
