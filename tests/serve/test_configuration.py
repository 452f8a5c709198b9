"""The configuration of a server: what it says, and all its mistakes at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from spaseq.errors import UsageError
from spaseq.serve.configuration import Configuration, read_configuration


def read(directory: Path, text: str, **environment: str) -> Configuration:
    path = directory / "spaseq.toml"
    path.write_text(text, "utf-8")
    return read_configuration(path, environment)


def test_values_have_their_units_and_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        '[server]\ndata = "state"\nmax_body = "16 MB"\nsync = "20 MILLISECONDS"\n'
        '[streams.S]\niri = "http://s"\nsource = "nats://me:${PW}@h/x"\n'
        '[kb]\n"http://kb" = "kb.ttl"\n[sinks.ops]\nto = "o.jsonl"\nqueries = ["jam*"]\n',
        PW="secret",
    )
    assert found.server["data"] == tmp_path / "state"
    assert (found.server["max_body"], found.server["sync"]) == (16_000_000, 20)
    assert found.streams["S"]["source"] == "nats://me:secret@h/x"
    assert found.kb == {"http://kb": str(tmp_path / "kb.ttl")}
    assert found.sinks["ops"]["to"] == str(tmp_path / "o.jsonl")
    assert found.sinks["ops"]["queries"] == ("jam*",)
    assert "secret" not in repr(found)


def test_all_mistakes_are_named_with_their_lines(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read(
            tmp_path,
            '[server]\nlisten = "0.0.0.0:80"\nretian = "1 HOURS"\nmax_body = "big"\n'
            '[streams.S]\nsource = "nats://h/${NONE}"\n[sink.x]\nto = "a"\n',
        )
    lines = [line.split("spaseq.toml:")[1] for line in str(caught.value).splitlines()]
    assert [int(line.split(":")[0]) for line in lines] == [2, 3, 4, 5, 6, 7]
    assert "did you mean retain?" in lines[1]
    assert "did you mean sinks?" in lines[5]


def test_contexts_are_files_by_iri(tmp_path: Path) -> None:
    stream = '[streams.S]\niri = "http://s"\n'
    named = '"http://e/c" = "c.jsonld"'
    for text in (f"context_map = {{ {named} }}", f"[streams.S.context_map]\n{named}"):
        found = read(tmp_path, stream + text)
        assert found.streams["S"]["context_map"] == {"http://e/c": tmp_path / "c.jsonld"}
    for wrong in ('"c.jsonld"', '{ "c" = "c.jsonld" }', '{ "http://e/c" = 7 }'):
        with pytest.raises(UsageError, match=r"spaseq\.toml:3: context_map: .* expected"):
            read(tmp_path, f"{stream}context_map = {wrong}")


def test_text_that_is_no_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"spaseq\.toml"):
        read(tmp_path, "[server\n")


def test_another_address_than_loopback_is_allowed_with_a_token(tmp_path: Path) -> None:
    found = read(tmp_path, '[server]\nlisten = "0.0.0.0:80"\ntoken_file = "token"\n')
    assert found.server["token_file"] == tmp_path / "token"


def test_a_mistake_shows_no_value_of_the_environment(tmp_path: Path) -> None:
    text = '[server]\nsync = "${PW}"\nmax_body = "${PW}"\n[streams.S]\niri = "a"\ntime = "${PW}"\n'
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text, PW="hunter2")
    assert len(str(caught.value).splitlines()) == 3
    assert "hunter2" not in str(caught.value)


def test_the_examples_can_be_read() -> None:
    root = Path(__file__).parents[2]
    for path in (
        root / "examples" / "serve" / "config" / "spaseq.toml",
        root / "spaseq" / "serve" / "example" / "spaseq.toml",
    ):
        assert read_configuration(path, {}).streams
