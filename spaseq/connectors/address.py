"""The URL of a connector: the broker, the topic, and parameters."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from spaseq.errors import UsageError
from spaseq.message_text import one_line

_SIGNS = "%/:?#[]@!$&'()*+,;=~"
"""The signs that stay as they are where a URL is sent."""

_NO_HOST = re.compile(r"[\s\x00-\x20\x7f<>\"{}|\\^`]")


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed URL; its text has no user name, no password and no values of parameters.

    Attributes:
        scheme: in small letters; "" for a path on this machine.
        host: the host and port as the URL has them, or several with commas between.
        path: the part after the first `/`, decoded: a topic or subject.
        parameters: the part after `?`, parsed.
        raw_path: the path as written; characters that are not allowed in URLs are percent-encoded.
        query: the part after `?`, in the same way.
        user: the user name, "" if there is none.
        password: the password, "" if there is none.
    """

    scheme: str
    host: str
    path: str
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    raw_path: str = field(default="", repr=False)
    query: str = field(default="", repr=False)

    @classmethod
    def of(cls, text: str) -> Address:
        """The parts of a URL.

        Raises:
            UsageError: it has no host, or its port is none.

        >>> print(Address.of("nats://me:secret@localhost:4222/road.loops?stream=ROAD"))
        nats://localhost:4222/road.loops
        >>> Address.of("mqtt://localhost/road/#?qos=1").path
        'road/#'
        """
        if text.lower().startswith("mqtt"):
            text = text.replace("#", "%23")  # it stands for topics
        parts = _parts(text)
        login, _, hosts = parts.netloc.rpartition("@")
        user, _, password = login.partition(":")
        return cls(
            parts.scheme,
            ",".join(_checked_host(parts.scheme, host) for host in hosts.split(",")),
            unquote(parts.path.removeprefix("/")),
            dict(parse_qsl(parts.query, keep_blank_values=True)),
            unquote(user),
            unquote(password),
            quote(parts.path.removeprefix("/"), _SIGNS),
            quote(parts.query, _SIGNS),
        )

    def check_parameters(self, known: Collection[str]) -> None:
        """UsageError if there are parameters besides these; it names the nearest."""
        for name in self.parameters:
            if name not in known:
                near = get_close_matches(name, known, 1)
                meant = f"; did you mean {near[0]}?" if near else ""
                raise UsageError(f"{self}: unknown parameter {name}{meant} ({', '.join(known)})")

    def __str__(self) -> str:
        if not self.scheme:
            return one_line(self.path)
        return one_line(f"{self.scheme}://{self.host}/{self.path}")


def _parts(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:  # it has only one bracket, for instance
        raise UsageError(f"{scheme_of(url)}:// address: {error}") from None


def scheme_of(text: str) -> str:
    """The scheme of a URL, in small letters; "" for any other text."""
    scheme, mark, _ = text.partition("://")
    return scheme.lower() if mark else ""


def _checked_host(scheme: str, text: str) -> str:
    """The host and port that a text has; UsageError if it has none."""
    parts = _parts(f"//{text}")
    try:
        port = parts.port
    except ValueError:
        raise UsageError(f"{scheme}:// address: the port is no number below 65536") from None
    if not parts.hostname or _NO_HOST.search(parts.hostname):
        raise UsageError(f"{scheme}:// address: it names no host")
    shown = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return shown if port is None else f"{shown}:{port}"
