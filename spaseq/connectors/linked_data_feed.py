"""Linked data event streams (LDES) as a source: `ldes+http[s]://host[:port]/path`.

The pages of the feed are followed (TREE). A closed page is read once, an open one again and again.
Pages on other hosts than the feed's are requested only if `allow=HOST[:PORT],...` names these.
`poll=SECONDS` overrides the polling interval of open pages.

Pages are read by the least time that may be behind them. A member waits until no page that is known
and has not been read may have an earlier one. A member is given once, whatever pages have it.
"""

from __future__ import annotations

import http.client
import json
import time
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from email.message import Message as Headers
from hashlib import blake2b
from heapq import heappop, heappush
from itertools import count, groupby
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

from spaseq import back_off
from spaseq.connectors.address import Address
from spaseq.connectors.base import Intake, MessageSource
from spaseq.connectors.reconnecting import (
    Reconnecting,
    basic_login,
    check_one_host,
    http_connection,
    offer,
)
from spaseq.errors import InputError, UsageError
from spaseq.logs.messages import UNNUMBERED, MarkChanges, Message
from spaseq.message_text import public_address
from spaseq.rdf.inputs.contexts import JsonLdContexts
from spaseq.rdf.inputs.formats import format_of_media
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.rdf.messages.described_events import (
    FeedDescription,
    Member,
    Relation,
    TreePage,
    described,
)

_ACCEPT = (
    "application/trig, application/n-quads, text/turtle;q=0.9, application/n-triples;q=0.9, "
    "application/ld+json;q=0.8"
)
_LOOK_S = 0.05
_POLL_S = 60.0
_LEAST_POLL_S = 0.1
_MOST_BYTES = 64 * 2**20
"""A larger page is not read."""

_MOST_REDIRECTS = 5
_MOVED = frozenset({301, 302, 303, 307, 308})
_PORTS = {"http": 80, "https": 443}
_OWN_PARAMETERS = frozenset({"allow", "poll"})


class LinkedDataFeed(MessageSource):
    """The members of a feed; each message has some of them as N-Quads.

    Args:
        address: of the feed's root; its scheme begins with `ldes+`.
        options: of the stream.
    """

    def __init__(self, address: Address, options: StreamOptions | None = None) -> None:
        super().__init__(address)
        check_one_host(address)
        self.options = options or StreamOptions("urn:feed", ())
        scheme = address.scheme.removeprefix("ldes+")
        given = dict(parse_qsl(address.query, keep_blank_values=True))
        query = urlencode({n: v for n, v in given.items() if n not in _OWN_PARAMETERS})
        self.root = f"{scheme}://{address.host}/{address.raw_path}" + (f"?{query}" if query else "")
        try:
            self.poll_s = None if "poll" not in given else max(float(given["poll"]), _LEAST_POLL_S)
        except ValueError:
            raise UsageError(f"{address}: poll={given['poll']} is no number of seconds") from None
        listed = [text.strip().lower() for text in given.get("allow", "").split(",")]
        self.allowed = frozenset(filter(None, listed))
        self.secure = scheme == "https"

    def read(self, intake: Intake) -> None:
        reading = _FeedReading(self, intake)
        reading.run(reading.once)

    def may_ask(self, url: str) -> bool:
        """Whether a page may be requested: its host is the feed's, or allowed."""
        try:
            parts = urlsplit(url)
            place, host = _place(url), parts.hostname or ""
        except ValueError:
            return False
        if parts.scheme not in _PORTS or (self.secure and parts.scheme != "https"):
            return False
        return place == _place(self.root) or place in self.allowed or host in self.allowed


