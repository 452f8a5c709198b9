"""Durations on the command line."""

from __future__ import annotations

import click

from spaseq.errors import UsageError
from spaseq.runtime.job.durations import milliseconds


class _Duration(click.ParamType[int]):
    """A number and a unit, as the language writes them; its value is milliseconds."""

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


DURATION = _Duration()
