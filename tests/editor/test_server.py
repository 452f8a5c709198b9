"""The language server as a process, over its standard input and output."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

from tests.editor.queries import QUERY, ROOT

URI = "file:///query.rq"
SECONDS = 300  # guards against a server that hangs

Session = Callable[["Client"], Awaitable[None]]


class Client(LanguageClient):
    """An editor: it keeps what the server sends by itself."""

    def __init__(self) -> None:
        super().__init__("editor", "1")
        self.findings: dict[str, list[lsp.Diagnostic]] = {}
        self.messages: list[str] = []
        self.progress: list[str] = []
        self.settings: object = None
        self.news = asyncio.Event()

        @self.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: lsp.PublishDiagnosticsParams) -> None:
            self.findings[params.uri] = list(params.diagnostics)
            self.news.set()

        @self.feature(lsp.WINDOW_SHOW_MESSAGE)
        def shown(params: lsp.ShowMessageParams) -> None:
            self.messages.append(params.message)
            self.news.set()

        @self.feature(lsp.WINDOW_WORK_DONE_PROGRESS_CREATE)
        def create(params: lsp.WorkDoneProgressCreateParams) -> None:
            self.progress.append("created")

        @self.feature(lsp.WORKSPACE_CONFIGURATION)
        def configuration(params: lsp.ConfigurationParams) -> list[Any]:
            assert [item.section for item in params.items] == ["spaseq"]
            return [self.settings]

        @self.feature(lsp.PROGRESS)
        def progressed(params: Any) -> None:
            value = params.value
            kind = value["kind"] if isinstance(value, dict) else value.kind
            self.progress.append(kind)
            self.news.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for news until something holds."""
        while not holds():
            self.news.clear()
            await self.news.wait()

    def open(self, text: str, uri: str = URI) -> None:
        item = lsp.TextDocumentItem(uri, "spaseq", 1, text)
        self.text_document_did_open(lsp.DidOpenTextDocumentParams(item))

    def type(self, text: str, number: int) -> None:
        self.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                lsp.VersionedTextDocumentIdentifier(number, URI),
                [lsp.TextDocumentContentChangeWholeDocument(text)],
            )
        )


def talk(
    session: Session, *options: str, encodings: list[Any] | None = None, initial: object = None
) -> None:
    """Run a session with a server that is started with some options."""

    async def whole() -> None:
        client = Client()
        await client.start_io(sys.executable, "-m", "spaseq", "lsp", *options, cwd=str(ROOT))
        capabilities = lsp.ClientCapabilities(
            general=lsp.GeneralClientCapabilities(position_encodings=encodings),
            window=lsp.WindowClientCapabilities(work_done_progress=True),
            workspace=lsp.WorkspaceClientCapabilities(configuration=True),
        )
        await client.initialize_async(
            lsp.InitializeParams(
                capabilities, root_uri=ROOT.as_uri(), initialization_options=initial
            )
        )
        client.initialized(lsp.InitializedParams())
        await session(client)
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()

    asyncio.run(asyncio.wait_for(whole(), SECONDS))


def place(text: str, wanted: str, behind: int = 0) -> lsp.Position:
    """The place of a text in UTF-16 units."""
    before = text[: text.index(wanted) + behind]
    row = before.rpartition("\n")[2]
    return lsp.Position(before.count("\n"), len(row.encode("utf-16-le")) // 2)


HERE = lsp.TextDocumentIdentifier(URI)


def test_a_session() -> None:
    """One process: what it offers for a query that is right, wrong and half typed."""

    async def session(client: Client) -> None:
        client.open(QUERY)
        await client.until(lambda: "end" in client.progress and URI in client.findings)
        assert client.progress == ["created", "begin", "end"]
        assert [d.severity for d in client.findings[URI]] == [lsp.DiagnosticSeverity.Warning] * len(
            client.findings[URI]
        )
        hover = await client.text_document_hover_async(
            lsp.HoverParams(HERE, place(QUERY, "t:Street"))
        )
        assert hover is not None
        assert "**street** class" in hover.contents.value  # type: ignore[union-attr]
        await _renames(client)
        await _outlines(client)
        await _remedies(client)
        await _warns_beside_errors(client)
        await _half_typed(client)

    talk(session, "--kb", "<http://example/kb>=ontologies/traffic.ttl")


async def _renames(client: Client) -> None:
    defined = await client.text_document_definition_async(
        lsp.DefinitionParams(HERE, place(QUERY, "Low:"))
    )
    assert isinstance(defined, lsp.Location)
    assert defined.range.start == place(QUERY, "Low ON")
    edit = await client.text_document_rename_async(
        lsp.RenameParams(HERE, place(QUERY, "Low:"), "Cold")
    )
    assert edit is not None
    assert edit.changes is not None
    assert {e.new_text for e in edit.changes[URI]} == {"Cold"}
    refused = await client.text_document_rename_async(
        lsp.RenameParams(HERE, place(QUERY, "Low:"), "High")
    )
    assert refused is None
    await client.until(lambda: bool(client.messages))
    assert "there is a GPM High already" in client.messages.pop()


async def _outlines(client: Client) -> None:
    symbols = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(HERE))
    assert [s.name for s in symbols or ()][-3:] == ["Low", "High", "Off"]
    formatted = await client.text_document_formatting_async(
        lsp.DocumentFormattingParams(HERE, lsp.FormattingOptions(2, True))
    )
    assert formatted is not None
    assert formatted[0].new_text.startswith("# Two rooms. \U0001f600\n")


