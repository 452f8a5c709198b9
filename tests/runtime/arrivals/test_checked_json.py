"""JSON files with a checksum as their last line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spaseq.errors import RunError
from spaseq.storage.checksums import read_json, write_json
from tests.storage.damage import damaged


def same(value: Any) -> Any:
    return value


@pytest.mark.parametrize("value", [[1, {"é": None}], {"a": [2.5]}, "name", []])
def test_a_value_comes_back_and_damage_is_an_error(tmp_path: Path, value: Any) -> None:
    path = tmp_path / "7.json"
    write_json(path, value)
    assert read_json(path, same) == value
    assert json.loads(path.read_text("utf-8").splitlines()[0]) == value
    for bad in damaged(path.read_bytes()):
        path.write_bytes(bad)
        with pytest.raises(RunError, match=r"7\.json is damaged, so the run cannot go on: "):
            read_json(path, same)


def test_a_value_of_another_form_and_a_missing_file_are_named(tmp_path: Path) -> None:
    path = tmp_path / "8.json"
    with pytest.raises(RunError, match=r"8\.json is damaged.*No such file"):
        read_json(path, same)
    path.write_text('{"batch": 3}')  # of an earlier version
    assert read_json(path, lambda value: value["batch"]) == 3
    with pytest.raises(RunError, match=r"8\.json is damaged"):
        read_json(path, lambda value: value["other"])
