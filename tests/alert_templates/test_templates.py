"""Templates of one's own: values, escaping, and templates that would harm."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spaseq.alert_templates.template import (
    AlertTemplate,
    TemplateFailed,
    TemplateProcess,
    TemplateSlow,
    ending_of,
    read_template,
)
from spaseq.errors import InputError

XSD = "http://www.w3.org/2001/XMLSchema#"
ANSWER = {
    "id": "f" * 32,
    "bindings": {
        "n": {"type": "literal", "value": "5", "datatype": XSD + "integer"},
        "x": {"type": "literal", "value": 'a "b" <c>\\\n'},
        "where": {"type": "uri", "value": "http://e/loop"},
        "list": [{"type": "literal", "value": "1", "datatype": XSD + "integer"}, None],
    },
}


def rendered(source: str, name: str = "t.txt.j2", **variables: object) -> str:
    process = TemplateProcess(AlertTemplate(name, ending_of(name), source, variables))
    try:
        return process.render(json.dumps(ANSWER), {"name": "jam", "title": "Jam"})
    finally:
        process.close()


def test_what_a_template_sees() -> None:
    source = (
        "{{ answer.bindings.n + 1 }} {{ answer.bindings.list }} {{ answer.terms.n.datatype[-7:] }}"
        " [{{ answer.bindings.unbound }}] {{ query.title }} {{ vars.to }}"
    )
    assert rendered(source, to="x") == "6 [1, ''] integer [] Jam x"


def test_escaping_by_the_ending() -> None:
    value = ANSWER["bindings"]["x"]["value"]  # type: ignore[index]
    source = '{"a": "{{ answer.bindings.x }}", "b": {{ answer.bindings|tojson }}}'
    made = json.loads(rendered(source, "t.json.j2"))
    assert (made["a"], made["b"]["x"], made["b"]["n"]) == (value, value, 5)
    # A filter of HTML's is no way around the escaping of JSON.
    assert json.loads(rendered('"{{ answer.bindings.x|e }}{{ "\\""|safe }}"', "t.json.j2"))
    assert "&lt;c&gt;" in rendered("{{ answer.bindings.x }}", "t.html.j2")
    assert rendered("{{ answer.bindings.x }}") == value


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{{ answer.id * 10**8 }}", "memory"),
        ("{{ 'a' * 10**9 }}", "memory"),
        ("{{ answer.__class__.x }}", "unsafe"),
        ("{% include '/etc/passwd' %}", "loader"),
        ("{{ answr.id }}", "answr"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "calls itself"),
        ("{% if %}", "line 1"),
        ("{{ answer.id|no }}", "No filter"),
    ],
)
def test_templates_that_fail(source: str, reason: str) -> None:
    with pytest.raises(TemplateFailed, match=reason):
        rendered(source)


def test_no_json_is_a_failure() -> None:
    with pytest.raises(TemplateFailed, match="no JSON"):
        rendered("{{ answer.id }}", "t.json.j2")


def test_a_loop_ends_and_the_next_answer_is_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "{% if answer.id %}{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}"
    own = AlertTemplate("t.txt.j2", "txt", source + "{% endfor %}{% endif %}{{ query.name }}")
    process = TemplateProcess(own)
    with pytest.raises(TemplateSlow, match="longer than 1 s"):
        process.render(json.dumps(ANSWER), {"name": "jam"})
    assert process.render(json.dumps({"id": ""}), {"name": "jam"}) == "jam"
    process.close()


def test_a_missing_file_names_those_of_the_package(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="alertmanager, mail, pagerduty, slack, teams"):
        read_template("slak", tmp_path)
    (tmp_path / "own.txt.j2").write_text("a\n{{ b")
    with pytest.raises(InputError, match=r"own\.txt\.j2: .*line 2"):
        read_template("own.txt.j2", tmp_path)


def test_the_server_does_not_import_jinja() -> None:
    code = "import sys, spaseq.alert_templates.template; assert 'jinja2' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
