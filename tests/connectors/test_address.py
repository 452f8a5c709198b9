"""URLs of connectors: what is wrong is said, and passwords are never shown."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from spaseq.connectors import SINKS_OF_SCHEMES, SOURCES_OF_SCHEMES, sink_at, source_at
from spaseq.connectors.address import Address
from spaseq.errors import InputError, UsageError
from tests.connectors.intake import ListIntake


def test_the_parts_of_an_address() -> None:
    address = Address.of("NATS://m%40e:p%3Aq@[::1]:4222/a.b%2Fc?stream=S")
    assert (address.scheme, address.host, address.path) == ("nats", "[::1]:4222", "a.b/c")
    assert (address.user, address.password) == ("m@e", "p:q")
    assert address.parameters == {"stream": "S"}
    assert "p:q" not in repr(address) + str(address)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("nats:///loops", "names no host"),
        ("nats://me:secret@host:99999/loops", "the port is no number"),
        ("nats://me:secret@host", "give a subject"),
        ("nats://host/a b", "give a subject"),
        ("nats://me:secret@host/loops?straem=S", "did you mean stream"),
        ("nats://me:secret@[/loops", "nats:// address"),
        ("nats://me:secret@a b/loops", "names no host"),
    ],
)
def test_a_wrong_address_says_what_is_wrong(url: str, reason: str) -> None:
    for make in (source_at, sink_at):
        with pytest.raises(UsageError, match=reason) as caught:
            make(url)
        assert "secret" not in str(caught.value)


def test_a_library_that_is_missing_is_named_with_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "nats", None)
    with pytest.raises(InputError, match=r"pip install '\.\[nats\]'"):
        ListIntake(source_at("nats://127.0.0.1:1/a")).wait(1)


def test_the_page_lists_every_scheme_and_every_library_is_an_extra() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "live.md").read_text("utf-8")
    schemes = {*SOURCES_OF_SCHEMES, *SINKS_OF_SCHEMES}
    for scheme in schemes:
        is_secure = scheme.endswith("s") and scheme[:-1] in schemes
        assert (f"`{scheme.removesuffix('s')}[s]://" if is_secure else f"`{scheme}") in page
    extras = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    assert {"nats", "kafka", "mqtt", "ws"} <= extras["optional-dependencies"].keys()


@pytest.mark.parametrize("subject", ["a.*", ">", "a.>", "a..b", ".a", "a."])
def test_answers_go_to_one_subject(subject: str) -> None:
    with pytest.raises(UsageError, match="answers go to one subject"):
        sink_at(f"nats://host/{subject}")
