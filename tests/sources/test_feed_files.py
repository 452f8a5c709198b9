"""Pages of linked data event streams in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from spaseq.errors import InputError
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from spaseq.sources import source_of
from tests.connectors.feed_server import TREE, members
from tests.rdf.streams import Event, events_of

ROOT = ":f tree:view <> ; ldes:timestampPath dct:created . "


def page(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(TREE + text)
    return path


def read(*paths: object) -> tuple[list[Event], list[BadInput]]:
    bad: list[BadInput] = []
    given = tuple(f"ldes+file:{path}" for path in paths)
    source = source_of(given, StreamOptions("http://e/s", ()))
    source.check()
    return list(events_of(source.open(bad.append))), bad


def test_links_are_followed_in_the_same_directory(tmp_path: Path) -> None:
    link = "<> tree:relation [ tree:node <{}> ] ."
    links = "".join(map(link.format, ("sub/a.ttl", "../out.ttl", "none.ttl", "http://h/b.ttl")))
    root = page(tmp_path, "in/root.ttl", ROOT + links)
    page(tmp_path, "in/sub/a.ttl", members(2, 3) + link.format("../b.ttl"))
    page(tmp_path, "in/b.ttl", members(3, 4) + link.format("root.ttl"))
    page(tmp_path, "out.ttl", members(5))
    found, bad = read(root)
    assert bad == []
    assert [(event.graph, event.time) for event in found] == [
        (f"http://e/m{n}", n * 1000) for n in (2, 3, 4)
    ]


def test_all_pages_that_are_given(tmp_path: Path) -> None:
    page(tmp_path, "in/a.ttl", members(2, 3) + ":f tree:member :m9 .")
    page(tmp_path, "in/b.trig", members(4) + ":m4 { :m4 :q :r } :f tree:member :m5 . :m5 :x 1 .")
    page(tmp_path, "in/c.ttl", ROOT)
    page(tmp_path, "in/d.ttl", members(7) + "broken")
    found, bad = read(tmp_path / "in")
    assert [event.time for event in found] == [2000, 3000, 4000]
    assert len(found[2].triples) == 3
    assert len(bad) == 3
    assert "nothing of its member <http://e/m9>" in bad[0].reason
    assert "without a timestamp" in bad[1].reason
    assert bad[2].file.endswith("d.ttl")


def test_pages_that_do_not_say_what_the_time_is(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="timestampPath"):
        read(page(tmp_path, "a.ttl", members(1)))
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "none.ttl")
