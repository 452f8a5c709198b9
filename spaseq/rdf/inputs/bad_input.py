"""Input that cannot be read: reports, and the reasons that parsers give."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class BadInput:
    """Something in the input that could not become an event."""

    file: str
    line: int | None  # from 1; None where the format gives no line
    reason: str
    text: str = ""  # the offending text, cut to a few hundred characters


OnBad: TypeAlias = Callable[[BadInput], None]


def warn(bad: BadInput) -> None:
    """Bad input as a warning of the logger `spaseq`, where nobody else wants to hear of it."""
    logging.getLogger("spaseq").warning("%s: %s %s", bad.file, bad.reason, bad.text)


_PLACE = re.compile(r"^Parser error at line \d+ (?:between columns (\d+) and \d+|column (\d+)): ")


TRIPLE_TERM = "triple terms (RDF 1.2) are not read"


def syntax_reason(error: Exception) -> str:
    """pyoxigraph's message without the line number of the text it was given."""
    message = str(error.args[0]) if error.args else str(error)
    place = _PLACE.match(message)
    if place is None:
        return message
    return f"{message[place.end() :]} (column {place.group(1) or place.group(2)})"
