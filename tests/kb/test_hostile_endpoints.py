"""Endpoints that need not be trusted: a request ends in time, within bounds, with a reason."""

from __future__ import annotations

import gzip
import json
import logging
import socket
import struct
import time
from base64 import b64encode
from collections.abc import Sequence
from ipaddress import IPv6Address

import pytest

from spaseq.kb.endpoint import Endpoint
from spaseq.kb.http_request import Network, is_private, resolved
from spaseq.kb.service_address import AllowedHosts, ServiceAddress, ServiceFailure
from spaseq.limits import Limits
from spaseq.options import ServiceOptions
from spaseq.rdf.terms.term import LANG_STRING
from tests.hostile import run_bounded
from tests.kb import raw_server as r

ONE = ServiceOptions(timeout_s=20, retries=0)
HASTY = ServiceOptions(timeout_s=0.5, retries=0)
FAR_LATER = 10.0
"""Seconds that no request takes whose deadline is half a second."""


def document(*terms: str) -> bytes:
    """An answer with one solution for each term of ?x."""
    rows = ", ".join(f'{{"x": {term}}}' for term in terms)
    return f'{{"head": {{"vars": ["x"]}}, "results": {{"bindings": [{rows}]}}}}'.encode()


GOOD = document('{"type": "uri", "value": "http://e/a"}')
NOTHING = document()


def values(server: r.RawServer, options: ServiceOptions = ONE) -> list[str | None]:
    return [x for (x,) in Endpoint(server.url, options).select("SELECT ?x {}", ["x"])]


def reason(*talks: r.Talk, options: ServiceOptions = ONE) -> str:
    """Why a request fails."""
    with r.talking(*talks) as server, pytest.raises(ServiceFailure) as failure:
        values(server, options)
    return str(failure.value)


# --- time -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "start",
    [b"", b"HTTP/1.1 200", r.OK, r.OK + b"X: ", r.OK + b"Transfer-Encoding: chunked\r\n\r\n1",
     r.OK + b"Content-Length: 1000\r\n\r\n{", b"HTTP/1.1 100 Continue\r\n"],
)  # fmt: skip
def test_a_server_that_drips_is_left_when_the_time_is_over(start: bytes) -> None:
    drops = [b"1"] * 200
    began = time.monotonic()
    said = reason(r.saying(start, *drops, pause_s=0.1), options=HASTY)
    assert said == "timed out after 0.5 s"
    assert time.monotonic() - began < FAR_LATER


def test_endless_interim_answers_end_with_the_time() -> None:
    def talk(sock: socket.socket) -> None:
        while True:
            sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)

    assert reason(talk, options=HASTY) == "timed out after 0.5 s"


def test_redirects_share_one_deadline() -> None:
    def talk(sock: socket.socket) -> None:
        time.sleep(0.2)
        r.redirect("/sparql")(sock)

    assert reason(talk, options=HASTY) == "timed out after 0.5 s"


def test_a_server_that_accepts_and_never_reads() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        with pytest.raises(ServiceFailure, match="timed out"):
            Endpoint(url, HASTY).select("x" * 20_000_000, [])
        with pytest.raises(ServiceFailure, match="timed out"):
            Endpoint(url.replace("http", "https"), HASTY).select("SELECT", [])


def test_a_name_that_takes_forever_to_resolve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(2) or [])
    with pytest.raises(ServiceFailure, match="timed out"):
        Endpoint("http://example.org/", HASTY).check()


# --- bytes ----------------------------------------------------------------------------------------


def endless(sock: socket.socket) -> None:
    sock.sendall(r.OK + b"\r\n")
    while True:
        sock.sendall(b" " * 65536)


