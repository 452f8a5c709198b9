"""Reports of input that cannot become an event, with the reasons that parsers give."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import TypeAlias

from spaseq.records import record


@record
class BadInput:
    """A part of the input that could not become an event."""

    file: str
    line: int | None  # from 1; None where the format gives no line
    reason: str
    text: str = ""  # the text in question, cut to a few hundred characters
    over_limit: bool = False  # whether a query on it would exceed a limit; its text is well-formed
    lost: tuple[str, int] | None = None  # (field, rows) whose values a cast loses; rows are events.
    # Without rows it is a remark on the field, and nothing is lost.


def over_limit(query: str, reason: str, event: str) -> BadInput:
    """An event on which a query exceeds a limit."""
    return BadInput(query, None, f"exceeds a limit: {reason}", event, over_limit=True)


OnBad: TypeAlias = Callable[[BadInput], None]


def warn(bad: BadInput) -> None:
    """Log bad input as a warning of the logger `spaseq`."""
    logging.getLogger("spaseq").warning("%s: %s %s", bad.file, bad.reason, bad.text)


_WARNED = set[tuple[str, str]]()


def warn_once(bad: BadInput) -> None:
    """Log that a cast loses values of a field, once for each field of a file; a remark once."""
    name, rows = bad.lost or ("", 1)
    place = bad.file if rows else "", name
    if place not in _WARNED:
        _WARNED.add(place)
        warn(bad)


_PLACE = re.compile(r"^Parser error at line \d+ (?:between columns (\d+) and \d+|column (\d+)): ")


_LONGEST = 500  # characters of a reason


def syntax_reason(error: Exception) -> str:
    """The message of a pyoxigraph error, without the line number: the text was only a part."""
    if isinstance(error, UnicodeEncodeError):
        return f"a character that is none: {error.reason}"
    message = str(error.args[0]) if error.args else str(error)
    if len(message) > _LONGEST:  # it quotes the text
        message = f"{message[:_LONGEST]}..."
    place = _PLACE.match(message)
    if place is None:
        return message
    return f"{message[place.end() :]} (column {place.group(1) or place.group(2)})"
