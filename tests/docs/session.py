"""Runs the blocks of one page in a directory, and compares what they print."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from spaseq.cli import main
from tests.docs.pages import OUTPUT, ROOT, Block

_PROMPT = "$ "
_COMMANDS = """
spaseq() { "$PYTHON" -m spaseq "$@"; }
python() { "$PYTHON" "$@"; }
set -o pipefail
"""
_ENDED_BY_ITS_READER = 128 + signal.SIGPIPE  # the shell's status where `head` closed the pipe
_SHELL = re.compile(r"[|<>&;]")
_FILTERED = re.compile(r"([^|<>&;]+) \| ((?:head|tail|grep) [^<>&;]+)")
_COMPILING = re.compile(r"^spaseq: compiling kernels.*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a console block and the lines that the page shows after it."""

    line: str
    shown: str


@dataclass(frozen=True, slots=True)
class Done:
    """What a command did."""

    status: int
    out: str
    err: str


@dataclass(slots=True)
class Session:
    """One page's directory and Python namespace.

    The project's `streams` and `ontologies` are there under their names.
    """

    directory: Path
    names: dict[str, Any] = field(default_factory=dict)
    last: Done = field(default_factory=lambda: Done(0, "", ""))

    def __post_init__(self) -> None:
        for name in ("streams", "ontologies"):
            (self.directory / name).symlink_to(ROOT / name)

    def run(self, page: Sequence[Block]) -> None:
        """Run the blocks of a page that are to be run, in order."""
        for number, block in enumerate(page):
            follower = page[number + 1] if number + 1 < len(page) else None
            if block.not_run is None:
                self._run(block, follower)

    def _run(self, block: Block, follower: Block | None) -> None:
        if block.title is not None:
            if block.title != OUTPUT:
                self._write(block)
        elif block.language == "python":
            shows = follower is not None and follower.title == OUTPUT
            self._python(block, follower.text if follower is not None and shows else None)
        elif block.language == "sparql":
            (self.directory / "block.rq").write_text(block.text, "utf-8")
            done = self._spaseq(["check", "block.rq"])
            assert done.status == 0, f"{block.place}: {done.out}"
        elif block.language in ("console", "sh"):
            self._console(block)
        else:
            assert block.language == "text", f"{block.place}: no rule for {block.language!r}"

    def _write(self, block: Block) -> None:
        path = self.directory / str(block.title)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, "utf-8")

    def _python(self, block: Block, shown: str | None) -> None:
        out = io.StringIO()
        with _at(self.directory), contextlib.redirect_stdout(out):
            exec(compile(block.text, block.place, "exec"), self.names)
        if shown is not None:
            assert matches(shown, out.getvalue()), _difference(block, shown, out.getvalue())

    def _console(self, block: Block) -> None:
        found = commands(block)
        for number, command in enumerate(found):
            if command.line == "echo $?":
                self.last = Done(0, f"{self.last.status}\n", "")
            else:
                self.last = self._command(command.line)
                asked = number + 1 < len(found) and found[number + 1].line == "echo $?"
                assert asked or self.last.status == 0, f"{block.place}: {self.last}"
            if command.shown:
                both = self.last.out + _COMPILING.sub("", self.last.err)
                agrees = matches(command.shown, self.last.out) or matches(command.shown, both)
                assert agrees, _difference(block, command.shown, both)

    def _command(self, line: str) -> Done:
        words = shlex.split(line)
        if words[0] == "spaseq" and not _SHELL.search(_unquoted(line)):
            return self._spaseq(words[1:])
        if words[0] == "spaseq" and (filtered := _FILTERED.fullmatch(line)):
            done = self._spaseq(shlex.split(filtered[1])[1:])
            return self._shell(filtered[2], done.out) if done.status == 0 else done
        return self._shell(line)

    def _spaseq(self, arguments: list[str]) -> Done:
        """The command line in this process, which has the kernels loaded."""
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
        with _at(self.directory), mock.patch("sys.stdout", out), mock.patch("sys.stderr", err):
            try:
                main(arguments)
            except SystemExit as exit:
                status = exit.code if isinstance(exit.code, int) else 1
        return Done(status, *(_text(stream) for stream in (out, err)))

    def _shell(self, line: str, given: str = "") -> Done:
        """A command of the shell, for which `spaseq` and `python` are this project's.

        `given` is its standard input.
        """
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHON": sys.executable}
        done = subprocess.run(
            ["bash", "-c", _COMMANDS + line],
            cwd=self.directory,
            env=environment,
            input=given,
            capture_output=True,
            text=True,
            timeout=300,
        )
        cut = done.returncode == _ENDED_BY_ITS_READER and "| head" in line
        return Done(0 if cut else done.returncode, done.stdout, done.stderr)


def commands(block: Block) -> list[Command]:
    """The commands of a console block; a line that ends in a backslash goes on."""
    found: list[Command] = []
    lines = iter(block.text.splitlines())
    for line in lines:
        if line.startswith(_PROMPT):
            whole = line.removeprefix(_PROMPT)
            while whole.endswith("\\"):
                whole = whole[:-1] + next(lines).strip()
            found.append(Command(whole, ""))
        else:
            assert found, f"{block.place}: output before the first command"
            found[-1] = Command(found[-1].line, found[-1].shown + line + "\n")
    return found


def matches(shown: str, found: str) -> bool:
    """Whether a page shows what was found; `...` stands for anything."""
    pattern = ".*?".join(re.escape(piece) for piece in shown.strip().split("..."))
    text = "\n".join(line.rstrip() for line in found.strip().splitlines())
    return re.fullmatch(pattern, text, re.DOTALL) is not None


def _difference(block: Block, shown: str, found: str) -> str:
    return f"{block.place} shows\n{shown}\nbut prints\n{found}"


def _unquoted(line: str) -> str:
    return re.sub(r"'[^']*'|\"[^\"]*\"", "", line)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("utf-8").replace("\r\n", "\n")


@contextlib.contextmanager
def _at(directory: Path) -> Iterator[None]:
    with contextlib.chdir(directory):
        yield
