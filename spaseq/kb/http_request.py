"""HTTP requests to servers that need not be trusted: one deadline, one bound on bytes.

The deadline covers everything from the resolution of the name to the last byte, redirects too. A
request connects to the address that it has checked; the name is not resolved again.
"""

from __future__ import annotations

import io
import ipaddress
import re
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from email.message import Message
from functools import lru_cache
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any, TypeAlias
from urllib.parse import urljoin
from urllib.request import getproxies, proxy_bypass

from spaseq.back_off import may_pass
from spaseq.kb.service_address import ServiceAddress, ServiceFailure
from spaseq.message_text import public_address
from spaseq.records import record

_CHUNK = 1 << 16
_SHOWN = 200
_MOST_REDIRECTS = 5
_MOVED = frozenset({301, 302, 303, 307, 308})

Headers: TypeAlias = dict[str, str]
Place: TypeAlias = tuple[str, int]
"""A host and a port."""


class Deadline:
    """The end of the time that a request may take."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """The seconds that are left.

        Raises:
            TimeoutError: none is left.
        """
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


@record
class Network:
    """Resolution of names to IP addresses, and the test for private ones.

    `resolve` gets a host, a port and the seconds that it may take.
    """

    resolve: Callable[[str, int, float], Sequence[str]]
    is_private: Callable[[str], bool]


@record
class HttpAnswer:
    """The body of an answer, and its media type."""

    media_type: str
    body: bytes


@record
class HttpRequest:
    """A request that is sent by POST; `most_bytes` bounds the body of its answer, unpacked."""

    url: str
    body: bytes
    headers: Headers
    timeout_s: float
    most_bytes: int

    def send(self, network: Network | None = None) -> HttpAnswer:
        """The complete answer, after redirects.

        Raises:
            ServiceFailure: there is none; the message says why.
        """
        try:
            return _Sending(self, network or NETWORK).answer()
        except TimeoutError as error:
            raise ServiceFailure(f"timed out after {self.timeout_s:g} s", True) from error
        except (OSError, HTTPException, ValueError) as error:
            what = f"{type(error).__name__}: {error}"[:_SHOWN]
            raise ServiceFailure(f"the connection broke: {what}", True) from error


class _Sending:
    """One request on its way through redirects."""

    def __init__(self, request: HttpRequest, network: Network) -> None:
        self._request, self._network = request, network
        self._deadline = Deadline(request.timeout_s)
        self._first = _address(request.url)
        self._private_allowed: bool | None = None  # None before the first connection

    def answer(self) -> HttpAnswer:
        url, body = self._request.url, self._request.body
        address = self._first
        method = "POST"
        for _ in range(_MOST_REDIRECTS + 1):
            same = address.same_server(self._first)
            address = replace(address, user=self._first.user if same else None)
            with self._response(method, address, body) as response:
                if response.status not in _MOVED:
                    return self._complete(response)
                url, next_address = _redirect(url, response)
            if next_address.scheme != address.scheme:
                shown = public_address(url)
                raise ServiceFailure(f"a redirect to another scheme is refused: {shown}", False)
            if response.status == 303:
                method, body = "GET", b""
            address = next_address
        raise ServiceFailure(f"more than {_MOST_REDIRECTS} redirects", False)

    @contextmanager
    def _response(
        self, method: str, address: ServiceAddress, body: bytes
    ) -> Iterator[HTTPResponse]:
        """The status line and headers of an answer; its body can be read within the context."""
        headers = {**self._request.headers, "Host": address.host_and_port, "Connection": "close"}
        if address.user is not None:
            headers["Authorization"] = address.user
        proxy = _proxy(address)
        target = address.target
        if proxy is not None and address.scheme == "http":
            target = f"http://{address.host_and_port}{target}"
            if proxy.user is not None:
                headers["Proxy-Authorization"] = proxy.user
        connection = HTTPConnection(address.host, address.port)
        with closing(self._connected(address, proxy)) as sock:
            connection.sock = _TimedSocket(sock, self._deadline)
            connection.request(method, target, body or None, headers)
            with closing(connection.getresponse()) as response:
                yield response

    # --- connections ----------------------------------------------------------------------------

    def _connected(self, address: ServiceAddress, proxy: ServiceAddress | None) -> socket.socket:
        """A connection to the server of an address, with TLS for such schemes."""
        first_hop = address if proxy is None else proxy
        sock = self._reached(first_hop, self._checked(address, proxy))
        if address.scheme == "http":
            return sock
        try:
            if proxy is not None:
                _tunnel(_TimedSocket(sock, self._deadline), address, proxy)
            sock.settimeout(self._deadline.left())
            return _tls().wrap_socket(sock, server_hostname=address.host)
        except TimeoutError:
            sock.close()
            raise
        except OSError as error:
            sock.close()
            raise _unreachable(error) from error
        except BaseException:
            sock.close()
            raise

    def _checked(self, address: ServiceAddress, proxy: ServiceAddress | None) -> Sequence[str]:
        """The IP addresses to connect to."""
        if proxy is not None:
            if not address.same_server(self._first):
                raise ServiceFailure("behind a proxy, redirects to other hosts are refused", False)
            return self._resolved(proxy)
        ips = self._resolved(address)
        private = [ip for ip in ips if self._network.is_private(ip)]
        if self._private_allowed is None:
            self._private_allowed = len(private) == len(ips)
        if not self._private_allowed:
            ips = [ip for ip in ips if ip not in private]
            if not ips:
                reason = f"a redirect to a private address is refused: {address.host}"
                raise ServiceFailure(reason, False)
        return ips

    def _resolved(self, address: ServiceAddress) -> Sequence[str]:
        try:
            return self._network.resolve(address.host, address.port, self._deadline.left())
        except TimeoutError:
            raise
        except (OSError, UnicodeError) as error:
            raise _unreachable(error) from error

    def _reached(self, address: ServiceAddress, ips: Sequence[str]) -> socket.socket:
        """A connection to the first of the IP addresses that takes one."""
        last: OSError = OSError("no address")
        for ip in ips:
            try:
                return socket.create_connection((ip, address.port), self._deadline.left())
            except OSError as error:
                last = error
                self._deadline.left()  # raises at the end of the time
        raise _unreachable(last) from last

    # --- answers --------------------------------------------------------------------------------

    def _complete(self, response: HTTPResponse) -> HttpAnswer:
        if not 200 <= response.status < 300:
            raise ServiceFailure(_status_reason(response), may_pass(response.status))
        body = b"".join(_body(response, self._request.most_bytes))
        return HttpAnswer(response.headers.get_content_type(), body)


class _TimedSocket:
    """A socket for `http.client`, whose every operation ends at the deadline."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock, self._deadline = sock, deadline

    def sendall(self, data: Any) -> None:
        view = memoryview(data).cast("B")
        while view:
            self._sock.settimeout(self._deadline.left())
            view = view[self._sock.send(view[:_CHUNK]) :]

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self._sock, self._deadline), _CHUNK)

    def close(self) -> None:
        """Leave the socket open: the body of the answer is still to be read."""


