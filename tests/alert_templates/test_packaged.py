"""The templates that come with the package make what their receivers take."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from spaseq.alert_templates.template import TemplateProcess, packaged_names, read_template

jsonschema = pytest.importorskip("jsonschema")

RECEIVERS = Path(__file__).parents[3] / "shared" / "messages" / "receivers"
SCHEMAS = {
    "slack": "slack-webhook",
    "alertmanager": "alertmanager-v2",
    "pagerduty": "pagerduty-events-v2",
}
XSD = "http://www.w3.org/2001/XMLSchema#"
HARD = 'a "b" \\ <!channel> & \n\r\t\0\x1b\u2028 \U0001f600 {{ 7 * 7 }}'

TEXTS = st.text(st.characters(blacklist_categories=("Cs",)), max_size=4000)
TERMS = st.builds(lambda text: {"type": "literal", "value": text}, TEXTS)
BINDINGS = st.dictionaries(
    st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True), TERMS, max_size=60
)
QUERIES = st.fixed_dictionaries(
    {"name": st.just("jam")},
    optional={key: TEXTS.filter(bool) for key in ("title", "severity", "description", "runbook")},
)


def answer(bindings: dict[str, Any]) -> dict[str, Any]:
    times = {"start": "2026-03-02T10:15:30Z", "end": "2026-03-02T10:20:00.500Z"}
    return {
        "id": "0123456789abcdef" * 2,
        "query": "jam",
        **times,
        "bindings": bindings,
        "trace": [],
    }


@cache
def process(name: str) -> TemplateProcess:
    return TemplateProcess(read_template(name, Path(), {"routing_key": "0" * 32, "by": ["v"]}))


@cache
def validator(name: str) -> Any:
    path = RECEIVERS / f"{SCHEMAS[name]}.schema.json"
    if not path.exists():
        pytest.skip("the receivers' schemas are not here")
    formats = jsonschema.FormatChecker()
    return jsonschema.Draft202012Validator(json.loads(path.read_text()), format_checker=formats)


@pytest.mark.parametrize("name", SCHEMAS)
@given(bindings=BINDINGS, query=QUERIES)
@example(bindings={"v": {"type": "literal", "value": HARD}}, query={"name": "jam", "title": HARD})
@example(bindings={}, query={"name": "jam"})
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_the_values(name: str, bindings: Any, query: Any) -> None:
    made = json.loads(process(name).render(json.dumps(answer(bindings)), query))
    validator(name).validate(made)


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_graph_of_a_construct_query(name: str) -> None:
    triple = {
        "subject": {"type": "uri", "value": "http://e/s"},
        "predicate": {"type": "uri", "value": "http://e/ns#said"},
        "object": {"type": "literal", "value": HARD},
    }
    given = {**answer({}), "event": "http://e/alert", "graph": [triple] * 30}
    del given["bindings"]
    text = process(name).render(json.dumps(given), {"name": "jam"})
    validator(name).validate(json.loads(text))
    assert name != "slack" or ("said: a" in text and "<!channel>" not in text)


def test_values_are_told_in_each() -> None:
    five = {"type": "literal", "value": "5.5", "datatype": XSD + "decimal"}
    query = {"name": "jam", "title": "Jam on the ring", "runbook": "https://e/r"}
    for name in packaged_names():
        text = process(name).render(json.dumps(answer({"v": five})), query)
        assert "Jam on the ring" in text and "5.5" in text
        assert name == "teams" or "https://e/r" in text
    mail = process("mail").render(json.dumps(answer({"v": five})), query)
    assert mail.splitlines()[0] == "Jam on the ring"
