"""Requests about the graphs of the knowledge base: the SPARQL 1.1 Graph Store HTTP Protocol."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from secrets import token_hex

import pyoxigraph as ox
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from spaseq.algebra.graph_changes import GraphChange
from spaseq.connectors.base import time_of
from spaseq.errors import InputError
from spaseq.kb.graph_updates import adding, document_triples, replacing, updating
from spaseq.kb.update_process import BoundedUpdates
from spaseq.limits import DEFAULT_LIMITS
from spaseq.message_text import visible
from spaseq.rdf.terms.times import format_time
from spaseq.runtime.live.graph_changes import GraphChanges, GraphView, NoSuchGraph
from spaseq.serve.requests import Refused, body_of, text_of
from spaseq.serve.server_state import ServerState, state_of, who_asks

_FORMATS = (
    ox.RdfFormat.TURTLE,
    ox.RdfFormat.N_TRIPLES,
    ox.RdfFormat.N_QUADS,
    ox.RdfFormat.TRIG,
    ox.RdfFormat.JSON_LD,
    ox.RdfFormat.RDF_XML,
)
_UPDATE = "application/sparql-update"
_HINT = "GET /kb lists the graphs"


async def get_graphs(request: Request) -> Response:
    """`GET /kb` and `GET /kb?graph=IRI[&at=TIME]`."""
    state, graphs = state_of(request), _graphs(request)
    if "graph" not in request.query_params:
        return JSONResponse(await to_thread.run_sync(_listed, graphs))
    form = _form_of_reply(request.headers.get("accept", "*/*"))
    view = await to_thread.run_sync(_view, state, graphs, request)
    tag = _tag(view)
    if tag in _tags(request.headers.get("if-none-match", "")):
        return Response(status_code=304, headers={"ETag": tag})
    body = b"" if request.method == "HEAD" else await to_thread.run_sync(_written, view, form)
    charset = "; charset=utf-8" if form.media_type.startswith("text/") else ""
    headers = {"ETag": tag, "Vary": "Accept", "Content-Type": f"{form.media_type}{charset}"}
    return Response(body, headers={**headers, **_since(view)})


async def put_graph(request: Request) -> Response:
    """`PUT /kb?graph=IRI`."""
    triples = await _triples(request, _name(request))
    return await _changed(request, lambda now: replacing(now.triples(), triples))


async def post_graph(request: Request) -> Response:
    """`POST /kb?graph=IRI`."""
    name = _name(request)
    triples = await _triples(request, f"{name}\0{token_hex(8)}")
    return await _changed(request, lambda now: adding(now.triples(), triples))


async def delete_graph(request: Request) -> Response:
    """`DELETE /kb?graph=IRI`."""
    return await _changed(request, lambda now: replacing(now.triples(), ()), may_create=False)


async def update_graph(request: Request) -> Response:
    """`PATCH /kb?graph=IRI`, with a SPARQL update."""
    state, name = state_of(request), _name(request)
    _check_writable(request, name)
    if _media_type(request) != _UPDATE:
        raise Refused(415, "the body is no SPARQL update", f"send it as Content-Type: {_UPDATE}")
    text = await text_of(request, state.max_kb)
    bounded = BoundedUpdates(state.max_kb)

    def change(now: GraphView) -> GraphChange:
        scope = f"{name}\0{now.version}\0patch"
        return updating(now.graph, now.terms, text, name, scope, bounded)

    return await _changed(request, change)


async def _changed(
    request: Request, make: Callable[[GraphView], GraphChange], may_create: bool = True
) -> Response:
    """Change the graph of a request, and reply."""
    name, graphs = _name(request), _graphs(request)
    await to_thread.run_sync(_check_writable, request, name)
    wanted = _tags(request.headers.get("if-match", ""))
    unwanted = _tags(request.headers.get("if-none-match", ""))
    given = request.query_params.get("from")
    since = None if given is None else time_of(given)
    if given is not None and since is None:
        raise Refused(400, f"from={visible(given[:100])} is no time", "an xsd:dateTime or ms")

    def checked(now: GraphView) -> GraphChange:
        if wanted and "*" not in wanted and _tag(now) not in wanted:
            hint = "get the graph again, and change that"
            raise Refused(412, "the graph has changed", hint, {"ETag": _tag(now)})
        if _tag(now) in unwanted or ("*" in unwanted and len(now)):
            hint = "If-None-Match: * is for a graph that is empty"
            raise Refused(412, "the graph has this value", hint, {"ETag": _tag(now)})
        return make(now)

    state = state_of(request)
    do = partial(graphs.change, name, checked, since)
    try:
        before, after = await to_thread.run_sync(do, limiter=state.threads)
    except InputError as error:
        raise Refused(400, str(error), "nothing has changed") from None
    if before is not after:
        who, tags = who_asks(request), (before.tag, after.tag)
        await to_thread.run_sync(state.audit.note, who, "kb", name, *tags)
    created = may_create and not len(before)
    headers = {"ETag": _tag(after), **_since(after)}
    return Response(status_code=201 if created else 204, headers=headers)


def _graphs(request: Request) -> GraphChanges:
    return state_of(request).run.graphs


def _name(request: Request) -> str:
    """The graph that a request names."""
    name = request.query_params.get("graph")
    if name is None:
        hint = "/kb?graph=IRI; there is no default graph"
        raise Refused(400, "the request names no graph", hint)
    return name


def _check_writable(request: Request, name: str) -> None:
    graphs = _graphs(request)
    try:
        how = graphs.how(name)
    except NoSuchGraph:
        raise _no_graph(name) from None
    if graphs.is_maintained(name):
        raise Refused(403, f"<{visible(name)}> is kept by a query (MAINTAIN GRAPH)", "")
    if not how.writable:
        hint = f'say writable = true in [kb."{visible(name)}"] of the configuration'
        raise Refused(403, f"<{visible(name)}> is not writable", hint)


def _no_graph(name: str) -> Refused:
    return Refused(404, f"there is no graph <{visible(name[:200])}>", _HINT)


def _view(state: ServerState, graphs: GraphChanges, request: Request) -> GraphView:
    name, at = _name(request), request.query_params.get("at")
    time = None if at is None else time_of(at)
    if at is not None and time is None:
        raise Refused(400, f"at={visible(at[:100])} is no time", "an xsd:dateTime or ms")
    try:
        return graphs.view(name) if time is None else graphs.at(name, time, state.retain_ms)
    except NoSuchGraph:
        raise _no_graph(name) from None


async def _triples(request: Request, scope: str) -> list[tuple[str, str, str]]:
    """The triples of a body; who may not change the graph is refused before it is read."""
    name, state = _name(request), state_of(request)
    await to_thread.run_sync(_check_writable, request, name)
    form = ox.RdfFormat.from_media_type(_media_type(request))
    if form is None:
        hint = ", ".join(form.media_type for form in _FORMATS)
        raise Refused(415, "the Content-Type is no RDF format", f"one of {hint}")
    body = await body_of(request, state.max_kb)
    given = body, form, name, scope, DEFAULT_LIMITS
    try:
        return await to_thread.run_sync(document_triples, *given)
    except InputError as error:
        raise Refused(400, str(error), "nothing has changed") from None


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _form_of_reply(accept: str) -> ox.RdfFormat:
    """The format that a client likes most."""
    wanted = []
    for number, part in enumerate(accept.split(",")):
        media, *parameters = (piece.strip().lower() for piece in part.split(";"))
        weights = [p.partition("=")[2] for p in parameters if p.startswith("q=")]
        try:
            weight = float(weights[0]) if weights else 1.0
        except ValueError:
            weight = 0.0
        wanted.append((-weight, number, media))
    for weight, _, media in sorted(wanted):
        for form in _FORMATS:
            if weight < 0 and media in (form.media_type, f"{form.media_type.split('/')[0]}/*"):
                return form
        if weight < 0 and media == "*/*":
            return _FORMATS[0]
    hint = ", ".join(form.media_type for form in _FORMATS)
    raise Refused(406, "none of the formats in Accept is known", f"one of {hint}")


def _written(view: GraphView, form: ox.RdfFormat) -> bytes:
    lines = "".join(f"{s} {p} {o} .\n" for s, p, o in sorted(view.triples())).encode()
    if form == ox.RdfFormat.N_TRIPLES:
        return lines
    quads = ox.parse(lines, ox.RdfFormat.N_TRIPLES)
    if form in (ox.RdfFormat.N_QUADS, ox.RdfFormat.TRIG, ox.RdfFormat.JSON_LD):
        graph = ox.NamedNode(view.iri)
        named = (ox.Quad(q.subject, q.predicate, q.object, graph) for q in quads)
        return ox.serialize(named, format=form) or b""
    return ox.serialize((quad.triple for quad in quads), format=form) or b""


def _tag(view: GraphView) -> str:
    return f'"{view.tag}"'


def _tags(text: str) -> set[str]:
    return {part.strip().removeprefix("W/") for part in text.split(",") if part.strip()}


def _since(view: GraphView) -> dict[str, str]:
    """The header that says since when a graph is so."""
    return {} if view.since is None else {"Spaseq-Since": format_time(view.since)}


def _listed(graphs: GraphChanges) -> list[dict[str, object]]:
    """All graphs: their sizes and last changes."""
    listed = []
    for name in graphs.names():
        view, how = graphs.view(name), graphs.how(name)
        listed.append(
            {
                "graph": name,
                "triples": len(view),
                "since": None if view.since is None else format_time(view.since),
                "etag": _tag(view),
                "writable": how.writable and not graphs.is_maintained(name),
                "watched": [*how.paths] if how.watched else [],
            }
        )
    return listed
