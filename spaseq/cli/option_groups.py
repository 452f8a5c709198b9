"""Options of a command in titled groups, collected into frozen parts.

An option names the part that it belongs to, a dataclass, and is a field of it. The command gets one
argument with all its parts, so an option more is no parameter more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import wraps
from types import MappingProxyType
from typing import Any, TypeVar, cast

import click

P = TypeVar("P")


class PartOption(click.Option):
    """An option that is a field of a part.

    The field has the option's name, unless `field` names another. The default is the field's,
    unless `default` gives another.
    """

    def __init__(
        self, part: type, *names: str, field: str | None = None, **attributes: Any
    ) -> None:
        super().__init__(names, **attributes)
        assert self.name is not None
        self.part, self.field = part, field or self.name
        if "default" not in attributes and not self.multiple:
            self.default = next(f.default for f in fields(part) if f.name == self.field)


@dataclass(frozen=True)
class OptionGroup:
    """Options under one title of `--help`."""

    title: str
    options: tuple[PartOption, ...]


class Chosen:
    """The options of one call, by option class.

    >>> from spaseq.options import StageOptions
    >>> Chosen([StageOptions(limit_per_event=5)])[StageOptions].limit_per_event
    5
    """

    def __init__(self, parts: Iterable[object]) -> None:
        self._parts = {type(part): part for part in parts}

    def __getitem__(self, part: type[P]) -> P:
        return cast(P, self._parts[part])


class GroupedCommand(click.Command):
    """A command whose `--help` shows options under the titles of their groups."""

    titles: Mapping[str | None, str] = MappingProxyType({})
    """The title of each option, by name; other options come under `Options`."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each group with its title, in the order of the options."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx) if isinstance(option, click.Option) else None
            if record is not None:
                sections.setdefault(self.titles.get(option.name, "Options"), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def grouped_command(*groups: OptionGroup) -> Callable[[Callable[..., Any]], GroupedCommand]:
    """Make a command of a function that takes its arguments, and `chosen` for these options."""
    options = [option for group in groups for option in group.options]

    def decorate(function: Callable[..., Any]) -> GroupedCommand:
        @wraps(function)
        def call(**values: Any) -> Any:
            given: dict[type, dict[str, Any]] = {option.part: {} for option in options}
            for option in options:
                given[option.part][option.field] = values.pop(option.name)
            chosen = Chosen(part(**named) for part, named in given.items())
            return function(**values, chosen=chosen)

        settings = {"max_content_width": 100}
        command = click.command(cls=GroupedCommand, params=[*options], context_settings=settings)(
            call
        )
        command.titles = {o.name: group.title for group in groups for o in group.options}
        return command

    return decorate
