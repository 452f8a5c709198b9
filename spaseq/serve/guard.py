"""Access control: known hosts and origins, tokens, and the scopes of each token."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spaseq.errors import UsageError
from spaseq.serve.configuration import is_loopback
from spaseq.serve.requests import Refused

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

SCOPES = ("read", "events", "queries", "kb", "acknowledge")
"""The scopes of a token."""

WHO = "spaseq.who"
"""The key of a request's scope that has the name of its sender."""

_TOKEN_LINE = re.compile(r"(?:([A-Za-z0-9_.@-]{1,100})[ \t]*(?:\(([^()]*)\))?[ \t]*:[ \t]+)?(\S+)")


@dataclass(frozen=True, slots=True)
class Token:
    """A token with its text, the name of its owner, and its scopes (None: all)."""

    name: str
    text: str = field(repr=False)
    scopes: frozenset[str] | None = None

    def allows(self, scope: str) -> bool:
        """Whether the token allows a request that needs a scope."""
        return self.scopes is None or scope in self.scopes

    def session(self) -> str:
        """The value of the cookie: derived from the token, without revealing it."""
        return hmac.new(self.text.encode(), b"spaseq page", hashlib.sha256).hexdigest()


NOBODY = Token("local", "")
"""The name of the sender for a server without tokens."""


def tokens_of(text: str) -> tuple[Token, ...]:
    """The tokens in the lines of a file: `token`, `name: token` or `name (read, events): token`.

    Raises:
        UsageError: a line is none of these, or there is no line.

    >>> [(t.name, t.scopes) for t in tokens_of("abc\\nboard (read): def")]
    [('token', None), ('board', frozenset({'read'}))]
    """
    tokens = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        parts = _TOKEN_LINE.fullmatch(line.strip())
        if parts is None or not parts[3].isascii():
            raise UsageError(
                f"line {number} is no token: `TOKEN`, `NAME: TOKEN` or `NAME (read, events): "
                "TOKEN`, each token one word of ASCII characters"
            )
        scopes = None
        if parts[2] is not None:
            scopes = frozenset(word.strip() for word in parts[2].split(","))
            if not scopes <= {*SCOPES}:
                raise UsageError(f"line {number}: a token allows some of {', '.join(SCOPES)}")
        tokens.append(Token(parts[1] or "token", parts[3], scopes))
    if not tokens:
        raise UsageError("it has no token")
    return tuple(tokens)


def needed_scope(method: str, path: str) -> str:
    """The scope that a request needs."""
    if method in ("GET", "HEAD"):
        return "read"
    if path.startswith("/streams/"):
        return "events"
    if path == "/kb" or path.startswith("/kb/"):
        return "kb"
    return "acknowledge" if path.startswith("/answers/") else "queries"


@dataclass(frozen=True, slots=True)
class Access:
    """The rules of access.

    Attributes:
        listen: the host that the server listens on.
        hosts: further names of the server, each as HOST or HOST:PORT.
        tokens: of which requests must show one; without any, only this machine is served.
        secure: whether the cookie goes over TLS only.
    """

    listen: str
    hosts: Collection[str] = ()
    tokens: Sequence[Token] = ()
    secure: bool = False

    def check(self, scope: Scope) -> str:
        """Check a request; return the name of its sender.

        Raises:
            Refused: it is for another server, comes from a foreign page, has no token, or one
                without the scope.
        """
        headers = Headers(scope=scope)
        served_at, client = scope.get("server"), scope.get("client")
        self._check_host(headers, served_at[0] if served_at else "")
        self._check_origin(headers)
        if not self.tokens:
            self._check_near(headers, client[0] if client else "")
            return NOBODY.name
        if self._is_open(scope["path"]):
            return ""
        token = self._shown(headers)
        if token is None:
            raise Refused(
                401,
                "this server asks for a token",
                "send the header Authorization: Bearer TOKEN, or log in on the page",
                {"WWW-Authenticate": "Bearer"},
            )
        needed = needed_scope(scope["method"], scope["path"])
        if not token.allows(needed):
            raise Refused(
                403,
                f"the token of {token.name} does not allow {needed}",
                "name it in parentheses behind the token's name in token_file",
            )
        return token.name

    def admitted(self, given: str) -> Token | None:
        """The name of the owner of a token's text; None if it is no token."""
        if not self.tokens:
            return NOBODY
        fitting = [token for token in self.tokens if _equal(given, token.text)]
        return fitting[0] if fitting else None

    def cookie(self, token: Token) -> str:
        """The value of the `Set-Cookie` that shows a token from then on."""
        secure = "; Secure" if self.secure else ""
        return f"{COOKIE}={token.session()}; Path=/; HttpOnly; SameSite=Strict{secure}"

    def _check_host(self, headers: Headers, served_at: str) -> None:
        given = headers.get("host", "")
        host = _host_of(given)
        known = {_host_of(name) for name in self.hosts} | {self.listen}
        if is_loopback(self.listen) or is_loopback(served_at):
            known |= {"localhost", "127.0.0.1", "::1"}
        if _is_wildcard(self.listen):
            known.add(served_at)
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
        scheme, _, authority = given.lower().partition("://")
        is_own = authority == headers.get("host", "").lower()
        named = {name.lower() for name in self.hosts} & {authority, _host_of(authority)}
        if scheme not in ("http", "https") or not (is_own or named):
            raise Refused(
                403,
                f"a page of {given[:200]!r} asks this server",
                "name its host in hosts in the table [server] of the configuration",
            )

    def _check_near(self, headers: Headers, client: str) -> None:
        """Without a token only this machine is served, also through a proxy on it."""
        forwarded = headers.get("x-forwarded-for")
        far = forwarded is not None and not is_loopback(forwarded.rpartition(",")[2].strip())
        if far or "forwarded" in headers or not is_loopback(client):
            raise Refused(
                403,
                "without a token only this machine is served",
                "set token_file in the table [server] of the configuration",
            )

    def _is_open(self, path: str) -> bool:
        return path in _OPEN or path.startswith("/page/")

    def _shown(self, headers: Headers) -> Token | None:
        """The token that a request shows, in its header or as a cookie."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.admitted(given.strip())
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return None
        if cookie is None:
            return None
        fitting = [token for token in self.tokens if _equal(cookie.value, token.session())]
        return fitting[0] if fitting else None


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
            scope[WHO] = self._access.check(scope)
        except Refused as refused:
            await refused.response()(scope, receive, sent)
            return
        await self._app(scope, receive, sent)


def _add(headers: MutableHeaders, more: Mapping[str, str]) -> None:
    for name, value in more.items():
        headers.setdefault(name, value)


def _equal(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())


@lru_cache(256)  # clients send the same again and again
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


def _is_wildcard(host: str) -> bool:
    return host in ("0.0.0.0", "::", "")
