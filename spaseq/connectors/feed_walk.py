"""The order in which the pages of a linked data event stream are read, and its members given.

Pages are read by the least time that may be behind them. A member waits until no page that is known
and has not been read may have an earlier one. A member is given once, whatever pages have it.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from heapq import heappop, heappush
from itertools import count, groupby

from spaseq.logs.messages import MarkChanges
from spaseq.rdf.messages.described_events import FeedDescription, Member, Relation, TreePage

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
