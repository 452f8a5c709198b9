"""spaseq: sequences of RDF graph events, in process and on Spark.

    for match in spaseq.run(Path("query.rq"), {"S1": "events.nq"}, {"http://ex/kb": "kb.ttl"}):
        print(match.start, match.bindings)

The public names are `run`, `run_async`, `why`, `Engine`, `function`, `parse`, `translate` and
`explain`, with the types that they use. `spaseq.options` documents their keywords. `spaseq.spark`
is for Spark users, `spaseq.testing` for tests of queries. `%load_ext spaseq` gives notebooks the
magic `%%spaseq`. A name loads its module at its first use, so that Spark's workers import only
their stage.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # `typing` would dominate the time until signals are handled
if TYPE_CHECKING:
    from typing import Any

    from spaseq import errors, options, sinks, sources, spark, testing
    from spaseq.api.answers import Answers
    from spaseq.api.explain import explain, parse
    from spaseq.api.match import Match, PartialMatch, TracedEvent
    from spaseq.api.push import Engine
    from spaseq.api.queries import translate
    from spaseq.api.run import AsyncAnswers, run, run_async
    from spaseq.api.why import why
    from spaseq.diagnosis.report import Cause, Report
    from spaseq.expr.extension import function
    from spaseq.lift.lifted import Lifted
    from spaseq.limits import Limits
    from spaseq.options import ServiceOptions
    from spaseq.rdf.terms.term import Term
    from spaseq.render.explain import Explanation
    from spaseq.runtime.job.job import Stats
    from spaseq.sources.iterables import Event
    from spaseq.sources.json_ld import JsonLd

_HOMES = {
    "Answers": "spaseq.api.answers",
    "AsyncAnswers": "spaseq.api.run",
    "Cause": "spaseq.diagnosis.report",
    "Engine": "spaseq.api.push",
    "Event": "spaseq.sources.iterables",
    "Explanation": "spaseq.render.explain",
    "JsonLd": "spaseq.sources.json_ld",
    "Lifted": "spaseq.lift.lifted",
    "Limits": "spaseq.limits",
    "Match": "spaseq.api.match",
    "PartialMatch": "spaseq.api.match",
    "Report": "spaseq.diagnosis.report",
    "ServiceOptions": "spaseq.options",
    "Stats": "spaseq.runtime.job.job",
    "Term": "spaseq.rdf.terms.term",
    "TracedEvent": "spaseq.api.match",
    "explain": "spaseq.api.explain",
    "function": "spaseq.expr.extension",
    "parse": "spaseq.api.explain",
    "run": "spaseq.api.run",
    "run_async": "spaseq.api.run",
    "translate": "spaseq.api.queries",
    "why": "spaseq.api.why",
}

_MODULES = ("errors", "options", "sinks", "sources", "spark", "testing")

__all__ = [
    "Answers",
    "AsyncAnswers",
    "Cause",
    "Engine",
    "Event",
    "Explanation",
    "JsonLd",
    "Lifted",
    "Limits",
    "Match",
    "PartialMatch",
    "Report",
    "ServiceOptions",
    "Stats",
    "Term",
    "TracedEvent",
    "errors",
    "explain",
    "function",
    "options",
    "parse",
    "run",
    "run_async",
    "sinks",
    "sources",
    "spark",
    "testing",
    "translate",
    "why",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"spaseq.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'spaseq' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    dunders = (name for name in globals() if name.startswith("__") and name not in _HOMES)
    return sorted({*__all__, *_MODULES, *dunders})


def load_ipython_extension(ipython: Any) -> None:
    """Register the cell magic `%%spaseq`; `%load_ext spaseq` calls this."""
    from spaseq.api.notebook import SpaseqMagics

    ipython.register_magics(SpaseqMagics)
