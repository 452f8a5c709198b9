"""A picture as text: SVG, with its own background and colours for light and for dark pages; DOT for
Graphviz; and Mermaid, which many pages and editors draw.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.sax.saxutils import escape

from spaseq.message_text import visible, without_passwords
from spaseq.render.picture.diagram import Diagram, Panel, Picture, StateBox, legend_of, state_words
from spaseq.render.picture.layout import diagram_drawing
from spaseq.render.picture.shapes import (
    PAD,
    SMALL,
    TEXT,
    TITLE,
    Area,
    Disc,
    Drawing,
    Label,
    Route,
    Shape,
    flowed,
    text_width,
    wrapped,
)

WIDEST = 880.0
MARGIN = 18.0
_FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_CORNER = 7.0

_LIGHT = {
    "page": "fill:#ffffff;stroke:#d0d7de",
    "box": "fill:#f3f6fa;stroke:#57606a;stroke-width:1.2",
    "final": "fill:none;stroke:#57606a",
    "panel": "fill:none;stroke:#b3261e;stroke-dasharray:5 4",
    "pill": "fill:#ffffff;stroke:none",
    "start": "fill:#57606a",
    "ring": "fill:none;stroke:#57606a",
    "link": "fill:none;stroke:#57606a;stroke-width:1.4",
    "loop": "fill:none;stroke:#0b62c4;stroke-width:1.4",
    "head-link": "fill:#57606a",
    "head-loop": "fill:#0b62c4",
    "name": "fill:#1b1f24;font-weight:bold",
    "code": "fill:#1b1f24",
    "soft": "fill:#57606a",
    "join": "fill:#0b62c4",
    "sign": "fill:#1b1f24;font-weight:bold",
    "no": "fill:#b3261e",
}
_DARK = {
    "#ffffff": "#0d1117",
    "#d0d7de": "#30363d",
    "#f3f6fa": "#1b222c",
    "#57606a": "#a3adb8",
    "#1b1f24": "#e8edf3",
    "#0b62c4": "#6cb2ff",
    "#b3261e": "#ff8f85",
}
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"'})


def picture_drawing(picture: Picture) -> Drawing:
    """The drawing of a picture: title, automaton, panels and legend."""
    shapes: list[Shape] = []
    y = MARGIN
    for line in wrapped(picture.title, 92):
        y += TITLE + 3
        shapes.append(Label(MARGIN, y - 4, line, TITLE, "name"))
    for line in wrapped(picture.note, 118):
        y += TEXT + 4
        shapes.append(Label(MARGIN, y - 3, line, TEXT, "soft"))
    width = 0.0
    panels = flowed((_panel(panel) for panel in picture.panels), WIDEST)
    for part in (diagram_drawing(picture.main, WIDEST), panels):
        if part.shapes:
            y += MARGIN
            shapes += part.moved(MARGIN, y)
            y += part.height
            width = max(width, part.width)
    legend = "   ".join(legend_of(picture.operators))
    if legend:
        y += MARGIN + SMALL
        shapes.append(Label(MARGIN, y - 2, legend, SMALL, "soft"))
    texts = (s.x + text_width(s.text, s.size) for s in shapes if isinstance(s, Label))
    right = max([width + MARGIN, *texts]) + MARGIN
    page = Area(0.5, 0.5, right - 1, y + MARGIN - 1, "page", 10)
    return Drawing(right, y + MARGIN, (page, *shapes))


def _panel(panel: Panel) -> Drawing:
    """A frame with a title around an automaton beside the main one."""
    inner = diagram_drawing(panel.diagram, WIDEST - 2 * PAD, inside=True)
    lines = wrapped(panel.title, 60)
    head = PAD + len(lines) * (TEXT + 4)
    width = max([inner.width, *(text_width(line, TEXT) for line in lines)]) + 2 * PAD
    height = head + 6 + inner.height + PAD
    titles = (
        Label(PAD, PAD + number * (TEXT + 4) - 4, line, TEXT, "no")
        for number, line in enumerate(lines, 1)
    )
    frame = Area(0.5, 0.5, width - 1, height - 1, "panel", 8)
    return Drawing(width, height, (frame, *titles, *inner.moved(PAD, head + 6)))


def svg_text(picture: Picture) -> str:
    """The picture as an SVG document."""
    drawing = picture_drawing(picture)
    width, height = f"{drawing.width:.0f}", f"{drawing.height:.0f}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="spaseq-automaton" role="img" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'style="max-width:100%;height:auto" font-family="{_FONT}">',
        f"<title>{_text(picture.title)}</title>",
        f"<style>{_style()}</style>",
        *map(_element, drawing.shapes),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _style() -> str:
    """The rules of all looks, for light and for dark pages."""
    light = "".join(_rules())
    dark = "".join(
        f"{rule.partition('{')[0]}{{{colours}}}"
        for rule in _rules()
        if (colours := ";".join(_dark_colours(rule)))
    )
    return f"{light}@media(prefers-color-scheme:dark){{{dark}}}"


def _rules() -> Iterator[str]:
    return (f".spaseq-automaton .{name}{{{look}}}" for name, look in _LIGHT.items())


def _dark_colours(rule: str) -> Iterator[str]:
    for name, colour in re.findall(r"(fill|stroke):(#\w+)", rule):
        yield f"{name}:{_DARK[colour]}"


def _element(shape: Shape) -> str:
    match shape:
        case Area(x, y, width, height, look, corner, of):
            return (
                f'<rect{_state(of)} class="{look}" x="{x:g}" y="{y:g}" width="{width:.6g}" '
                f'height="{height:.6g}" rx="{corner:g}"/>'
            )
        case Disc(x, y, radius, look, of):
            return f'<circle{_state(of)} class="{look}" cx="{x:g}" cy="{y:g}" r="{radius:g}"/>'
        case Label(x, y, text, size, look):
            return (
                f'<text class="{look}" x="{x:.6g}" y="{y:.6g}" font-size="{size:g}" '
                f'xml:space="preserve">{_text(text)}</text>'
            )
        case Route():
            return _route(shape)


def _text(text: str) -> str:
    shown = _NO_XML.sub("\N{REPLACEMENT CHARACTER}", visible(without_passwords(text)))
    return escape(shown)


def _route(route: Route) -> str:
    """A line with round corners, and its arrow head."""
    points = route.points
    path = f"M{points[0][0]:.6g} {points[0][1]:.6g}"
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        into, out = _towards(corner, before), _towards(corner, after)
        path += f"L{into[0]:.6g} {into[1]:.6g}Q{corner[0]:.6g} {corner[1]:.6g} "
        path += f"{out[0]:.6g} {out[1]:.6g}"
    (x0, y0), (x, y) = points[-2:]
    dx, dy = _sign(x - x0), _sign(y - y0)
    path += f"L{x - 6 * dx:.6g} {y - 6 * dy:.6g}"
    head = f"M{x:.6g} {y:.6g}L{x - 8 * dx + 4 * dy:.6g} {y - 8 * dy + 4 * dx:.6g}"
    head += f"L{x - 8 * dx - 4 * dy:.6g} {y - 8 * dy - 4 * dx:.6g}Z"
    of = f' data-edge="{" ".join(route.of)}"' if route.of else ""
    return (
        f'<path{of} class="{route.look}" d="{path}"/><path class="head-{route.look}" d="{head}"/>'
    )


def _state(of: str) -> str:
    """The attribute that names the state of a shape, for pages that add counts to a picture."""
    return f' data-state="{of}"' if of else ""


def _towards(corner: tuple[float, float], point: tuple[float, float]) -> tuple[float, float]:
    """The point before a corner at which its rounding begins."""
    dx, dy = point[0] - corner[0], point[1] - corner[1]
    reach = min(_CORNER, max(abs(dx), abs(dy)) / 2)
    return corner[0] + reach * _sign(dx), corner[1] + reach * _sign(dy)


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)


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
