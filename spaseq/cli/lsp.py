"""`spaseq lsp`: a language server for editors."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

import click

from spaseq.errors import UsageError
from spaseq.expr.extension import load_functions
from spaseq.extras import missing
from spaseq.options import REGIMES


@click.command(context_settings={"max_content_width": 100})
@click.option(
    "--kb",
    "kbs",
    multiple=True,
    metavar="[IRI=]PATH",
    help="A knowledge base whose classes, properties and labels are offered. Repeatable.",
)
@click.option(
    "--stream",
    "streams",
    multiple=True,
    metavar="NAME=PATH",
    help="A stream: the classes and properties of its first events are offered. Repeatable.",
)
@click.option(
    "--ontology",
    "ontologies",
    multiple=True,
    metavar="FILE",
    help="An ontology whose classes, properties and labels are offered. Repeatable.",
)
@click.option(
    "--entailment",
    type=click.Choice(REGIMES),
    help="Check queries as a run with this entailment and these ontologies would.",
)
@click.option(
    "--functions",
    multiple=True,
    metavar="MODULE|FILE.py",
    help="A Python module that registers extension functions with @spaseq.function(IRI). "
    "Repeatable.",
)
@click.option(
    "--tcp",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="Wait for one editor at 127.0.0.1:PORT, instead of standard input and output.",
)
@click.option(
    "--grammar", is_flag=True, help="Print the path of the TextMate grammar, and do nothing else."
)
def lsp(
    kbs: tuple[str, ...],
    streams: tuple[str, ...],
    ontologies: tuple[str, ...],
    entailment: str | None,
    functions: tuple[str, ...],
    tcp: int | None,
    grammar: bool,
) -> None:
    """Help an editor with queries: findings, completion, hover, names, canonical text.

    \b
    The editor starts this command and speaks the Language Server Protocol with it:
      spaseq lsp --kb kb.ttl --stream S1=events.nq

    It needs the extra lsp: pip install '.[lsp]' in a clone of spaseq. The page on editors says how
    to set up VS Code, Neovim, Emacs and Helix.
    """  # fmt: skip
    if grammar:
        from spaseq.editor.textmate import GRAMMAR_FILE

        click.echo(str(GRAMMAR_FILE))
        return
    if missing("lsp"):
        raise UsageError(f"spaseq lsp needs {missing('lsp')}")
    if tcp is None and sys.stdin.isatty():
        raise UsageError(
            "an editor starts spaseq lsp and speaks to its standard input; --tcp PORT waits for "
            "one that connects"
        )
    for module in functions:
        load_functions(module)
    _serve(kbs, streams, tuple(str(Path(path)) for path in ontologies), entailment, tcp)


def _serve(
    kbs: tuple[str, ...],
    streams: tuple[str, ...],
    ontologies: tuple[str, ...],
    entailment: str | None,
    tcp: int | None,
) -> None:
    from spaseq.editor.protocol import EditorSettings
    from spaseq.editor.server import server

    made = server(EditorSettings(kbs, streams, ontologies, entailment))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)
    if tcp is not None:
        made.start_tcp("127.0.0.1", tcp)
        return
    out = sys.stdout.buffer
    sys.stdout = sys.stderr  # output of libraries must not get between the messages
    made.start_io(sys.stdin.buffer, out)


def _leave(number: int, _: object) -> NoReturn:
    """End at a signal. A thread waits for the editor's next message, so Python would wait, too."""
    os._exit(128 + number)
