"""URLs of connectors: what is wrong is said, and passwords are never shown."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from spaseq.connectors import SINKS_OF_SCHEMES, SOURCES_OF_SCHEMES, sink_at, source_at
from spaseq.connectors.address import Address
from spaseq.errors import InputError, UsageError
from spaseq.extras import EXTRAS
from spaseq.options import FollowOptions
from spaseq.rdf.inputs.stream_options import MessageOptions, StreamOptions
from spaseq.runtime.live.live_run import LoggedRun
from spaseq.sources.broker_stream import BrokerStream
from tests.runtime.live.live_jobs import IRI, job_of


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


URLS = {
    "nats": ("nats://127.0.0.1:1/a", True, True),
    "confluent_kafka": ("kafka://127.0.0.1:1/a", True, True),
    "paho": ("mqtt://127.0.0.1:1/a", True, True),
    "websockets": ("ws://127.0.0.1:1/a", True, False),
    "asyncpg": ("postgresql://127.0.0.1:1/a/t", False, True),
}
"""By the module of its library: the URL of a broker, and whether it is a source and a sink."""


@pytest.mark.parametrize("module", URLS)
def test_a_library_that_is_missing_is_named_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    url, is_source, is_sink = URLS[module]
    for make in [*[source_at] * is_source, *[sink_at] * is_sink]:
        with pytest.raises(InputError, match=rf"needs {module}, .* pip install '\.\["):
            make(url)


def test_a_sink_without_its_library_keeps_a_run_from_its_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    (tmp_path / "s.nq").write_text("")
    source = BrokerStream(StreamOptions(IRI, ()), str(tmp_path / "s.nq"))
    options, out = FollowOptions(tmp_path / "state"), "postgresql://127.0.0.1:1/a/t"
    with pytest.raises(InputError, match=r"needs asyncpg, .* pip install '\.\[postgres\]'"):
        LoggedRun().run(job_of(source), options, out=out, form="jsonl", columns=["x"])


def test_jelly_without_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyjelly", None)
    with pytest.raises(UsageError, match=r"Jelly needs pyjelly, .* pip install '\.\[jelly\]'"):
        MessageOptions("application/x-jelly-rdf")


def test_the_page_lists_every_scheme_and_every_library_is_an_extra() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "live.md").read_text("utf-8")
    schemes = {*SOURCES_OF_SCHEMES, *SINKS_OF_SCHEMES}
    for scheme in schemes:
        is_secure = scheme.endswith("s") and scheme[:-1] in schemes
        assert (f"`{scheme.removesuffix('s')}[s]://" if is_secure else f"`{scheme}") in page
    extras = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    assert EXTRAS.keys() <= extras["optional-dependencies"].keys()


@pytest.mark.parametrize("subject", ["a.*", ">", "a.>", "a..b", ".a", "a."])
def test_answers_go_to_one_subject(subject: str) -> None:
    with pytest.raises(UsageError, match="answers go to one subject"):
        sink_at(f"nats://host/{subject}")
