"""Messages on standard error; a run goes on if nobody can read them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from spaseq.message_text import EscapedStream


@contextmanager
def escaped_streams() -> Iterator[None]:
    """Escape what goes to stderr, and to stdout if that is a terminal.

    A stream that was replaced meanwhile stays replaced.
    """
    out, err = sys.stdout, sys.stderr
    escaped_err = sys.stderr = EscapedStream(err)
    escaped_out = sys.stdout = EscapedStream(out) if out.isatty() else out
    try:
        yield
    finally:
        if sys.stderr is escaped_err:
            sys.stderr = err
        if sys.stdout is escaped_out:
            sys.stdout = out


def tell(text: str) -> None:
    """Write a line to standard error."""
    try:
        click.echo(text, err=True)
    except OSError:
        drop_messages()


def drop_messages() -> None:
    """Write no further messages: the disk behind standard error is full, or its reader has gone."""
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
