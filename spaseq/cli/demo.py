"""`spaseq demo`: alerts of an example that comes with the package, with explanations.

The example is the case card-fraud of streams/.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, cast

import click
import pyoxigraph as ox

from spaseq.api.match import Match
from spaseq.api.run import run
from spaseq.storage.user_files import write_copy

DEMO = Path(__file__).parents[1] / "first_steps" / "demo"
"""The files of the case."""

STREAMS = {"S1": "transactions.nq.gz", "S2": "confirmations.nq"}
KB = {"http://cards.example/kb": "kb.ttl"}

RULE = """\
A card that is drained, from small amounts to big ones and back:

  A      a payment by card
  B{2,}  then two or more, each at least half as much again as the one before
  D!     and no telephone call by which the holder confirms them, before
  C{3}   three of at most a tenth of the biggest
"""

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


def alerts(runtime: Literal["local", "spark"]) -> Iterator[str]:
    """Each alert: whose card, when, and the payments of its steps."""
    streams = {name: str(DEMO / file) for name, file in STREAMS.items()}
    knowledge = {iri: str(DEMO / file) for iri, file in KB.items()}
    amounts = _amounts()
    for match in run(DEMO / "query.rq", streams, knowledge, runtime):
        yield _alert(match, amounts)


def _alert(match: Match, amounts: dict[str, str]) -> str:
    holder, bank = (match.bindings[name].to_python() for name in ("holder", "bankName"))
    steps = [f"{item.gpm} {amounts[str(item.event)]}" for item in match.trace]
    return f"{holder}, {bank}, {match.start:%H:%M:%S} to {match.end:%H:%M:%S}\n  {'  '.join(steps)}"


def _amounts() -> dict[str, str]:
    """The amount of each transaction, by the IRI of its event."""
    data = gzip.decompress((DEMO / STREAMS["S1"]).read_bytes())
    return {
        quad.graph_name.value: quad.object.value
        for quad in ox.parse(data, ox.RdfFormat.N_QUADS)
        if isinstance(quad.graph_name, ox.NamedNode)
        and isinstance(quad.object, ox.Literal)
        and quad.predicate.value == "http://cards.example/ns#amount"
    }
