"""Places the boxes of a diagram in rows, and routes its links.

A link to the next box of a row is straight. A link that passes boxes runs on a track: forward below
the row, back above it. A link to a row further on runs along a lane at the left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from spaseq.render.picture.diagram import Diagram, StateLink
from spaseq.render.picture.shapes import (
    Drawing,
    Route,
    Shape,
    box_drawing,
    has_plain_start,
    pill,
    pill_size,
)

APART = 10.0
"""Minimum distance between elements of a track, and between tracks."""


@dataclass(slots=True)
class Wire:
    """A horizontal piece of a link on a track; `depth` is the track's distance from the boxes.

    The label's middle is at `pill_x` and `pill_depth`.
    """

    left: float
    right: float
    label: Sequence[str] = ()
    depth: float = 0.0
    pill_x: float = 0.0
    pill_depth: float = 0.0

    @property
    def room(self) -> tuple[float, float]:
        """The interval that the wire and its label take."""
        spare = max(0.0, pill_size(self.label)[0] - (self.right - self.left)) / 2
        return self.left - spare, self.right + spare

    def is_near(self, other: Wire) -> bool:
        """Whether there is no room for both on one track."""
        left, right = self.room
        return other.room[0] < right + APART and left < other.room[1] + APART

    @property
    def is_short(self) -> bool:
        """Whether the label would hide the wire, and so is beyond it."""
        return self.right - self.left < pill_size(self.label)[0] + 24

    @property
    def height(self) -> float:
        """The height of the wire and its label in the channel."""
        height = pill_size(self.label)[1]
        return height + 10 if height and self.is_short else max(8.0, height)

    def place(self, depth: float) -> None:
        """Lie down on a track that begins at a depth."""
        height = pill_size(self.label)[1]
        if height and self.is_short:
            self.depth, self.pill_depth = depth + 4, depth + 10 + height / 2
        else:
            self.depth = self.pill_depth = depth + self.height / 2


@dataclass(slots=True)
class Channel:
    """The tracks on one side of a row. `uprights` are where links cross it."""

    wires: list[Wire] = field(default_factory=list)
    uprights: list[float] = field(default_factory=list)

    def lay(self) -> float:
        """Give each wire a track, short ones nearest to the boxes; returns the channel's height."""
        tracks: list[list[Wire]] = []
        for wire in sorted(self.wires, key=lambda w: w.room[1] - w.room[0]):
            track = next((t for t in tracks if not any(map(wire.is_near, t))), None)
            if track is None:
                tracks.append(track := [])
            track.append(wire)
        depth = APART if tracks else 0.0
        for track in tracks:
            height = max(wire.height for wire in track)
            for wire in track:
                wire.place(depth)
                wire.pill_x = self._free(wire)
            depth += height + APART
        return depth

    def _free(self, wire: Wire) -> float:
        """The middle of a wire's label: where no upright crosses it, as near as can be."""
        half = pill_size(wire.label)[0] / 2
        middle = (wire.left + wire.right) / 2
        reach = max(0.0, (wire.right - wire.left) / 2 - half - 4)
        steps = [middle + sign * reach * part / 8 for part in range(9) for sign in (1, -1)]
        uprights = [x for x in self.uprights if wire.left < x < wire.right]
        return next((x for x in steps if all(abs(x - u) > half + 3 for u in uprights)), middle)


GAP = 30.0
"""Least distance between two boxes of a row."""

ARROW_Y = 22.0
"""Least distance of a row's straight links from the top of its boxes."""

BORDER = 26.0
"""Room that a box with operands needs around them."""

Way: TypeAlias = Literal["straight", "loop", "back", "skip", "down", "far", "far back"]

_BACKWARD = ("loop", "back", "far back")


@dataclass(slots=True)
class BoxPlace:
    """The place of a box: its row, left end, size and, later, its top."""

    row: int
    x: float
    width: float
    height: float
    is_start: bool
    y: float = 0.0

    @property
    def bottom(self) -> float:
        return self.y + self.height

    def port(self, from_left: float) -> float:
        """x of a port, counted from the left end, or from the right end if negative."""
        if self.is_start:
            return self.x + self.width / 2
        return self.x + from_left + (self.width if from_left < 0 else 0)


