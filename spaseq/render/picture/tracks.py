"""Links that pass other boxes run on tracks: horizontal lines above and below a row of boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from spaseq.render.picture.boxes import pill_size

APART = 10.0
"""Least distance between what shares a track, and between tracks."""


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
        """Whether the label would hide the wire, and so stands beyond it."""
        return self.right - self.left < pill_size(self.label)[0] + 24

    @property
    def height(self) -> float:
        """What the wire and its label take of the channel's height."""
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
        own = [x for x in self.uprights if wire.left < x < wire.right]
        return next((x for x in steps if all(abs(x - u) > half + 3 for u in own)), middle)
