"""Measure the papers' experiments, and draw them.

    python -m benchmarks.papers measure [core spaseq] [--events 200000] [--rounds 3]
    python -m benchmarks.papers draw

`measure` prints each figure and writes its numbers to `benchmarks/papers/measured/`. `draw` makes
`docs/papers/*.svg` of them; it needs matplotlib (the extra `plots`). docs/papers.md says what the
figures mean. Rates are events per second of CPU time: medians of the rounds.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.papers import core, spaseq_engine
from benchmarks.plots.figures import Figure
from benchmarks.plots.program import figure_parser, measure_or_draw

EXPERIMENTS = {"core": core, "spaseq": spaseq_engine}


def measured(given: argparse.Namespace) -> Iterator[Figure]:
    """The figures of the experiments that the command line names."""
    for name in given.names or EXPERIMENTS:
        with tempfile.TemporaryDirectory() as folder:
            yield from EXPERIMENTS[name].figures(Path(folder), given.events, given.rounds)


def main() -> None:
    parser = figure_parser(__doc__, EXPERIMENTS)
    parser.add_argument("--events", type=int, default=200_000)
    measure_or_draw(parser, Path(__file__).parent, measured)


if __name__ == "__main__":
    main()
