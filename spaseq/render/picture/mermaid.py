"""A picture as Mermaid text, a flowchart that many pages and editors draw."""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.render.picture.diagram import Diagram, Picture, StateBox, state_words

_ENTITIES = str.maketrans(
    {"#": "#35;", '"': "#34;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "|": "#124;", "`": "#96;"}
)


def mermaid_text(picture: Picture) -> str:
    """The picture as a flowchart: a node for each state, an arrow for each edge."""
    lines = ["flowchart LR", *_diagram(picture.main, "  ")]
    for number, panel in enumerate(picture.panels):
        lines += _subgraph(f"panel{number}", panel.title, panel.diagram, "  ")
    return "\n".join(lines) + "\n"


def _subgraph(name: str, title: str, diagram: Diagram, lead: str) -> Iterator[str]:
    yield f"{lead}subgraph {name}[{_quoted(title)}]"
    yield from _diagram(diagram, f"{lead}  ")
    yield f"{lead}end"


def _diagram(diagram: Diagram, lead: str) -> Iterator[str]:
    for box in diagram.states:
        yield from _state(box, lead)
    for link in diagram.links:
        label = f"|{_quoted(*link.label)}|" if link.label else ""
        source, target = diagram.states[link.source].id, diagram.states[link.target].id
        yield f"{lead}{source} -->{label} {target}"


def _state(box: StateBox, lead: str) -> Iterator[str]:
    text = _quoted(*state_words(box))
    if not box.name:
        yield f"{lead}{box.id}(({text}))"
    else:
        left, right = ("[[", "]]") if box.final else ("[", "]")
        yield f"{lead}{box.id}{left}{text}{right}"
    for number, operand in enumerate(box.operands, 1):
        name = f"{box.id}_{number}"
        yield from _subgraph(name, f"operand {number}", operand, lead)
        yield f"{lead}{box.id} -.- {name}"


def _quoted(*lines: str) -> str:
    return '"' + "<br>".join(line.translate(_ENTITIES) for line in lines) + '"'
