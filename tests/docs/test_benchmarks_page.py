"""docs/benchmarks.md lists every program in benchmarks/ and every rule of the planner."""

from __future__ import annotations

import re

from benchmarks import pages
from spaseq.plan.rules import NAMES
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
NO_MEASUREMENT = {"generate.py", "endpoint.py", "served.py"}
"""Programs that only help to measure."""


def test_programs() -> None:
    listed = set(re.findall(r"^\| `(\w+\.py)` \|", PAGE, re.MULTILINE))
    there = {path.name for path in (ROOT / "benchmarks").glob("*.py")}
    assert listed == there - NO_MEASUREMENT


def test_commands_name_programs_that_are_there() -> None:
    for module, program in re.findall(r"^    python (-m )?(\S+)", PAGE, re.MULTILINE):
        path = f"{program.replace('.', '/')}.py" if module else program
        assert (ROOT / path).is_file(), program


def test_rules() -> None:
    section = PAGE.partition("\n## Rules of the planner\n")[2]
    listed = re.findall(r"^\| `([\w-]+)` \|", section, re.MULTILINE)
    assert listed == list(NAMES)


def test_the_page_shows_what_was_measured() -> None:
    """`python benchmarks/pages.py write` has been called after `measure`."""
    shown = re.findall(r"<!-- measured: (\w+) -->\n```text\n\$ python (.+)\n", PAGE)
    assert dict(shown) == {name: pages.RUNS[name] for name, _ in shown}
    assert pages.filled(PAGE) == PAGE
