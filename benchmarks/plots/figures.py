"""What an experiment gives: curves of our measurements, and what a paper says in numbers, if any.

The papers print their measurements as drawings. Only the figures that their texts state are used,
mostly orders of magnitude; they are drawn as bands.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Curve:
    """Our measurements of one line: y by x."""

    label: str
    x: Sequence[float | str]
    y: Sequence[float]


@dataclass(frozen=True)
class Band:
    """A range that a paper states for one of its systems, on its own hardware."""

    label: str
    low: float
    high: float


@dataclass(frozen=True)
class Figure:
    """One experiment: name (also of its files), axes, our curves, the paper's bands."""

    name: str
    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    bands: Sequence[Band] = field(default_factory=tuple)
    log_x: bool = False
    log_y: bool = True


def save(figure: Figure, folder: Path) -> None:
    """Write the measurements of a figure as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{figure.name}.json").write_text(json.dumps(asdict(figure), indent=1) + "\n")


def load(path: Path) -> Figure:
    """The measurements that `save` wrote."""
    given = json.loads(path.read_text())
    curves = tuple(Curve(**curve) for curve in given.pop("curves"))
    bands = tuple(Band(**band) for band in given.pop("bands"))
    return Figure(**given, curves=curves, bands=bands)


def table(figure: Figure) -> str:
    """The measurements of a figure as lines of text."""
    lines = [f"{figure.name}: {figure.y_label} by {figure.x_label}"]
    for curve in figure.curves:
        points = zip(curve.x, curve.y, strict=True)
        lines.append(f"  {curve.label:28} " + "  ".join(f"{x}: {y:,.4g}" for x, y in points))
    return "\n".join(lines)
