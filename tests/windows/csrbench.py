"""CSRBench's queries over its stream, against the answers that half-open windows give.

    python -m tests.windows.csrbench DIRECTORY [local|spark]

The directory has data/, sparql/ and expected-half-open.json. A query stands as a sub-SELECT in a
GPM on a window: its answers are RSTREAM's, those ON NEW ISTREAM's, those ON GONE DSTREAM's.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyoxigraph as ox

import spaseq

STREAM = "http://example/csrbench"
SOURCES = {"rows": "W", "istream": "NEW W", "dstream": "GONE W"}


def events(directory: Path) -> list[spaseq.Event]:
    """One event for each file, whose number is its second."""
    found = []
    for path in sorted((directory / "data").glob("data_*.ttl")):
        triples = [t.triple for t in ox.parse(path=path, format=ox.RdfFormat.TURTLE)]
        found.append(spaseq.Event(triples, int(path.stem[-2:]) * 1000))
    return found


def query_of(text: str, source: str, length: int, slide: int) -> str:
    """The query of SPARQL text in a window (ms)."""
    prologue, form = re.split(r"(?=\bSELECT\b)", text, maxsplit=1)
    extent = f"RANGE {length} MILLISECONDS SLIDE {slide} MILLISECONDS"
    return f"""{prologue} SELECT * FROM STREAM S <{STREAM}> FROM WINDOW W ON S {extent}
        WHERE {{ SEQ(A) DEFINE GPM A ON {source} {{ {{ {form} }} }} }}"""


def rows_of(closes: list[dict[str, Any]], kind: str) -> Counter[tuple[Any, ...]]:
    """(close, terms) of what is expected."""
    return Counter(
        (c["close"], *map(_by_value, row)) for c in closes for row in set(map(tuple, c[kind]))
    )


def _by_value(term: str | None) -> object:
    """A number by its value, as computed ones have no prescribed text."""
    found = re.fullmatch(r'"(.*)"\^\^<.*#(integer|decimal|double|float)>', term or "")
    return f"{float(found[1]):.12g}" if found else term


def answers(
    query: str, variables: list[str], given: list[spaseq.Event], runtime: Any
) -> Counter[tuple[Any, ...]]:
    """(close, terms) of the answers."""
    found: Counter[tuple[Any, ...]] = Counter()
    for match in spaseq.run(query, {"S": given}, runtime=runtime):
        terms = [match.bindings[v].n3() if v in match.bindings else None for v in variables]
        found[match.answer.end[0], *map(_by_value, terms)] += 1
    return found


def main() -> None:
    directory, runtime = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "local"
    given = events(directory)
    expected = json.loads((directory / "expected-half-open.json").read_text("utf-8"))
    for name, wanted in expected.items():
        text = (directory / "sparql" / f"{name.partition('-')[0]}.rq").read_text("utf-8")
        for kind, source in SOURCES.items():
            query = query_of(text, source, wanted["range"], wanted["slide"])
            found = answers(query, wanted["vars"], given, runtime)
            word = "equal" if found == rows_of(wanted["closes"], kind) else "DIFFERENT"
            print(f"{name:6} {source:7} {sum(found.values()):4} rows: {word}")


if __name__ == "__main__":
    main()
