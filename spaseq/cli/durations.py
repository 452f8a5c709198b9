"""Durations on the command line: a number and a unit, as the language writes them."""

from __future__ import annotations

import click

from spaseq.errors import UsageError
from spaseq.runtime.job.durations import milliseconds


class _Milliseconds(click.ParamType[int]):
    """A duration; its value is milliseconds."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        if isinstance(value, int):
            return value
        try:
            return milliseconds(str(value))
        except UsageError as error:
            self.fail(str(error), param, ctx)


class _Interval(_Milliseconds):
    """A duration above 0, in milliseconds."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        duration = super().convert(value, param, ctx)
        if duration <= 0:
            self.fail("a duration above 0 is expected", param, ctx)
        return duration


class _Seconds(click.ParamType[float]):
    """A duration; its value is seconds."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        return value if isinstance(value, float) else DURATION.convert(value, param, ctx) / 1000


DURATION = _Milliseconds()
INTERVAL = _Interval()
SECONDS = _Seconds()
