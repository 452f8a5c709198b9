"""Cells of a real Jupyter kernel: displays, conversions, and the magic `%%spaseq`."""

from __future__ import annotations

from collections.abc import Iterator

import nbclient
import nbformat
import pytest
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

pytestmark = pytest.mark.thorough

EVENTS = """
import spaseq, rdflib

def event(speed, time):
    return spaseq.Event(
        '<http://example/o> <http://example/speed> '
        f'"{speed}"^^<http://www.w3.org/2001/XMLSchema#integer> .\\n'
        '<http://example/o> <http://example/road> <http://example/r1> .', time)

S1 = [event(28, 0), event(20, "1970-01-01T00:01:00Z")]
kb = rdflib.Graph().parse(
    data='<http://example/r1> <http://example/street> "<b>Mill Street</b>" .', format="nt")
"""
QUERY = """PREFIX : <http://example/>
SELECT ?street ?speed
WITHIN 15 MINUTES
FROM STREAM S1 <http://example/loops>
FROM NAMED <http://example/kb>
WHERE {
  SEQ (A)
  DEFINE GPM A ON S1 {
    ?o :road ?road ; :speed ?speed
    GRAPH <http://example/kb> { ?road :street ?street }
  }
}"""


class Kernel:
    """A kernel that runs cells."""

    def __init__(self, client: nbclient.NotebookClient, notebook: NotebookNode) -> None:
        self._client, self._notebook = client, notebook

    def run(self, source: str) -> list[NotebookNode]:
        """The outputs of a cell, without notes on standard error."""
        self._notebook.cells.append(new_code_cell(source))
        number = len(self._notebook.cells) - 1
        cell = self._client.execute_cell(self._notebook.cells[number], number)
        nbformat.validate(self._notebook)
        return [o for o in cell.outputs if o.get("name") != "stderr"]  # kernels are compiled once

    def shown(self, source: str) -> str:
        """The HTML that the only output of a cell has."""
        (output,) = self.run(source)
        return str(output.data["text/html"])

    def text(self, source: str) -> str:
        """What a cell prints, or the text of its value."""
        (output,) = self.run(source)
        return str(output.text if output.output_type == "stream" else output.data["text/plain"])

    def error(self, source: str) -> str:
        """All text of a cell that fails."""
        with pytest.raises(CellExecutionError):
            self.run(source)
        outputs = self._notebook.cells[-1].outputs
        return "".join(
            o.text if o.output_type == "stream" else "\n".join(o.traceback) for o in outputs
        )


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    notebook = new_notebook()
    client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3")
    with client.setup_kernel():
        kernel = Kernel(client, notebook)
        kernel.run(EVENTS)
        kernel.run(f"%load_ext spaseq\nquery = {QUERY!r}")
        yield kernel


def test_a_magic_with_variables(kernel: Kernel) -> None:
    html = kernel.shown(f"%%spaseq --kb kb\n{QUERY}")
    assert "&lt;b&gt;Mill Street&lt;/b&gt;" in html and "<b>" not in html
    assert html.count("<tr>") == 3
    named = kernel.shown(f"%%spaseq --stream S1=S1 --kb http://example/kb=kb\n{QUERY}")
    assert named == html
    kernel.run('bases = {"http://example/kb": kb}; others = (e for e in S1[:1])')
    streamed = kernel.run(f"%%spaseq found --stream S1=others --kb bases\n{QUERY}")
    assert streamed == []
    assert kernel.text("[m.bindings['speed'].to_python() for m in found]") == "[28]"


def test_a_magic_with_files(kernel: Kernel, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("magic")
    (directory / "kb.ttl").write_text('<http://example/r1> <http://example/street> "Quay" .')
    assert "Quay" in kernel.shown(f"%%spaseq --kb {directory}/kb.ttl\n{QUERY}")


def test_conversions_of_a_magics_answers(kernel: Kernel) -> None:
    kernel.run(f"%%spaseq found --kb kb\n{QUERY}")
    assert kernel.text("found").startswith("<Answers of query: not begun")
    assert kernel.text("int(found.to_pandas().speed.sum())") == "48"
    assert kernel.text("found.to_polars().shape") == "(2, 5)"
    assert kernel.text("found").startswith("<Answers of query: 2>")


def test_errors_of_a_magic_are_short(kernel: Kernel) -> None:
    error = kernel.error(f"%%spaseq --kb kb\n{QUERY.replace('SEQ (A)', 'SEQ (B)')}")
    assert "^" in error and "Traceback" not in error
    assert "no input for stream" not in error
    missing = kernel.error(f"%%spaseq --kb kb\n{QUERY.replace('S1', 'S2')}")
    assert "no input for stream S2" in missing
    assert "--no-such" in kernel.error(f"%%spaseq --no-such\n{QUERY}")
    assert "NAME=VALUE" in kernel.error(f"%%spaseq --stream S1\n{QUERY}")


def test_top_level_await(kernel: Kernel) -> None:
    source = """
async def events():
    for each in S1:
        yield each

[m.bindings['speed'].to_python()
 async for m in spaseq.run_async(query, {"S1": events()}, {"http://example/kb": kb})]
"""
    assert kernel.text(source) == "[28, 20]"


def test_a_long_run_is_shown_short(kernel: Kernel) -> None:
    kernel.run(
        "many = spaseq.run(query, {'S1': [event(n, n) for n in range(500)]}, "
        "{'http://example/kb': kb}, 'local')"
    )
    outputs = kernel.run("many")
    assert len(outputs[0].data["text/html"]) < 8000
    assert outputs[0].data["text/plain"].startswith("<Answers of query")
    assert kernel.text("len(list(many))") == "500"
