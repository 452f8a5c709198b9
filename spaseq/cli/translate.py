"""`spaseq translate`: queries of RSP-QL and C-SPARQL as queries of spaseq."""

from __future__ import annotations

from pathlib import Path

import click

from spaseq.api.queries import translate as translated


@click.command()
@click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, path_type=Path, allow_dash=True)
)
@click.option(
    "--base",
    metavar="IRI",
    help="Base IRI of relative IRIs if the query has no BASE.  [default: http://example.org/]",
)
def translate(file: Path, base: str | None) -> None:
    """Translate a query of RSP-QL or C-SPARQL, and print it.

    \b
    FILE is the query, - is standard input:
      spaseq translate q.rspql > q.rq
      spaseq check q.rq
      spaseq run q.rq --stream S=events.nq

    \b
    What becomes of what:
      FROM NAMED WINDOW :w ON :s [RANGE PT10M STEP PT1M]   FROM WINDOW w ON s RANGE 10 MINUTES ...
      FROM STREAM <s> [RANGE 10m STEP 1m]                  the same
      WINDOW :w { ... }                                    a GPM on w; several are joined by &
      RSTREAM, ISTREAM, DSTREAM                            ON w, ON NEW w, ON GONE w
      GROUP BY, HAVING, aggregates, LIMIT                  a sub-SELECT in the GPM
      FROM <g>, FROM NAMED <g>                             GRAPH <g>, with --kb <g>=FILE

    Comments at the top say where answers differ from an RSP engine's, and what the query needs.
    A clause without a counterpart is an error with its place, and exit status 1: windows of n
    triples, windows in the past, SERVICE, windows whose STEPs differ.
    """
    if str(file) == "-":
        with click.open_file("-", encoding="utf-8") as given:
            click.echo(translated(given.read(), base=base), nl=False)
    else:
        click.echo(translated(file, base=base), nl=False)
