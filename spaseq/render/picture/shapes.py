"""Shapes of a drawing, and the room that texts need.

Texts are monospaced, so their width is known without a font: a character takes 0.602 em.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from spaseq.records import record

ADVANCE = 0.602
"""Width of a character in em."""


@record
class Area:
    """A rectangle; `look` names its style, none if it is empty. `of` is the id of its state."""

    x: float
    y: float
    width: float
    height: float
    look: str = ""
    round: float = 0
    of: str = ""

    def moved(self, dx: float, dy: float) -> Area:
        return replace(self, x=self.x + dx, y=self.y + dy)

    def meets(self, other: Area) -> bool:
        """Whether two areas share more than an edge."""
        return (
            self.x < other.x + other.width
            and other.x < self.x + self.width
            and self.y < other.y + other.height
            and other.y < self.y + self.height
        )


@record
class Disc:
    """A circle; `of` is the id of its state."""

    x: float
    y: float
    radius: float
    look: str
    of: str = ""

    def moved(self, dx: float, dy: float) -> Disc:
        return replace(self, x=self.x + dx, y=self.y + dy)


@record
class Label:
    """A line of text whose left end is at x, and whose baseline is at y."""

    x: float
    y: float
    text: str
    size: float
    look: str

    def moved(self, dx: float, dy: float) -> Label:
        return replace(self, x=self.x + dx, y=self.y + dy)

    @property
    def area(self) -> Area:
        """The rectangle that the text fills."""
        return Area(
            self.x, self.y - self.size * 0.8, text_width(self.text, self.size), self.size * 1.05
        )


@record
class Route:
    """A line through points, with round corners and an arrow head at its end.

    `of` are the ids of the states that it links.
    """

    points: tuple[tuple[float, float], ...]
    look: str
    head: bool = True
    of: tuple[str, ...] = ()

    def moved(self, dx: float, dy: float) -> Route:
        return replace(self, points=tuple((x + dx, y + dy) for x, y in self.points))


Shape: TypeAlias = Area | Disc | Label | Route


@record
class Drawing:
    """Shapes in a rectangle, in the order in which they are painted."""

    width: float
    height: float
    shapes: tuple[Shape, ...]

    def moved(self, dx: float, dy: float) -> Iterator[Shape]:
        """The shapes at another place."""
        return (shape.moved(dx, dy) for shape in self.shapes)


def text_width(text: str, size: float) -> float:
    """The width of a line of text; wide characters take two places.

    >>> round(text_width("ab", 10), 2)
    12.04
    """
    places = sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)
    return places * size * ADVANCE


def wrapped(text: str, most: int) -> list[str]:
    """The lines of a text, broken at spaces, and within words that are too long.

    >>> wrapped("?speed < COALESCE(PREV(?speed), ?first)", 20)
    ['?speed <', '  COALESCE(PREV(', '  ?speed), ?first)']
    """
    lines = [""]
    for word in _words(text, most):
        if len(lines[-1]) + len(word.rstrip()) > most and lines[-1].strip():
            lines[-1] = lines[-1].rstrip()
            lines.append("  ")
        lines[-1] += word
    return [line.rstrip() for line in lines]


def _words(text: str, most: int) -> Iterator[str]:
    """The words of a text with the spaces after them; long ones are cut after brackets."""
    for word in text.replace("\n", " ").split(" "):
        rest = f"{word} "
        while len(rest) > most - 2:
            cut = rest.rfind("(", 0, most - 3) + 1 or most - 3
            yield rest[:cut]
            rest = rest[cut:]
        yield rest
