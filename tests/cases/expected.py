"""All cases' expected answers; as a program, writes them to `streams/<case>/answers.jsonl`.

python -m tests.cases.expected [CASE ...]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from . import card_fraud, smart_grid, stocks, traffic, vessel
from .raw import Answer, sorted_answers

ROOT = Path(__file__).resolve().parents[2]
STREAMS = ROOT / "streams"
LOOPS: dict[str, Callable[[Path], Iterator[Answer]]] = {
    "smart-grid": smart_grid.answers,
    "vessel": vessel.answers,
    "card-fraud": card_fraud.answers,
    "stocks": stocks.answers,
    "traffic": traffic.answers,
}

ONTOLOGIES = {"traffic/near": ROOT / "ontologies" / "traffic.ttl"}
"""The ontologies of queries, by case and file stem."""


def queries(case: str) -> list[Path]:
    """The queries of a case, `query.rq` first."""
    return sorted((STREAMS / case).glob("*.rq"), key=lambda p: (p.stem != "query", p.stem))


def expected(case: str, folder: Path | None = None) -> list[Answer]:
    """The answers of a case's queries, query by query, each in answer order."""
    found = list(LOOPS[case](folder or STREAMS / case))
    names = [path.stem for path in queries(case)]
    return [a for name in names for a in sorted_answers(x for x in found if x["query"] == name)]


def main() -> None:
    """Write the answers of the named cases, or of all."""
    for case in sys.argv[1:] or LOOPS:
        lines = [json.dumps(a, ensure_ascii=False) + "\n" for a in expected(case)]
        (STREAMS / case / "answers.jsonl").write_text("".join(lines), encoding="utf-8")
        print(f"{case}: {len(lines)} answers")


if __name__ == "__main__":
    main()
