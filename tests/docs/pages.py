"""Markdown pages as tests see them: fenced blocks, headings and links.

Conventions of the pages, which `session.py` follows:

* A fence with `title="FILE"` is a file. It is written before anything after it runs.
* A `console` fence holds commands, each after `$ `, and what they print.
* A `python` fence without a title runs, in one namespace per page. If a fence with
  `title="output"` follows, it is what the Python block prints.
* A `sparql` fence without a title is a whole query. It must have no errors.
* `<!-- not run: REASON -->` on the line before a fence keeps it from running. Every such fence is
  listed in `test_examples.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
OUTPUT = "output"

_FENCE = re.compile(r'^(?P<ticks>`{3,})(?P<language>\w*)(?: title="(?P<title>[^"]+)")?\s*$')
_NOT_RUN = re.compile(r"^<!-- not run: (.+) -->$")
_HEADING = re.compile(r"^#{1,6} (.+?)\s*$")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block; `line` is that of its fence, counted from 1."""

    page: str
    line: int
    language: str
    title: str | None
    text: str
    not_run: str | None

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """README.md and the pages in docs/."""
    return [README, *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order.

    Raises:
        ValueError: a fence that is not closed, or that has an unknown form.
    """
    lines = page.read_text("utf-8").split("\n")
    found: list[Block] = []
    number = 0
    while number < len(lines):
        if lines[number].startswith("```"):
            opening = _FENCE.match(lines[number])
            if opening is None:
                raise ValueError(f"{page.name}:{number + 1}: not a fence: {lines[number]}")
            end = lines.index(opening["ticks"], number + 1)
            before = _NOT_RUN.match(lines[number - 1]) if number else None
            text = "".join(f"{line}\n" for line in lines[number + 1 : end])
            reason = before[1] if before else None
            language, title = opening["language"], opening["title"]
            found.append(Block(page.name, number + 1, language, title, text, reason))
            number = end
        number += 1
    return found


def prose(page: Path) -> str:
    """A page without its fenced blocks and code spans."""
    kept: list[str] = []
    inside = None
    for line in page.read_text("utf-8").split("\n"):
        fence = _FENCE.match(line)
        if inside is None and fence:
            inside = fence["ticks"]
        elif inside is not None:
            inside = None if line == inside else inside
        else:
            kept.append(line)
    return re.sub(r"`[^`\n]+`", "", "\n".join(kept))


def links(page: Path) -> list[str]:
    """The targets of a page's links, images included."""
    return [match[1] for match in _LINK.finditer(prose(page))]


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    text = page.read_text("utf-8")
    fenced = False
    found: set[str] = set()
    for line in text.split("\n"):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and (heading := _HEADING.match(line)):
            slug = _slug(heading[1])
            number = 1
            while (name := slug if number == 1 else f"{slug}-{number - 1}") in found:
                number += 1
            found.add(name)
    return found


def _slug(heading: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    kept = re.sub(r"[^\w\- ]", "", plain.lower())
    return kept.strip().replace(" ", "-")
