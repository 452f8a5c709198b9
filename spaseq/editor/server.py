"""The language server: the functions of this room over the Language Server Protocol (pygls)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib.metadata import version
from json import JSONDecodeError
from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from spaseq.compile import CompileOptions
from spaseq.editor.completion import completions
from spaseq.editor.document import Document
from spaseq.editor.hover import hover
from spaseq.editor.navigation import (
    canonical,
    definition,
    findings,
    outline,
    references,
    remedies,
    renamed,
)
from spaseq.editor.protocol import (
    AnsweredAlready,
    AnsweringProtocol,
    EditorSettings,
    Positions,
    settings_of,
)
from spaseq.editor.vocabulary import Vocabulary, loaded
from spaseq.errors import Diagnostic, Span, SpaseqError, UsageError
from spaseq.kb.quads import entailing_schema
from spaseq.lang.parser import MOST_CHARACTERS
from spaseq.message_text import visible, without_passwords
from spaseq.rdf.schema import Schema

_PAUSE_S = 0.15
"""A query is checked when nothing has been typed for so long."""

_PATIENCE_S = 5.0
"""So long the server waits for an answer of the client."""

_ITEM_KINDS = {
    "keyword": lsp.CompletionItemKind.Keyword,
    "variable": lsp.CompletionItemKind.Variable,
    "GPM": lsp.CompletionItemKind.Function,
    "stream": lsp.CompletionItemKind.Event,
    "function": lsp.CompletionItemKind.Function,
    "prefix": lsp.CompletionItemKind.Module,
    "class": lsp.CompletionItemKind.Class,
    "property": lsp.CompletionItemKind.Property,
    "iri": lsp.CompletionItemKind.Reference,
}
_SYMBOL_KINDS = {
    "stream": lsp.SymbolKind.Event,
    "graph": lsp.SymbolKind.Namespace,
    "sequence": lsp.SymbolKind.Operator,
    "GPM": lsp.SymbolKind.Function,
}


class SpaseqServer(LanguageServer):
    """The state of the server: settings, vocabulary, schema, and the texts of open queries."""

    def __init__(self, given: EditorSettings) -> None:
        super().__init__(
            "spaseq",
            version("spaseq"),
            text_document_sync_kind=lsp.TextDocumentSyncKind.Full,
            protocol_cls=AnsweringProtocol,
        )
        self.given = given  # by the command line
        self.asked = EditorSettings()  # by the client
        self.initial: object = None  # the client's initialization options
        self.vocabulary = Vocabulary()
        self.schema: Schema | None = None
        self.loads = 0
        self.known: dict[str, tuple[str, Document]] = {}
        self.found: dict[str, tuple[Document, tuple[Diagnostic, ...]]] = {}
        self.tasks: set[asyncio.Task[None]] = set()

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Show an error of the server, unless the request that is wrong has got a reply."""
        broken = isinstance(error, JSONDecodeError | UnicodeDecodeError | RecursionError)
        if broken and source is JsonRpcException:
            assert isinstance(self.protocol, AnsweringProtocol)
            self.protocol.refuse_text()
        elif not isinstance(error, AnsweredAlready):
            super().report_server_error(error, source)

    # --- texts and places

    def document(self, uri: str) -> Document:
        """The open query of a URI; an empty one if it is too long to be a query."""
        text = self.workspace.get_text_document(uri).source or ""
        known = self.known.get(uri)
        if known is not None and known[0] == text:
            return known[1]
        document = Document(text if len(text) <= MOST_CHARACTERS else "", uri)
        self.known[uri] = text, document
        return document

    def positions(self, document: Document) -> Positions:
        """The places of a query in the units that the client has chosen."""
        encoding = self.workspace.position_encoding or "utf-16"
        return Positions(document.text, getattr(encoding, "value", encoding))

    def at(self, given: Any) -> tuple[Document, int]:
        """The query and the offset of a request."""
        document = self.document(given.text_document.uri)
        position = given.position
        return document, self.positions(document).offset(position.line, position.character)

    def range(self, document: Document, span: Span) -> lsp.Range:
        """A span in the units of the client."""
        positions = self.positions(document)
        start, end = positions.place(span.start), positions.place(span.end)
        return lsp.Range(lsp.Position(*start), lsp.Position(*end))

    def edit(self, document: Document, span: Span, text: str) -> lsp.TextEdit:
        """A change of a query."""
        return lsp.TextEdit(self.range(document, span), text)

    # --- findings

    def later(self, work: Any) -> None:
        """Start a coroutine; the server keeps it until it is done."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.done)

    def done(self, task: asyncio.Task[None]) -> None:
        """Report that a background task failed; the server continues."""
        self.tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.say(f"{type(error).__name__}: {error}", lsp.MessageType.Error)

    async def check(self, uri: str, pause: float = 0.0) -> None:
        """Publish the findings of a query, unless it changes meanwhile."""
        document = self.document(uri)
        await asyncio.sleep(pause)
        if self.document(uri) is not document:
            return
        diagnostics = await asyncio.to_thread(self.findings, document)
        if uri in self.workspace.text_documents and self.document(uri) is document:
            self.found[uri] = document, diagnostics
            self.text_document_publish_diagnostics(
                lsp.PublishDiagnosticsParams(
                    uri, [self.diagnostic(document, f) for f in diagnostics]
                )
            )

    def findings(self, document: Document) -> tuple[Diagnostic, ...]:
        """The findings of a query."""
        return findings(document, CompileOptions(file=document.name, schema=self.schema))

    def diagnostic(self, document: Document, finding: Diagnostic) -> lsp.Diagnostic:
        """A finding in the form of the protocol."""
        message = finding.message
        if finding.expected:
            message += f"\nexpected: {', '.join(finding.expected)}"
        if finding.suggestion:
            message += f"\ndid you mean: {finding.suggestion}"
        severity = lsp.DiagnosticSeverity
        return lsp.Diagnostic(
            self.range(document, finding.span),
            "\n".join(visible(without_passwords(line)) for line in message.split("\n")),
            severity=severity.Error if finding.severity == "error" else severity.Warning,
            code=finding.code,
            source="spaseq",
        )

    # --- knowledge bases

    def say(self, message: str, kind: lsp.MessageType) -> None:
        """Show a message in the editor."""
        self.window_show_message(
            lsp.ShowMessageParams(kind, visible(without_passwords(f"spaseq: {message}")))
        )

    async def load(self) -> None:
        """Load what the settings name, in the background; then check the open queries again."""
        self.loads += 1
        number, settings = self.loads, self.given.and_also(self.asked)
        sources = settings.sources()
        token = await self._begin(number, sources)
        problems: list[str] = []
        try:
            vocabulary = await asyncio.to_thread(
                loaded, sources, lambda path, error: problems.append(f"{path}: {error}")
            )
            schema = await asyncio.to_thread(self._schema, settings, problems)
        finally:
            if token is not None:
                self.work_done_progress.end(token, lsp.WorkDoneProgressEnd())
        if number != self.loads:
            return  # other settings came meanwhile
        self.vocabulary, self.schema = vocabulary, schema
        for problem in problems:
            self.say(problem, lsp.MessageType.Error)
        for uri in list(self.workspace.text_documents):
            await self.check(uri)

    async def _begin(self, number: int, sources: dict[str, int]) -> str | None:
        """Show that sources are being loaded; None if the client shows no progress."""
        window = self.client_capabilities.window
        if not sources or window is None or not window.work_done_progress:
            return None
        token = f"spaseq-{number}"
        try:
            await asyncio.wait_for(self.work_done_progress.create_async(token), _PATIENCE_S)
        except Exception:  # a client may refuse it
            return None
        title, names = "spaseq: reading knowledge", ", ".join(sources)
        self.work_done_progress.begin(token, lsp.WorkDoneProgressBegin(title, message=names))
        return token

    def _schema(self, settings: EditorSettings, problems: list[str]) -> Schema | None:
        if settings.entailment is None:
            return None  # an ontology alone gives names
        try:
            return entailing_schema(settings.ontologies, settings.entailment)
        except SpaseqError as error:
            problems.append(str(error))
        return None

    async def use(self, value: object) -> None:
        """Apply settings of the client, and load their files.

        Without a value the client gets a request for its settings; if it has none, the initial ones
        stay in use.
        """
        workspace = self.client_capabilities.workspace
        if value is None and workspace is not None and workspace.configuration:
            item = lsp.ConfigurationItem(section="spaseq")
            try:
                answer = self.workspace_configuration_async(lsp.ConfigurationParams([item]))
                value = next(iter(await asyncio.wait_for(answer, _PATIENCE_S)), None)
            except Exception:  # a client may refuse it
                value = None
        self.asked, problems = settings_of(value or self.initial, self.workspace.root_path)
        for problem in problems:
            self.say(problem, lsp.MessageType.Warning)
        await self.load()


def server(given: EditorSettings) -> SpaseqServer:
    """A server with all its features."""
    made = SpaseqServer(given)
    _synchronise(made)
    _inform(made)
    _navigate(made)
    _change(made)
    return made


def _synchronise(made: SpaseqServer) -> None:
    @made.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        made.initial = params.initialization_options

    @made.feature(lsp.INITIALIZED)
    async def initialized(params: lsp.InitializedParams) -> None:
        made.later(made.use(None))

    @made.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def configured(params: lsp.DidChangeConfigurationParams) -> None:
        given = params.settings
        made.later(made.use(given.get("spaseq") if isinstance(given, dict) else None))

    @made.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        made.later(made.check(params.text_document.uri))

    @made.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        made.later(made.check(params.text_document.uri, _PAUSE_S))

    @made.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    async def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        made.known.pop(uri, None)
        made.found.pop(uri, None)
        made.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))


def _inform(made: SpaseqServer) -> None:
    @made.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hovered(params: lsp.HoverParams) -> lsp.Hover | None:
        document, offset = made.at(params)
        shown = hover(document, offset, made.vocabulary)
        if shown is None:
            return None
        content = lsp.MarkupContent(lsp.MarkupKind.Markdown, shown.text)
        return lsp.Hover(content, made.range(document, shown.span))

    options = lsp.CompletionOptions(trigger_characters=["?", "$", ":", "<", "(", "^"])

    @made.feature(lsp.TEXT_DOCUMENT_COMPLETION, options)
    def completed(params: lsp.CompletionParams) -> lsp.CompletionList:
        document, offset = made.at(params)
        items = [
            lsp.CompletionItem(
                offered.label,
                kind=_ITEM_KINDS[offered.sort],
                detail=offered.detail or None,
                sort_text=f"{number:04}",
                filter_text=document.text[offered.span.start : offered.span.end] or offered.label,
                text_edit=made.edit(document, offered.span, offered.text),
                additional_text_edits=[made.edit(document, document.top, offered.added)]
                if offered.added
                else None,
            )
            for number, offered in enumerate(completions(document, offset, made.vocabulary))
        ]
        return lsp.CompletionList(is_incomplete=True, items=items)


def _navigate(made: SpaseqServer) -> None:
    @made.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def defined(params: lsp.DefinitionParams) -> lsp.Location | None:
        document, offset = made.at(params)
        span = definition(document, offset)
        uri = params.text_document.uri
        return None if span is None else lsp.Location(uri, made.range(document, span))

    @made.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def referred(params: lsp.ReferenceParams) -> list[lsp.Location]:
        document, offset = made.at(params)
        spans = references(document, offset)
        return [lsp.Location(params.text_document.uri, made.range(document, s)) for s in spans]

    @made.feature(lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def highlighted(params: lsp.DocumentHighlightParams) -> list[lsp.DocumentHighlight]:
        document, offset = made.at(params)
        spans = references(document, offset)
        return [lsp.DocumentHighlight(made.range(document, span)) for span in spans]

    @made.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def outlined(params: lsp.DocumentSymbolParams) -> Sequence[lsp.DocumentSymbol]:
        document = made.document(params.text_document.uri)
        return [
            lsp.DocumentSymbol(
                entry.name,
                _SYMBOL_KINDS[entry.kind],
                made.range(document, entry.whole),
                made.range(document, entry.span),
                entry.detail,
            )
            for entry in outline(document)
        ]


def _change(made: SpaseqServer) -> None:
    @made.feature(lsp.TEXT_DOCUMENT_RENAME)
    def rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        document, offset = made.at(params)
        try:
            changes = renamed(document, offset, params.new_name)
        except UsageError as error:
            made.say(str(error), lsp.MessageType.Warning)
            return None
        edits = [made.edit(document, span, text) for span, text in changes]
        return lsp.WorkspaceEdit({params.text_document.uri: edits})

    @made.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def formatted(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        document = made.document(params.text_document.uri)
        text = canonical(document)
        if text is None or text == document.text:
            return []
        return [made.edit(document, Span(0, len(document.text)), text)]

    kinds = lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix])

    @made.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, kinds)
    def remedied(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri = params.text_document.uri
        document = made.document(uri)
        known = made.found.get(uri)
        diagnostics = known[1] if known and known[0] is document else made.findings(document)
        positions, asked = made.positions(document), params.range
        start = positions.offset(asked.start.line, asked.start.character)
        end = positions.offset(asked.end.line, asked.end.character)
        return [
            lsp.CodeAction(
                change.title,
                lsp.CodeActionKind.QuickFix,
                [made.diagnostic(document, finding)],
                edit=lsp.WorkspaceEdit({uri: [made.edit(document, change.span, change.text)]}),
            )
            for finding in diagnostics
            if finding.span.start <= end and start <= finding.span.end
            for change in remedies(document, finding)
        ]
