"""Who may ask: known hosts and origins, and who has the token."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spaseq.serve.refusals import Refused

COOKIE = "spaseq"

_OPEN = frozenset({"/", "/live", "/login"})
"""Paths that need no token; nor do the page's files."""

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
}
"""Headers of all responses that do not set them."""


@dataclass(frozen=True, slots=True)
class Access:
    """The rules of who may ask.

    Attributes:
        listen: the host that the server listens on.
        hosts: further names of the server, each as HOST or HOST:PORT.
        token: what requests must show; None if nothing.
        secure: whether the cookie goes over TLS only.
    """

    listen: str
    hosts: Collection[str] = ()
    token: str | None = field(default=None, repr=False)
    secure: bool = False

    def check(self, scope: Scope) -> None:
        """Check a request.

        Raises:
            Refused: it is for another server, from a page of another one, or has no token.
        """
        headers = Headers(scope=scope)
        own, client = scope.get("server"), scope.get("client")
        self._check_host(headers, own[0] if own else "")
        self._check_origin(headers)
        if self.token is None:
            self._check_near(headers, client[0] if client else "")
        elif not self._is_open(scope["path"]) and not self._shows_token(headers):
            raise Refused(
                401,
                "this server asks for a token",
                "send the header Authorization: Bearer TOKEN, or log in on the page",
                {"WWW-Authenticate": "Bearer"},
            )

    def admits(self, token: str) -> bool:
        """Whether a token is the right one, or none is needed."""
        return self.token is None or _equal(token, self.token)

    def cookie(self) -> str:
        """The value of the `Set-Cookie` that shows the token from then on."""
        secure = "; Secure" if self.secure else ""
        return f"{COOKIE}={self._session()}; Path=/; HttpOnly; SameSite=Strict{secure}"

    def _check_host(self, headers: Headers, own: str) -> None:
        given = headers.get("host", "")
        host = _host_of(given)
        known = {_host_of(name) for name in self.hosts} | {self.listen}
        if _is_loopback(self.listen) or _is_loopback(own):
            known |= {"localhost", "127.0.0.1", "::1"}
        if _is_wildcard(self.listen):
            known.add(own)
        if host not in known:
            raise Refused(
                403,
                f"this server does not answer to the host {given[:200]!r}",
                "name it in hosts in the table [server] of the configuration",
            )

    def _check_origin(self, headers: Headers) -> None:
        given = headers.get("origin")
        if given is None:
            return
        parts = urlsplit(given)
        own = parts.netloc.lower() == headers.get("host", "").lower()
        named = {name.lower() for name in self.hosts} & {
            parts.netloc.lower(),
            _host_of(parts.netloc),
        }
        if parts.scheme not in ("http", "https") or not (own or named):
            raise Refused(
                403,
                f"a page of {given[:200]!r} asks this server",
                "name its host in hosts in the table [server] of the configuration",
            )

    def _check_near(self, headers: Headers, client: str) -> None:
        """Without a token only this machine is served, also through a proxy on it."""
        forwarded = headers.get("x-forwarded-for")
        far = forwarded is not None and not _is_loopback(forwarded.rpartition(",")[2].strip())
        if far or "forwarded" in headers or not _is_loopback(client):
            raise Refused(
                403,
                "without a token only this machine is served",
                "set token_file in the table [server] of the configuration",
            )

    def _is_open(self, path: str) -> bool:
        return path in _OPEN or path.startswith("/page/")

    def _shows_token(self, headers: Headers) -> bool:
        assert self.token is not None
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return _equal(given.strip(), self.token)
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return cookie is not None and _equal(cookie.value, self._session())

    def _session(self) -> str:
        """What the cookie holds: it follows from the token, and does not give it away."""
        assert self.token is not None
        return hmac.new(self.token.encode(), b"spaseq page", hashlib.sha256).hexdigest()


class Guard:
    """Lets a request through to an application, or refuses it."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                _add(MutableHeaders(scope=message), _HEADERS)
            await send(message)

        try:
            self._access.check(scope)
        except Refused as refused:
            await refused.response()(scope, receive, sent)
            return
        await self._app(scope, receive, sent)


def _add(headers: MutableHeaders, more: Mapping[str, str]) -> None:
    for name, value in more.items():
        headers.setdefault(name, value)


def _equal(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())


def _host_of(text: str) -> str:
    """The host of HOST[:PORT], in small letters; "" if it is none.

    >>> _host_of("Alerts.example:443"), _host_of("[::1]:80"), _host_of("a:b:c"), _host_of("::1")
    ('alerts.example', '::1', '', '::1')
    """
    try:
        return str(ip_address(text))
    except ValueError:
        pass
    try:
        parts = urlsplit(f"//{text}")
        _ = parts.port
    except ValueError:
        return ""
    plain = parts.netloc == text and "@" not in text
    return (parts.hostname or "") if plain else ""


def _is_loopback(host: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost"
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def _is_wildcard(host: str) -> bool:
    return host in ("0.0.0.0", "::", "")