def endless_chunks(sock: socket.socket) -> None:
    sock.sendall(r.OK + b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        sock.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")


SMALL = ServiceOptions(timeout_s=20, retries=0, max_bytes=100_000)


@pytest.mark.parametrize(
    "talk",
    [
        endless,
        endless_chunks,
        r.saying(r.OK + b"Content-Length: 3900000000\r\n\r\n"),
        r.body(GOOD + b" " * 100_000),
        r.body(gzip.compress(b" " * 50_000_000), "Content-Encoding: gzip"),
    ],
)
def test_the_bytes_of_an_answer_are_bounded(talk: r.Talk) -> None:
    assert reason(talk, options=SMALL) == "the answer has more than 100,000 bytes"


def test_packed_answers_are_unpacked() -> None:
    packed = gzip.compress(GOOD)
    for data in (packed, packed + b"rest"):
        with r.talking(r.body(data, "Content-Encoding: gzip")) as server:
            assert values(server) == ["<http://e/a>"]
    assert "end early" in reason(r.body(packed[:-20], "Content-Encoding: gzip"))
    assert "no gzip data" in reason(r.body(GOOD, "Content-Encoding: gzip"))
    assert "packed as br" in reason(r.body(GOOD, "Content-Encoding: br"))


# --- HTTP -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (r.OK + b"Content-Length: abc\r\n\r\n" + GOOD, "the Content-Length abc"),
        (r.OK + b"Content-Length: -1\r\n\r\n" + GOOD, "the Content-Length -1"),
        (r.OK + b"Content-Length: 1_0\r\n\r\n" + GOOD, "the Content-Length 1_0"),
        (r.OK + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\n" + GOOD, "Content-Length 3, 4"),
        (r.OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", "the Content-Length 999"),
        (r.OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", "the connection broke"),
        (r.OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\n" + GOOD, "the connection broke"),
        (r.OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"5" * 70_000, "the connection broke"),
        (r.OK + b"X: y\r\n" * 1000 + b"\r\n", "the connection broke"),
        (r.OK + b"X: " + b"y" * 1_000_000 + b"\r\n\r\n", "the connection broke"),
        (b"HTTP/1.1 " + b"2" * 1_000_000 + b"\r\n\r\n", "the connection broke"),
        (b"\x1b[31mSSH-2.0\r\n\r\n", "the connection broke"),
        (b"HTTP/1.1 abc OK\r\n\r\n", "the connection broke"),
        (b"", "the connection broke"),
        (b"HTTP/1.1 500 " + b"no" * 10_000 + b"\r\n\r\n", "HTTP status 500 no"),
        (b"HTTP/1.1 307 Moved\r\n\r\n", "HTTP status 307 without an address"),
        (b"HTTP/1.1 304 Same\r\n\r\n", "HTTP status 304"),
    ],
)
def test_broken_http_is_a_failure_with_a_reason(said: bytes, why: str) -> None:
    found = reason(r.saying(said))
    assert why in found
    assert len(found) < 500


def reset(sock: socket.socket) -> None:
    sock.sendall(r.OK + b"Content-Length: 1000\r\n\r\n{")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_a_reset_midway_is_tried_again_on_a_new_connection() -> None:
    options = ServiceOptions(timeout_s=20, retries=2, backoff_s=0.01)
    with r.talking(reset, r.saying(r.OK + b"Content-Length: abc\r\n\r\n"), r.body(GOOD)) as server:
        assert values(server, options) == ["<http://e/a>"]
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    "url",
    [
        "http://[::1>", "http://[::1", "http://::1/", "http://[::1]x/", "http://localhost:99999/",
        "http://localhost:abc/", "http://localhost:/", "http://localhost:0/", "http:///sparql",
        "http://", "http://:80/", "http://a b/", "http://a\r\nHost: b/", "http://a\x00b/",
        f"http://{'a' * 100_000}/", f"http://{'ä' * 100_000}/", "http://ä..ö/", "http://-/",
        "http://me:se/cret@example.org/", "ftp://example.org/", "//example.org/", "", "http://\ud800/",
    ],
)  # fmt: skip
def test_a_broken_address_is_a_failure_with_a_reason(url: str) -> None:
    with pytest.raises(ServiceFailure, match="the address is not valid: ") as failure:
        Endpoint(url, ONE).check()
    assert "cret" not in str(failure.value)
    assert url not in AllowedHosts.of(ServiceOptions(allow=["localhost", "a", "[::1]"]), [])


# --- redirects ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("https://127.0.0.1/", "another scheme is refused: https://127.0.0.1/"),
        ("ftp://127.0.0.1/", "no valid address"),
        ("file:///etc/passwd", "no valid address"),
        ("http://[::1", "no valid address"),
        ("//127.0.0.1:99999/", "no valid address"),
        ("/sparql", "more than 5 redirects"),
        ("https://me:secret@example.org/?token=secret", "https://***@example.org/?***"),
    ],
)
def test_redirects_that_are_refused(place: str, why: str) -> None:
    found = reason(r.redirect(place))
    assert why in found and "secret" not in found


