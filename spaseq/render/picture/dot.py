"""A picture as DOT text, for Graphviz."""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.render.picture.diagram import Diagram, Picture, StateBox, state_words

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"'})


def dot_text(picture: Picture) -> str:
    """The picture as a directed graph: a node for each state, an arrow for each edge."""
    lines = [
        "digraph automaton {",
        f"  label={_quoted(picture.title)}; labelloc=t; rankdir=LR;",
        '  node [shape=box, style=rounded, fontname="monospace"];',
        '  edge [fontname="monospace"];',
        *_diagram(picture.main, "  "),
    ]
    for number, panel in enumerate(picture.panels):
        lines += _cluster(f"panel{number}", panel.title, panel.diagram, "  ")
    return "\n".join([*lines, "}"]) + "\n"


def _cluster(name: str, title: str, diagram: Diagram, lead: str) -> Iterator[str]:
    yield f"{lead}subgraph {_quoted(f'cluster_{name}')} {{"
    yield f"{lead}  label={_quoted(title)}; style=dashed;"
    yield from _diagram(diagram, f"{lead}  ")
    yield f"{lead}}}"


def _diagram(diagram: Diagram, lead: str) -> Iterator[str]:
    for box in diagram.states:
        yield from _state(box, lead)
    for link in diagram.links:
        source, target = diagram.states[link.source].id, diagram.states[link.target].id
        label = f" [label={_quoted(*link.label)}]" if link.label else ""
        yield f"{lead}{_quoted(source)} -> {_quoted(target)}{label};"


def _state(box: StateBox, lead: str) -> Iterator[str]:
    shape = ", shape=circle" if not box.name else ""
    final = ", peripheries=2" if box.final else ""
    yield f"{lead}{_quoted(box.id)} [label={_quoted(*state_words(box))}{shape}{final}];"
    for number, operand in enumerate(box.operands, 1):
        name = f"{box.id}_{number}"
        yield from _cluster(name, f"operand {number}", operand, lead)
        first = operand.states[0].id
        yield f"{lead}{_quoted(box.id)} -> {_quoted(first)} [style=dotted, arrowhead=none];"


def _quoted(*lines: str) -> str:
    return '"' + "\\n".join(line.translate(_ESCAPES) for line in lines) + '"'
