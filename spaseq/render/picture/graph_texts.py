"""A picture as text: DOT for Graphviz, and Mermaid, which many pages and editors draw."""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.render.picture.diagram import Diagram, Picture, StateBox, state_words

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"'})


def dot_text(picture: Picture) -> str:
    """The picture as a directed graph: a node for each state, an arrow for each edge."""
    lines = [
        "digraph automaton {",
        f"  label={_dot_quoted(picture.title)}; labelloc=t; rankdir=LR;",
        '  node [shape=box, style=rounded, fontname="monospace"];',
        '  edge [fontname="monospace"];',
        *_dot_diagram(picture.main, "  "),
    ]
    for number, panel in enumerate(picture.panels):
        lines += _cluster(f"panel{number}", panel.title, panel.diagram, "  ")
    return "\n".join([*lines, "}"]) + "\n"


def _cluster(name: str, title: str, diagram: Diagram, lead: str) -> Iterator[str]:
    yield f"{lead}subgraph {_dot_quoted(f'cluster_{name}')} {{"
    yield f"{lead}  label={_dot_quoted(title)}; style=dashed;"
    yield from _dot_diagram(diagram, f"{lead}  ")
    yield f"{lead}}}"


def _dot_diagram(diagram: Diagram, lead: str) -> Iterator[str]:
    for box in diagram.states:
        yield from _dot_state(box, lead)
    for link in diagram.links:
        source, target = diagram.states[link.source].id, diagram.states[link.target].id
        label = f" [label={_dot_quoted(*link.label)}]" if link.label else ""
        yield f"{lead}{_dot_quoted(source)} -> {_dot_quoted(target)}{label};"


def _dot_state(box: StateBox, lead: str) -> Iterator[str]:
    shape = ", shape=circle" if not box.name else ""
    final = ", peripheries=2" if box.final else ""
    yield f"{lead}{_dot_quoted(box.id)} [label={_dot_quoted(*state_words(box))}{shape}{final}];"
    for number, operand in enumerate(box.operands, 1):
        name = f"{box.id}_{number}"
        yield from _cluster(name, f"operand {number}", operand, lead)
        first = operand.states[0].id
        yield f"{lead}{_dot_quoted(box.id)} -> {_dot_quoted(first)} [style=dotted, arrowhead=none];"


def _dot_quoted(*lines: str) -> str:
    return '"' + "\\n".join(line.translate(_ESCAPES) for line in lines) + '"'


_ENTITIES = str.maketrans(
    {"#": "#35;", '"': "#34;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "|": "#124;", "`": "#96;"}
)


def mermaid_text(picture: Picture) -> str:
    """The picture as a flowchart: a node for each state, an arrow for each edge."""
    lines = ["flowchart LR", *_mermaid_diagram(picture.main, "  ")]
    for number, panel in enumerate(picture.panels):
        lines += _subgraph(f"panel{number}", panel.title, panel.diagram, "  ")
    return "\n".join(lines) + "\n"


def _subgraph(name: str, title: str, diagram: Diagram, lead: str) -> Iterator[str]:
    yield f"{lead}subgraph {name}[{_mermaid_quoted(title)}]"
    yield from _mermaid_diagram(diagram, f"{lead}  ")
    yield f"{lead}end"


def _mermaid_diagram(diagram: Diagram, lead: str) -> Iterator[str]:
    for box in diagram.states:
        yield from _mermaid_state(box, lead)
    for link in diagram.links:
        label = f"|{_mermaid_quoted(*link.label)}|" if link.label else ""
        source, target = diagram.states[link.source].id, diagram.states[link.target].id
        yield f"{lead}{source} -->{label} {target}"


def _mermaid_state(box: StateBox, lead: str) -> Iterator[str]:
    text = _mermaid_quoted(*state_words(box))
    if not box.name:
        yield f"{lead}{box.id}(({text}))"
    else:
        left, right = ("[[", "]]") if box.final else ("[", "]")
        yield f"{lead}{box.id}{left}{text}{right}"
    for number, operand in enumerate(box.operands, 1):
        name = f"{box.id}_{number}"
        yield from _subgraph(name, f"operand {number}", operand, lead)
        yield f"{lead}{box.id} -.- {name}"


def _mermaid_quoted(*lines: str) -> str:
    return '"' + "<br>".join(line.translate(_ENTITIES) for line in lines) + '"'
