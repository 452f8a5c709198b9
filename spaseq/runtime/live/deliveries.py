"""The outputs of a live run: each has a delivery, which sends it answers from the log."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spaseq.alert_templates.template import AlertTemplate
from spaseq.connectors import SINKS_OF_SCHEMES, is_sink
from spaseq.connectors.address import Address, scheme_of
from spaseq.errors import UsageError
from spaseq.logs.segment_log import SegmentLog
from spaseq.runtime.live.delivery import Delivery, DeliveryView, Terms
from spaseq.runtime.live.outlets import (
    AnswerTemplate,
    BrokerOutlet,
    FileOutlet,
    Outlet,
    outlet_of,
)
from spaseq.sinks import SINKS
from spaseq.sinks.jsonl import JsonLines

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True, slots=True)
class SinkSettings:
    """An output of a live run.

    Attributes:
        to: a path, `-`, or the URL of a sink.
        terms: which answers it gets, and how long they wait for it.
        form: the format of a file; "": its extension says it.
        columns: of a table.
        overwrites: whether a file's content is removed when the output is new.
        has_ids: whether JSON lines of a file begin with the answers' ids, as broker messages do.
        template: makes the text of an answer; None: JSON.
        options: of a webhook or mailbox, beside its address.
    """

    to: str
    terms: Terms = field(default_factory=Terms)
    form: str = ""
    columns: tuple[str, ...] = ()
    overwrites: bool = False
    has_ids: bool = False
    template: AlertTemplate | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def outlet(self, text_of: Callable[[str], str] = lambda title: "") -> Outlet:
        """The output itself, which is not open yet.

        Args:
            text_of: the text of a query, by its title, for templates.

        Raises:
            UsageError: its address has an unknown part, or no format suits it.
        """
        form = self.form or self._form()
        if self.template is not None or self.options:
            return self._special(text_of)
        return outlet_of(self.to, form, self.columns, self.overwrites, self.has_ids)

    def _special(self, text_of: Callable[[str], str]) -> Outlet:
        """An output with a template or options."""
        if not is_sink(self.to):
            what = "template" if self.template else min(self.options)
            raise UsageError(f"{self.to}: {what} is for webhooks, mail and brokers, not for files")
        if self.template is None:
            return BrokerOutlet(self.to, **self.options)
        if "batch" in Address.of(self.to).parameters:
            raise UsageError(f"{Address.of(self.to)}: a template makes one answer, so no batch")
        is_typed = scheme_of(self.to) in ("http", "https", "smtp", "smtps")
        typed = {"content_type": self.template.media_type} if is_typed else {}
        made_by = AnswerTemplate(self.template, text_of)
        return BrokerOutlet(self.to, made_by, **{**typed, **self.options})

    def _form(self) -> str:
        """The format of a file's extension: for several queries, and without an end."""
        if is_sink(self.to):
            return JsonLines.form
        if "://" in self.to:
            raise UsageError(
                f"{scheme_of(self.to)}:// is no output: {', '.join(SINKS_OF_SCHEMES)}, or a path"
            )
        suited = {s.suffix: s.form for s in SINKS.values() if not s.ends and not s.one_query}
        ending = self.to.rpartition(".")[2]
        if ending not in suited:
            endings = ", ".join(f".{suffix}" for suffix in suited)
            raise UsageError(
                f"{self.to}: a file of live answers ends with {endings}; other formats, such as "
                "Parquet and Arrow, are complete only at the end of a run"
            )
        return suited[ending]


class Deliveries:
    """The outputs of a run, which send the answers of the log.

    ```python
    deliveries = Deliveries(directory, log, {"ops": SinkSettings("https://...")}, on_note, on_end)
    log.append(records); log.commit(); deliveries.wake()
    log.drop_before(min(deliveries.next, ...))
    deliveries.views()         # for health and metrics
    deliveries.close(10.0)
    ```

    A new output gets the answers that are logged after this object was made. So make it before the
    first answer is logged.

    Args:
        directory: the directory of the run, locked by the caller; see `Delivery`.
        log: the answers.
        sinks: the outputs, by name.
        on_note: called with notes for the user, in threads of deliveries.
        on_end: called in a delivery's thread when it ends with a failure, which `check` raises.
            Deliveries with `patient` terms never end so.
        text_of: the text of a query, by its title, for templates; called in deliveries' threads.

    Raises:
        SpaseqError: an output's address or file is wrong.
    """

    def __init__(
        self,
        directory: Path,
        log: SegmentLog,
        sinks: Mapping[str, SinkSettings],
        on_note: Callable[[str], None],
        on_end: Callable[[], None] = lambda: None,
        text_of: Callable[[str], str] = lambda title: "",
    ) -> None:
        check_names(sinks)
        self._log = log
        outlets = {name: settings.outlet(text_of) for name, settings in sinks.items()}
        check_files(outlets)
        self._deliveries: list[Delivery] = []
        try:
            for name, outlet in outlets.items():
                made = Delivery(directory, name, log, outlet, sinks[name].terms, on_note, on_end)
                self._deliveries.append(made)
        except BaseException:
            self.close(0.0)
            raise

    @property
    def next(self) -> int:
        """The index of the first answer that a restart may need for an output."""
        return min((delivery.noted for delivery in self._deliveries), default=self._log.end)

    def views(self) -> list[DeliveryView]:
        """The progress of each output; from any thread."""
        return [delivery.view() for delivery in self._deliveries]

    def wake(self) -> None:
        """Wake the deliveries: the log has grown."""
        for delivery in self._deliveries:
            delivery.wake()

    def check(self) -> None:
        """Raise the error that ended a delivery, if there is one."""
        for delivery in self._deliveries:
            delivery.check()

    def close(self, seconds: float) -> None:
        """Send the remaining answers, for at most some seconds, and close the outputs."""
        end = time.monotonic() + seconds
        for delivery in self._deliveries:
            delivery.end()
        for delivery in self._deliveries:
            delivery.close(max(0.0, end - time.monotonic()))


def check_files(outlets: Mapping[str, Outlet]) -> None:
    """UsageError if two outputs share a file: each would cut the file after its last answer."""
    files: dict[str, str] = {}
    for name, outlet in outlets.items():
        if isinstance(outlet, FileOutlet) and files.setdefault(outlet.name, name) != name:
            raise UsageError(f"sinks {files[outlet.name]} and {name} are one file: {outlet.name}")


def check_names(names: Iterable[str]) -> None:
    """UsageError if a name of an output cannot be a file's name."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise UsageError(f"sink {name!r}: a name has letters, digits, `_`, `.` and `-`")
