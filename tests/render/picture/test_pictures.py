"""Pictures of automata: every state and link is there, and no label lies on another."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest

from spaseq.api.explain import explain
from spaseq.errors import UsageError
from spaseq.render.explain import FORMATS, Explanation
from spaseq.render.picture.diagram import Diagram
from spaseq.render.picture.picture_texts import picture_drawing
from spaseq.render.picture.shapes import Area, Drawing, Label, wrapped

ROOT = Path(__file__).parents[3]
CASES = sorted(ROOT.glob("streams/*/query.rq"))
SVG = "{http://www.w3.org/2000/svg}"

LONG = "FILTER (?b > 3 && COALESCE(?b, 0) < 1000000000 && STRLEN(STR(?x)) > 12 + STRLEN(STR(?b)))"

SEQUENCES = [
    "A",
    "A; B; C, D: E; F; G;[5 SECONDS] H; I; J; K; L",
    "A; B+; C?; D{2,4}; E!; F; (G | H); I*; J; K; L",
    "A; C?; D?; E*; F?; G",
    "A; (D; E?; F)+; B{2,5}; G",
    "A; (D; (E; F?)+[:])*; B{2,}; (G; H)+",
    "A; B+[:] UNTIL D; C++; F",
    "A; (B; C){2,1000}; D",
    "(A AND C AND D); ((E; F+) | (G, H)); (I & J)",
    "(A; D)!; C; (E; F)!; G; H!",
    "A?; C?; D?; E?; F?; G?; H?; I?; J?; K",
    "A+; B+; C+; D+; E+; F+; G+; H+",
    "((A | B)+; (C & D)*; E)+; F",
    "(A | (B; C){2}){3}; D",
]


def query(sequence: str) -> str:
    """A query whose sequence has GPMs of one letter; that of B has long FILTERs."""
    names = sorted(set(re.findall(r"\b[A-Z]\b", sequence)))
    gpms = [
        f"DEFINE GPM {name} ON S{', Second' * (name == 'B')} "
        f"{{ ?x :{name.lower()} ?{name.lower()} {LONG if name == 'B' else ''} }}"
        for name in names
    ]
    return f"""PREFIX : <http://e/> SELECT * WITHIN 1 MINUTES FROM STREAM S <http://e/s>
        FROM STREAM Second <http://e/s2> SEQ({sequence}) {{ {" ".join(gpms)} }}"""


def explanations() -> Iterator[object]:
    for case in CASES:
        yield pytest.param(case, id=case.parent.name)
    for sequence in SEQUENCES:
        yield pytest.param(query(sequence), id=sequence)


every = pytest.mark.parametrize("shown", list(explanations()))


def labels(drawing: Drawing) -> list[Label]:
    return [shape for shape in drawing.shapes if isinstance(shape, Label)]


def areas(drawing: Drawing, look: str) -> list[Area]:
    return [s for s in drawing.shapes if isinstance(s, Area) and s.look == look]


def meet(one: Area, other: Area) -> bool:
    """Whether two areas share more than an edge."""
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.y + other.height
        and other.y < one.y + one.height
    )


@every
def test_no_label_lies_on_another(shown: str | Path) -> None:
    texts = labels(picture_drawing(explain(shown).picture))
    meeting = [(a.text, b.text) for a, b in combinations(texts, 2) if meet(a.area, b.area)]
    assert meeting == []


@every
def test_labels_of_links_lie_beside_the_boxes(shown: str | Path) -> None:
    """A label may lie inside the box of a bracket, but not across a border."""
    drawing = picture_drawing(explain(shown).picture)
    for pill in areas(drawing, "pill"):
        for box in (*areas(drawing, "box"), *areas(drawing, "panel")):
            assert not meet(pill, box) or holds(box, pill), (pill, box)


@every
def test_boxes_are_apart_or_inside_each_other(shown: str | Path) -> None:
    drawing = picture_drawing(explain(shown).picture)
    boxes = areas(drawing, "box")
    for a, b in combinations(boxes, 2):
        assert not meet(a, b) or holds(a, b) or holds(b, a)


@every
def test_all_is_on_the_page(shown: str | Path) -> None:
    drawing = picture_drawing(explain(shown).picture)
    page = Area(0, 0, drawing.width, drawing.height)
    for label in labels(drawing):
        assert holds(page, label.area), label
    for box in areas(drawing, "box") + areas(drawing, "pill"):
        assert holds(page, box), box
    assert drawing.width < 1000


