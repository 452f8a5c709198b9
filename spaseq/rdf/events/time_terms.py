"""Times of the events of one stream, whose integers are milliseconds or seconds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np

from spaseq.compiled.arrays import Int64s
from spaseq.rdf.inputs.stream_options import BadInput, OnBad
from spaseq.rdf.terms.program_times import Time, time_ms
from spaseq.rdf.terms.term import split_literal
from spaseq.rdf.terms.times import LIKELY_SECONDS, LIMIT_MS, TIME_UNITS, parse_time
from spaseq.rdf.terms.vocabulary import INTEGER_TYPES


class TimeTerms:
    """Reads the times of a stream's events, and notes integers that seem to be seconds.

    Attributes:
        stream: the stream's IRI.
        scale: how many milliseconds an integer stands for.
    """

    def __init__(self, stream: str, unit: str, on_seconds: Callable[[str], None]) -> None:
        """`on_seconds` gets a remark, once, on milliseconds that seem to be seconds."""
        self.scale = TIME_UNITS[unit]
        self.stream, self._on_seconds = stream, on_seconds
        self._noted = self.scale != 1

    @classmethod
    def of_file(cls, stream: str, unit: str, file: str, on_bad: OnBad) -> TimeTerms:
        """The times of events in a file; the remark goes to `on_bad`."""
        return cls(stream, unit, lambda reason: on_bad(time_remark(stream, file, reason)))

    def read(self, text: str) -> int | None:
        """The time (ms) of a literal's N-Triples text, or None if it is no time."""
        time = parse_time(text)
        if time is None or (self._noted and self.scale == 1):
            return time
        if self.scale == 1 and time not in LIKELY_SECONDS:
            return time
        return self._scaled(time) if split_literal(text)[1] in INTEGER_TYPES else time

    def given(self, when: Time) -> int:
        """The time (ms) that a program gives; UsageError if it is none."""
        time = time_ms(when, self.scale)
        if not self._noted and time in LIKELY_SECONDS and hasattr(type(when), "__index__"):
            self.note(time)
        return time

    def integers(self, times: Int64s) -> Int64s | None:
        """The times [n] (ms) of integers; None if one is too far from the epoch."""
        most = LIMIT_MS // self.scale
        if not ((times > -most) & (times < most)).all():
            return None
        if not self._noted:
            likely = (times >= LIKELY_SECONDS.start) & (times < LIKELY_SECONDS.stop)
            if likely.any():
                self.note(int(times[likely.argmax()]))
        return times.astype(np.int64) * self.scale

    def note(self, example: int) -> None:
        """Remark that an integer of milliseconds seems to be seconds."""
        if self._noted:
            return
        self._noted = True
        meant = datetime.fromtimestamp(example, UTC).isoformat().removesuffix("+00:00")
        self._on_seconds(
            f"stream <{self.stream}>: the integer time {example} is in 1970 as milliseconds, and "
            f"{meant}Z as seconds; if its times are seconds, say --time-unit s "
            '(time_unit = "s" in spaseq.toml and Python)'
        )

    def _scaled(self, time: int) -> int | None:
        if self.scale == 1:
            self.note(time)
        return time * self.scale if abs(time) * self.scale < LIMIT_MS else None


def time_remark(stream: str, file: str, reason: str) -> BadInput:
    """The remark of a `TimeTerms`: no value is lost, and no event is bad."""
    return BadInput(file, None, reason, lost=(f"time of <{stream}>", 0))
