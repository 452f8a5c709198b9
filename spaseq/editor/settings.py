"""What an editor's server reads besides queries: from its command line and from the client."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from spaseq.editor.vocabulary import MOST_STREAM_TRIPLES, MOST_TRIPLES
from spaseq.kb.service_address import is_url
from spaseq.options import REGIMES

_LISTS = {"kb": "kbs", "stream": "streams", "ontology": "ontologies"}


@dataclass(frozen=True, slots=True)
class EditorSettings:
    """Knowledge bases, streams and ontologies, as texts of options, and the entailment regime."""

    kbs: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()
    ontologies: tuple[str, ...] = ()
    entailment: str | None = None

    def and_also(self, other: EditorSettings) -> EditorSettings:
        """Both settings together; the other regime counts if there is one."""
        return EditorSettings(
            self.kbs + other.kbs,
            self.streams + other.streams,
            self.ontologies + other.ontologies,
            other.entailment or self.entailment,
        )

    def sources(self) -> dict[str, int]:
        """Each path that is read, with the number of triples that are read of it."""
        sources = dict.fromkeys(self.ontologies, MOST_TRIPLES)
        for text in self.kbs:
            path = path_in(text)
            if not is_url(path):
                sources[path] = MOST_TRIPLES
        for text in self.streams:
            sources.setdefault(path_in(text), MOST_STREAM_TRIPLES)
        return sources


def path_in(text: str) -> str:
    """The path or address in `NAME=PATH`, `<IRI>=PATH` or `PATH`.

    >>> path_in("<http://example/kb>=kb.ttl"), path_in("S1=events.nq"), path_in("kb.ttl")
    ('kb.ttl', 'events.nq', 'kb.ttl')
    """
    if os.path.exists(text) or "=" not in text:
        return text
    if text.startswith("<") and ">=" in text:
        return text.split(">=", 1)[1]
    name, path = text.split("=", 1)
    return text if is_url(text) and not is_url(path) and "?" in name else path


def settings_of(value: object, folder: str | None) -> tuple[EditorSettings, list[str]]:
    """The settings in a client's JSON, and what is wrong with it.

    A relative path is relative to `folder`, the folder of the workspace.

    >>> settings_of({"kb": "a.ttl", "speed": 3}, "/w")[1]
    ["unknown setting 'speed': there are kb, stream, ontology, entailment"]
    """
    problems: list[str] = []
    if value is None:
        return EditorSettings(), problems
    if not isinstance(value, Mapping):
        return EditorSettings(), ["the settings of spaseq are no object"]
    lists: dict[str, tuple[str, ...]] = {}
    entailment = None
    for name, given in value.items():
        if given is None or given == "":
            continue
        if name in _LISTS:
            texts = [given] if isinstance(given, str) else given
            if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
                lists[_LISTS[name]] = tuple(_in_folder(text, folder) for text in texts)
            else:
                problems.append(f"the setting {name} is a text or a list of texts")
        elif name == "entailment":
            if given in REGIMES:
                entailment = str(given)
            else:
                problems.append(f"unknown entailment {given!r}: there is {', '.join(REGIMES)}")
        else:
            names = ", ".join([*_LISTS, "entailment"])
            problems.append(f"unknown setting {name!r}: there are {names}")
    return EditorSettings(**lists, entailment=entailment), problems


def _in_folder(text: str, folder: str | None) -> str:
    path = path_in(text)
    if folder is None or is_url(path) or os.path.isabs(path):
        return text
    return text[: len(text) - len(path)] + os.path.join(folder, path)
