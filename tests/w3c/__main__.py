"""`python -m tests.w3c [DIRECTORY]`: passed, excluded, failed per folder, and all reasons."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from tests.w3c.manifests import SUITES, suite_tests
from tests.w3c.running import Outcome, outcomes


def main() -> int:
    """Print the table; returns 1 if a test fails or there are no tests."""
    root = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else SUITES
    found = [o for test in suite_tests(root) for o in outcomes(test)]
    if not found:
        print(f"no manifests in {root}; set SPASEQ_SHARED or name a directory", file=sys.stderr)
        return 1
    for title, rows in (("excluded", found), ("failed", found)):
        for each in (o for o in rows if o.verdict == title):
            print(f"{title}: {each.test.id} ({each.way}): {each.reason}")
    print(_table(found))
    return int(any(o.verdict == "failed" for o in found))


def _table(found: list[Outcome]) -> str:
    counts: dict[tuple[str, str], Counter[str]] = {}
    for each in found:
        folder = f"{each.test.suite}/{each.test.place}".rstrip("/")
        for row in ((folder, each.way), ("all", each.way)):
            counts.setdefault(row, Counter())[each.verdict] += 1
    lines = [f"{'folder':40} {'by':10} {'passed':>7} {'excluded':>9} {'failed':>7}"]
    ordered = sorted(counts.items(), key=lambda item: (item[0][0] == "all", item[0]))
    for (folder, way), count in ordered:
        numbers = f"{count['passed']:7} {count['excluded']:9} {count['failed']:7}"
        lines.append(f"{folder:40} {way:10} {numbers}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