async def _remedies(client: Client) -> None:
    wrong = QUERY.replace("SEQ(Low:", "SEQ(Loww:")
    client.type(wrong, 2)
    await client.until(lambda: any(d.code == "unknown-gpm" for d in client.findings[URI]))
    found = next(d for d in client.findings[URI] if d.code == "unknown-gpm")
    assert found.severity == lsp.DiagnosticSeverity.Error
    assert found.range.start == place(wrong, "Loww")
    actions = await client.text_document_code_action_async(
        lsp.CodeActionParams(HERE, found.range, lsp.CodeActionContext([found]))
    )
    (action,) = actions or ()
    assert isinstance(action, lsp.CodeAction)
    assert action.title == "Replace Loww by Low"
    assert action.edit is not None
    assert action.edit.changes is not None
    assert list(action.edit.changes[URI]) == [lsp.TextEdit(found.range, "Low")]


async def _warns_beside_errors(client: Client) -> None:
    vain = QUERY.replace("SEQ(Low:", "SEQ(Loww:").replace("?low < 20", '?low < "20"')
    client.type(vain, 3)
    await client.until(lambda: any(d.code == "vain-comparison" for d in client.findings[URI]))
    assert [(d.severity, d.code, d.range.start) for d in client.findings[URI]] == [
        (lsp.DiagnosticSeverity.Error, "unknown-gpm", place(vain, "Loww")),
        (lsp.DiagnosticSeverity.Warning, "vain-comparison", place(vain, "?low < ")),
    ]


async def _half_typed(client: Client) -> None:
    """Columns behind an emoji and an astral letter, in UTF-16."""
    begin = QUERY[: QUERY.index("BIND")]
    for number, typed in enumerate(
        [
            f"{begin}?\U0001d4b3x :p '\U0001f600' . ?r",
            f"{begin}FILTER(",
            "SELECT ?",
            "\ud800{{{{",
            "",
        ],
        start=4,
    ):
        client.type(typed, number)
        row = typed.rpartition("\n")[2]
        end = lsp.Position(typed.count("\n"), len(row.encode("utf-16-le", "surrogatepass")) // 2)
        found = await client.text_document_completion_async(lsp.CompletionParams(HERE, end))
        await client.text_document_hover_async(lsp.HoverParams(HERE, end))
        assert isinstance(found, lsp.CompletionList)
        if typed.endswith("?r"):
            edits = {i.label: i.text_edit for i in found.items}
            edit = edits["?room"]
            assert isinstance(edit, lsp.TextEdit)
            assert edit.range == lsp.Range(lsp.Position(end.line, end.character - 2), end)
    assert client.messages == []


@pytest.mark.thorough
def test_other_units_and_settings() -> None:
    """A client that wants UTF-8, with a setting that is wrong and a knowledge base that is."""
    text = QUERY.replace("SEQ(Low:", "SEQ(\u00e4\U0001d4b3:")

    async def session(client: Client) -> None:
        client.open(text)
        await client.until(lambda: len(client.messages) >= 2 and bool(client.findings))
        assert any("unknown setting 'speed'" in m for m in client.messages)
        assert any("none.ttl" in m for m in client.messages)
        found = next(d for d in client.findings[URI] if d.code == "unknown-gpm")
        start = len("  SEQ(")
        assert (found.range.start.character, found.range.end.character) == (start, start + 6)
        client.workspace_did_change_configuration(
            lsp.DidChangeConfigurationParams({"spaseq": {"kb": "ontologies/traffic.ttl"}})
        )
        await client.until(lambda: client.progress.count("end") == 2)
        hover = await client.text_document_hover_async(
            lsp.HoverParams(HERE, place(QUERY, "t:Street"))
        )
        assert hover is not None
        assert "street" in hover.contents.value  # type: ignore[union-attr]
        client.settings = {"ontology": "ontologies/cards.ttl"}
        client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams(None))
        await client.until(lambda: client.progress.count("end") == 3)

    talk(
        session,
        encodings=[lsp.PositionEncodingKind.Utf8, lsp.PositionEncodingKind.Utf16],
        initial={"kb": "none.ttl", "speed": 3},
    )


def spaseq(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "spaseq", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, **more)


def test_the_path_of_the_grammar() -> None:
    done = spaseq("lsp", "--grammar")
    assert done.returncode == 0
    assert json.loads(Path(done.stdout.strip()).read_text("utf-8"))["scopeName"] == "source.spaseq"


def test_without_the_extra() -> None:
    code = (
        "import sys, importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'pygls' else find(name, *a)\n"
        "from spaseq.cli import main\n"
        "main(['lsp'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS, input=""
    )
    assert done.returncode == 2
    assert "pip install '.[lsp]'" in done.stderr


@pytest.mark.thorough
def test_the_end_of_the_input_ends_the_server() -> None:
    assert spaseq("lsp", input="").returncode == 0
