"""`spaseq warm`: compile all kernels, so that no run waits for them."""

from __future__ import annotations

import os

import click


@click.command()
def warm() -> None:
    """Compile all kernels, or load those that are compiled already, and list the seconds of each.

    They are kept in the directory that NUMBA_CACHE_DIR names, else in the user's cache
    directory, else inside the installation. Without this the first run over larger input
    compiles those that it needs; small input needs none.
    """
    from spaseq.compiled import warming  # numba, which the other commands do without

    done = warming.warm(lambda w: click.echo(f"{w.seconds:8.3f} s  {w.name}"))
    click.echo(f"{sum(w.seconds for w in done):8.3f} s  {len(done)} kernels")
    click.echo(f"in {os.environ['NUMBA_CACHE_DIR']}")
