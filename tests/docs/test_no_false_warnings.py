"""Right queries have no warnings: those of the cases, the benchmarks and the pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spaseq.compile import check_query
from tests.docs.pages import ROOT, blocks, pages

FOLDERS = ("streams", "benchmarks/queries", "tests/construct")
WARNED = {
    "recipes.md straight.rq": "strict-join",  # shows what happens without PARTITION BY
    "lookup.md None": "assumed-prefix",  # shows the prefixes that are assumed
}


def queries() -> Iterator[tuple[str, str]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.rq")):
            yield str(path.relative_to(ROOT)), path.read_text("utf-8")
    for page in pages():
        for block in blocks(page):
            if block.language == "sparql":
                yield f"{block.page} {block.title}", block.text


@pytest.mark.parametrize(("name", "text"), queries())
def test_a_right_query_has_no_warnings(name: str, text: str) -> None:
    checked = check_query(text)
    if not checked.errors:  # the pages show a few mistakes
        assert {warning.code for warning in checked.warnings} <= {WARNED.get(name)}
