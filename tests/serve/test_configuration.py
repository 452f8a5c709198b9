"""The configuration of a server: what it says, and all its mistakes at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from spaseq.errors import UsageError
from spaseq.serve.assembly import parts_of
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
    read(tmp_path, '[server]\nlisten = "[::ffff:127.0.0.1]:80"\n')  # is loopback


def test_a_token_file_may_begin_with_a_mark(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\ufeffsecret\n", "utf-8")
    (tmp_path / "token").chmod(0o600)
    found = read(tmp_path, '[server]\ntoken_file = "token"\n[queries]\ndirectory = "queries"\n')
    assert parts_of(found, tmp_path).access.admitted("secret") is not None


def test_a_mistake_shows_no_value_of_the_environment(tmp_path: Path) -> None:
    text = '[server]\nsync = "${PW}"\nmax_body = "${PW}"\n'
    text += '[streams.S]\niri = "http://a"\ntime = "${PW}"\n'
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


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('[server]\ntoken_file = "a\\u0000b"\n', 2, "without the character NUL"),
        ('[server]\ndata = "\\u0000"\n', 2, "without the character NUL"),
        ('[server]\ntls = { cert = "\\u0000", key = "k" }\n', 2, "without the character NUL"),
        ('[server]\nmax_body = "0 B"\n', 2, "a size such as"),
        ('[server]\nlisten = "127.0.0.1:99999"\n', 2, "no address"),
        (f'[server]\nlisten = "127.0.0.1:{"9" * 5000}"\n', 2, "no address"),
        ('[server]\nlisten = "here"\n', 2, "no address"),
        ('[streams.S]\niri = "s"\n', 2, "an absolute IRI"),
        ('[streams.S]\niri = "http://e/ s"\n', 2, "an absolute IRI"),
        ('[streams.S]\niri = "http://s"\nlift = "\\u0000"\n', 3, "without the character NUL"),
        ('[kb]\nowners = "o.ttl"\n', 2, "an absolute IRI"),
        ('[kb."http://k/"]\npath = "o.ttl"\nrefresh = "1 HOURS"\n', 3, "files are watched"),
        ('[kb."http://k/"]\npath = "http://h/q"\nrefresh = "0 SECONDS"\n', 3, "duration above 0"),
        ('[kb]\n"http://kb" = "\\u0000"\n', 2, "without the character NUL"),
        ('[streams.S]\niri = "http://s"\n[streams.T]\niri = "http://s"\n', 4, "streams.S"),
    ],
)
def test_values_that_cannot_be(tmp_path: Path, text: str, line: int, reason: str) -> None:
    with pytest.raises(UsageError, match=rf"spaseq\.toml:{line}: .*{reason}") as caught:
        read(tmp_path, text)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("value", ["[" * 20_000, "9" * 5000])
def test_values_that_are_too_deep_or_too_long(tmp_path: Path, value: str) -> None:
    with pytest.raises(UsageError, match=r"spaseq\.toml: ") as caught:
        read(tmp_path, f"[server]\nretain = {value}\n")
    assert len(str(caught.value).splitlines()) == 1


def test_the_other_formats_of_the_example_may_be_used(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "spaseq/serve/example/spaseq.toml"
    begin, rest = example.read_text("utf-8").split("# Other formats", 1)
    text, end = rest.split("\n\n", 1)
    lines = [line.removeprefix("# ") for line in text.splitlines()[1:]]
    found = read(tmp_path, f"{begin}{chr(10).join(lines)}\n\n{end}")
    assert found.streams.keys() >= {"Weirs", "Pumps", "Brew", "Berths", "Slots"}
    assert found.streams["Brew"]["format"] == "sosa"