def network(private: Sequence[str], known: dict[str, list[str]]) -> Network:
    """Loopback addresses, of which some count as private, and the hosts that have them."""
    return Network(
        lambda host, port, left: known.get(host) or resolved(host, port, left),
        lambda ip: ip in private,
    )


def asked(url: str, network: Network) -> list[str | None]:
    return [x for (x,) in Endpoint(url, ONE, network).select("SELECT ?x {}", ["x"])]


@pytest.mark.parametrize("host", ["inside.example", "127.0.0.9", "[::ffff:127.0.0.9]"])
def test_a_redirect_from_a_public_to_a_private_address_is_refused(host: str) -> None:
    private = ["127.0.0.9", str(IPv6Address("::ffff:127.0.0.9"))]  # Pythons write it differently
    known = {"out.example": ["127.0.0.1"], "inside.example": private[:1]}
    with r.talking(r.body(GOOD)) as inside, r.talking(r.redirect(f"http://{host}:9/")) as outside:
        net = network(private, known)
        with pytest.raises(ServiceFailure, match="a redirect to a private address is refused"):
            asked(f"http://out.example:{outside.port}/", net)
        outside.talks = [r.redirect(f"http://127.0.0.1:{inside.port}/")]
        assert asked(f"http://out.example:{outside.port}/", net) == ["<http://e/a>"]
        known["out.example"] = ["127.0.0.1", "127.0.0.9"]  # the public one of both
        outside.talks = [r.redirect("http://127.0.0.9:9/")]
        with pytest.raises(ServiceFailure, match="a redirect to a private address is refused"):
            asked(f"http://out.example:{outside.port}/", net)


def test_a_redirect_within_a_private_network_is_followed() -> None:
    with r.talking(r.body(GOOD)) as inside, r.talking(r.redirect(inside.url)) as first:
        assert asked(first.url, network(["127.0.0.1"], {})) == ["<http://e/a>"]


def test_a_name_is_resolved_once_for_each_request() -> None:
    """No other address can come between the check and the connection."""
    answers = iter([["127.0.0.1"], ["127.0.0.9"]])
    with r.talking(r.body(GOOD)) as server:
        net = Network(lambda *_: next(answers), lambda ip: ip == "127.0.0.9")
        assert asked(f"http://rebound.example:{server.port}/", net) == ["<http://e/a>"]
    assert next(answers) == ["127.0.0.9"]


PRIVATE = [
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
    "0.0.0.0", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1",
    "fd12::1", "::ffff:10.0.0.1", "::ffff:a00:1", "64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1",
    "ff02::1",
]  # fmt: skip


def test_private_addresses() -> None:
    assert [ip for ip in PRIVATE if not is_private(ip)] == []
    assert not any(map(is_private, ["1.1.1.1", "2606:4700::1111", "64:ff9b::101:101"]))


def test_a_name_that_stands_for_a_number_is_what_it_resolves_to() -> None:
    assert resolved("2130706433", 80, 5.0) == ["127.0.0.1"]


def test_the_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with r.talking(r.redirect("/there"), r.body(GOOD), r.redirect("http://127.0.0.9/")) as proxy:
        monkeypatch.setenv("http_proxy", f"http://me:secret@127.0.0.1:{proxy.port}")
        assert asked("http://out.example/sparql", network([], {})) == ["<http://e/a>"]
        first, second = proxy.requests
        assert first.startswith(b"POST http://out.example/sparql HTTP/1.1\r\n")
        assert second.startswith(b"POST http://out.example/there HTTP/1.1\r\n")
        assert b"Proxy-Authorization: Basic " + b64encode(b"me:secret") in first
        with pytest.raises(ServiceFailure, match="behind a proxy"):
            asked("http://out.example/sparql", network([], {}))


# --- passwords ------------------------------------------------------------------------------------


