"""Mail: `smtp://[user:password@]host[:25]/to@example[,other@example]`, and `smtps://`, port 465.

Each answer is a mail. The first line of its text is the subject, the rest the body. The Message-ID
comes from the answer's id, so a repeated mail can be recognised.
"""

from __future__ import annotations

import platform
import re
import smtplib
import ssl
from collections.abc import Mapping, Sequence
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
from email.utils import formatdate
from types import MappingProxyType
from typing import Any

from spaseq.connectors.address import Address
from spaseq.connectors.base import MessageSink, NotTaken, Parcel, Refusal
from spaseq.errors import UsageError

_TIMEOUT_S = 20.0
_MOST_SUBJECT = 500
_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_MAILBOX = re.compile(r"[^\s@<>,\x00-\x1f]+@[^\s@<>,\x00-\x1f]+")


class MailSink(MessageSink):
    """Mailboxes, by way of a mail server."""

    options = frozenset(("from", "user", "password", "starttls", "content_type"))
    together = 1

    def __init__(self, address: Address, given: Mapping[str, Any] = MappingProxyType({})) -> None:
        super().__init__(address, given)
        address.check_parameters(())
        self._to = [each.strip() for each in address.path.split(",")]
        self._user = str(given.get("user", address.user))
        self._password = str(given.get("password", address.password))
        sender = self._user if "@" in self._user else f"spaseq@{platform.node() or 'localhost'}"
        self._from = str(given.get("from", sender))
        for each in (*self._to, self._from):
            if not _MAILBOX.fullmatch(each):
                raise UsageError(f"{address}: {each!r} is no mailbox such as ops@example.org")
        self._starts_tls = bool(given.get("starttls"))
        if self._starts_tls and address.scheme == "smtps":
            raise UsageError(f"{address}: smtps:// has TLS from the start; leave out starttls")
        self._is_html = str(given.get("content_type", "")).startswith("text/html")

    def send(self, parcels: Sequence[Parcel]) -> list[Refusal]:
        refusals = []
        for parcel in parcels:
            reason = self._refusal(parcel)
            refusals += [Refusal(parcel, reason)] if reason else []
        return refusals

    def _refusal(self, parcel: Parcel) -> str | None:
        """Send a mail; why it is refused for good, if it is."""
        try:
            with self._connected() as server:
                refused = server.sendmail(self._from, self._to, *self._mail(parcel))
        except smtplib.SMTPRecipientsRefused as error:
            refused = error.recipients
            if any(code < 500 for code, _ in refused.values()):
                raise NotTaken(self._said(*next(iter(refused.values())))) from error
        except smtplib.SMTPResponseException as error:
            said = self._said(error.smtp_code, error.smtp_error)
            if error.smtp_code < 500:
                raise NotTaken(said) from error
            return said
        except (OSError, smtplib.SMTPException) as error:
            reason = str(error) or type(error).__name__
            raise NotTaken(
                f"{self.address}: no mail server takes it ({reason}): check the host and the port"
            ) from error
        for mailbox, (code, said_of) in refused.items():
            return f"{self._said(code, said_of)} (to {mailbox})"
        return None

    def _connected(self) -> smtplib.SMTP:
        host, _, port = self.address.host.rpartition(":")
        if not port.isdecimal():
            host, port = self.address.host, "0"
        host = host.strip("[]")
        if self.address.scheme == "smtps":
            tls = ssl.create_default_context()
            server: smtplib.SMTP = smtplib.SMTP_SSL(
                host, int(port), timeout=_TIMEOUT_S, context=tls
            )
        else:
            server = smtplib.SMTP(host, int(port), timeout=_TIMEOUT_S)
        try:
            if self._starts_tls:
                server.starttls(context=ssl.create_default_context())
            if self._user:
                server.login(self._user, self._password)
        except BaseException:
            server.close()
            raise
        return server

    def _mail(self, parcel: Parcel) -> tuple[bytes, Sequence[str]]:
        """A mail, and what the server must be able to do.

        `SMTP.send_message` would write `>From` where a line of the body begins with `From`.
        """
        subject, _, body = parcel.text.lstrip().partition("\n")
        mail = EmailMessage()
        mail["Subject"] = _header(subject)[:_MOST_SUBJECT]
        mail["From"], mail["To"] = self._from, ", ".join(self._to)
        mail["Date"] = formatdate()
        mail["Message-ID"] = f"<{parcel.id}@{self._from.rpartition('@')[2]}>"
        mail["Auto-Submitted"] = "auto-generated"
        text = body.strip("\r\n").encode(errors="replace").decode()
        mail.set_content(f"{text}\n", subtype="html" if self._is_html else "plain")
        if "".join([self._from, *self._to]).isascii():
            return mail.as_bytes(policy=SMTP), ()
        return mail.as_bytes(policy=SMTPUTF8), ("SMTPUTF8", "BODY=8BITMIME")

    def _said(self, code: int, text: bytes | str) -> str:
        said = text.decode(errors="replace") if isinstance(text, bytes) else text
        return f"{self.address}: the mail server said {code} {_header(said)[:200]}"


def _header(text: str) -> str:
    """The value of a header: line breaks and control characters become spaces."""
    return _BREAKS.sub(" ", text).strip()
