"""docs/cli.md names every command, option, format and exit status, and no others."""

from __future__ import annotations

import re

import click
import pytest

from spaseq import errors
from spaseq.cli.main import COMMANDS, INTERRUPTED, READER_GONE, TERMINATED, cli
from spaseq.sinks import FORMATS
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "cli.md").read_text("utf-8")
_ROW = re.compile(r"^\| `(-.*?)` \|", re.MULTILINE)


def _section(command: str) -> str:
    after = PAGE.partition(f"\n## spaseq {command}\n")[2]
    return re.split(r"\n## ", after)[0]


def _command(name: str) -> click.Command:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command


def _options(command: click.Command) -> set[str]:
    """The options as `--help` writes them."""
    context = click.Context(command, help_option_names=["-h", "--help"])
    options = (p for p in command.get_params(context) if isinstance(p, click.Option))
    return {record[0] for p in options if (record := p.get_help_record(context)) is not None}


def test_commands() -> None:
    assert re.findall(r"^## spaseq (\w+)$", PAGE, re.MULTILINE) == list(COMMANDS)


def _rows(section: str) -> list[str]:
    """The options in the tables of a section, and in the parts of `run` that it says it shares."""
    shared = re.search(r"^It takes the options of `spaseq run` under (.*)$", section, re.MULTILINE)
    titles = re.findall(r"\[([\w ]+)\]\(#", shared[1]) if shared else []
    parts = [_section("run").partition(f"\n### {t}\n")[2].partition("\n### ")[0] for t in titles]
    bounded = [row for part in parts for row in part.splitlines() if "| With `--follow`" not in row]
    return _ROW.findall("\n".join([section, *bounded]))


@pytest.mark.parametrize("name", list(COMMANDS))
def test_options(name: str) -> None:
    rows = [row.replace("\\|", "|") for row in _rows(_section(name))]
    assert len(rows) == len(set(rows))
    assert set(rows) == _options(_command(name))


def test_defaults() -> None:
    """Every default that `--help` shows stands in the option's row."""
    command = _command("run")
    context = click.Context(command)
    row = r"^\| `(?:-\w, )?(--[\w-]+).*?` \| (.*) \|$"
    rows = dict(re.findall(row, _section("run"), re.MULTILINE))
    missing = [
        option.name
        for option in command.get_params(context)
        if isinstance(option, click.Option)
        and option.show_default
        and option.get_default(context) is not None
        and f"`{option.default}`" not in rows[option.opts[0]]
        and f"Default: {option.default}" not in rows[option.opts[0]]
    ]
    assert missing == []


def test_formats() -> None:
    section = PAGE.partition("\n### Output formats\n")[2].partition("\n### ")[0]
    assert {name for name in FORMATS if f"`{name}`" in section} == set(FORMATS)


def test_exit_statuses() -> None:
    section = PAGE.partition("\n## Exit status\n")[2].partition("\n## ")[0]
    shown = {int(status) for status in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)}
    tree = (errors.QueryError, errors.UsageError, errors.InputError, errors.RunError)
    signals = {INTERRUPTED, READER_GONE, TERMINATED}
    assert shown == {0, *signals, *(error.exit_status for error in tree)}
