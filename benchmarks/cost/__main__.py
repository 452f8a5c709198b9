"""Measure what an event costs by the shape of the work, and draw it.

    python -m benchmarks.cost measure [events keys window steps selectivity knowledge range slide]
                                      [--rounds 3] [--longest 3000000]
    python -m benchmarks.cost draw

`measure` prints each figure and writes its numbers to `benchmarks/cost/measured/`. `draw` makes
`docs/cost/*.svg` of them; it needs matplotlib (the extra `plots`). docs/cost.md says what the
figures mean. A point is the least CPU time of the rounds, in one thread of the local runtime. The
longest stream has `--longest` events, the others a sixth or a half of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from benchmarks.cost.curves import FIGURES, Effort, figures
from benchmarks.plots.figures import Figure
from benchmarks.plots.program import figure_parser, measure_or_draw


def measured(given: argparse.Namespace) -> Iterator[Figure]:
    """The figures that the command line names."""
    from spaseq.compiled.warming import warm

    warm()
    yield from figures(given.names, Effort(given.rounds, given.longest))


def main() -> None:
    parser = figure_parser(__doc__, FIGURES)
    parser.add_argument("--longest", type=int, default=3_000_000, help="events")
    measure_or_draw(parser, Path(__file__).parent, measured)


if __name__ == "__main__":
    main()
