"""Measure what an event costs by the shape of the work, and draw it.

    python -m benchmarks.cost measure [events keys window steps selectivity knowledge]
                                      [--rounds 3] [--longest 3000000]
    python -m benchmarks.cost draw

`measure` prints each figure and writes its numbers to `benchmarks/cost/measured/`. `draw` makes
`docs/cost/*.svg` of them; it needs matplotlib (the extra `plots`). docs/cost.md says what the
figures mean. A point is the least CPU time of the rounds, in one thread of the local runtime. The
longest stream has `--longest` events, the others a sixth or a half of it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from benchmarks.cost.curves import FIGURES, Effort, figures
from benchmarks.plots.drawing import draw_all
from benchmarks.plots.figures import save, table

MEASURED = Path(__file__).parent / "measured"
DRAWN = Path(__file__).parents[2] / "docs" / "cost"


def measure(names: list[str], effort: Effort) -> None:
    """Measure figures and keep their numbers."""
    from spaseq.compiled.warming import warm

    warm()
    began = time.monotonic()
    for figure in figures(names, effort):
        print(table(figure), f"  ({time.monotonic() - began:.0f} s)", sep="\n", flush=True)
        save(figure, MEASURED)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("measure", "draw"))
    parser.add_argument("names", nargs="*", choices=[*FIGURES, []], help="default: all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--longest", type=int, default=3_000_000, help="events")
    given = parser.parse_args()
    if given.what == "draw":
        draw_all(MEASURED, DRAWN)
    else:
        measure(given.names, Effort(given.rounds, given.longest))


if __name__ == "__main__":
    main()
