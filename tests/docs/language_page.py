"""The examples of the pages on the language as data: tables and fenced blocks, by section.

language.md explains its notation under "Reading the examples"; `expand` and `events_of` implement
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

PAGES = tuple(
    Path(__file__).parents[2] / "docs" / name for name in ("language.md", "lookup.md", "meaning.md")
)
NS = "http://example/"
KB = f"{NS}kb"
_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"

_HEADING = re.compile(r"#{1,6} +(.+)")
_WORD = re.compile(
    r"(?P<name>(?:[a-z](?:\d+|_)?)+)(?:\.(?P<key>\w+))?(?:@(?P<time>\d+(?:\.\d+)?))?(?:/(?P<stream>[ST]))?"
)


# --- blocks ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fence:
    """A fenced block; `title` is the comment in its first line, if it begins with one."""

    line: int
    language: str
    text: str

    @property
    def title(self) -> str:
        first = self.text.partition("\n")[0]
        return first.removeprefix("#").strip() if first.startswith("#") else ""


@dataclass(frozen=True)
class Row:
    """One row of a table, by the names of its columns."""

    line: int
    cells: dict[str, str]

    def spans(self, column: str) -> list[str]:
        """The code spans of a cell."""
        return re.findall(r"`([^`]+)`", self.cells[column])

    def plain(self, column: str) -> str:
        """A cell without the marks of code."""
        return self.cells[column].replace("`", "").strip()


@dataclass(frozen=True)
class Table:
    line: int
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass
class Section:
    """A heading and the blocks up to the next one, in order."""

    title: str
    line: int
    blocks: list[Fence | Table] = field(default_factory=list)

    def fences(self, *languages: str) -> list[Fence]:
        return [b for b in self.blocks if isinstance(b, Fence) and b.language in languages]

    def tables(self) -> list[Table]:
        return [b for b in self.blocks if isinstance(b, Table)]


def sections(text: str) -> list[Section]:
    """The sections of a page."""
    found = [Section("", 1)]
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        line, number = lines[at], at + 1
        if line.startswith("```"):
            end = next(i for i in range(at + 1, len(lines)) if lines[i].startswith("```"))
            body = "\n".join(lines[at + 1 : end])
            found[-1].blocks.append(Fence(number, line[3:].strip(), body))
            at = end + 1
        elif line.startswith("|"):
            end = next(i for i in range(at, len(lines)) if not lines[i].startswith("|"))
            found[-1].blocks.append(_table(number, lines[at:end]))
            at = end
        else:
            if heading := _HEADING.fullmatch(line):
                found.append(Section(heading[1], number))
            at += 1
    return found


def _table(line: int, lines: list[str]) -> Table:
    columns, _, *rows = [_cells(text) for text in lines]
    return Table(
        line,
        tuple(columns),
        tuple(
            Row(line + 2 + i, dict(zip(columns, cells, strict=True)))
            for i, cells in enumerate(rows)
        ),
    )


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", inner)]


@cache
def page() -> tuple[Section, ...]:
    """The sections of the pages, one page after the other."""
    texts = (path.read_text(encoding="utf-8") for path in PAGES)
    return tuple(section for text in texts for section in sections(text))


# --- the page's notation --------------------------------------------------------------------------


@dataclass(frozen=True)
class WordEvent:
    """One word of a stream: `a1.x@3/T`."""

    name: str
    letters: tuple[tuple[str, str], ...]  # ("a", "1")
    key: str | None
    time_ms: int
    stream: str

    @property
    def iri(self) -> str:
        return f"{NS}event/{self.name}"

    @property
    def ntriples(self) -> str:
        terms = [(x, "_:x" if n == "_" else f'"{n}"^^<{_INTEGER}>') for x, n in self.letters]
        rows = [f"<{NS}it> <{NS}{x}> {term} ." for x, term in terms]
        if self.key is not None:
            rows.append(f'<{NS}it> <{NS}key> "{self.key}" .')
        return "\n".join(rows)


def events_of(words: str) -> list[WordEvent]:
    """The events of a stream that is written as words; each a second after the one before it."""
    events: list[WordEvent] = []
    for word in words.split():
        found = _WORD.fullmatch(word)
        assert found, f"{word} is no event"
        time = round(float(found["time"]) * 1000) if found["time"] else None
        if time is None:
            time = events[-1].time_ms + 1000 if events else 0
        letters = tuple((x, n or "0") for x, n in re.findall(r"([a-z])(\d+|_)?", found["name"]))
        events.append(WordEvent(found["name"], letters, found["key"], time, found["stream"] or "S"))
    return events


def expand(spans: list[str]) -> str:
    """The whole query of a short one: its clauses and SEQ, then what GPMs have besides."""
    short, *additions = spans
    more: dict[str, str] = {}
    for addition in additions:
        names, _, text = addition.partition(":")
        for name in names.split(","):
            more[name.strip()] = f"{more.get(name.strip(), '')} {text.strip()}"
    head, seq, tail = short.partition("SEQ")
    assert seq, f"{short}: no SEQ"
    if not re.match(r"(SELECT|CONSTRUCT|REGISTER)\b", head):
        head = f"SELECT * {head}"
    if not re.search(r"\bWITHIN\b", head):
        head += "WITHIN 1 HOURS "
    sequence, having, condition = tail.partition("HAVING")
    assert all(re.fullmatch("[A-Z]", name) for name in more), f"{short}: {sorted(more)}"
    gpm_names = sorted({*re.findall(r"(?<![?\w])([A-Z])(?!\w)", short), *more})
    kb = f" FROM NAMED <{KB}>" if any("GRAPH" in text for text in more.values()) else ""
    gpms = "\n  ".join(
        f"DEFINE GPM {x} ON S, T {{ :it :{x.lower()} ?{x.lower()} . {more.get(x, '')} }}"
        for x in gpm_names
    )
    return (
        f"PREFIX : <{NS}>\n{head.strip()}\nFROM STREAM S :S FROM STREAM T :T{kb}\n"
        f"WHERE {{\n  SEQ{sequence.strip()}\n  {gpms}\n}}\n{having}{condition}"
    )


# --- examples -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Example:
    """A stream, a query (or several, the last one's answers being meant) and the exact answers."""

    id: str
    stream: str
    queries: tuple[str, ...]
    answers: tuple[str, ...]
    ends: tuple[str, ...] | None
    kb: str | None  # Turtle
    ontology: str | None  # Turtle


def examples() -> Iterator[Example]:
    """All examples of the page in its notation."""
    for section in page():
        for table in section.tables():
            if {"stream", "answers"} <= {*table.columns}:
                yield from (_example(section, row) for row in table.rows)


def _example(section: Section, row: Row) -> Example:
    before = [b for b in section.blocks if b.line < row.line]
    titled = {b.title: b.text for b in before if isinstance(b, Fence) and b.language == "turtle"}
    if "query" in row.cells:
        queries = [expand(row.spans("query"))]
    else:
        queries = [b.text for b in before if isinstance(b, Fence) and b.language == "sparql"]
    return Example(
        f"{section.title}, line {row.line}",
        row.plain("stream"),
        tuple(queries),
        _listed(row.plain("answers")),
        _listed(row.plain("ends")) if "ends" in row.cells else None,
        titled.get("knowledge base"),
        titled.get("ontology"),
    )


def _listed(text: str) -> tuple[str, ...]:
    return () if text == "none" else tuple(part.strip() for part in text.split("·"))