def test_a_password_works_and_is_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    options = ServiceOptions(timeout_s=20, retries=1, backoff_s=0.01)
    with r.talking(r.body(GOOD)) as there:
        talks = r.saying(b"HTTP/1.1 503 Busy\r\n\r\n"), r.redirect("/b")
        with r.talking(*talks, r.redirect(f"http://localhost:{there.port}/")) as server:
            url = f"http://me:s%2Fcret@127.0.0.1:{server.port}/sparql?token=geheim"
            with caplog.at_level(logging.WARNING, "spaseq"):
                assert Endpoint(url, options).select("SELECT ?x {}", ["x"]) == [("<http://e/a>",)]
        user = b"Authorization: Basic " + b64encode(b"me:s/cret")
        assert all(user in request for request in server.requests)
        assert b"POST /sparql?token=geheim HTTP" in server.requests[0]
        assert b"Authorization" not in there.requests[0]
    assert "http://***@127.0.0.1" in caplog.text
    assert not any(word in caplog.text for word in ("cret", "geheim", "me:"))


# --- answers --------------------------------------------------------------------------------------

URI = '{"type": "uri", "value": "http://e/a"}'
TRIPLE = f'{{"type": "triple", "value": {{"subject": {URI}, "predicate": {URI}, "object": %s}}}}'

TRIPLE_TERM = "<<( <http://e/a> <http://e/a> <<( <http://e/a> <http://e/a> <http://e/a> )>> )>>"


def literal(value: str, rest: str = "") -> str:
    return f'{{"type": "literal", "value": {value}{rest}}}'


def head(vars: str) -> bytes:
    return f'{{"head": {vars}, "results": {{"bindings": []}}}}'.encode()


@pytest.mark.parametrize(
    ("data", "why"),
    [
         (document(TRIPLE % '{"type": "uri", "value": "a>"}'), "Invalid"),
        (document(TRIPLE % (TRIPLE % (TRIPLE % URI))), "nested more than 2"),
        (document('{"type": "uri", "value": "a b"}'), "Invalid"),
        (document('{"type": "uri", "value": "http://a> <b"}'), "Invalid"),
        (document('{"type": "uri", "value": "relative"}'), "Invalid"),
        (document('{"type": "bnode", "value": "a b } #"}'), "Invalid"),
        (document(literal('"a"', ', "xml:lang": "en us"')), "Invalid"),
        (document(literal('"a"', ', "datatype": "in teger"')), "Invalid"),
        (document(literal('"a"', ', "xml:lang": "en", "datatype": "http://e/d"')), "datatype"),
        (document(literal('"a"', f', "datatype": "{LANG_STRING}"')), "without a language"),
        (document(literal('"' + "a" * 1001 + '"')), "a literal of more than 1,000 bytes"),
        (document(literal('"' + "ä" * 501 + '"')), "a literal of more than 1,000 bytes"),
        (document(literal('"\\ud800"')), "not JSON"),
        (document(*[URI] * 11), "more than 10 solutions"),
        (document(literal('"a"', ', "value": "b"')), "key twice"),
        (b'{"head":{"vars":["x"]},"head":{"vars":["y"]},"results":{"bindings":[]}}', "key twice"),
        (head('{"vars": ["x", "x"]}'), "twice"),
        (head('{"vars": [1]}'), "strings"),
        (head('{"vars": ["x y"]}'), "Invalid"),
        (head('{"vars": {}}'), "array"),
        (head(json.dumps({"vars": [f"v{i}" for i in range(200)]})), "200 variables"),
        (head('{"vars": ["x"], "link": %s}' % ("[" * 50 + "]" * 50)), "nested more than 2 deep"),
        (b'{"head":{"vars":["x"]},"boolean":true}', "a boolean, not solutions"),
        (b'{"head":{"vars":["x"]}}', "not JSON"),
        (b'{"results":{"bindings":{}}}', "not JSON"),
        (b'{"results":null}', "not JSON"),
        (document("null"), "not JSON"), (document("NaN"), "not JSON"),
        (document("1e99999"), "not JSON"),
        (document(literal('"@"')).replace(b"@", b"\xff"), "UTF-8"),
        (document("1" * 100_000), "not JSON"), (document('{"type": "uri"}'), "not JSON"),
        (document('{"value": "x"}'), "not JSON"), (document(literal("12")), "not JSON"),
        (b"", "not JSON"), (b"[]", "not JSON"), (b"null", "not JSON"), (GOOD + b"x", "not JSON"),
        (GOOD.decode().encode("utf-16"), "not JSON"),
        (b'{"a": "\\' * 1000, "not JSON"), (b"}]" * 1000, "not JSON"), (b"[" * 101, "arrays"),
        (b'"' * 1001, "not JSON"),
    ],
)  # fmt: skip
def test_answers_that_are_not_valid_are_failures_with_reasons(data: bytes, why: str) -> None:
    limits = Limits(nesting=2, literal_bytes=1000, solutions=10)
    options = ServiceOptions(timeout_s=20, retries=0, limits=limits)
    assert why in reason(r.body(data), options=options)


