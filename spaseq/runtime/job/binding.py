"""Assigns the user's inputs to the streams and graphs that queries name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TypeVar

from spaseq.algebra import remote
from spaseq.algebra.remote import remote_parts, unsayable_paths
from spaseq.errors import InputError, UsageError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.service_address import AllowedHosts, ServiceAddress, is_url
from spaseq.lang.spelling import suggested
from spaseq.message_text import public_address
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.job.unit_graph import registered

V = TypeVar("V")

_SHOWN = 60
"""Maximum length in characters of an input that a message repeats."""

_LISTED = 5
"""Maximum number of IRIs that a message lists."""


def split_assignment(text: str, names: Collection[str]) -> tuple[str, str] | None:
    """Split `NAME=VALUE`, `IRI=VALUE` or `<IRI>=VALUE`; the longest known name wins.

    An unknown name ends at the first `=`. None if the text has no `=`.
    """
    if text.startswith("<") and ">=" in text:
        name, value = text[1:].split(">=", 1)
        return name, value
    known = [n for n in names if text.startswith(f"{n}=")]
    if known:
        name = max(known, key=len)
        return name, text[len(name) + 1 :]
    name, equals, value = text.partition("=")
    return (name, value) if equals else None


def stream_names(plans: Sequence[QueryPlan]) -> dict[str, str]:
    """The IRI of each stream by its names: a query's name for it, or the IRI.

    Streams that a query registers take no input. A name that queries use for different streams is
    left out.
    """
    names: dict[str, str] = {}
    clashes = set()
    made = registered(plans)
    for name, iri in _streams(plans):
        if iri not in made:
            names[iri] = iri
            if names.setdefault(name, iri) != iri:
                clashes.add(name)
    return {n: i for n, i in names.items() if n not in clashes}


def check_mapping(what: str, given: object, names: Iterable[str]) -> None:
    """Check that inputs are given by name.

    Args:
        what: the keyword of the inputs.
        names: the queries' names for the inputs; the error shows the shortest.

    Raises:
        UsageError: the inputs have no names.
    """
    if not isinstance(given, Mapping):
        name, shown = min(names, key=len, default="NAME"), repr(given)
        shown = shown if len(shown) <= _SHOWN else "..."
        raise UsageError(f"{what} takes inputs by name: {what}={{{name!r}: {shown}}}")


def bind_streams(plans: Sequence[QueryPlan], given: Mapping[str, V]) -> dict[str, V]:
    """The inputs by stream IRI, in the order of the queries.

    A followed run numbers its streams in that order, which must be the same when it resumes.

    Raises:
        UsageError: a stream has no input or two, an input belongs to no stream or to a registered
            one, the inputs have no names, or there are no queries.
    """
    names = stream_names(plans)
    check_mapping("streams", given, names)
    made = registered(plans)
    bound: dict[str, V] = {}
    for name, value in given.items():
        if name not in names:
            raise UsageError(_no_input_wanted(plans, names, name))
        if names[name] in bound:
            raise UsageError(f"stream <{names[name]}> has two inputs; give a list of both: {name}")
        bound[names[name]] = value
    for name, iri in _streams(plans):
        if iri not in bound and iri not in made:
            hint = _registered_hint(iri, made)
            raise UsageError(
                f"no input for stream {name} <{iri}>: give --stream {name}=PATH, "
                f"in Python streams={{{name!r}: PATH}}{hint}"
            )
    return {iri: bound[iri] for _, iri in _streams(plans) if iri in bound}


def _registered_hint(iri: str, made: Collection[str]) -> str:
    """The registered streams of the run for a message: the nearest to an IRI, if they are many."""
    if not made:
        return ""
    if len(made) > _LISTED:
        near = suggested(iri, made)
        meant = f", such as <{near}>" if near else ""
        return f" (queries of this run register {len(made)} streams{meant})"
    others = ", ".join(f"<{each}>" for each in sorted(made))
    return f" (streams that queries of this run register: {others})"


def _streams(plans: Iterable[QueryPlan]) -> Iterator[tuple[str, str]]:
    """(name, IRI) of each stream of each query; once for queries with the same streams."""
    known = dict.fromkeys((plan.inputs.stream_names, plan.outer_streams) for plan in plans)
    for names, iris in known:
        yield from zip(names, iris, strict=False)  # after them come changes of graphs


def _no_input_wanted(plans: Sequence[QueryPlan], names: Collection[str], name: str) -> str:
    """The message for an input that no stream takes."""
    made = registered(plans)
    iri = next((iri for n, iri in _streams(plans) if n == name and iri in made), name)
    if iri in made:
        title = plans[made[iri]].identity.title
        return f"the stream {name} takes no input: query {title} of this run registers <{iri}>"
    if not plans:
        return "no query is given"
    return f"no query reads a stream called {name}; {_known('streams', names, name)}"


def check_kbs(plans: Sequence[QueryPlan], knowledge: KnowledgeBase) -> None:
    """Check that the knowledge base has the graphs of the queries, and that endpoints can answer
    them.

    Raises:
        InputError: a graph of FROM NAMED is not loaded, or a SERVICE is not allowed.
        UsageError: a graph at an endpoint needs a path that entailment makes and SPARQL cannot
            express.
    """
    graphs = {*knowledge.graphs, *knowledge.endpoints}
    allowed = AllowedHosts.of(knowledge.services, knowledge.endpoints.values())
    for plan in plans:
        changing = () if plan.changing is None else plan.changing.graphs
        for iri in plan.inputs.kbs:
            if iri not in graphs and iri not in changing:
                loaded = ", ".join(f"<{g}>" for g in sorted(graphs)) or "none"
                raise InputError(
                    f"the knowledge base has no graph <{iri}>, which query "
                    f"{plan.identity.title} names "
                    f"(loaded: {loaded}): give --kb '{iri}=PATH', in Python kb={{IRI: PATH}}, "
                    "at a server a line of [kb]"
                )
        for iri in plan.inputs.services:
            if iri not in knowledge.endpoints:
                _check_service(iri, allowed)
        _check_paths(plan, knowledge)


def asks_endpoints(plan: QueryPlan, knowledge: KnowledgeBase) -> bool:
    """Whether a query sends requests to a SPARQL endpoint."""
    patterns = [gpm.pattern for gpm in plan.patterns.evaluated]
    return any(remote.asks_endpoints(pattern, knowledge.endpoints) for pattern in patterns)


def _check_service(iri: str, allowed: AllowedHosts) -> None:
    """Refuse a constant of SERVICE to which no request can be sent."""
    shown = public_address(iri)
    if not is_url(iri):
        raise InputError(f"SERVICE <{shown}> is no HTTP address: give --kb '{iri}=https://...'")
    try:
        address = ServiceAddress.of(iri)
    except ValueError as error:
        raise InputError(f"SERVICE <{shown}> has no valid address: {error}") from error
    if iri not in allowed:
        host = address.host_and_port
        raise InputError(
            f"SERVICE <{shown}> may not be asked: give --service-allow {host} (or, in the "
            f'configuration of a server, service_allow = ["{host}"])'
        )


def _check_paths(plan: QueryPlan, knowledge: KnowledgeBase) -> None:
    """Under entailment, refuse paths for an endpoint that SPARQL cannot express."""
    if plan.expressions.schema is None or not knowledge.endpoints:
        return
    for gpm in plan.patterns.gpms:
        for part in remote_parts(gpm.pattern, knowledge.endpoints, plan.expressions.schema):
            for repeated, backwards in unsayable_paths(part, plan.expressions.schema):
                raise UsageError(
                    f"{gpm.name} of query {plan.identity.title}: an endpoint cannot be asked for a "
                    f"path that repeats <{repeated}> and goes back along <{backwards}>, which is "
                    f"entailed from no literal. Declare <{backwards}> an owl:ObjectProperty in "
                    "the ontology, or use SERVICE, which is sent as it is written"
                )


def _known(what: str, names: Collection[str], near: str) -> str:
    close = get_close_matches(near, sorted(names), n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]}?"
    return f"{what}: {', '.join(sorted(names))}"
