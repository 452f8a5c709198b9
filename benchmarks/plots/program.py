"""The command line of the programs that measure figures and draw them."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from benchmarks.plots.drawing import draw_all
from benchmarks.plots.figures import Figure, save, table

DOCS = Path(__file__).parents[2] / "docs"


def figure_parser(description: str | None, names: Collection[str]) -> argparse.ArgumentParser:
    """Takes `measure` or `draw`, names, and a number of rounds; a program adds its own options."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("measure", "draw"))
    parser.add_argument("names", nargs="*", choices=[*names, []], help="default: all")
    parser.add_argument("--rounds", type=int, default=3)
    return parser


def measure_or_draw(
    parser: argparse.ArgumentParser,
    folder: Path,
    figures: Callable[[argparse.Namespace], Iterable[Figure]],
) -> None:
    """Run a program whose folder keeps its measurements.

    `figures` measures; each figure is printed and kept when it is complete. The drawings go to the
    folder of this name in `docs/`.
    """
    given, measured = parser.parse_args(), folder / "measured"
    if given.what == "draw":
        draw_all(measured, DOCS / folder.name)
        return
    began = time.monotonic()
    for figure in figures(given):
        print(table(figure), f"  ({time.monotonic() - began:.0f} s)", sep="\n", flush=True)
        save(figure, measured)
