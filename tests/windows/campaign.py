"""Many random queries over windows, answered in every way, against brute force.

    python -m tests.windows.campaign --cases 10000 --first 0 [--ways bounded anew ...]

The ways are those of `test_against_oracle`: a bounded run, one without kept groups, with thresholds
forced to their least values and to never, pushed events, restarts after every few events, and, if
asked for, processes that are killed, and Spark. A wrong case ends the campaign; its number draws it
again.
"""

from __future__ import annotations

import argparse
from random import Random

from spaseq.compile import compile_query
from tests.windows.draw_cases import draw_case
from tests.windows.test_against_oracle import WAYS, run_cases


def main() -> None:
    """Run the cases, and print how many have answers and kept groups."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    usual = [way for way in WAYS if way not in ("spark", "killed")]
    parser.add_argument("--ways", nargs="+", choices=[*WAYS], default=usual)
    options = parser.parse_args()
    answered = kept = 0
    for seed in range(options.first, options.first + options.cases):
        try:
            answered += run_cases(range(seed, seed + 1), options.ways)
        except Exception:
            print(f"case {seed} is wrong")
            raise
        kept += bool(compile_query(draw_case(Random(seed)).query()).patterns.kept)
        if not (seed + 1) % 100:
            print(f"up to {seed}: {answered} with answers, {kept} with kept groups", flush=True)
    print(f"{options.cases} cases, {answered} with answers, {kept} with kept groups: all right")


if __name__ == "__main__":
    main()
