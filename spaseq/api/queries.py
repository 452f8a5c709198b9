"""The queries of a call: read, parsed, checked and planned; translation from RSP-QL and C-SPARQL.

Loads no data and no kernel.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias, cast

from spaseq.compile import Checked, CompileOptions, check_query
from spaseq.errors import Diagnostic, InputError, QueryError, UsageError
from spaseq.lang import ast
from spaseq.lang.format import format_query
from spaseq.lang.parser import MOST_CHARACTERS
from spaseq.memory import collection_paused
from spaseq.options import PlanningOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.templates import QueryTemplates
from spaseq.rdf.schema import Schema
from spaseq.storage.user_files import read_user_text

QueryInput: TypeAlias = str | Path | ast.Query
"""The text of a query, the path of a query file, or a result of `spaseq.parse`."""

_QUERY_SUFFIXES = (".rq", ".sparql", ".spaseq", ".txt", ".query")


def check_queries(
    query: QueryInput | Sequence[QueryInput],
    planning: PlanningOptions,
    pushed: bool = False,
    several: bool = False,
    templates: QueryTemplates | None = None,
    file: str | None = None,
) -> Iterator[Checked]:
    """Each query parsed, checked and, if it has no errors, planned.

    The name of a query file is its stem, after as many of its directories as distinguish it from
    the other files. A text or a parsed query is called `query`, or `query1`, `query2` and so on
    among several. `pushed` says that events come one by one, and `several` that other queries may
    run beside a single one. `templates` has the queries of earlier calls. `file` names a text in
    findings.

    Raises:
        InputError: a query file or an ontology cannot be read.
        UsageError: the options of planning contradict each other, a file is given twice, a text
            looks like a path, or an item is no query.
    """
    schema, templates = _schema(planning), templates or QueryTemplates()
    are_several = isinstance(query, Iterable) and not isinstance(query, str | bytes)
    queries = list(cast(Iterable[QueryInput], query if are_several else (query,)))
    options = CompileOptions(
        schema=schema,
        disable=planning.disable,
        pushed=pushed,
        partial=planning.partial,
        several=several or len(queries) > 1,
        file=file,
    )
    for item, name in zip(queries, _names(queries), strict=True):
        query_options = replace(options, file=str(item)) if isinstance(item, Path) else options
        with collection_paused():  # plans are many objects, and all of them stay
            checked = check_query(_text(item), name, query_options, templates)
        yield checked


def _text(query: QueryInput) -> str:
    """The text of a query in any form."""
    if isinstance(query, Path):
        return read_query(query)
    if isinstance(query, ast.Query):
        return format_query(query)
    if _looks_like_a_path(query):
        raise UsageError(f"the query {query!r} looks like a path: say pathlib.Path({query!r})")
    return query.removeprefix("\ufeff")


def _looks_like_a_path(text: str) -> bool:
    """Whether a text that is no query has the form of a file name.

    >>> _looks_like_a_path("queries/jam.rq"), _looks_like_a_path("SELECT ?x")
    (True, False)
    """
    if not text or len(text) > 1000 or "{" in text or "\n" in text:
        return False
    return text.endswith(_QUERY_SUFFIXES) or (" " not in text and os.path.isfile(text))


def _names(queries: Sequence[QueryInput]) -> list[str]:
    """The name of each query; no two are equal.

    >>> _names([Path("a/jam.rq"), Path("b/jam.rq"), "SELECT ..."])
    ['a/jam', 'b/jam', 'query3']
    """
    several = len(queries) > 1
    paths = {
        number: Path(os.path.abspath(item)).with_suffix("").parts
        for number, item in enumerate(queries, 1)
        if isinstance(item, Path)
    }
    texts = [n for n, item in enumerate(queries, 1) if isinstance(item, str | ast.Query)]
    for item in queries:
        if not isinstance(item, str | Path | ast.Query):
            kind = type(item).__name__
            raise UsageError(f"a query is text, a pathlib.Path or spaseq.parse(...), not {kind}")
    names = {n: f"query{n}" if several else "query" for n in texts}
    of_texts = frozenset(names.values())
    # For each suffix (directories, stem) of each path: number of files with it.
    ends = Counter(parts[-k:] for parts in paths.values() for k in range(1, len(parts) + 1))
    for number, parts in paths.items():
        if ends[parts] > 1 and [*paths.values()].count(parts) > 1:
            raise UsageError(f"two query files are called {Path(*parts)}: give each one once")
        length = next((k for k in range(1, len(parts)) if ends[parts[-k:]] == 1), len(parts))
        names[number] = "/".join(parts[-length:])
        if names[number] in of_texts:
            raise UsageError(f"a query file and a text are both called {names[number]}")
    return [names[number] for number in range(1, len(queries) + 1)]


def _schema(planning: PlanningOptions) -> Schema | None:
    none = planning.ontology is None or planning.ontology == ()
    if none and planning.entailment is None:
        return None
    from spaseq.kb.quads import entailing_schema  # reads RDF, which most queries do without

    return entailing_schema(planning.ontology, planning.entailment, planning.limits)


def plans_of(queries: Sequence[Checked]) -> tuple[QueryPlan, ...]:
    """The plans of checked queries.

    Raises:
        QueryError: with all errors of all queries.
    """
    errors: list[Diagnostic] = [d for checked in queries for d in checked.errors]
    if errors:
        raise QueryError(errors)
    return tuple(checked.plan for checked in queries if checked.plan is not None)


def read_query(path: Path) -> str:
    """The text of a query file.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return read_user_text(path, MOST_CHARACTERS + 1)  # a longer text is an error of the query
    except OSError as error:
        raise InputError(f"cannot read the query {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"the query {path} is not UTF-8: {error}") from None


def translate(query: str | Path, *, base: str | None = None) -> str:
    """Translate a query of RSP-QL or C-SPARQL to the text of a spaseq query.

    The text begins with comments that say where an RSP engine answers otherwise (docs/rspql.md).

    Args:
        query: the text of the query, or the `Path` of its file.
        base: the base IRI if the query has no BASE; by default `http://example.org/`.

    Raises:
        QueryError: the text is no such query, or a part has no counterpart; with the place of each
            error. An error that only the check finds, such as an unknown function, has its place in
            the translation.
        InputError: the file cannot be read.
    """
    from spaseq.lang.rspql.translate import translate_text  # runs do without it

    name = str(query) if isinstance(query, Path) else "<query>"
    text = read_query(query) if isinstance(query, Path) else query
    made = translate_text(text, name, base)
    checked = check_query(made, options=CompileOptions(file=f"translation of {name}"))
    if checked.errors:
        raise QueryError(checked.errors)
    return made
