"""Carries answers from the log to one output, in a thread, so a slow output blocks no other."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from spaseq.back_off import BackOff
from spaseq.connectors.base import NotTaken
from spaseq.errors import RunError
from spaseq.logs.segment_log import LogReader, SegmentLog
from spaseq.runtime.live.answer_records import LoggedAnswer, keep_failed
from spaseq.runtime.live.outlets import Numbered, Outlet
from spaseq.storage.checksums import read_json, with_checksum_line, write_durably

_BYTES = 2**20  # number of answers that are read at once
_SENT_BYTES = 4 * 2**20  # of answers that are sent at once, or a single answer
_NOTE_S = 0.25  # how often the place is noted while answers are sent


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of an output: the answers that it gets, and the treatment of failures.

    Attributes:
        queries: names or globs of the queries whose answers it gets.
        keep_ms: how long an answer waits for it, before it goes to `failed/`.
        past: whether it gets answers of the past, which a query put with `from` makes only of
            events logged before. Other outputs count them as withheld.
        patient: whether every failure is retried. Otherwise a failure ends the delivery, unless it
            is `NotTaken`.
    """

    queries: tuple[str, ...] = ("*",)
    keep_ms: int = 86_400_000
    patient: bool = True
    past: bool = True

    def want(self, query: str) -> bool:
        """Whether the output gets the answers of a query."""
        return any(fnmatchcase(query, pattern) for pattern in self.queries)


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """The health report of an output.

    Attributes:
        name: its name in the configuration.
        to: its address, without passwords.
        behind: number of answers of the log that it has yet to take or to pass over.
        sent: number of answers that it has taken, over restarts.
        failed: number of answers in its file in `failed/`, over restarts.
        withheld: number of answers of the past that it did not get, by query, over restarts.
        problem: the reason why the last attempt, which is repeated, failed; "" if it succeeded.
    """

    name: str
    to: str
    behind: int
    sent: int
    failed: int
    problem: str
    withheld: Mapping[str, int] = field(default_factory=dict)


