"""The shape of the code: sizes of functions, unique names, kernels in their folders.

Tables list the exceptions to the rules with their reasons. An entry that is no longer needed also
fails the test.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Container, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import spaseq
from spaseq.memory import collection_paused

PACKAGE = Path(__file__).parents[1] / "spaseq"

LINES = 50
PARAMETERS = 7

LARGE_FUNCTIONS: dict[str, str] = {}
"""Reasons for functions outside kernels that are longer or have more parameters."""

SHARED_CLASS_NAMES = {
    "Filter": "SPARQL's name for it, in the syntax tree and in the algebra",
}
"""Reasons for class names with several definitions."""

SHARED_FILE_NAMES: dict[str, str] = {}
"""Reasons for file names that occur several times in a top-level folder."""

SPARQL_FUNCTIONS = "expr/functions/"
"""Folder of functions from SPARQL 1.1; a decorator gives their SPARQL names."""

KERNEL_DECORATORS = {
    "kernel",
    "lean_kernel",
    "device_function",
    "inlined_device_function",
    "interpreted_as",
    "njit",
    "jit",
    "machine_code",
}


_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)


class Module(NamedTuple):
    """A file of the package and its syntax tree."""

    path: Path
    tree: ast.Module

    @property
    def name(self) -> str:
        """The path relative to the package."""
        return self.path.relative_to(PACKAGE).as_posix()

    @property
    def room(self) -> str:
        """The top-level folder."""
        return self.name.partition("/")[0]

    @property
    def has_kernels(self) -> bool:
        """Whether the module is in a folder of kernels."""
        return "kernels" in self.path.parent.parts


@cache
def modules() -> tuple[Module, ...]:
    files = sorted(PACKAGE.rglob("*.py"))
    with collection_paused():
        return tuple(Module(path, ast.parse(path.read_text("utf-8"))) for path in files)


@cache
def statements(module: Module) -> tuple[ast.AST, ...]:
    """All statements of a file, and what holds them; expressions hold none."""
    found: list[ast.AST] = [module.tree]
    for node in found:
        found += [n for n in ast.iter_child_nodes(node) if isinstance(n, _STATEMENTS)]
    return tuple(found)


def functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in statements(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The number of parameters without `self`, `cls`, `*args` and `**kwargs`."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return len([a for i, a in enumerate(named) if i or a.arg not in ("self", "cls")])


def test_functions_are_short_and_take_few_parameters() -> None:
    large = set()
    for module in modules():
        for function in () if module.has_kernels else functions(module):
            lines = (function.end_lineno or function.lineno) - function.lineno + 1
            if lines > LINES or parameters(function) > PARAMETERS:
                large.add(f"{module.name}:{function.name}")
    assert large == set(LARGE_FUNCTIONS)


def test_a_class_name_stands_once() -> None:
    places = defaultdict(list)
    for module in modules():
        for node in statements(module):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module.name)
    shared = {name: where for name, where in places.items() if len(where) > 1}
    assert shared.keys() == SHARED_CLASS_NAMES.keys(), shared


def test_a_file_name_stands_once_in_a_room() -> None:
    places = defaultdict(list)
    for module in modules():
        if module.path.name != "__init__.py" and module.path.parent != PACKAGE:
            places[f"{module.room}/{module.path.name}"].append(module.name)
    shared = {name: where for name, where in places.items() if len(where) > 1}
    assert shared.keys() == SHARED_FILE_NAMES.keys(), shared


def test_array_types_stand_in_one_file() -> None:
    """No other file defines a type alias for numpy arrays."""
    elsewhere = [
        f"{module.name}:{node.lineno}"
        for module in modules()
        if module.name != "compiled/arrays.py"
        for node in module.tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and node.value is not None
        and "NDArray"
        in {n.attr for n in ast.walk(node.value) if isinstance(n, ast.Attribute)}
        | {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
    ]
    assert elsewhere == []


def test_kernels_stand_in_their_folders() -> None:
    elsewhere = [
        f"{module.name}:{function.name}"
        for module in modules()
        if not module.has_kernels and module.room != "compiled"
        for function in functions(module)
        for decorator in function.decorator_list
        if _name(decorator) in KERNEL_DECORATORS
    ]
    assert elsewhere == []


def _name(decorator: ast.expr) -> str:
    while isinstance(decorator, ast.Call | ast.Attribute):
        if isinstance(decorator, ast.Attribute):
            return decorator.attr
        decorator = decorator.func
    return decorator.id if isinstance(decorator, ast.Name) else ""


def test_files_classes_and_functions_have_docstrings() -> None:
    """All files, and their public top-level classes and functions."""
    without = []
    for module in modules():
        if not ast.get_docstring(module.tree) and module.path.name != "__init__.py":
            without.append(module.name)
        for node in module.tree.body:
            documented = isinstance(node, ast.ClassDef | ast.FunctionDef)
            if module.name.startswith(SPARQL_FUNCTIONS):
                continue
            if documented and not node.name.startswith("_") and not ast.get_docstring(node):
                without.append(f"{module.name}:{node.name}")
    assert without == []


@pytest.mark.parametrize("name", [n for n in spaseq.__all__ if n != "errors"])
def test_public_names_and_their_methods_have_docstrings(name: str) -> None:
    public = getattr(spaseq, name)
    assert public.__doc__
    if isinstance(public, type):
        own = {n: member for n, member in vars(public).items() if not n.startswith("_")}
        functions_of = {n: m for n, m in own.items() if callable(m) or isinstance(m, property)}
        assert [n for n, member in functions_of.items() if not member.__doc__] == []


def test_every_section_of_the_language_pages_that_is_cited_exists() -> None:
    root = PACKAGE.parent
    headings = {
        f"{page}.md#{heading.lower().replace(' ', '-')}"
        for page in ("language", "lookup", "meaning")
        for heading in re.findall(
            r"^#+ (.*)$", (root / "docs" / f"{page}.md").read_text(), re.MULTILINE
        )
    }
    cited = {
        section: path
        for place in (PACKAGE, root / "tests", root / "benchmarks")
        for path in place.rglob("*.py")
        for section in re.findall(
            r"docs/((?:language|lookup|meaning)\.md#[a-z-]+)", path.read_text()
        )
    }
    assert {section: path for section, path in cited.items() if section not in headings} == {}
    assert len(cited) > 20


def test_no_two_files_import_each_other() -> None:
    """Imports for type checkers, and those inside functions, count, too."""
    files = {_dotted(module.path): module.tree for module in modules()}
    imports = {name: set(_imported(tree, files)) for name, tree in files.items()}
    assert not [(a, b) for a in imports for b in imports[a] if a < b and a in imports.get(b, ())]


def _dotted(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(tree: ast.Module, known: Container[str]) -> Iterator[str]:
    """The modules of the package that a file imports anywhere."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in known else node.module for name in inner)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
