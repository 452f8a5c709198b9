"""The cell magic `%%spaseq` of IPython and Jupyter; `%load_ext spaseq` registers it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from os import PathLike
from shlex import split
from typing import Any, NoReturn

from IPython.core.error import UsageError as MagicUsageError
from IPython.core.magic import Magics, cell_magic, magics_class

from spaseq.api.answers import Answers
from spaseq.api.prepare import plan_queries
from spaseq.api.run import run
from spaseq.errors import SpaseqError, UsageError
from spaseq.lang.parser import parse
from spaseq.options import PlanningOptions

_USAGE = """%%spaseq [NAME] [--stream STREAM=VALUE] [--kb [IRI=]VALUE] [--runtime local|spark] ...

The cell is a query. A VALUE is a variable of the notebook or a path. A stream without --stream
is the variable with its name. NAME is the variable that gets the answers."""


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\n{_USAGE}")


def _parser() -> ArgumentParser:
    parser = _Parser(prog="%%spaseq", add_help=False, allow_abbrev=False)
    parser.add_argument("name", nargs="?")
    parser.add_argument("--stream", action="append", default=[])
    parser.add_argument("--kb", action="append", default=[])
    parser.add_argument("--runtime", choices=("local", "spark"), default="local")
    parser.add_argument("--limit-per-event", type=int)
    return parser


@magics_class
class SpaseqMagics(Magics):  # type: ignore[misc]
    """Queries in cells, over streams and knowledge bases in variables."""

    @cell_magic  # type: ignore[untyped-decorator]
    def spaseq(self, line: str, cell: str) -> Answers | None:
        """Run the query in the cell; its answers are the value of the cell.

        %%spaseq [NAME] [--stream STREAM=VALUE] [--kb [IRI=]VALUE] [--runtime local|spark]
                 [--limit-per-event N]

        A VALUE is a variable of the notebook (events, paths, an rdflib.Graph, a dict of knowledge
        bases), or a path. A stream without --stream is the variable with its name. With NAME the
        answers become that variable, and nothing is shown.
        """
        variables: Mapping[str, Any] = self.shell.user_ns
        try:
            chosen = _parser().parse_args(split(line))
            answers = _answers(chosen, cell, variables)
        except (SpaseqError, ValueError) as error:
            raise MagicUsageError(str(error)) from None
        if chosen.name is None:
            return answers
        if not chosen.name.isidentifier():
            raise MagicUsageError(f"{chosen.name} cannot be the name of a variable\n{_USAGE}")
        self.shell.push({chosen.name: answers})
        return None


def _answers(chosen: Namespace, query: str, variables: Mapping[str, Any]) -> Answers:
    parse(query)  # all errors of its syntax come first
    (plan,) = plan_queries(query, PlanningOptions())
    streams = dict(_assigned("--stream", text, variables) for text in chosen.stream)
    for name, iri in zip(plan.inputs.stream_names, plan.inputs.streams, strict=True):
        if name not in streams and iri not in streams and name in variables:
            streams[name] = variables[name]
    return run(
        query,
        streams,
        _knowledge(chosen.kb, plan.inputs.kbs, variables),
        chosen.runtime,
        limit_per_event=chosen.limit_per_event,
    )


def _knowledge(
    given: list[str], graphs: tuple[str, ...], variables: Mapping[str, Any]
) -> dict[str, Any]:
    """The knowledge bases by graph IRI; a value without an IRI is for the only graph."""
    knowledge: dict[str, Any] = {}
    for text in given:
        value = _value(text, variables)
        if isinstance(value, Mapping):
            knowledge.update(value)
        elif "=" not in text:
            if len(graphs) != 1:
                raise UsageError(f"--kb {text}: say IRI={text}, since the query names no one graph")
            knowledge[graphs[0]] = value
        else:
            iri, value = _assigned("--kb", text, variables)
            knowledge[iri] = value
    return knowledge


def _assigned(option: str, text: str, variables: Mapping[str, Any]) -> tuple[str, Any]:
    """The name and the value of `NAME=VALUE`; an IRI as name may contain `=`."""
    name, equals, value = text.rpartition("=")
    if not equals:
        raise UsageError(f"{option} {text}: say NAME=VALUE")
    return name.removeprefix("<").removesuffix(">"), _value(value, variables)


def _value(text: str, variables: Mapping[str, Any]) -> Any:
    """The variable with a name, or a path."""
    if not text.isidentifier() or text not in variables:
        return text
    value = variables[text]
    return str(value) if isinstance(value, PathLike) else value