class Delivery:
    """Sends answers of the log to one output; `Deliveries` makes one for each output.

    Args:
        directory: of the run. `sent/NAME` keeps the position in the log, and `failed/NAME.jsonl`
            the answers that the output did not take.
        name: of the output.
        log: the answers.
        outlet: the output; this object opens and closes it.
        terms: which answers it gets.
        on_note: called in the thread when the output goes away, and comes back.
        on_end: called in the thread if the delivery ends with a failure; see `check`.

    Attributes:
        next: the index of the first answer in the log that it has yet to take or to pass over.
        noted: the value of `next` on disk. A restart begins there.

    Raises:
        SpaseqError: the output cannot be opened.
    """

    def __init__(
        self,
        directory: Path,
        name: str,
        log: SegmentLog,
        outlet: Outlet,
        terms: Terms,
        on_note: Callable[[str], None],
        on_end: Callable[[], None],
    ) -> None:
        self.name, self._outlet, self._terms, self._log = name, outlet, terms, log
        self._on_note, self._on_end = on_note, on_end
        self._place, self._failed = (
            directory / "sent" / name,
            directory / "failed" / f"{name}.jsonl",
        )
        self._failure: BaseException | None = None
        self._problem, self._told_refusal = "", False
        before = read_json(self._place, dict) if self._place.exists() else {}
        self._counts = {name: int(before.get(name, 0)) for name in ("taken", "failed")}
        self._withheld = Counter[str](before.get("withheld", {}))
        self.next = int(before.get("next", log.end))
        known = before.get("output") == outlet.name
        self._state = dict(outlet.begin(before["state"] if known else None))
        self._note_place()
        self._reader = LogReader(log, max(self.next, log.first))
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._is_sure = False  # whether the output is ready, and its state is known
        self._back_off = BackOff()
        self._more, self._stop = threading.Event(), threading.Event()
        self._patience = threading.Event()  # set: no further attempts
        self._thread = threading.Thread(target=self._run, name=f"delivery {name}", daemon=True)
        self._thread.start()

    def view(self) -> DeliveryView:
        """Its progress and its problem; from any thread."""
        behind = max(0, self._log.end - self.next)
        counts = self._counts["taken"], self._counts["failed"]
        problem = str(self._failure) if self._failure is not None else self._problem
        view = self.name, self._outlet.name, behind, *counts, problem
        return DeliveryView(*view, dict(self._withheld))

    def wake(self) -> None:
        """Wake the thread: the log has grown."""
        self._more.set()

    def end(self) -> None:
        """Tell the thread that the log grows no more."""
        self._stop.set()
        self._more.set()

    def close(self, seconds: float) -> None:
        """Send the remaining answers, for at most some seconds, and close the output."""
        self.end()
        self._thread.join(seconds)
        self._patience.set()
        self._thread.join()
        self._reader.close()
        self._outlet.close()

    def check(self) -> None:
        """Raise the error that ended the delivery, if there is one."""
        if self._failure is not None:
            raise self._failure

    # --- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._patience.is_set():
                self._more.clear()
                if self._try_to_send():
                    continue
                if self._stop.is_set():
                    break
                self._more.wait(self._until_note())
            self._note_place()
        except BaseException as error:
            self._failure = error
            self._on_end()

    def _try_to_send(self) -> bool:
        """Send the next answers, or wait after a failure; return whether there are any."""
        try:
            if self._back_off.failures:
                self._expire()  # while it waited for this attempt, too
            return self._send_next()
        except NotTaken as error:
            self._fail(error)
        except Exception as error:
            if not self._terms.patient:
                raise
            self._fail(error)
        return True

    def _send_next(self) -> bool:
        """Send the next answers; return whether there are any."""
        if self._until_note() == 0:
            self._note_place()
        if not self._has_next():
            return False
        if not self._is_sure:
            self._state = dict(self._outlet.resume(self._state))
            self._note_place()
            self._is_sure = True
        some = self._next_part()
        answers = self._wanted(some)
        if answers:
            state, refusals = self._outlet.send(answers)
            self._state = dict(state)
            for reason, refused in refusals:
                self._give_up(refused, reason)
            self._counts["taken"] += len(answers) - len(refusals)
            if self._back_off.failures:
                self._on_note(f"{self._outlet.name} takes answers again")
            self._back_off.succeeded()
            self._problem = ""
        self._count_withheld(record for _, record in some)
        self._pass(len(some))
        return True

    def _has_next(self) -> bool:
        """Whether answers wait; reads more of the log if none do."""
        if not self._waiting:
            self._waiting.extend(self._reader.read(_BYTES))
        return bool(self._waiting)

    def _next_part(self) -> list[tuple[int, bytes]]:
        """The answers to send together."""
        some: list[tuple[int, bytes]] = []
        size = 0
        for index, record in self._waiting:
            size += len(record)
            if some and (size > _SENT_BYTES or len(some) == self._outlet.together):
                break
            some.append((index, record))
        return some

    def _wanted(self, records: list[tuple[int, bytes]]) -> list[Numbered]:
        wanted = []
        for index, record in records:
            if self._terms.want(LoggedAnswer.title_of(record)):
                answer = LoggedAnswer.of_bytes(record)
                if not self._withholds(answer):
                    wanted.append((index, answer))
        return wanted

    def _withholds(self, answer: LoggedAnswer) -> bool:
        return answer.is_past and not self._terms.past

    def _count_withheld(self, records: Iterable[bytes]) -> None:
        if self._terms.past:
            return
        for answer in map(LoggedAnswer.of_bytes, records):
            self._withheld[answer.title] += answer.is_past and self._terms.want(answer.title)

    def _pass(self, count: int) -> None:
        """Pass over the first waiting answers."""
        for _ in range(count):
            self.next = self._waiting.popleft()[0] + 1

    def _until_note(self) -> float | None:
        """Seconds until the position must be noted; None if there is nothing to note."""
        if self.next == self.noted:
            return None
        return max(0.0, self._noted_at + _NOTE_S - time.monotonic())

    def _note_place(self) -> None:
        """Note the position on disk; RunError if the disk is full."""
        note = {"output": self._outlet.name, "next": self.next, "state": self._state}
        if self._withheld:
            note["withheld"] = dict(self._withheld)
        try:
            self._place.parent.mkdir(exist_ok=True)
            text = with_checksum_line(json.dumps({**note, **self._counts}))
            write_durably(self._place, text.encode())
        except OSError as error:
            raise RunError(f"cannot write {self._place}: {error.strerror}") from error
        self.noted, self._noted_at = self.next, time.monotonic()

    # --- failures ---------------------------------------------------------------------------------

    def _fail(self, error: Exception) -> None:
        """Wait after a failed attempt; answers that have waited too long become failed answers."""
        self._is_sure = False
        self._problem = str(error) or type(error).__name__
        if self._back_off.failures == 0:
            self._on_note(f"{self._problem}; trying again")
        pause = self._back_off.failed()
        self._expire()
        self._patience.wait(pause)

    def _expire(self) -> None:
        """Give up answers that have waited for longer than `keep`."""
        oldest = int(time.time() * 1000) - self._terms.keep_ms
        while self._has_next():
            answer = LoggedAnswer.of_bytes(self._waiting[0][1])
            if answer.logged_ms > oldest:
                return
            if self._withholds(answer):
                self._count_withheld([self._waiting[0][1]])
            elif self._terms.want(answer.title):
                self._give_up(answer, f"not taken in time: {self._problem}")
            self._pass(1)

    def _give_up(self, answer: LoggedAnswer, reason: str) -> None:
        keep_failed(self._failed, answer, reason)
        self._counts["failed"] += 1
        if not self._told_refusal:
            self._told_refusal = True
            self._on_note(f"{self._outlet.name} did not take answers; see {self._failed}")
