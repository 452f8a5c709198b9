"""Messages on standard error; a run goes on if nobody can read them."""

from __future__ import annotations

import os
import sys

import click


def tell(text: str) -> None:
    """Write a line to standard error."""
    try:
        click.echo(text, err=True)
    except OSError:
        drop_messages()


def drop_messages() -> None:
    """Write no further messages: the disk behind standard error is full, or its reader has gone."""
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
