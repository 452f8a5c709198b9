"""Links between the pages, and to files of the project, lead somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import README, ROOT, anchors, links, pages

PAGES = [*pages(), *(ROOT / name for name in ("CHANGELOG.md", "SECURITY.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_resolve(page: Path) -> None:
    broken = []
    for target in links(page):
        if "://" in target or target.startswith("mailto:"):
            continue
        place, _, anchor = target.partition("#")
        file = (page.parent / place).resolve() if place else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


def test_every_page_is_on_the_map() -> None:
    index = ROOT / "docs" / "index.md"
    mapped = {target.partition("#")[0] for target in links(index)}
    assert {p.name for p in (ROOT / "docs").glob("*.md")} - {"index.md"} <= mapped


def test_readme_is_short() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= 150