class _TimedReader(io.RawIOBase):
    """Reads a socket until the deadline."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock, self._deadline = sock, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(self._deadline.left())
        return self._sock.recv_into(buffer)


def _address(url: str) -> ServiceAddress:
    try:
        return ServiceAddress.of(url)
    except ValueError as error:
        raise ServiceFailure(f"the address is not valid: {error}", False) from error


def _unreachable(error: Exception) -> ServiceFailure:
    return ServiceFailure(f"cannot be reached: {error}", True)


def _too_large(most: int) -> ServiceFailure:
    return ServiceFailure(f"the answer has more than {most:,} bytes", False)


def _redirect(url: str, response: HTTPResponse) -> tuple[str, ServiceAddress]:
    """The target of a redirect."""
    given = response.headers.get("Location")
    if given is None:
        raise ServiceFailure(f"HTTP status {response.status} without an address", False)
    try:
        target = urljoin(url, given.strip())
        return target, ServiceAddress.of(target)
    except ValueError as error:
        raise ServiceFailure(f"a redirect to no valid address: {error}", False) from error


def _body(response: HTTPResponse, most: int) -> Iterator[bytes]:
    """The pieces of the body, unpacked.

    Raises:
        ServiceFailure: the body is incomplete or exceeds the bound.
    """
    announced = _announced(response)
    if announced is not None and announced > most:
        raise _too_large(most)
    unpack = _unpacking(response.headers)
    packed = size = 0
    while chunk := response.read1(_CHUNK):
        packed += len(chunk)
        piece = unpack.decompress(chunk, most - size + 1) if unpack else chunk
        size += len(piece)
        if size > most:
            raise _too_large(most)
        yield piece
    if announced is not None and packed < announced:
        raise ServiceFailure(f"the answer is incomplete: {packed} of {announced} bytes", True)
    if unpack is not None and not unpack.eof:
        raise ServiceFailure("the answer is incomplete: its gzip data end early", True)


def _announced(response: HTTPResponse) -> int | None:
    """The length of the body by the headers; None without one."""
    given = {v.strip() for v in response.headers.get_all("Content-Length", [])}
    if response.chunked or not given:
        return None
    (text, *others) = given
    if others or not re.fullmatch("[0-9]{1,18}", text):
        shown = ", ".join(sorted(given))[:_SHOWN]
        raise ServiceFailure(f"the answer has the Content-Length {shown}", True)
    return int(text)


def _unpacking(headers: Message) -> Any:
    """The decompressor of the body; None if it is not compressed."""
    encoding = headers.get("Content-Encoding", "identity").strip().lower()
    if encoding in ("identity", ""):
        return None
    if encoding not in ("gzip", "x-gzip"):
        raise ServiceFailure(f"the answer is packed as {encoding[:_SHOWN]}, not as gzip", False)
    return _Gunzip()


class _Gunzip:
    """Unpacks gzip data."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(31)

    def decompress(self, chunk: bytes, most: int) -> bytes:
        """At most `most` further bytes."""
        try:
            return self._stream.decompress(chunk, most)
        except zlib.error as error:
            raise ServiceFailure(f"the answer is no gzip data: {error}", True) from error

    @property
    def eof(self) -> bool:
        return self._stream.eof


