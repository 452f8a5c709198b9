"""Linked data event streams: pages that are followed, hosts, order, and restarts."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from spaseq.connectors import source_at
from spaseq.connectors.linked_data_feed import LinkedDataFeed
from spaseq.errors import InputError, UsageError
from tests.connectors.feed_server import FeedServer, member, members, root, since
from tests.connectors.intake import ListIntake
from tests.serve.servers import wait

MESSAGES = Path(__file__).parents[3] / "shared" / "messages" / "ldes"


@pytest.fixture
def server() -> Iterator[FeedServer]:
    server = FeedServer()
    yield server
    server.close()


def follow(
    server: FeedServer, path: str = "/feed", marks: dict[str, str] | None = None, more: str = ""
) -> ListIntake:
    return ListIntake(source_at(f"ldes+{server.url}{path}?poll=0.1{more}"), marks=marks)


def given(intake: ListIntake) -> list[int]:
    """The numbers of the members that were given, in order."""
    text = b"".join(message.payload for message in list(intake.messages)).decode()
    return [int(n) for n in re.findall(r'<http://e/n> "(\d+)"', text)]


def test_pages_are_read_in_order_of_time(server: FeedServer) -> None:
    links = ", ".join(since(f"/page/{n}", 10 * n) for n in (3, 1, 2))
    server.put("/feed", root(f"{server.url}/feed", links))
    for n in (1, 2, 3):
        server.put(f"/page/{n}", members(10 * n + 3, 10 * n, 10 * n + 7), closed=n < 3)
    intake = follow(server)
    wait(lambda: len(given(intake)) == 9)
    server.put("/page/3", members(30, 33, 37, 38))
    wait(lambda: len(given(intake)) == 10)
    intake.stop()
    assert given(intake) == [10, 13, 17, 20, 23, 27, 30, 33, 37, 38]
    assert [path for path, _ in server.asked[:4]] == ["/feed", "/page/1", "/page/2", "/page/3"]
    assert {server.asked.count((f"/page/{n}", 200)) for n in (1, 2)} == {1}
    assert ("/page/1", 304) not in server.asked
    assert ("/feed", 304) in server.asked and server.asked.count(("/page/3", 200)) == 2
    first = intake.messages[0].payload.decode().splitlines()
    assert first[0] == (
        "<http://e/m10> <http://www.w3.org/ns/prov#generatedAtTime> "
        '"1970-01-01T00:00:10Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .'
    )
    assert all(line.endswith(" <http://e/m10> .") for line in first[1:3])


def test_members_with_graphs_blank_nodes_and_ties(server: FeedServer) -> None:
    tied = "".join(
        f":f tree:member :m{n} . {member(n, 5, f'; :at [ :seq {9 - n} ] ; :see :other ')}\n"
        for n in (1, 2, 3)
    )
    order = "; ldes:sequencePath ( :at :seq ) "
    text = tied + ":other :p 1 . :m1 { :other :q 2 }"
    server.put("/feed", root(f"{server.url}/feed", "", order) + text, "application/trig")
    intake = follow(server)
    wait(lambda: len(given(intake)) == 3)
    intake.stop()
    assert given(intake) == [3, 2, 1]
    text = intake.messages[0].payload.decode()
    assert text.count("<http://e/seq>") == 3
    assert "<http://e/q>" in text and "<http://e/p>" not in text


def test_a_member_on_several_pages_is_given_once(server: FeedServer) -> None:
    links = since("/a") + ", " + since("/b")
    server.put("/feed", root(f"{server.url}/feed", links) + members(1, 2))
    server.put("/a", members(2, 3))
    server.put("/b", members(1, 3, 4))
    intake = follow(server)
    wait(lambda: len(given(intake)) == 4)
    server.put("/b", members(1, 3, 4, 5))
    wait(lambda: len(given(intake)) == 5)
    intake.stop()
    assert sorted(given(intake)) == [1, 2, 3, 4, 5]


def test_a_run_goes_on_behind_the_last_one(server: FeedServer) -> None:
    """Whatever was committed, each member comes once; closed pages are not asked for again."""
    links = ", ".join(since(f"/page/{n}", 10 * n) for n in range(5))
    server.put("/feed", root(f"{server.url}/feed", links))
    for n in range(5):
        server.put(f"/page/{n}", members(*range(10 * n, 10 * n + 10)), closed=n < 4)
    intake = follow(server)
    wait(lambda: len(given(intake)) == 50)
    intake.stop()
    generator = random.Random(7)
    for kept in {0, len(intake.messages), generator.randrange(len(intake.messages))}:
        marks = {name: text for message in intake.messages[:kept] for name, text in message.marks}
        before = re.findall(
            r'<http://e/n> "(\d+)"', b"".join(m.payload for m in intake.messages[:kept]).decode()
        )
        server.put("/page/4", members(*range(40, 51)))
        server.asked.clear()
        second = follow(server, marks=marks)
        left = 51 - len(before)
        wait(lambda n=left, own=second: len(given(own)) == n)
        second.stop()
        assert [*map(int, before), *given(second)] == [*range(51)]
        if kept == len(intake.messages):
            assert {path for path, _ in server.asked} == {"/feed", "/page/4"}


def test_the_server_is_away_for_a_while(server: FeedServer) -> None:
    server.put("/feed", root(f"{server.url}/feed") + members(1, 2))
    intake = follow(server)
    wait(lambda: len(given(intake)) == 2)
    server.close()
    wait(lambda: any("connecting again" in note for note in intake.notes))
    server.put("/feed", root(f"{server.url}/feed") + members(1, 2, 3))
    server.statuses["/feed"] = [503]
    server.start()
    wait(lambda: len(given(intake)) == 3)
    intake.stop()
    assert given(intake) == [1, 2, 3]
    assert any("connected again" in note for note in intake.notes)
    assert intake.is_connected


def test_only_allowed_hosts_are_asked(server: FeedServer) -> None:
    other = FeedServer()
    try:
        links = since(f"{other.url}/far", 20) + ", " + since("/near", 10)
        server.put("/feed", root(f"{server.url}/feed", links) + members(1))
        server.put("/near", members(11))
        server.moved["/moved"] = f"{other.url}/far"
        other.put("/far", members(21))
        intake = follow(server)
        wait(lambda: len(given(intake)) == 2 and intake.notes)
        intake.stop()
        assert (given(intake), other.asked) == ([1, 11], [])
        assert (
            f"127.0.0.1:{other.port}/far is not requested: its host is not the feed's"
            in (intake.notes[0])
        )
        allowed = follow(server, more=f"&allow=127.0.0.1:{other.port}")
        wait(lambda: len(given(allowed)) == 3)
        allowed.stop()
        assert given(allowed) == [1, 11, 21]
        moved = follow(server, "/moved")
        wait(lambda: moved.failure is not None)
        assert "is not followed" in str(moved.failure)
    finally:
        other.close()


def test_hosts_that_may_be_asked() -> None:
    feed = source_at("ldes+https://feed.example/a?allow=cdn.example,other.example:8443")
    assert isinstance(feed, LinkedDataFeed)
    yes = "https://feed.example/x", "https://cdn.example:7/x", "https://other.example:8443/"
    no = ("http://feed.example/x", "https://other.example/x", "https://feed.example.evil/x")
    no += ("file:///etc/passwd", "https://feed.example@evil/x", "https://feed.example:444/")
    assert [feed.may_ask(url) for url in (*yes, *no)] == [True] * 3 + [False] * 6


def test_what_is_wrong_is_told_and_the_rest_goes_on(server: FeedServer) -> None:
    links = ", ".join(since(path) for path in ("/none", "/broken", "/good", "/gone"))
    server.put("/feed", root(f"{server.url}/feed", links) + members(1) + ":f tree:member :m9 .")
    server.put("/broken", ":f tree:member :m2 . :m2 :n")
    server.put("/good", members(3))
    server.put("/gone", "")
    server.statuses["/gone"] = [410]
    intake = follow(server)
    wait(lambda: len(given(intake)) == 2 and len(intake.notes) == 3)
    intake.stop()
    assert given(intake) == [1, 3]
    notes = sorted(note.removeprefix(server.url) for note in intake.notes)
    assert notes[0].startswith("/broken: ") and "column" in notes[0]
    assert notes[1:] == [
        "/feed has nothing of its member <http://e/m9>",
        "/none: the server answers 404",
    ]


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (":f a ldes:EventStream .", "no stream has this page as its view"),
        (None, "the server answers 404"),
    ],
)
def test_a_first_page_that_is_no_root(server: FeedServer, page: str | None, reason: str) -> None:
    if page is not None:
        server.put("/feed", page)
    intake = follow(server)
    wait(lambda: intake.failure is not None)
    assert isinstance(intake.failure, InputError) and reason in str(intake.failure)


def test_a_stream_that_names_its_view(server: FeedServer) -> None:
    server.put("/feed", f":f tree:view <{server.url}/view> .")
    server.put("/view", root(f"{server.url}/view") + members(1))
    intake = follow(server)
    wait(lambda: given(intake) == [1])
    intake.stop()


def test_addresses() -> None:
    with pytest.raises(UsageError, match="is no number"):
        source_at("ldes+http://h/f?poll=soon")
    feed = source_at("ldes+http://h:81/f?a=1&poll=3&allow=b")
    assert isinstance(feed, LinkedDataFeed)
    assert (feed.root, feed.poll_s) == ("http://h:81/f?a=1", 3.0)


@pytest.mark.skipif(not MESSAGES.exists(), reason="there are no shared samples")
def test_the_samples(server: FeedServer) -> None:
    def own(name: str) -> str:
        return (MESSAGES / name).read_text().replace("http://feed.example", server.url)

    server.pages["/berths"] = "text/turtle", own("feed.ttl")
    server.pages["/berths/page/1"] = "text/turtle", own("page1.ttl")
    server.pages["/berths/page/2"] = "application/trig", own("page2.trig")
    server.closed.add("/berths/page/1")
    intake = follow(server, "/berths")
    wait(lambda: b"".join(m.payload for m in list(intake.messages)).count(b"generatedAt") == 4)
    intake.stop()
    text = b"".join(message.payload for message in intake.messages).decode()
    names = re.findall(
        r"^<([^>]*)> <http://www.w3.org/ns/prov#generatedAtTime>", text, re.MULTILINE
    )
    assert [name.removeprefix(f"{server.url}/berth/") for name in names] == [
        *("12#2026-03-01T08:00:00Z", "13#2026-03-01T09:30:00Z"),
        *("12#2026-03-02T07:00:00Z", "13#2026-03-02T07:00:00Z"),
    ]
    assert "draught" in text and "activitystreams#Delete" in text and "metres" in text
