"""A template of a sink, and the process that renders it for one delivery."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from types import MappingProxyType
from typing import Any

from spaseq.errors import InputError, RunError
from spaseq.records import record
from spaseq.storage.user_files import read_user_text

PACKAGED = Path(__file__).with_name("packaged")
"""The templates that come with the package."""

RENDER_S = 1.0
"""For how long a template may render an answer."""

MEMORY = 256_000_000
"""Maximum bytes of memory of its process."""

_START_S, _COMPILE_S = 60.0, 10.0  # Python starts slowly on a busy machine

_MEDIA_TYPES = {"json": "application/json", "html": "text/html; charset=utf-8"}


class TemplateSlow(RunError):
    """A template took too long; its process was ended."""


class TemplateFailed(RunError):
    """A template makes nothing of an answer."""


@record
class AlertTemplate:
    """A template that was read: its name, its text, and the variables of its sink."""

    name: str
    ending: str
    source: str
    variables: Mapping[str, Any] = field(default_factory=dict)

    @property
    def media_type(self) -> str:
        """The content type of the rendered text."""
        return _MEDIA_TYPES.get(self.ending, "text/plain; charset=utf-8")


def packaged_names() -> list[str]:
    """The names of the templates that come with the package.

    >>> packaged_names()
    ['alertmanager', 'mail', 'pagerduty', 'slack', 'teams']
    """
    return sorted(path.name.partition(".")[0] for path in PACKAGED.glob("*.j2"))


def read_template(
    given: str, directory: Path, variables: Mapping[str, Any] = MappingProxyType({})
) -> AlertTemplate:
    """A template: one that comes with the package, or a file.

    Args:
        given: a name without an ending, or a path.
        directory: a relative path is relative to it.
        variables: the `vars` of the template.

    Raises:
        InputError: it cannot be read, or has a syntax error.
    """
    packaged = None if "." in given or "/" in given else next(PACKAGED.glob(f"{given}.*.j2"), None)
    path = packaged or directory / given
    try:
        source = read_user_text(path)
    except (OSError, UnicodeDecodeError) as error:
        names = ", ".join(packaged_names())
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"template {path}: {reason}; these come with the package: {names}"
        ) from None
    template = AlertTemplate(path.name, ending_of(path.name), source, variables)
    process = TemplateProcess(template)
    try:
        process.start()
    except RunError as error:
        raise InputError(f"{path}: {error}") from None
    finally:
        process.close()
    return template


def ending_of(name: str) -> str:
    """The ending that decides how values are escaped.

    >>> ending_of("slack.json.j2"), ending_of("mail.txt.j2"), ending_of("note.html")
    ('json', 'txt', 'html')
    """
    return name.removesuffix(".j2").rpartition(".")[2]


class TemplateProcess:
    """Renders one template, in a process that is started on demand; for one thread.

    A template that loops, or uses too much memory, affects no other: its process is ended.
    """

    def __init__(self, template: AlertTemplate) -> None:
        self._template = template
        self._process: subprocess.Popen[str] | None = None
        self._lines: Queue[str] = Queue()

    def render(self, answer: str, query: Mapping[str, str]) -> str:
        """The text for an answer, which is given as JSON.

        Raises:
            TemplateSlow: it takes longer than `RENDER_S`.
            TemplateFailed: it fails, or needs more than `MEMORY`.
        """
        process = self._process or self.start()
        self._send(process, f'{{"answer": {answer}, "query": {json.dumps(query)}}}')
        return str(self._reply(RENDER_S)["text"])

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def start(self) -> subprocess.Popen[str]:
        """Start the process, which compiles the template.

        Raises:
            TemplateSlow: as from `render`.
            TemplateFailed: it has a syntax error.
        """
        command = [sys.executable, "-m", "spaseq.alert_templates.process"]
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        process = self._process = subprocess.Popen(
            command, **pipes, stderr=subprocess.DEVNULL, env=_environment(), encoding="utf-8"
        )
        lines = self._lines = Queue()
        Thread(target=_read, args=(process, lines), daemon=True).start()
        self._reply(_START_S)
        template = self._template
        first = {"ending": template.ending, "source": template.source, "memory": MEMORY}
        self._send(process, json.dumps({**first, "vars": dict(template.variables)}))
        self._reply(_COMPILE_S)
        return process

    def _send(self, process: subprocess.Popen[str], line: str) -> None:
        assert process.stdin is not None
        try:
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
        except OSError:
            self.close()
            raise TemplateSlow(f"template {self._template.name}: its process has ended") from None

    def _reply(self, seconds: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=seconds)
        except Empty:
            self.close()
            raise TemplateSlow(
                f"template {self._template.name} took longer than {seconds:g} s"
            ) from None
        if not line:  # the process has ended: the system gave it no more memory
            self.close()
            raise TemplateFailed(f"template {self._template.name}: its process has ended")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise TemplateFailed(f"template {self._template.name}: {reply['error']}")
        return reply


def _environment() -> dict[str, str]:
    """The environment of the process; passwords in it are not for templates."""
    kept = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "LD_LIBRARY_PATH")
    return {k: v for k, v in os.environ.items() if k in kept or k.startswith("PYTHON")}


def _read(process: subprocess.Popen[str], lines: Queue[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put("")
