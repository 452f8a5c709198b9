"""Every example of README.md, docs/ and the docstrings runs and prints what the page shows."""

from __future__ import annotations

import doctest
import importlib
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.pages import README, ROOT, blocks, pages
from tests.docs.session import Session

ELSEWHERE = dict.fromkeys(
    ("language.md", "lookup.md", "meaning.md"), "tests/docs/test_language.py runs its tables"
)
"""Pages with a test of their own."""

ON_SPARK = {"spark.md"}
"""Pages whose examples start a Spark session."""

NOT_RUN = {
    "tutorial.md": ["it goes on until it is stopped"],
    "spark.md": [
        "needs a cluster",
        "goes on until it is interrupted",
        "it needs a broker, and goes on until it is interrupted",
    ],
    "places.md": ["installs packages"],
    "alerts.md": ["it needs a server"],
    "live.md": 2 * ["it needs a broker, and goes on until it is interrupted"],
    "serve.md": [
        "it goes on until it is stopped",
        "it needs a server",
        "it needs a server",
        "it needs a server",
        "it needs a server's logs",
    ],
    "README.md": [
        "installs packages; the next block runs the example",
        "installs packages; another test does the run",
        "is this test suite",
    ],
    "contributing.md": ["installs packages"],
    "editors.md": ["installs packages", "needs a query file"],
}
"""Blocks that do not run, by page: the reasons, as the pages give them."""

_EXAMPLE = re.compile(r"^\s*>>> ", re.MULTILINE)


PAGES = [page for page in pages() if page.name not in ELSEWHERE]


def _case(page: Path) -> object:
    marks = [pytest.mark.spark, pytest.mark.thorough] if page.name in ON_SPARK else []
    return pytest.param(page, id=page.name, marks=marks)


@pytest.mark.parametrize("page", [_case(page) for page in PAGES])
def test_page(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if page.name in ON_SPARK:
        request.getfixturevalue("spark")  # the page gets this session, not another one
    Session(tmp_path).run(blocks(page))


def test_blocks_that_do_not_run_are_listed() -> None:
    reasons = {page.name: [b.not_run for b in blocks(page) if b.not_run] for page in PAGES}
    assert {page: found for page, found in reasons.items() if found} == NOT_RUN


def test_first_command_of_the_readme(tmp_path: Path) -> None:
    """The traffic example, without the installation and in process."""
    answers = _traffic(tmp_path, [*_first_run(), "--runtime", "local"])
    assert answers == _expected()


@pytest.mark.spark
def test_first_command_of_the_readme_on_spark(tmp_path: Path) -> None:
    assert _traffic(tmp_path, _first_run()) == _expected()


def _first_run() -> list[str]:
    """The first command that runs a query."""
    commands = [b.text.partition(" && ")[2] for b in blocks(README) if b.language == "sh"]
    return shlex.split(next(text for text in commands if text.startswith("spaseq run")))


def _expected() -> str:
    """The answers of query.rq; the file also has the answers of the case's other query."""
    lines = (ROOT / "streams/traffic/answers.jsonl").read_text("utf-8").splitlines(keepends=True)
    found = [line for line in lines if line.startswith('{"query": "query"')]
    assert found
    return "".join(found)


def _traffic(directory: Path, words: list[str]) -> str:
    done = Session(directory)._spaseq(words[1:])
    assert done.status == 0, done.err
    return done.out


# --- docstrings -----------------------------------------------------------------------------------


def _modules_with_examples() -> list[str]:
    found = []
    for path in sorted((ROOT / "spaseq").rglob("*.py")):
        if _EXAMPLE.search(path.read_text("utf-8")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found.append(".".join(p for p in parts if p != "__init__"))
    return found


@pytest.mark.parametrize("name", _modules_with_examples())
def test_docstrings(name: str) -> None:
    module: ModuleType = importlib.import_module(name)
    tests = doctest.DocTestFinder().find(module)
    assert any(test.examples for test in tests), f"{name}: no docstring has the examples"
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
