"""The file of a knowledge base in a checkpoint."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from spaseq.errors import InputError
from spaseq.kb.load import load_kb
from spaseq.runtime.spark.shared import store_knowledge

LOCAL = SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]"))


def test_a_damaged_file_is_refused_by_workers_and_replaced_by_the_driver(tmp_path: Path) -> None:
    source = tmp_path / "kb.ttl"
    source.write_text("@prefix : <http://e/> . :a :p 1 , :b .")
    knowledge = load_kb([("http://e/g", source)])
    stored = store_knowledge(LOCAL, knowledge, tmp_path)
    good = Path(stored.path).read_bytes()
    for bad in (good[:40] + b"!" + good[41:], good[:-5], b""):
        Path(stored.path).write_bytes(bad)
        with pytest.raises(InputError, match=rf"cannot open the knowledge base {stored.path}"):
            stored.open()
        assert store_knowledge(LOCAL, knowledge, tmp_path) == stored
        assert Path(stored.path).read_bytes() == good
    assert len(stored.open()) == 2
