"""The type of a field: how its texts look, what they mean, and how SPARQL casts them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from spaseq.records import record


@record
class FieldType:
    """A type of fields.

    Attributes:
        name: "text", "integer", "number", "time" or "clock", a time of day.
        pattern: of the texts of its values.
        cast: the SPARQL expression for the term; `{0}` is the field.
        strptime: the format that Python reads such times with; "iso", "s" or "ms" for others.
        day: of times without a time of day, the expression for the ISO date.
        decimal: the decimal sign of numbers.
    """

    name: str
    pattern: str
    cast: str
    strptime: str = ""
    day: str = ""
    decimal: str = "."

    def term(self, field: str) -> str:
        """The expression for the term of a field."""
        return self.cast.replace("{0}", f"?{field}")

    def term_with(self, field: str, clock: FieldType, clock_field: str) -> str:
        """The expression for a date with the time of day in another field."""
        day = self.day.replace("{0}", f"?{field}")
        return f'xsd:dateTime(CONCAT({day}, "T", {clock.term(clock_field)}, "Z"))'

    def value(self, text: str) -> Any:
        """The value of a text: a number, a time in ms, or the text; None if it has none."""
        if re.fullmatch(self.pattern, text, re.DOTALL) is None:
            return None
        match self.name:
            case "integer" | "number":
                other = "." if self.decimal == "," else ","
                digits = re.sub(r"[^-+0-9.,eE]|EUR", "", text).replace(other, "")
                return Decimal(digits.replace(self.decimal, "."))
            case "time":
                return self._milliseconds(text)
            case "clock":
                hours, minutes, *seconds = map(int, text.split(":"))
                return 1000 * (3600 * hours + 60 * minutes + sum(seconds))
        return text

    def _milliseconds(self, text: str) -> int | None:
        if self.strptime in ("s", "ms"):
            return int(Decimal(text) * (1000 if self.strptime == "s" else 1))
        try:
            if self.strptime == "iso":
                moment = datetime.fromisoformat(text.replace(" UTC", "Z").replace(" +", "+"))
            else:
                moment = datetime.strptime(text, self.strptime)
        except ValueError:
            return None
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
