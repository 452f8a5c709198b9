"""The boxes of states and the labels of links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from spaseq.render.picture.diagram import BRACKETS, Diagram, StateBox
from spaseq.render.picture.shapes import Area, Disc, Drawing, Label, Shape, text_width, wrapped
from spaseq.render.query_words import variables_text

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
    """(text, look) of each line of a label; conditions on what must not match look different."""
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
