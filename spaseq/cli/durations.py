"""Durations on the command line."""

from __future__ import annotations

import re

import click

_UNITS = {"MILLISECOND": 1, "SECOND": 1000, "MINUTE": 60_000, "HOUR": 3_600_000, "DAY": 86_400_000}


class _Duration(click.ParamType[int]):
    """A number and a unit, as the language writes them; its value is milliseconds."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"\s*(\d+)\s*([A-Za-z]+?)[sS]?\s*", str(value))
        unit = _UNITS.get(found[2].upper()) if found else None
        if found is None or unit is None:
            self.fail(f"{value!r}: expected a duration such as '5 SECONDS'", param, ctx)
        return int(found[1]) * unit


DURATION = _Duration()
