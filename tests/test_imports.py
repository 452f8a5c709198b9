"""The imports of the package's modules have no cycle; nor have the automaton's folders."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import spaseq

PACKAGE = Path(spaseq.__file__).parent
AUTOMATON = "spaseq.automaton."
ROOMS = ("program", "run", "batch", "sets", "registers")

Graph = Mapping[str, set[str]]


def test_no_cycle_among_modules() -> None:
    assert cycle(imports()) == []


def test_no_cycle_among_the_rooms_of_the_automaton() -> None:
    rooms: dict[str, set[str]] = {}
    for module, imported in imports().items():
        for other in imported:
            one, two = room(module), room(other)
            if one and two and one != two:
                rooms.setdefault(one, set()).add(two)
    assert set(rooms) <= {*ROOMS}
    assert cycle(rooms) == []


def test_cycles_are_found() -> None:
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) != []
    assert cycle({"a": {"b", "c"}, "b": {"c"}}) == []


def test_what_only_the_type_checker_imports_does_not_count() -> None:
    source = """
from typing import TYPE_CHECKING
import spaseq.errors
from spaseq.rdf import terms
if TYPE_CHECKING:
    from spaseq import api
try:
    from spaseq.lang.ast import Var
except ImportError:
    pass
def function():
    import spaseq.cli
"""
    assert [*imported_names(ast.parse(source).body)] == [
        "typing.TYPE_CHECKING",
        "spaseq.errors",
        "spaseq.rdf.terms",
        "spaseq.lang.ast.Var",
    ]


def room(module: str) -> str:
    """The automaton's folder of a module; "" for other modules."""
    name = module.removeprefix(AUTOMATON).partition(".")[0]
    return name if module.startswith(AUTOMATON) and name in ROOMS else ""


def cycle(graph: Graph) -> list[str]:
    """A cycle of a graph; [] if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


@cache
def imports() -> Graph:
    """The modules that the import of each module of the package imports directly."""
    names = {module_name(file): file for file in PACKAGE.rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for name, file in names.items():
        body = ast.parse(file.read_text(encoding="utf-8")).body
        modules = {module_of(n, names) for n in imported_names(body)}
        graph[name] = modules - {name, ""}
    return graph


def module_name(file: Path) -> str:
    """The dotted name of a module's file."""
    parts = [PACKAGE.name, *file.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def module_of(name: str, modules: Iterable[str]) -> str:
    """The module with a dotted name, or the module that contains it; "" outside the package."""
    if name in modules:
        return name
    parent = name.rpartition(".")[0]
    return parent if parent in modules else ""


def imported_names(body: Iterable[ast.stmt]) -> Iterable[str]:
    """The dotted names of top-level imports, except imports only for type checkers."""
    for statement in body:
        match statement:
            case ast.Import(names=names):
                yield from (n.name for n in names)
            case ast.ImportFrom(module=str(origin), names=names, level=0):
                yield from (f"{origin}.{n.name}" for n in names)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield from imported_names(statement.orelse)
            case ast.If() | ast.Try():
                yield from imported_names(statement.body)