def test_answers_that_are_odd_but_valid() -> None:
    with r.talking(
        r.body(b"\xef\xbb\xbf" + GOOD),
        r.body(b'{"meta": {"n": 12, "m": [1e999]}, ' + GOOD[1:]),
        r.body(NOTHING),
        r.body(document(literal('"\\u001b[31m \\u202e \\u0000"'))),
        r.body(document(literal('"a"', ', "xml:lang": "EN"'))),
        r.body(document(TRIPLE % (TRIPLE % URI))),
    ) as server:
        found = [values(server) for _ in server.talks]
    escaped = '"\\u001B[31m \u202e \\u0000"'
    assert found == [["<http://e/a>"], ["<http://e/a>"], [], [escaped], ['"a"@en'], [TRIPLE_TERM]]


@pytest.mark.thorough
def test_deep_nesting_and_large_answers_do_not_kill_the_process() -> None:
    code = f"""
from spaseq.kb.endpoint import AnswerError, answer_rows
from spaseq.limits import Limits
uri = {URI!r}
start, end = {TRIPLE!r}.split("%s")
deep = start * 20_000 + uri + end * 20_000
for text in (deep, "[" * 10**7, '{{"a":' * 10**6, '"' * 10**7, '\\\\"' * 10**7, "[]," * 10**7):
    data = ('{{"head": {{"vars": ["x"]}}, "results": {{"bindings": [{{"x": ' + text).encode()
    for cut in (data, data + b"}}" * 4):
        try:
            print(len(answer_rows(cut, ["x"], "", Limits())))
        except (AnswerError, SyntaxError) as error:
            print(str(error)[:30])
"""
    done = run_bounded(code, memory=1 << 30, seconds=60)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 12
    assert "the answer is nested more than" in done.stdout


# --- hosts ----------------------------------------------------------------------------------------


def test_hosts_that_may_be_asked() -> None:
    options = ServiceOptions(allow=["Example.ORG", "[::1]:8080", "10.0.0.1", "münchen.example:81"])
    allowed = AllowedHosts.of(options, ["https://kb.example/sparql", "not valid"])
    for url in (
        "http://example.org/a", "HTTPS://EXAMPLE.org:8443/b", "http://me:pw@example.org/",
        "http://[::1]:8080/", "http://10.0.0.1:99/", "http://xn--mnchen-3ya.example:81/",
        "https://kb.example/other", "https://kb.example:443/",
    ):  # fmt: skip
        assert url in allowed, url
    for url in (
        "http://kb.example/", "http://example.org.evil.example/", "http://example.org@evil.example/",
        "http://[::1]/", "http://sub.example.org/", "http://evil.example/?example.org",
        "http://evil.example\\@example.org/", "http://example.org:80:81/", "urn:example.org",
    ):  # fmt: skip
        assert url not in allowed, url


def test_the_parts_of_an_address() -> None:
    address = ServiceAddress.of("HTTP://Ex.org/ä/%20?q=ü&r=%C3%A4#part")
    assert (address.host, address.port) == ("ex.org", 80)
    assert address.target == "/%C3%A4/%20?q=%C3%BC&r=%C3%A4"
    assert ServiceAddress.of("https://a.example:8443?x=y").target == "/?x=y"
