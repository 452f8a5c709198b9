"""Shapes of a drawing, and the room that texts need.

Texts are monospaced, so their width is known without a font: a character takes 0.602 em.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Self, TypeAlias

from spaseq.records import record
from spaseq.render.picture.diagram import BRACKETS, Diagram, StateBox
from spaseq.render.query_words import variables_text

ADVANCE = 0.602
"""Width of a character in em."""


@record
class _Placed:
    x: float
    y: float

    def moved(self, dx: float, dy: float) -> Self:
        return replace(self, x=self.x + dx, y=self.y + dy)


@record
class Area(_Placed):
    """A rectangle; `look` names its style, none if it is empty. `of` is the id of its state."""

    width: float
    height: float
    look: str = ""
    round: float = 0
    of: str = ""


@record
class Disc(_Placed):
    """A circle; `of` is the id of its state."""

    radius: float
    look: str
    of: str = ""


@record
class Label(_Placed):
    """A line of text whose left end is at x, and whose baseline is at y."""

    text: str
    size: float
    look: str

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


TITLE, TEXT, SMALL = 15.0, 12.0, 11.0
LINE = 17.0
PAD = 12.0
START = 9.0
"""Radius of the initial state."""

NARROWEST = 112.0
CHARACTERS = 36
"""Longest line of a box."""

PILL_LINE, PILL_PAD = 15.0, 7.0

INNER_GAP = 14.0


def box_drawing(box: StateBox, operands: Sequence[Drawing], widest: float) -> Drawing:
    """The box of a state; a bracket holds the drawings of its operands."""
    if not box.name:
        return _start(box)
    lines = list(_lines(box))
    inside = flowed(operands, widest) if operands else Drawing(0, 0, ())
    texts = [text_width(text, size) for text, size, _ in lines]
    width = max([NARROWEST, *(w + 2 * PAD for w in texts), inside.width + 2 * PAD])
    shapes: list[Shape] = []
    y = PAD - 3
    for number, (text, size, look) in enumerate(lines):
        if operands and number == 1:
            shapes += inside.moved(PAD, y + 8)
            y += inside.height + 8
        y += LINE
        shapes.append(Label(PAD, y - 3, text, size, look))
    if operands and len(lines) == 1:
        shapes += inside.moved(PAD, y + 8)
        y += inside.height + 8
    height = y + PAD - 3
    frame: list[Shape] = [Area(0, 0, width, height, "box", 8, box.id)]
    if box.final:
        frame.append(Area(3.5, 3.5, width - 7, height - 7, "final", 5.5))
    return Drawing(width, height, (*frame, *shapes))


def _start(box: StateBox) -> Drawing:
    size = 2 * START
    ring = (Disc(START, START, START + 3.5, "ring"),) if box.final else ()
    return Drawing(size, size, (Disc(START, START, START, "start", box.id), *ring))


def _lines(box: StateBox) -> Iterator[tuple[str, float, str]]:
    """(text, size, look) of each line."""
    if box.name in BRACKETS:
        yield f"{BRACKETS[box.name]} ({box.name})", TEXT, "name"
    else:
        yield box.title, TITLE, "name"
        if box.copy not in (None, 1):
            yield "as #1", TEXT, "soft"
            box = replace(box, streams=(), joined=(), conditions=())
        if box.streams:
            yield from _wrapped(f"on {', '.join(box.streams)}", "soft")
    if box.joined:
        yield from _wrapped(f"same {variables_text(box.joined)}", "join")
    for condition in box.conditions:
        yield from _wrapped(condition, "code")
    for text in (*box.counts, *box.ends):
        yield from _wrapped(text, "no" if text in box.ends else "join")


def _wrapped(text: str, look: str) -> Iterator[tuple[str, float, str]]:
    return ((line, TEXT, look) for line in wrapped(text, CHARACTERS))


def flowed(drawings: Iterable[Drawing], widest: float) -> Drawing:
    """Drawings side by side, in as many rows as they need."""
    shapes: list[Shape] = []
    x = y = height = width = 0.0
    for drawing in drawings:
        if x and x + drawing.width > widest:
            x, y, height = 0.0, y + height + INNER_GAP, 0.0
        shapes += drawing.moved(x, y)
        x += drawing.width + INNER_GAP
        width, height = max(width, x - INNER_GAP), max(height, drawing.height)
    return Drawing(width, y + height, tuple(shapes))


def pill_size(label: Sequence[str]) -> tuple[float, float]:
    """(width, height) of the label of a link; (0, 0) if it has none."""
    lines = pill_lines(label)
    if not lines:
        return 0.0, 0.0
    widest = max(text_width(text, SMALL) for text, _ in lines)
    return widest + 2 * PILL_PAD, len(lines) * PILL_LINE + 5


def pill_lines(label: Sequence[str]) -> list[tuple[str, str]]:
    """(text, look) of each line of a label; conditions on forbidden matches look different."""
    return [
        (line, "no" if text.startswith("no ") else "sign")
        for text in label
        for line in wrapped(text, CHARACTERS)
    ]


def pill(label: Sequence[str], x: float, y: float) -> tuple[Shape, ...]:
    """The label of a link, centred at (x, y)."""
    width, height = pill_size(label)
    if not width:
        return ()
    left, top = x - width / 2, y - height / 2
    shapes: list[Shape] = [Area(left, top, width, height, "pill", 7)]
    for number, (text, look) in enumerate(pill_lines(label), 1):
        size = text_width(text, SMALL)
        baseline = top + number * PILL_LINE - 1.5
        shapes.append(Label(x - size / 2, baseline, text, SMALL, look))
    return tuple(shapes)


def has_plain_start(diagram: Diagram) -> bool:
    """Whether the initial state says nothing: one link leaves it, without a label."""
    leaving = [link for link in diagram.links if link.source == 0]
    into = any(link.target == 0 for link in diagram.links)
    start = diagram.states[0]
    return len(leaving) == 1 and not leaving[0].label and not into and not start.final
