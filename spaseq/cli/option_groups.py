"""Options of a command in titled groups, collected into frozen parts; options of the command line
only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

import click

from spaseq.connectors import is_sink
from spaseq.errors import UsageError
from spaseq.records import record
from spaseq.sinks import form_of_path
from spaseq.sinks.jsonl import JsonLines

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


@record
class InputTexts:
    """The values of --stream, --kb, --lift, --types, --csv, --context and --context-map."""

    streams: tuple[str, ...] = ()
    kbs: tuple[str, ...] = ()
    lifts: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    csv: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    context_map: tuple[str, ...] = ()


@record
class OutputOptions:
    """The outputs of answers and counts; `given_form` is the format of --format."""

    out: str = "-"
    given_form: str | None = None
    columns: str | None = None
    stats: str | None = None
    why: str | None = None
    dumps: Mapping[str, str] = field(default_factory=dict)  # files of graphs, by IRI
    metrics_port: int | None = None

    @property
    def form(self) -> str:
        """The format of the answers: the given one, or the one that the file's ending says.

        Raises:
            UsageError: the ending is unknown.
        """
        if self.given_form is not None:
            return self.given_form
        return JsonLines.form if is_sink(self.out) else form_of_path(self.out)


@record
class SideOptions:
    """The outputs of bad input, late events and partial matches."""

    bad: str | None = None
    late: str | None = None
    partial: str | None = None
    strict: bool = False


@record
class FollowFlags:
    """The options of a followed run."""

    follow: bool = False
    checkpoint: str | None = None
    rebuild: bool = False
    buckets: int | None = None


@record
class QuerySet:
    """A directory of queries, and one of a server's data, with its logs and its queries."""

    directory: str | None = None
    logs: str | None = None

    def files(self) -> tuple[Path, ...]:
        """The query files that it has.

        Raises:
            UsageError: it is no directory.
        """
        if self.directory is None:
            return ()
        if not Path(self.directory).is_dir():
            raise UsageError(f"--queries {self.directory}: it is no directory")
        return tuple(sorted(Path(self.directory).glob("[!.]*.rq")))


def count(part: type, *names: str, least: int = 1, **attributes: Any) -> PartOption:
    """An option whose value is a number of things, `least` or more."""
    return PartOption(part, *names, type=click.IntRange(least), metavar="N", **attributes)
