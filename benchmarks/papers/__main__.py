"""Measure the papers' experiments, and draw them.

    python -m benchmarks.papers measure [core lazy spaseq] [--events 200000] [--rounds 3]
    python -m benchmarks.papers draw

`measure` prints each figure and writes its numbers to `benchmarks/papers/measured/`. `draw` makes
`docs/papers/*.svg` of them; it needs matplotlib (the extra `plots`). docs/papers.md says what the
figures mean. Rates are events per second of CPU time: medians of the rounds.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.papers import core, lazy_automata, spaseq_engine
from benchmarks.plots.drawing import draw_all
from benchmarks.plots.figures import save, table

EXPERIMENTS = {"core": core, "lazy": lazy_automata, "spaseq": spaseq_engine}
MEASURED = Path(__file__).parent / "measured"
DRAWN = Path(__file__).parents[2] / "docs" / "papers"


def measure(names: list[str], events: int, rounds: int) -> None:
    """Measure experiments and keep their numbers."""
    for name in names or EXPERIMENTS:
        with tempfile.TemporaryDirectory() as folder:
            for figure in EXPERIMENTS[name].figures(Path(folder), events, rounds):
                print(table(figure), flush=True)
                save(figure, MEASURED)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("measure", "draw"))
    parser.add_argument("names", nargs="*", choices=[*EXPERIMENTS, []], help="default: all")
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if given.what == "draw":
        draw_all(MEASURED, DRAWN)
    else:
        measure(given.names, given.events, given.rounds)


if __name__ == "__main__":
    main()