def _place(url: str) -> str:
    """The host of a URL, and its port unless that is the scheme's."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    host = f"[{host}]" if ":" in host else host
    return host if port in (None, _PORTS.get(parts.scheme)) else f"{host}:{port}"


@dataclass(slots=True)
class _Open:
    """A polled page: the next time (monotonic), and the headers of a conditional request."""

    due: float
    tag: str = ""


@dataclass(frozen=True, slots=True)
class _Reply:
    """The final answer of a server; `url` is its address."""

    status: int
    headers: Headers
    body: bytes
    url: str


class _FeedReading(Reconnecting):
    """A source while it reads."""

    def __init__(self, source: LinkedDataFeed, intake: Intake) -> None:
        super().__init__(source.address, intake, "HTTP server")
        self._source, self._root = source, source.root
        self._walk = FeedWalk(source.root, source.options.time_predicate, intake.marks)
        self._feed: FeedDescription | None = None
        self._open = {source.root: _Open(0.0)}
        self._page: str | None = None  # that is being read
        self._told = set[str]()

    def once(self) -> None:
        """Read pages until the intake stops or the server cannot be reached."""
        while not self._intake.stopped:
            if self._page is None:
                self._page = self._next()
            if self._page is None:
                time.sleep(_LOOK_S)
                continue
            self._read(self._page)
            self._page = None

    def _next(self) -> str | None:
        """The next page to request."""
        page = self._walk.next() if self._feed is not None else None
        if page is not None:
            return page
        due = min(self._open, key=lambda iri: self._open[iri].due)
        return due if self._open[due].due <= time.monotonic() else None

    def _read(self, iri: str) -> None:
        """Request a page, and use its contents."""
        if self._source.may_ask(iri):
            try:
                self._use(iri, self._asked(iri, self._open[iri].tag if iri in self._open else ""))
            except InputError as error:
                if iri == self._root:
                    raise
                self._tell(str(error))
        else:
            self._tell(
                f"{public_address(iri)} is not requested: its host is not the feed's; allow=HOST "
                "in the feed's address allows it"
            )
        self._give()

    def _use(self, iri: str, reply: _Reply) -> None:
        """Use the answer to a request for a page, and return the time of the next request."""
        if self._feed is None and reply.status != 200:
            raise InputError(f"{self._address}: the server answers {reply.status}")
        closed, fresh_s = _cached(reply.headers)
        if reply.status == 410:
            closed = True
        elif reply.status == 200:
            page = self._page_of(reply)
            closed = page is not None and (closed or page.is_immutable)
            self._open[iri] = _Open(0.0, "" if page is None else reply.headers.get("ETag", ""))
            if page is not None:
                self._accept(iri, page, closed and iri != self._root)
        elif reply.status != 304:
            self._tell(f"{public_address(iri)}: the server answers {reply.status}")
            closed = False
        self.connected()
        self.progressed()
        if iri not in self._open and iri != self._root:
            self._open[iri] = _Open(0.0)
        if closed and iri != self._root:
            self._open.pop(iri, None)
        elif iri in self._open:
            said = None if self._feed is None else self._feed.polling_s
            pauses = (self._source.poll_s, said, fresh_s)
            pause = next((seconds for seconds in pauses if seconds is not None), _POLL_S)
            self._open[iri].due = time.monotonic() + max(pause, _LEAST_POLL_S)

    def _accept(self, iri: str, page: TreePage, closed: bool) -> None:
        """Take a page's members and links, by the description of the root page."""
        if iri == self._root:
            feed = page.description()
            if feed is None:
                feed = self._moved(page)
            self._feed = feed
        if self._feed is None:
            return
        if self._feed.time is None and iri == self._root:
            self._tell(f"{self._address}: the feed names no ldes:timestampPath that can be read")
        for name in self._walk.take(iri, page, self._feed, closed):
            self._tell(f"{public_address(iri)} has nothing of its member {name}")

    def _moved(self, page: TreePage) -> FeedDescription | None:
        """Begin at the view that a page names, if it is no root itself."""
        views = [view for _, view in page.streams()]
        if not views:
            raise InputError(f"{self._address}: no stream has this page as its view (tree:view)")
        self._open = {views[0]: _Open(0.0)}
        self._root = views[0]
        if not self._source.may_ask(views[0]):
            raise InputError(f"{self._address}: its view is on another host; allow=HOST allows it")
        return None

    def _page_of(self, reply: _Reply) -> TreePage | None:
        """The page that a server gave; None if it cannot be read."""
        options = self._source.options
        form = format_of_media(reply.headers.get_content_type())
        contexts = JsonLdContexts(None, options.contexts.named)

        def report(line: int | None, reason: str, text: str) -> None:
            self._tell(f"{public_address(reply.url)}: {reason}")

        limits = options.limits
        description = described(reply.body, report, reply.url, limits, contexts, form, united=False)
        return None if description is None else TreePage(reply.url, description)

    def _give(self) -> None:
        """Offer the members that need not wait."""
        ready = self._walk.ready() if self._feed is not None else []
        if ready:
            form = "application/n-quads"
            offer(
                self._intake,
                [Message(data, 0, UNNUMBERED, form, marks=marks) for data, marks in ready],
            )

    def _asked(self, url: str, tag: str) -> _Reply:
        """The answer to a request for a page; redirects are followed to allowed hosts.

        Raises:
            ConnectionError: there is none, or the server defers it.
            InputError: a redirect leads to a host that is not allowed.
        """
        for _ in range(_MOST_REDIRECTS + 1):
            reply = self._sent(url, tag)
            if back_off.may_pass(reply.status):
                raise ConnectionError(f"the server answers {reply.status}")
            if reply.status not in _MOVED:
                return reply
            url = urljoin(url, reply.headers.get("Location", ""))
            if not self._source.may_ask(url):
                raise InputError(
                    f"{self._address}: a redirect to {public_address(url)} is not followed; "
                    "allow=HOST in the feed's address allows it"
                )
        raise InputError(f"{self._address}: more than {_MOST_REDIRECTS} redirects")

    def _sent(self, url: str, tag: str) -> _Reply:
        parts = urlsplit(url)
        headers = {"Accept": _ACCEPT, "User-Agent": "spaseq"}
        if tag:
            headers["If-None-Match"] = tag
        if _place(url) == _place(self._source.root):
            headers |= basic_login(self._address)
        with closing(http_connection(parts.scheme, parts.netloc.rpartition("@")[2])) as connection:
            try:
                target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
                connection.request("GET", target, headers=headers)
                response = connection.getresponse()
                body = response.read(_MOST_BYTES + 1)
            except (http.client.HTTPException, ValueError) as error:
                raise ConnectionError(f"{type(error).__name__} {error}".strip()) from None
        if len(body) > _MOST_BYTES:
            raise InputError(f"{public_address(url)}: a page of more than {_MOST_BYTES:,} bytes")
        return _Reply(response.status, response.headers, body, url)

    def _tell(self, text: str) -> None:
        """Tell the user something, once."""
        if text not in self._told:
            self._told.add(text)
            self._intake.note(text)


