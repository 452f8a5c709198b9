"""The `spaseq` command, its subcommands and exit statuses.

SIGTERM ends a command like an interrupt: outputs are written and temporary files removed.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn, TypeAlias

import click

from spaseq.cli.messages import escaped_streams, tell
from spaseq.errors import SpaseqError, Terminated
from spaseq.lang.spelling import suggested
from spaseq.memory import keep_for_good
from spaseq.startup import end_at_once

USAGE = 2
FAILURE = 4
INTERRUPTED = 130
READER_GONE = 141  # 128 + SIGPIPE
TERMINATED = 143

COMMANDS = {
    "demo": "Run an example that comes with spaseq, and explain its alerts.",
    "init": "Write a first query with answers over your own files.",
    "run": "Run queries over streams and print their answers.",
    "check": "Check query files, and lifts, without running them.",
    "why": "Find the reason why a query has no answers.",
    "explain": "Show the plan of each query and its automaton, as text or as a picture.",
    "fmt": "Print query files in canonical form.",
    "translate": "Translate a query of RSP-QL or C-SPARQL, and print it.",
    "lift": "Write the graphs that a lift makes of tables and JSON lines.",
    "test": "Run the tests of queries in *.test.toml files.",
    "serve": "Keep queries running over live streams: HTTP, a page, sources and sinks.",
    "subscribe": "Have an NGSI-LD broker send notifications to a server.",
    "lsp": "Help an editor with queries: findings, completion, hover, names.",
    "warm": "Compile all kernels, or load those that are compiled already.",
}
"""Subcommands with their lines in `spaseq --help`.

Each is a click command in the module of its name, which is imported when the command is called.
"""


@dataclass(slots=True)
class AskedToEnd:
    """Whether SIGINT or SIGTERM has arrived, and which of them came first."""

    number: int | None = None

    def keeps(self, record: logging.LogRecord) -> bool:
        """Whether a log record is written.

        py4j logs a call that a signal interrupts, with a traceback. One line says that already.
        """
        return self.number is None or "while sending command" not in str(record.msg)


Handlers: TypeAlias = Callable[[Mapping[int, Any]], Mapping[int, Any]]
"""From the signal handlers before a command to those after it, each by the signal's number."""


def restored(before: Mapping[int, Any]) -> Mapping[int, Any]:
    """The handlers before a command."""
    return before


def at_exit(before: Mapping[int, Any]) -> Mapping[int, Any]:
    """Handlers of a process that only removes its temporary files: the second signal ends it."""
    came: list[int] = []

    def ending(number: int, _frame: object) -> None:
        if came:
            os._exit(128 + number)
        came.append(number)

    return dict.fromkeys(before, ending)


@contextmanager
def terminable(asked: AskedToEnd, then: Handlers = restored) -> Iterator[None]:
    """SIGINT raises `KeyboardInterrupt`, and `asked` records it.

    The first SIGTERM raises `Terminated`; further ones do not disturb the cleaning up. SIGINT stays
    ignored if it is, as below `nohup`. `then` gives the handlers of the time after.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return

    def terminated(number: int, _frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        asked.number = asked.number or number
        raise Terminated

    def interrupted(number: int, _frame: object) -> None:
        asked.number = asked.number or number
        raise KeyboardInterrupt

    before: dict[int, Any] = {signal.SIGTERM: signal.signal(signal.SIGTERM, terminated)}
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, end_at_once):
        before[signal.SIGINT] = signal.signal(signal.SIGINT, interrupted)
    root = logging.getLogger()
    root.addFilter(asked.keeps)
    try:
        yield
    finally:
        root.removeFilter(asked.keeps)
        for number, handler in then(before).items():
            signal.signal(number, handler)


class _ReaderGone(Exception):
    """The reader of standard output is gone. click would exit with status 1 at the OSError."""


class Subcommands(click.Group):
    """The commands of `COMMANDS`, imported when they are called."""

    def make_context(self, *given: Any, **more: Any) -> click.Context:
        try:
            return super().make_context(*given, **more)
        except BrokenPipeError as error:
            raise _ReaderGone from error

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderGone from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            near = suggested(cmd_name, COMMANDS)
            if near is not None:
                ctx.fail(f"No such command '{cmd_name}'. Did you mean '{near}'?")
            return None
        gc.disable()  # as in `spaseq.cli`: imported objects stay
        try:
            command = getattr(import_module(f"spaseq.cli.{cmd_name}"), cmd_name)
        finally:
            keep_for_good()
            gc.enable()
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(
    cls=Subcommands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="spaseq")
def cli() -> None:
    """Notice sequences of meaningful things in streams of RDF graphs.

    \b
    Replay streams to their end, on Spark:
      spaseq run query.rq --stream S1=events.nq --kb kb.ttl

    \b
    Exit status: 0 done, 1 the query has errors, 2 wrong usage, 3 an input is unusable,
    4 failure or limit while running, 130 interrupted, 141 output not read, 143 terminated.
    """


def program(arguments: list[str] | None = None) -> None:
    """`main`, as the last thing that the process does: only its clean-up follows."""
    main(arguments, then=at_exit)


def main(arguments: list[str] | None = None, *, then: Handlers = restored) -> None:
    """Run the command line and exit with its status.

    Text on stderr is escaped, and so is text on stdout if that is a terminal.

    Args:
        arguments: the arguments of the command line; by default, the ones of the process.
        then: which signal handlers hold after the command.
    """
    with escaped_streams():
        _exit(arguments, then)


def _exit(arguments: list[str] | None, then: Handlers) -> None:
    asked = AskedToEnd()
    try:
        with terminable(asked, then):
            status = cli.main(arguments, prog_name="spaseq", standalone_mode=False)
        sys.exit(status if isinstance(status, int) else 0)
    except SpaseqError as error:
        tell(f"spaseq: {error}" if error.exit_status != 1 else str(error))
        sys.exit(error.exit_status)
    except (click.exceptions.Abort, KeyboardInterrupt) as error:
        _end(isinstance(error, Terminated) or isinstance(error.__cause__, Terminated))
    except click.ClickException as error:
        error.show()
        sys.exit(USAGE)
    except _ReaderGone:
        with suppress(OSError):  # the rest of the buffer is not to be written at the exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(READER_GONE)
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        tell(f"spaseq: {where}{error.strerror or error}")
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it may be the cause
        sys.exit(FAILURE)
    except MemoryError:
        tell("spaseq: not enough memory")
        sys.exit(FAILURE)
    except Exception:
        # A library in C may turn an interrupt into its own error: numpy's import fails so.
        if asked.number is None:
            raise
        _end(asked.number == signal.SIGTERM)


def _end(terminated: bool) -> NoReturn:
    """Exit after SIGTERM or SIGINT."""
    # An object whose making was interrupted may raise when it is deleted; pyparsing's do.
    sys.unraisablehook = lambda _: None
    tell("spaseq: terminated" if terminated else "spaseq: interrupted")
    sys.exit(TERMINATED if terminated else INTERRUPTED)
