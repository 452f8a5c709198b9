"""`spaseq subscribe`: have an NGSI-LD context broker send notifications to a server."""

from __future__ import annotations

import json

import click

from spaseq.connectors.ngsi_subscriptions import ContextBroker, Subscription
from spaseq.errors import UsageError


@click.command(context_settings={"max_content_width": 100})
@click.argument("broker", metavar="BROKER")
@click.option("--to", metavar="URL", help="Where notifications go: a stream of `spaseq serve`.")
@click.option("--type", "types", multiple=True, help="A type of entities.  [repeatable]")
@click.option(
    "--attribute",
    "attributes",
    multiple=True,
    help="An attribute that is watched and sent.  [repeatable; default: all]",
)
@click.option("--id-pattern", "pattern", metavar="REGEX", help="Only entities with such an id.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["normalized", "concise", "keyValues"]),
    default="normalized",
    show_default=True,
    help="keyValues have no times of observation.",
)
@click.option("--context", metavar="IRI", help="The context of the types and attributes.")
@click.option("--deletes", is_flag=True, help="Notify of deletions, too.")
@click.option("--every", "throttling_s", type=click.IntRange(1), metavar="SECONDS")
@click.option(
    "--header", "headers", multiple=True, metavar="NAME:VALUE", help="For the broker: a tenant."
)
@click.option(
    "--send-header",
    "sent",
    multiple=True,
    metavar="NAME:VALUE",
    help="The token of the server, which the broker sends with each notification.",
)
@click.option("--name", default="spaseq", show_default=True, help="Its name at the broker.")
@click.option("--delete", is_flag=True, help="Delete the subscription of that name.")
@click.option("--dry-run", is_flag=True, help="Print the subscription, and send nothing.")
def subscribe(
    broker: str,
    to: str | None,
    headers: tuple[str, ...],
    sent: tuple[str, ...],
    name: str,
    delete: bool,
    dry_run: bool,
    **wanted: object,
) -> None:
    """Have an NGSI-LD broker send notifications to a server.

    \b
    BROKER is the address of Orion-LD, Scorpio or Stellio:
      spaseq subscribe http://broker:1026 --type ColdStore --attribute temperature \\
        --to http://me:8787/streams/Cold --context http://example/cold.jsonld
      spaseq subscribe http://broker:1026 --delete

    The stream needs format = "ngsild", and a context_map for that context. A subscription of the
    same name is replaced.
    """
    context_broker = ContextBroker(broker, dict(map(_header, headers)))
    if delete:
        there = context_broker.unsubscribe(name)
        click.echo(f"{'deleted' if there else 'there was no'} subscription {name}")
        return
    if to is None:
        raise UsageError("where to? --to URL, such as http://me:8787/streams/NAME")
    asked = Subscription(name, to, headers=tuple(map(_header, sent)), **wanted)  # type: ignore[arg-type]
    if dry_run:
        click.echo(json.dumps(asked.body(), indent=2))
        return
    is_new = context_broker.subscribe(asked)
    click.echo(f"{'made' if is_new else 'replaced'} subscription {asked.iri}")


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise UsageError(f"{text[:50]}: a header is NAME:VALUE")
    return name.strip(), value.strip()
