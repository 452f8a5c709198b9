"""The harness fails where a page is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import Block, anchors, blocks, links
from tests.docs.session import Session, commands, matches

QUERY = """```text title="q.rq"
SELECT ?x WITHIN 1 MINUTES FROM STREAM S <http://example/s>
WHERE { SEQ (A) DEFINE GPM A ON S { ?x <http://example/p> ?y } }
```
"""


def _page(directory: Path, text: str) -> list[Block]:
    page = directory / "page.md"
    page.write_text(text, "utf-8")
    return blocks(page)


@pytest.mark.parametrize(
    "text",
    [
        '```python\nprint(1)\n```\n\n```text title="output"\n1\n```\n',
        "```console\n$ echo one\none\n$ false\n$ echo $?\n1\n```\n",
        "```console\n$ echo one two\none ...\n```\n",
        QUERY + "```console\n$ spaseq check q.rq\n1 query: 0 error(s), 0 warning(s)\n```\n",
        '```text title="a/b.txt"\nhere\n```\n\n```console\n$ cat a/b.txt\nhere\n```\n',
        "<!-- not run: would fail -->\n```python\nraise ValueError\n```\n",
    ],
)
def test_right_pages(text: str, tmp_path: Path) -> None:
    Session(tmp_path).run(_page(tmp_path, text))


@pytest.mark.parametrize(
    "text",
    [
        '```python\nprint(1)\n```\n\n```text title="output"\n2\n```\n',
        "```console\n$ echo one\ntwo\n```\n",
        "```console\n$ false\n```\n",
        "```console\n$ echo one | grep two\n```\n",
        "```console\n$ false\n$ echo $?\n0\n```\n",
        "```sparql\nSELECT ?x\n```\n",
        QUERY + "```console\n$ spaseq check q.rq --nothing\n```\n",
        "```unknown\nx\n```\n",
    ],
)
def test_wrong_pages(text: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        Session(tmp_path).run(_page(tmp_path, text))


def test_python_blocks_share_a_namespace_and_raise(tmp_path: Path) -> None:
    page = _page(tmp_path, "```python\nx = 1\n```\n\n```python\nx.nothing\n```\n")
    with pytest.raises(AttributeError):
        Session(tmp_path).run(page)


def test_a_fence_of_another_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"page\.md:1"):
        _page(tmp_path, "```python {.no-run}\n1\n```\n")


def test_commands_go_on_after_a_backslash() -> None:
    block = Block("p", 1, "console", None, "$ a \\\n    b\nshown\n$ c\n", None)
    assert [(c.line, c.shown) for c in commands(block)] == [("a b", "shown\n"), ("c", "")]


def test_dots_stand_for_anything() -> None:
    assert matches("a ... d\n", "a b\nc d\n")
    assert not matches("a ... d\n", "a b\nc\n")


def test_links_and_anchors(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One & two\n\n[a](b.md#c) `[no](x)`\n\n```text\n# no\n[no](y)\n```\n\n## One & two\n",
        "utf-8",
    )
    assert links(page) == ["b.md#c"]
    assert anchors(page) == {"one--two", "one--two-1"}
