"""Standard error of a command: messages, progress during a run, and the summary at its end.

A run continues if standard error has no reader.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

import click

from spaseq.message_text import EscapedStream, one_line, unescaped, without_passwords
from spaseq.rdf.terms.times import format_time

if TYPE_CHECKING:
    from spaseq.runtime.job.job import Stats

_INTERVAL = 0.2  # seconds between two lines


@contextmanager
def escaped_streams() -> Iterator[None]:
    """Escape text for stderr, and for stdout if that is a terminal.

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


class ProgressLine:
    """One line that is rewritten in place if the stream is a terminal; otherwise nothing."""

    def __init__(self, out: TextIO | None = None) -> None:
        """Write to `out`, or to stderr."""
        # The line moves the cursor, which an escaped stream would not.
        self._out = unescaped(sys.stderr if out is None else out)
        self._shown = self._out.isatty()
        self._started = self._last = time.monotonic()
        self._width = 0

    def __call__(self, stats: Stats) -> None:
        """Show the progress of the run, at most a few times a second."""
        now = time.monotonic()
        if not self._shown or now - self._last < _INTERVAL:
            return
        self._last = now
        rate = stats.triples / max(now - self._started, 1e-9)
        text = f"{stats.events:,} events  {rate:,.0f} triples/s  {stats.matches:,} matches"
        if stats.watermark is not None:
            text += f"  watermark {format_time(stats.watermark)}"
        if stats.waits_for is not None:
            text += f"  waiting for {one_line(stats.waits_for)}"
        if stats.state_bytes:
            text += f"  state {sum(stats.state_bytes.values()) / 2**20:,.1f} MB"
        if stats.slowest is not None:
            name, share = stats.slowest
            text += f"  {share:.0%} of the work is {one_line(name)}"
        if stats.bad or stats.late:
            text += f"  {stats.bad:,} bad  {stats.late:,} late"
        self._write(f"\r{text:<{self._width}}")
        self._width = len(text)

    def note(self, text: str) -> None:
        """Write a message on a separate line."""
        self.clear()
        self._write(f"spaseq: {one_line(without_passwords(text))}\n")

    def clear(self) -> None:
        """Remove the line."""
        if self._shown and self._width:
            self._write(f"\r{'':<{self._width}}\r")
            self._width = 0

    def _write(self, text: str) -> None:
        try:
            self._out.write(text)
            self._out.flush()
        except OSError:
            self._shown = False


def summary(stats: Stats) -> str:
    """The summary of a run, in one line."""
    text = (
        f"{_count(stats.matches, 'answer')} from {_count(stats.events, 'event')} "
        f"({_count(stats.triples, 'triple')}) in {stats.seconds:.1f} s"
    )
    if stats.changes:
        text += f"; {_count(sum(stats.changes.values()), 'change')} of graphs"
    if stats.partial:
        text += f"; {_count(stats.partial, 'partial match', 'partial matches')}"
    if stats.suppressed:
        text += f"; {_count(stats.suppressed, 'answer')} suppressed"
    if stats.muted:
        text += f"; {_count(sum(stats.muted.values()), 'answer')} muted"
    if stats.bad:
        text += f"; {_count(stats.bad, 'bad input')}"
    for name, count in stats.lost.items():
        text += f"; {_count(count, 'value')} of field {name} lost by a cast"
    if stats.filtered:
        text += f"; {_count(stats.filtered, 'row')} filtered"
    if stats.repeated:
        text += f"; {_count(stats.repeated, 'request')} to endpoints sent again"
    if stats.bad_geometries:
        text += f"; {_count(stats.bad_geometries, 'bad geometry', 'bad geometries')}"
    if stats.late:
        text += f"; {_count(stats.late, 'late event')}"
    if stats.refreshed:
        text += f"; knowledge base reloaded {_count(stats.refreshed, 'time')}"
    return text


def _count(number: int, what: str, several: str | None = None) -> str:
    return f"{number:,} {what if number == 1 else several or f'{what}s'}"