def holds(outer: Area, inner: Area) -> bool:
    return (
        outer.x <= inner.x
        and outer.y <= inner.y
        and inner.x + inner.width <= outer.x + outer.width
        and inner.y + inner.height <= outer.y + outer.height
    )


@every
def test_the_svg_is_xml_and_has_every_label(shown: str | Path) -> None:
    found = explain(shown)
    root = ElementTree.fromstring(found.to("svg"))
    assert root.tag == f"{SVG}svg"
    drawn = [element.text for element in root.iter(f"{SVG}text")]
    assert drawn == [label.text for label in labels(picture_drawing(found.picture))]
    looks = {e.get("class") for e in root.iter() if e.get("class")} - {"spaseq-automaton"}
    style = root.find(f"{SVG}style")
    assert style is not None and style.text is not None
    light, _, dark = style.text.partition("@media(prefers-color-scheme:dark)")
    for look in looks:
        assert f".{look}{{" in light and f".{look}{{" in dark


@every
def test_mermaid_and_dot_have_every_state_and_link(shown: str | Path) -> None:
    found = explain(shown)
    mermaid, dot = found.to("mermaid").splitlines(), found.to("dot").splitlines()
    diagrams = [found.picture.main, *(panel.diagram for panel in found.picture.panels)]
    states = [box.id for each in diagrams for box in every_state(each)]
    assert len(states) == len(set(states))
    for name in states:
        assert sum(bool(re.match(rf" +{name}[(\[]", line)) for line in mermaid) == 1
        assert sum(line.strip().startswith(f'"{name}" [label=') for line in dot) == 1
    links = sum(every_link(each) for each in diagrams)
    assert sum(" -->" in line for line in mermaid) == links
    assert sum(" -> " in line and "style=dotted" not in line for line in dot) == links


def every_state(diagram: Diagram) -> Iterator:
    for box in diagram.states:
        yield box
        for operand in box.operands:
            yield from every_state(operand)


def every_link(diagram: Diagram) -> int:
    inside = (every_link(each) for box in diagram.states for each in box.operands)
    return len(diagram.links) + sum(inside)


@every
def test_json_is_the_data(shown: str | Path) -> None:
    found = explain(shown, full=True)
    assert json.loads(found.to("json")) == found.data
    automaton = found.data["automaton"]
    states = {state["id"] for state in automaton["states"]}
    assert {edge[end] for edge in automaton["edges"] for end in ("from", "to")} <= states
    assert any(state["final"] for state in automaton["states"])


def test_what_a_box_says() -> None:
    found = explain(ROOT / "streams" / "card-fraud" / "query.rq")
    texts = [label.text for label in labels(picture_drawing(found.picture))]
    for text in (
        "A, B{2,}; D!; C{3}",
        "WITHIN 30 MINUTES, PARTITION BY ?card",
        "B #1",
        "as #1",
        "on S1",
        "same ?card",
        "?small <= 0.1 * ?big",
        ", again",
        "no D",
    ):
        assert text in texts


def test_the_picture_of_the_pages_is_the_one_that_is_drawn() -> None:
    found = explain(ROOT / "streams" / "card-fraud" / "query.rq")
    assert (ROOT / "docs" / "card-fraud.svg").read_text("utf-8") == found.to("svg")


HOSTILE = 'FILTER (?a != "</svg><script>&#0; \\"x\\" | [y] --> z" && ?a != "\\u0001\\uFFFE")'


@pytest.mark.parametrize("form", FORMATS)
def test_texts_of_the_query_stay_texts(form: str) -> None:
    text = query("A; A").replace("?x :a ?a ", f"?x :a ?a {HOSTILE} ")
    shown = explain(text).to(form)
    if form == "svg":
        ElementTree.fromstring(shown)
        assert "<script" not in shown
    if form == "mermaid":
        assert "<svg" not in shown and "--> z" not in shown
    assert "\x01" not in shown


def test_html_has_the_picture_and_the_plan() -> None:
    found = explain(query("A; B+"))
    html = found._repr_html_()
    assert found._repr_svg_() in html and "evaluator" in html


def test_an_unknown_format_is_refused() -> None:
    shown: Explanation = explain(query("A"))
    with pytest.raises(UsageError, match="no format 'png': text, json, mermaid, dot, svg"):
        shown.to("png")


@pytest.mark.parametrize("text", ["", "a", "word " * 30, "x" * 200, "f(" * 60, "?a < ?b"])
@pytest.mark.parametrize("most", [12, 36])
def test_wrapping_loses_nothing(text: str, most: int) -> None:
    lines = wrapped(text, most)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(len(line) <= most for line in lines)
