"""The public queries of RSP-QL and C-SPARQL, and the table of what becomes of them.

    python -m tests.rspql.suites

writes the table into docs/rspql.md. The queries are in `rsp/` of the directory SPASEQ_SHARED, by
default `../shared` beside the checkout.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import spaseq
from spaseq.errors import QueryError
from tests.docs.pages import ROOT

RSP = Path(os.environ.get("SPASEQ_SHARED", ROOT.parent / "shared")) / "rsp"
PAGE = ROOT / "docs" / "rspql.md"
ENDINGS = (".rspql", ".csparql", ".rspql.txt", ".csparql.txt")
_EXAMPLE = re.compile(r"^```\n(PREFIX[^`]*?REGISTER[^`]*)```", re.MULTILINE)
_TABLE = re.compile(r"(?<=\n)\| query \|.*?\n(?=\n|$)", re.DOTALL)


def queries() -> dict[str, str]:
    """The texts of the queries, by folder and name."""
    paths = sorted(path for path in RSP.rglob("*") if path.name.endswith(ENDINGS))
    found = {str(path.relative_to(RSP)): path.read_text("utf-8") for path in paths}
    pages = RSP / "rsp4j" / "example-queries.md"
    examples = _EXAMPLE.findall(pages.read_text("utf-8")) if pages.exists() else []
    return found | {f"rsp4j/example-queries.md {n}": t for n, t in enumerate(examples, 1)}


def outcome(text: str) -> str:
    """ "translated", or the place and the reason of the first error."""
    try:
        spaseq.translate(text)
    except QueryError as error:
        first = error.diagnostics[0]
        line, column = first.source.place(first.span.start)
        expected = f" (expected: {', '.join(first.expected)})" if first.expected else ""
        return f"{line}:{column}: {first.message}{expected if len(expected) < 80 else ''}"
    return "translated"


def table() -> str:
    """The table of the page: a line for each reason, and for each folder of translated queries."""
    found: dict[tuple[str, str], list[str]] = {}
    for path, text in queries().items():
        said = outcome(text)
        place, _, reason = said.partition(": ")
        folder, _, name = path.rpartition("/")
        name = name if said == "translated" else f"{name} {place}"
        found.setdefault((folder, reason or said), []).append(name)
    return "| query | outcome |\n|---|---|\n" + "".join(_rows(found))


def _rows(found: dict[tuple[str, str], list[str]]) -> Iterator[str]:
    for (folder, said), names in found.items():
        shown = said.replace("|", "\\|")
        yield f"| {folder}: {', '.join(names)} | {shown} |\n"


def table_of_page() -> str:
    found = _TABLE.search(PAGE.read_text("utf-8"))
    assert found is not None
    return found[0]


def main() -> None:
    text = PAGE.read_text("utf-8")
    PAGE.write_text(_TABLE.sub(lambda _: table(), text), encoding="utf-8")


if __name__ == "__main__":
    main()
