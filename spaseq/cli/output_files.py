"""Output files: none overwrites an input or another output, and the file of a bounded run's answers
gets its name when the run ends, so it is never half.

Outputs are refused before anything is opened.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from fnmatch import fnmatchcase
from glob import glob, has_magic
from pathlib import Path
from typing import TextIO, cast

from spaseq.cli.option_groups import OutputOptions
from spaseq.errors import InputError, RunError, UsageError
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.inputs.files import STDIN
from spaseq.rdf.inputs.formats import format_of
from spaseq.records import record
from spaseq.sinks import SINKS
from spaseq.sinks.base import lines_over, open_lines, standard_lines
from spaseq.sinks.table_sink import TIMES, TableSink

STDOUT = "-"

_UNNAMED = getattr(os, "O_TMPFILE", 0)  # Linux
_DESCRIPTORS = "/proc/self/fd"


@record
class NamedPath:
    """A path on the command line, with its option as in messages."""

    option: str
    path: str


def check_outputs(
    outputs: Sequence[NamedPath], inputs: Iterable[NamedPath], checkpoint: NamedPath | None = None
) -> None:
    """Check that no output is an input, a checkpoint or another output.

    Links to one file count as that file. Terminals, the null device and sockets can be read and
    written at the same time, and may be given several times.

    Args:
        outputs: files that the run writes; `-` is standard output.
        inputs: files, directories and globs that the run reads; `-` is standard input.
        checkpoint: the directory of the run's state.

    Raises:
        UsageError: two of them are the same file; the message names both options.
    """
    written = [(given, _Identity.of(given.path, STDOUT, 1)) for given in outputs]
    for number, (given, identity) in enumerate(written):
        for earlier, other in written[:number]:
            if identity == other and identity.is_stored:
                raise UsageError(f"{earlier.option} and {given.option} are the same file")
    for given in inputs:
        _check_input(given, written)
        if checkpoint is not None and _same_directory(given.path, checkpoint.path):
            raise UsageError(f"{checkpoint.option} and {given.option} are the same directory")
    for given, identity in written:
        if checkpoint is not None and _is_inside(identity.path, checkpoint.path):
            raise UsageError(f"{given.option} lies in {checkpoint.option}; give another place")


@record
class _Identity:
    """Which file a path leads to: its device and number, or the resolved path if it is missing."""

    path: str
    file: tuple[int, int] | None = None
    is_stored: bool = True

    @classmethod
    def of(cls, path: str, standard: str = "", descriptor: int = -1) -> _Identity:
        """The identity of a path; `standard` is the identity of an open descriptor."""
        try:
            status = os.fstat(descriptor) if path == standard else os.stat(path)
        except OSError:
            return cls(os.path.realpath(path))
        shared = stat.S_ISCHR(status.st_mode) or stat.S_ISSOCK(status.st_mode)
        file = status.st_dev, status.st_ino
        return cls("" if path == standard else os.path.realpath(path), file, not shared)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Identity):
            return NotImplemented
        if self.file is not None or other.file is not None:
            return self.file == other.file
        return self.path == other.path

    def __hash__(self) -> int:
        return hash(self.path if self.file is None else self.file)


def _check_input(given: NamedPath, written: Sequence[tuple[NamedPath, _Identity]]) -> None:
    try:
        identities = {_Identity.of(path, STDIN, 0) for path in _files(given.path)}
    except OSError as error:
        raise InputError(f"{given.option}: cannot read it: {error.strerror}") from error
    for output, identity in written:
        if identity in identities and identity.is_stored:
            raise UsageError(f"{output.option} is the same file as {given.option}")
        if identity.file is None and _would_be_read(identity.path, given.path):
            raise UsageError(f"{output.option} would be read as part of {given.option}")


def _files(path: str) -> Iterator[str]:
    """The files that an input reads, or might read."""
    if os.path.isdir(path):
        yield from (entry.path for entry in os.scandir(path) if entry.is_file())
    elif path != STDIN and not os.path.exists(path) and has_magic(path):
        yield from glob(path, recursive=True)
    else:
        yield path


def _would_be_read(output: str, given: str) -> bool:
    """Whether a directory or glob includes a file that does not exist yet."""
    name = os.path.basename(output)
    if format_of(name) is None or name[0] in "._":
        return False
    if os.path.isdir(given):
        return os.path.dirname(output) == os.path.realpath(given)
    return has_magic(given) and _matches(output, os.path.realpath(given))


def _matches(path: str, pattern: str) -> bool:
    if "**" in pattern:
        return fnmatchcase(path, pattern.replace("**/", "*"))
    parts, wanted = Path(path).parts, Path(pattern).parts
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def _same_directory(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _is_inside(path: str, directory: str) -> bool:
    return Path(os.path.realpath(directory)) in (Path(path), *Path(path).parents)


@contextmanager
def answer_file(path: str) -> Iterator[TextIO]:
    """A file for the answers of a bounded run, or standard output for `-`.

    Until the run ends, the answers are in a file without a name. If the process is killed, the
    system removes it, and the path is as it was before. If the run fails or is interrupted, the
    file has the answers so far. A pipe, a device, a file with several links or of another user, and
    a file in a directory that cannot be written, are written in place.

    Raises:
        InputError: the file cannot be opened.
        RunError: the file cannot be written.
    """
    if path == STDOUT:
        with standard_lines() as file:
            yield file
        return
    target = os.path.realpath(path)
    descriptor = _unnamed(target) if _is_replaceable(target) else None
    if descriptor is None:
        with open_lines(path) as file:
            yield file
        return
    unnamed = lines_over(descriptor, path)
    try:
        yield cast(TextIO, unnamed)
    finally:
        try:
            unnamed.end()
        finally:
            _name(descriptor, target, path)
            unnamed.close()


def _is_replaceable(target: str) -> bool:
    """Whether another file may take this path."""
    try:
        status = os.lstat(target)
    except OSError:
        return True
    return (
        stat.S_ISREG(status.st_mode)
        and status.st_nlink == 1
        and status.st_uid == os.geteuid()
        and os.access(target, os.W_OK)
    )


def _unnamed(target: str) -> int | None:
    """A new file in the directory of a path, with the mode of the file there; None if none can be.

    Raises:
        InputError: the directory does not exist.
    """
    directory = os.path.dirname(target)
    if not os.path.isdir(directory):
        raise InputError(f"cannot write {target}: {os.strerror(errno.ENOENT)}")
    if not _UNNAMED or not os.path.isdir(_DESCRIPTORS):
        return None
    try:
        descriptor = os.open(directory, _UNNAMED | os.O_WRONLY, 0o666)
    except OSError:
        return None
    with suppress(OSError):
        os.fchmod(descriptor, stat.S_IMODE(os.stat(target).st_mode))
    return descriptor


def _name(descriptor: int, target: str, path: str) -> None:
    """Give a file without a name its path."""
    directory, name = os.path.split(target)
    passing = os.path.join(directory, f".{name}.{os.getpid()}")
    descriptors = os.open(_DESCRIPTORS, os.O_RDONLY)  # linkat follows its links
    try:
        with suppress(FileNotFoundError):
            os.unlink(passing)
        os.link(str(descriptor), passing, src_dir_fd=descriptors, follow_symlinks=True)
        os.replace(passing, target)
    except OSError as error:
        with suppress(OSError):
            os.unlink(passing)
        raise RunError(f"cannot write {path}: {error.strerror}") from error
    finally:
        os.close(descriptors)


def check_format(form: str, plans: Sequence[QueryPlan]) -> None:
    """Check that a format can hold the answers of the queries of a run.

    Raises:
        UsageError: it cannot; the message names formats that can.
    """
    sink, answering = SINKS[form], _answering(plans)
    if sink.one_query and len(answering) > 1:
        raise UsageError(f"--format {form} holds the answers of one query; use jsonl for several")
    for plan in answering:
        title = plan.identity.title
        makes = "solutions" if plan.answers.template is None else "graphs"
        if sink.holds not in (makes, "all"):
            kind = "SELECT" if plan.answers.template is None else "CONSTRUCT"
            raise UsageError(
                f"--format {form} holds {sink.holds}, and the answers of {title} are {makes} "
                f"({kind}): use {', '.join(_suited(makes, len(answering)))}"
            )


def _answering(plans: Sequence[QueryPlan]) -> list[QueryPlan]:
    """The queries that give answers: all except those that maintain graphs."""
    return [plan for plan in plans if plan.maintained is None]


def _suited(makes: str, queries: int) -> list[str]:
    """The formats that hold the answers of some queries."""
    return [
        form
        for form, sink in SINKS.items()
        if sink.holds in (makes, "all") and (queries == 1 or not sink.one_query)
    ]


def check_columns(output: OutputOptions, plans: Sequence[QueryPlan]) -> None:
    """Check that --columns goes with the format, and names columns that there are.

    Raises:
        UsageError: it does not.
    """
    if output.columns is None:
        return
    if not issubclass(SINKS[output.form], TableSink):
        tables = ", ".join(form for form, sink in SINKS.items() if issubclass(sink, TableSink))
        raise UsageError(f"--columns goes with --format {tables}, not with {output.form}")
    columns_of(plans, output.columns)


def columns_of(plans: Sequence[QueryPlan], chosen: str | None) -> list[str]:
    """The columns of a table of answers: the columns of --columns, or else the variables of the
    first answering query.

    Raises:
        UsageError: there is no such column, or it is chosen twice.
    """
    projected = [plan.answers.projection for plan in _answering(plans)[:1]]
    variables = [item.name for items in projected for item in items]
    if chosen is None:
        return variables
    columns = [name.strip().removeprefix("?") for name in chosen.split(",")]
    if all(name.startswith("+") for name in columns):
        columns = variables + columns
    for number, name in enumerate(columns):
        if name.startswith("+") and name[1:] not in TIMES:
            raise UsageError(f"--columns {name}: beside variables there are +start and +end")
        if not name.startswith("+") and name not in variables:
            near = get_close_matches(name, variables, 1)
            hint = f"did you mean {near[0]}?" if near else f"variables: {', '.join(variables)}"
            raise UsageError(f"--columns {name}: the query projects no such variable; {hint}")
        if name.removeprefix("+") in [other.removeprefix("+") for other in columns[:number]]:
            raise UsageError(f"--columns {name}: the table has this column already")
    return columns