def _cached(headers: Headers) -> tuple[bool, float | None]:
    """Whether an answer never changes, and for how long (s) it is fresh, if that is said."""
    words = [word.strip().lower() for word in headers.get("Cache-Control", "").split(",")]
    ages = [word.partition("=")[2] for word in words if word.startswith("max-age=")]
    age = float(ages[0]) if ages and ages[0].isdigit() else None
    return "immutable" in words, age


_MEMBERS, _PAGE = "members ", "page "
_HASH_BYTES = 8
_EARLIEST = -(2**63)
MESSAGE_BYTES = 1 << 17
"""About how large a message with members is at most."""


@dataclass(slots=True)
class _HeldMember:
    """A member that waits: its text, the hash of its name, and its page."""

    text: str
    hash: bytes
    page: str


class FeedWalk:
    """The state of a walk through a feed.

    Args:
        root: the address of its first page.
        time_predicate: the predicate of times in the events.
        marks: the marks of the messages of earlier runs.
    """

    def __init__(self, root: str, time_predicate: str, marks: Mapping[str, str]) -> None:
        self._time_predicate = time_predicate
        self._seen = set[bytes]()
        self._closed: dict[str, list[Relation]] = {}  # pages that need not be read again
        self._serial = 0
        for name, text in marks.items():
            if name.startswith(_MEMBERS):
                self._serial = max(self._serial, int(name.removeprefix(_MEMBERS)))
                data = b64decode(text)
                self._seen |= {
                    data[at : at + _HASH_BYTES] for at in range(0, len(data), _HASH_BYTES)
                }
            elif name.startswith(_PAGE):
                relations = [Relation(*pair) for pair in json.loads(text)]
                self._closed[name.removeprefix(_PAGE)] = relations
        self._waiting: list[tuple[int, int, Relation]] = []  # a heap
        self._known = {root}
        self._held: list[tuple[int, tuple[int, str], int, _HeldMember]] = []  # a heap
        self._left: dict[str, int] = {}  # members of closed pages that are still held
        self._complete: list[str] = []  # closed pages without such
        self._counter = count()
        self.root = root

    def next(self) -> str | None:
        """The page that is to be read next; None if there is none."""
        return heappop(self._waiting)[-1].node if self._waiting else None

    def leads_to(self, relations: Iterable[Relation]) -> None:
        """Take the links of a page."""
        links = [*relations]
        while links:
            link = links.pop()
            if link.node in self._known:
                continue
            self._known.add(link.node)
            if link.node in self._closed:
                links += self._closed[link.node]
                continue
            first = _EARLIEST if link.least is None else link.least
            heappush(self._waiting, (first, next(self._counter), link))

    def take(self, iri: str, page: TreePage, feed: FeedDescription, closed: bool) -> list[str]:
        """Add the members and links of a page.

        Args:
            iri: its address, as its links name it.
            page: its contents.
            feed: the feed's description on the root page.
            closed: whether it never changes.

        Returns:
            The members without triples on the page.
        """
        relations, empty, members = page.relations(feed), [], 0
        for member in page.members(feed):
            name = blake2b(member.event.name.encode(), digest_size=_HASH_BYTES).digest()
            if name in self._seen:
                continue
            if not member.event.triples:
                empty.append(member.event.name)
                continue
            self._seen.add(name)
            members += 1
            self._hold(member, name, iri)
        if closed and not empty:
            self._closed[iri] = relations
            self._left[iri] = members
            if not members:
                self._complete.append(iri)
        self.leads_to(relations)
        return empty

    def _hold(self, member: Member, name: bytes, page: str) -> None:
        waiting = _HeldMember(member.event.nquads(self._time_predicate), name, page)
        time = _EARLIEST if member.time_ms is None else member.time_ms
        heappush(self._held, (time, member.order, next(self._counter), waiting))

    def ready(self) -> list[tuple[bytes, MarkChanges]]:
        """(N-Quads, marks) of the messages with the members that need not wait any longer."""
        bounds = [page.least for _, _, page in self._waiting if page.least is not None]
        limit = min(bounds, default=None)
        members = list[_HeldMember]()
        while self._held and (limit is None or self._held[0][0] < limit):
            members.append(heappop(self._held)[-1])
        size, sizes = 0, list[int]()
        for each in members:
            size += len(each.text)
            sizes.append((size - 1) // MESSAGE_BYTES)
        parts = groupby(zip(sizes, members, strict=True), key=lambda pair: pair[0])
        return [self._message([each for _, each in part]) for _, part in parts]

    def _message(self, members: list[_HeldMember]) -> tuple[bytes, MarkChanges]:
        self._serial += 1
        hashes = b64encode(b"".join(each.hash for each in members)).decode()
        for each in members:
            if each.page in self._left:
                self._left[each.page] -= 1
                if not self._left[each.page]:
                    self._complete.append(each.page)
        marks = [(f"{_MEMBERS}{self._serial}", hashes)]
        for page in self._complete:
            links = [[link.node, link.least] for link in self._closed[page]]
            marks.append((_PAGE + page, json.dumps(links)))
        self._complete.clear()
        return "".join(each.text for each in members).encode(), tuple(marks)