def _status_reason(response: HTTPResponse) -> str:
    """The status of a refused request, with the first line of its body."""
    try:
        lines = response.read1(_SHOWN).decode(errors="replace").strip().splitlines()
    except (OSError, HTTPException):
        lines = []
    detail = f": {lines[0]}" if lines else ""
    return f"HTTP status {response.status} {response.reason[:_SHOWN]}{detail}"


# --- names, addresses, proxies --------------------------------------------------------------------


def resolved(host: str, port: int, seconds: float) -> list[str]:
    """The IP addresses of a host; resolution runs in a thread, as nothing else can end it.

    Raises:
        OSError: the host has none.
        TimeoutError: resolution takes longer.
    """
    if _is_ip(host):
        return [host]
    ips: list[str] = []
    errors: list[Exception] = []

    def resolve() -> None:
        try:
            for *_, sockaddr in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
                ips.append(str(sockaddr[0]))
        except (OSError, UnicodeError) as error:
            errors.append(error)

    thread = threading.Thread(target=resolve, daemon=True, name="spaseq-resolve")
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TimeoutError
    if errors:
        raise errors[0]
    return list(dict.fromkeys(ips))


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


_WRAPPED = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("::/96"))
"""Networks whose last four bytes are an IPv4 address."""


def is_private(text: str) -> bool:
    """Whether an IP address is not one of the public Internet.

    >>> [is_private(ip) for ip in ("10.0.0.1", "::ffff:127.0.0.1", "fe80::1%eth0", "1.1.1.1")]
    [True, True, True, False]
    """
    ip = ipaddress.ip_address(text)
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour
        if inner is None and any(ip in network for network in _WRAPPED):
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_private(str(inner))
    return not ip.is_global or ip.is_multicast or ip.is_reserved


NETWORK = Network(resolved, is_private)


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _proxy(address: ServiceAddress) -> ServiceAddress | None:
    """The proxy that the environment names for an address (`https_proxy`, `no_proxy`)."""
    given = getproxies().get(address.scheme)
    if not given or proxy_bypass(f"{address.host}:{address.port}"):
        return None
    try:
        return ServiceAddress.of(given if "://" in given else f"http://{given}")
    except ValueError as error:
        raise ServiceFailure(f"the proxy's address is not valid: {error}", False) from error


def _tunnel(sock: _TimedSocket, address: ServiceAddress, proxy: ServiceAddress) -> None:
    """Make the proxy connect to the server of an address."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    authority = f"{host}:{address.port}"
    user = "" if proxy.user is None else f"Proxy-Authorization: {proxy.user}\r\n"
    sock.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{user}\r\n".encode("ascii"))
    response = HTTPResponse(sock, method="CONNECT")  # type: ignore[arg-type]
    response.begin()
    if response.status != 200:
        reason = response.reason[:_SHOWN]
        raise ServiceFailure(f"the proxy refuses: HTTP status {response.status} {reason}", True)