@dataclass(slots=True)
class BoxRow:
    """A row of boxes with the channels above and below."""

    arrow: float = ARROW_Y
    height: float = 0.0
    top: float = 0.0
    above: Channel = field(default_factory=Channel)
    below: Channel = field(default_factory=Channel)


@dataclass(slots=True)
class Bundle:
    """Links with one target and one label that share their tracks.

    `near` is the wire in the row of the sources, and `entry` the wire in the row of the target if a
    lane leads there.
    """

    way: Way
    target: int
    label: tuple[str, ...]
    sources: list[int]
    near: Wire | None = None
    entry: Wire | None = None
    lane: float = 0.0


def diagram_drawing(diagram: Diagram, widest: float, inside: bool = False) -> Drawing:
    """The drawing of a diagram; `inside` leaves out an initial state that says nothing."""
    return _DiagramLayout(diagram, widest, inside and has_plain_start(diagram)).drawing()


class _DiagramLayout:
    def __init__(self, diagram: Diagram, widest: float, headless: bool) -> None:
        self._first = 1 if headless else 0
        self._links = [link for link in diagram.links if link.source >= self._first]
        alone = headless and len(diagram.states) == 2
        self._boxes = [
            box_drawing(
                replace(box, final=False) if alone else box,
                [diagram_drawing(each, widest - BORDER, True) for each in box.operands],
                widest - BORDER,
            )
            for box in diagram.states[self._first :]
        ]
        self._names = [box.name for box in diagram.states]
        self._ids = [box.id for box in diagram.states]
        self._rows: list[BoxRow] = []
        self._places: dict[int, BoxPlace] = {}
        self._lanes = 0
        self._place(widest)
        self._bundles = self._bundled()

    def drawing(self) -> Drawing:
        for bundle in self._bundles:
            self._wire(bundle)
        height = self._stack()
        shapes: list[Shape] = []
        for bundle in self._bundles:
            shapes += self._routes(bundle)
        for box, place in zip(self._boxes, self._places.values(), strict=True):
            shapes += box.moved(place.x, place.y)
        for bundle in self._bundles:
            shapes += self._pill(bundle)
        left = min([0.0, *self._ends(0)])
        right = max([p.x + p.width for p in self._places.values()] + [*self._ends(1)])
        return Drawing(right - left, height, tuple(s.moved(-left, 0) for s in shapes))

    def _ends(self, side: int) -> Iterator[float]:
        """The extent of wires and lanes to the left (0) or the right (1)."""
        for bundle in self._bundles:
            for wire in (bundle.near, bundle.entry):
                if wire is not None:
                    half = pill_size(wire.label)[0] / 2 * (1 if side else -1)
                    yield wire.room[side]
                    yield wire.pill_x + half
            if bundle.way.startswith("far"):
                yield bundle.lane - 4

    # --- boxes ------------------------------------------------------------------------------------

    def _place(self, widest: float) -> None:
        straight: dict[int, list[StateLink]] = {}
        for link in self._links:
            if link.target == link.source + 1:
                straight.setdefault(link.target, []).append(link)
        x = 0.0
        for number, box in enumerate(self._boxes, self._first):
            labels = [pill_size(link.label) for link in straight.get(number, ())]
            width = max((w for w, _ in labels), default=0.0)
            gap = max(GAP, width + 28) if number > self._first else 0.0
            if not self._rows or x + gap + box.width > widest:
                self._rows.append(BoxRow())
                x = gap = 0.0
            row = self._rows[-1]
            is_start = not self._names[number]
            if gap:
                row.arrow = max([row.arrow, *(h / 2 + 2 for _, h in labels)])
            place = BoxPlace(len(self._rows) - 1, x + gap, box.width, box.height, is_start)
            self._places[number] = place
            x += gap + box.width
        for place in self._places.values():
            row = self._rows[place.row]
            row.height = max(row.height, place.height, row.arrow + row.arrow - 2)

    def _bundled(self) -> list[Bundle]:
        bundles: dict[tuple[Way, int, int, tuple[str, ...]], Bundle] = {}
        for link in self._links:
            way = self._way(link)
            key = way, self._places[link.source].row, link.target, link.label
            bundle = bundles.setdefault(key, Bundle(way, link.target, link.label, []))
            bundle.sources.append(link.source)
        return [*bundles.values()]

    def _way(self, link: StateLink) -> Way:
        down = self._places[link.target].row - self._places[link.source].row
        if link.target == link.source:
            return "loop"
        if link.target < link.source:
            return "far back" if down else "back"
        if down:
            return "down" if down == 1 else "far"
        return "straight" if link.target == link.source + 1 else "skip"

    # --- links ------------------------------------------------------------------------------------

    def _out(self, bundle: Bundle, source: int) -> float:
        """x of the port at which a link leaves its source."""
        place = self._places[source]
        if bundle.way == "loop":
            return place.port(80)
        return place.port(-12 if bundle.way in _BACKWARD else -20)

    def _in(self, bundle: Bundle) -> float:
        """x of the port at which a link enters its target."""
        offsets = {"loop": 44, "back": 12, "skip": 20}
        return self._places[bundle.target].port(offsets.get(bundle.way, 26))

    def _wire(self, bundle: Bundle) -> None:
        """Give a bundle its wires, in the channels of its rows."""
        if bundle.way == "straight":
            return
        row = self._rows[self._places[bundle.sources[0]].row]
        goal = self._rows[self._places[bundle.target].row]
        backward = bundle.way in _BACKWARD
        channel = row.above if backward else row.below
        outs, end = [self._out(bundle, source) for source in bundle.sources], self._in(bundle)
        channel.uprights += outs
        turn = end
        if bundle.way.startswith("far"):
            self._lanes += 1
            turn = bundle.lane = -4 - APART * self._lanes
            bundle.entry = Wire(bundle.lane, end)
            goal.above.wires.append(bundle.entry)
        else:
            channel.uprights.append(end)
        if bundle.way not in ("loop", "back", "skip"):
            goal.above.uprights.append(end)
        bundle.near = Wire(min([turn, *outs]), max([turn, *outs]), bundle.label)
        channel.wires.append(bundle.near)

    def _stack(self) -> float:
        """BoxPlace the rows below each other; returns the height of all."""
        y = 0.0
        for number, row in enumerate(self._rows):
            y += row.above.lay()
            row.top = y
            y += row.height
            below = row.below.lay()
            last = number == len(self._rows) - 1
            y += below if last else max(below, 2 * APART)
        for place in self._places.values():
            row = self._rows[place.row]
            place.y = row.top + (row.arrow - place.height / 2 if place.is_start else 0)
        return y

    def _routes(self, bundle: Bundle) -> Iterator[Shape]:
        target = self._places[bundle.target]
        look = "loop" if bundle.way in _BACKWARD else "link"
        for source in bundle.sources:
            place = self._places[source]
            row, of = self._rows[place.row], (self._ids[source], self._ids[bundle.target])
            if bundle.near is None:
                y = row.top + row.arrow
                yield Route(((place.x + place.width, y), (target.x, y)), look, of=of)
                continue
            backward = bundle.way in _BACKWARD
            out, end = self._out(bundle, source), self._in(bundle)
            y = _track_y(row, bundle.near.depth, backward)
            points = [(out, place.y if backward else place.bottom), (out, y)]
            if bundle.entry is not None:
                entry = _track_y(self._rows[target.row], bundle.entry.depth, True)
                points += [(bundle.lane, y), (bundle.lane, entry), (end, entry)]
            else:
                points.append((end, y))
            last = target.bottom if bundle.way == "skip" else target.y
            yield Route((*points, (end, last)), look, of=of)

    def _pill(self, bundle: Bundle) -> Sequence[Shape]:
        place = self._places[bundle.sources[0]]
        row, wire = self._rows[place.row], bundle.near
        if wire is not None:
            y = _track_y(row, wire.pill_depth, bundle.way in _BACKWARD)
            return pill(bundle.label, wire.pill_x, y)
        middle = (place.x + place.width + self._places[bundle.target].x) / 2
        return pill(bundle.label, middle - 3, row.top + row.arrow)


def _track_y(row: BoxRow, depth: float, above: bool) -> float:
    """y of an element at a depth in the channel above or below a row."""
    return row.top - depth if above else row.top + row.height + depth
