"""Addresses of SPARQL endpoints: their parts, and the allowed hosts.

Also failed requests, and the count of repeated ones.
"""

from __future__ import annotations

import ipaddress
from base64 import b64encode
from collections.abc import Iterable
from typing import TypeAlias
from urllib.parse import SplitResult, quote, unquote_to_bytes, urlsplit

from spaseq.errors import UsageError
from spaseq.measures import ProcessCount
from spaseq.options import ServiceOptions
from spaseq.records import record
from spaseq.text_patterns import late_pattern

HostAndPort: TypeAlias = tuple[str, int | None]
"""A host, in lower case, and a port; None is any port."""

_PORTS = {"http": 80, "https": 443}
_NO_ADDRESS = late_pattern(r"[\x00-\x20\x7f-\x9f\\<>\"{}|^`\ud800-\udfff]")
_HOST_NAME = late_pattern(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?\.?")
_AUTHORITY = late_pattern(r"(\[[^\]]+\]|[^:\[\]/@]+)(?::([0-9]{1,5}))?")
_LONGEST_HOST = 253
_SAFE = "%/:=&?~+!$,;'@()*"


def is_url(text: str) -> bool:
    """Whether the location of a knowledge base is an endpoint rather than a file."""
    return text.lower().startswith(("http://", "https://"))


@record
class ServiceAddress:
    """An HTTP address in its parts.

    Attributes:
        scheme: "http" or "https".
        host: a name or an IP address in lower case, without brackets.
        port: the given port, or the scheme's.
        target: path and query, as a request has them.
        user: user name and password, as the value of an Authorization header.
    """

    scheme: str
    host: str
    port: int
    target: str
    user: str | None = None

    @classmethod
    def of(cls, url: str) -> ServiceAddress:
        """The parts of an address.

        Raises:
            ValueError: it is no HTTP address; the message says why.

        >>> ServiceAddress.of("http://[::1]:8080/sparql?a=ä")
        ServiceAddress(scheme='http', host='::1', port=8080, target='/sparql?a=%C3%A4', user=None)
        """
        if _NO_ADDRESS.search(url):
            raise ValueError("it has a character that no address has")
        parts = urlsplit(url)
        scheme = parts.scheme.lower()
        if scheme not in _PORTS:
            raise ValueError("it does not begin with http:// or https://")
        if not _AUTHORITY.fullmatch(parts.netloc.rpartition("@")[2]):
            raise ValueError("its host and port are not HOST or HOST:PORT")
        if parts.port == 0:
            raise ValueError("there is no port 0")
        target = quote(parts.path or "/", safe=_SAFE)
        if parts.query:
            target += "?" + quote(parts.query, safe=_SAFE)
        port = parts.port or _PORTS[scheme]
        return cls(scheme, host_name(parts.hostname or ""), port, target, _user(parts))

    @property
    def host_and_port(self) -> str:
        """The value of a Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def same_server(self, other: ServiceAddress) -> bool:
        """Whether both addresses are on one server."""
        mine, theirs = (self.scheme, self.host, self.port), (other.scheme, other.host, other.port)
        return mine == theirs


def host_name(text: str) -> str:
    """A host in lower case, with its other letters in ASCII.

    Raises:
        ValueError: it is no name and no IP address.
    """
    if not text:
        raise ValueError("it has no host")
    if len(text) > _LONGEST_HOST:
        raise ValueError("its host is too long")
    if ":" in text:
        return str(ipaddress.IPv6Address(text))
    name = text.lower()
    if not name.isascii():
        name = name.encode("idna").decode("ascii")
    if not _HOST_NAME.fullmatch(name):
        raise ValueError("its host is no name")
    return name


def _user(parts: SplitResult) -> str | None:
    if parts.username is None:
        return None
    name, password = (unquote_to_bytes(x or "") for x in (parts.username, parts.password))
    return "Basic " + b64encode(name + b":" + password).decode("ascii")


@record
class AllowedHosts:
    """The hosts to which a run may send requests."""

    hosts: frozenset[HostAndPort]

    @classmethod
    def of(cls, options: ServiceOptions, urls: Iterable[str]) -> AllowedHosts:
        """The hosts that the options list, and the hosts of endpoints that `--kb` names.

        Raises:
            UsageError: an entry of `ServiceOptions.allow` is no host.
        """
        hosts = {_listed(text) for text in options.allow}
        for url in urls:
            try:
                address = ServiceAddress.of(url)
            except ValueError:  # the first request says so
                continue
            hosts.add((address.host, address.port))
        return cls(frozenset(hosts))

    def __contains__(self, url: str) -> bool:
        try:
            address = ServiceAddress.of(url)
        except ValueError:
            return False
        pairs = (address.host, address.port), (address.host, None)
        return any(pair in self.hosts for pair in pairs)


def _listed(text: str) -> HostAndPort:
    match = _AUTHORITY.fullmatch(text.strip())
    try:
        if match is None:
            raise ValueError("it is not HOST or HOST:PORT")
        port = None if match[2] is None else int(match[2])
        if port is not None and not 0 < port < 65536:
            raise ValueError(f"there is no port {port}")
        return host_name(match[1].strip("[]")), port
    except ValueError as error:
        raise UsageError(f"--service-allow {text}: {error}") from None


class ServiceFailure(Exception):
    """A failed request; `again` says that a repeated request may succeed."""

    def __init__(self, reason: str, again: bool) -> None:
        super().__init__(reason)
        self.again = again


class RetryCount(ProcessCount):
    """Counts the requests that this process repeats after a failure."""
