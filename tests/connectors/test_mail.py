"""Mail as an output, by a mail server on loopback: headers, refusals, outages, TLS, logins."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from spaseq.connectors import sink_at
from spaseq.connectors.base import NotTaken, Parcel
from spaseq.errors import UsageError
from tests.connectors.certificates import Certificates
from tests.serve.servers import served, wait

smtp = pytest.importorskip("aiosmtpd.smtp")


class MailServer:
    """Keeps the mails that it gets; says the `replies` first."""

    def __init__(self, tls: ssl.SSLContext | None = None, **options: Any) -> None:
        self.mails: list[EmailMessage] = []
        self.replies: list[str] = []
        self.to: list[str] = []
        self._loop = asyncio.new_event_loop()
        making = self._loop.create_server(
            lambda: smtp.SMTP(self, loop=self._loop, enable_SMTPUTF8=True, **options),
            "127.0.0.1",
            0,
            ssl=tls,
        )
        self.port = self._loop.run_until_complete(making).sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    async def handle_RCPT(self, *given: Any) -> str:
        _, _, envelope, address, _ = given
        if address.startswith("nobody"):
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, *given: Any) -> str:
        if self.replies:
            return self.replies.pop(0)
        envelope = given[2]
        self.to += envelope.rcpt_tos
        mail = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        return "250 OK"

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


@pytest.fixture
def server() -> Iterator[MailServer]:
    made = MailServer()
    yield made
    made.close()


def sent(port: int, text: str, to: str = "ops@example.org", **options: object) -> list[str]:
    sink = sink_at(f"smtp://127.0.0.1:{port}/{to}", {"from": "spaseq@example.org", **options})
    return [refusal.reason for refusal in sink.send([Parcel("ab" * 16, text, "q", 0)])]


def test_the_first_line_is_the_subject(server: MailServer) -> None:
    assert sent(server.port, "Jam: żółć\n\nLoop 4\nx\n", "a@example.org,b@example.org") == []
    (mail,) = server.mails
    assert mail["Subject"] == "Jam: żółć"
    assert (mail["From"], mail["To"]) == ("spaseq@example.org", "a@example.org, b@example.org")
    assert mail["Message-ID"] == f"<{'ab' * 16}@example.org>"
    assert mail.get_content().split() == ["Loop", "4", "x"]
    assert server.to == ["a@example.org", "b@example.org"]


@pytest.mark.parametrize("sign", ["\r", "\x0b", "\x85", "\u2028", "\r\r", "\x1d"])
def test_line_breaks_of_a_subject_become_spaces(server: MailServer, sign: str) -> None:
    assert sent(server.port, f"Jam{sign}Bcc: x@example.org\nbody") == []
    (mail,) = server.mails
    assert mail["Subject"] == "Jam Bcc: x@example.org"
    assert mail["Bcc"] is None and server.to == ["ops@example.org"]


@pytest.mark.parametrize("mailbox", ["ops@example.org", "żółć@example.org"])
def test_a_line_may_begin_as_mailboxes_of_unix_part_mails(server: MailServer, mailbox: str) -> None:
    assert sent(server.port, "Jam\nFrom 10:00 to 10:05.\n.\nFrom there on", mailbox) == []
    body = server.mails[0].get_content()
    assert body.splitlines() == ["From 10:00 to 10:05.", ".", "From there on"]
    assert server.to == [mailbox]


def test_html(server: MailServer) -> None:
    sent(server.port, "Jam\n<p>hello</p>", content_type="text/html; charset=utf-8")
    assert server.mails[0].get_content_type() == "text/html"


def test_later_and_never(server: MailServer) -> None:
    server.replies = ["451 greylisted", "554 no spam here"]
    with pytest.raises(NotTaken, match="451 greylisted"):
        sent(server.port, "Jam")
    (reason,) = sent(server.port, "Jam")
    assert "554 no spam here" in reason
    assert sent(server.port, "Jam") == [] and len(server.mails) == 1
    (reason,) = sent(server.port, "Jam", "nobody@example.org")
    assert "550 no such mailbox" in reason


def test_nobody_there() -> None:
    with pytest.raises(NotTaken, match="check the host and the port"):
        sent(1, "Jam")


def test_tls_from_the_start_and_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.chain, made.key)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.authority))
    logins = []

    def check(_: object, __: object, ___: object, ____: object, data: Any) -> Any:
        logins.append((data.login, data.password))
        return smtp.AuthResult(success=data.password == b"se:cret")

    server = MailServer(tls_context=context, authenticator=check, auth_require_tls=True)
    secret = {"from": "a@example.org", "user": "me", "password": "se:cret", "starttls": True}
    sink = sink_at(f"smtp://localhost:{server.port}/ops@example.org", secret)
    assert sink.send([Parcel("id", "Jam", "q", 0)]) == []
    assert logins == [(b"me", b"se:cret")] and "cret" not in f"{sink.address}{sink.address!r}"
    server.close()
    server = MailServer(tls=context)
    sink = sink_at(f"smtps://localhost:{server.port}/ops@example.org", {"from": "a@example.org"})
    assert sink.send([Parcel("id", "Jam", "q", 0)]) == [] and len(server.mails) == 1
    server.close()


@pytest.mark.parametrize("to", ["", "ops", "a@b,c", "a@b%0Ac@d"])
def test_addresses_that_are_none(to: str) -> None:
    with pytest.raises(UsageError, match="no mailbox"):
        sink_at(f"smtp://host/{to}")


def test_an_alert_by_mail(tmp_path: Path, server: MailServer) -> None:
    """A line break in a value, and in a title, adds no header."""
    sink = f'[sinks.mail]\nto = "smtp://127.0.0.1:{server.port}/ops@example.org"\n'
    query = (
        "# title: Jam\u2028Bcc: x@example.org\n# severity: warning\n"
        "SELECT ?v WITHIN 1 HOURS FROM STREAM S <http://e/s> "
        "WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://e/p> ?v } }"
    )
    with served(tmp_path, stream=sink) as running:
        running.http.put("/queries/jam", content=query)
        running.feed(0, 2)
        wait(lambda: server.mails)
    (mail,) = server.mails
    assert mail["Subject"] == "[warning] Jam Bcc: x@example.org"
    assert mail["Bcc"] is None and "v: 0" in mail.get_content()
