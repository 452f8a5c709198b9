"""The configuration of a server: a TOML file, checked as a whole before anything starts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from typing import Any

from spaseq.connectors.address import scheme_of
from spaseq.errors import UsageError
from spaseq.kb.service_address import is_url
from spaseq.kb.watched_graphs import KeptGraph
from spaseq.lang.spelling import suggested
from spaseq.rdf.terms.term import is_absolute_iri
from spaseq.rdf.terms.times import TIME_UNITS, milliseconds
from spaseq.storage.user_files import TomlMistakes, read_toml

_BYTES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}
_SIZE = re.compile(r"([0-9]{1,12}) ?(B|KB|MB|GB)")
_PORT = re.compile("[0-9]{1,5}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")

Table = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Configuration:
    """The checked tables of a file; durations are milliseconds, sizes are bytes.

    Paths are relative to the file's directory. A place is a path or a URL.

    Its text shows no values, because some are passwords.
    """

    server: Mapping[str, Any] = field(repr=False)
    streams: Mapping[str, Mapping[str, Any]] = field(repr=False)
    kb: Mapping[str, str] = field(repr=False)
    graphs: Mapping[str, KeptGraph] = field(repr=False)
    refresh: Mapping[str, int] = field(repr=False)
    queries: Mapping[str, Any] = field(repr=False)
    sinks: Mapping[str, Mapping[str, Any]] = field(repr=False)


def read_configuration(
    path: Path, environment: Mapping[str, str], server: Mapping[str, Any] = MappingProxyType({})
) -> Configuration:
    """The configuration in a file.

    Args:
        path: the file; relative paths in it are relative to its directory.
        environment: the values of `${NAME}`.
        server: values that override the table `[server]`.

    Raises:
        InputError: the file cannot be read, or is no UTF-8.
        UsageError: the file has mistakes; all are named, each with its line.
    """
    text, tables = read_toml(path)
    reading = _TomlChecks(path, text, environment, server)
    configuration = reading.configuration(tables)
    reading.mistakes.check()
    return configuration


class _TomlChecks:
    """One file while it is checked."""

    def __init__(
        self, path: Path, text: str, environment: Mapping[str, str], instead: Mapping[str, Any]
    ) -> None:
        self.mistakes = TomlMistakes(path, text)
        self._mistake = self.mistakes.add
        self._directory = path.parent
        self._environment, self._instead = environment, instead
        self._kinds: dict[str, Callable[[Any], Any]] = {
            "text": _text,
            "iri": _iri,
            "listen": _listen,
            "path": lambda value: self._directory / _text(value),
            "place": self._place,
            "duration": _duration,
            "interval": _interval,
            "size": _size,
            "flag": _flag,
            "texts": _texts,
            "time": _time,
            "time_unit": _time_unit,
            "contexts": self._contexts,
            "template": lambda value: (_text(value), self._directory),
            "variables": _variables,
            "headers": _headers,
            "method": _method,
        }

    def configuration(self, tables: Table) -> Configuration:
        """The checked tables."""
        tables = {name: self._table((name,), value) for name, value in tables.items()}
        self._unknown((), tables, _TABLES)
        server = self._known(("server",), tables.get("server", {}), _SERVER)
        server["tls"] = self._known(("server", "tls"), server.get("tls", {}), _TLS)
        server.update(self._instead)
        self._check_token(server)
        kb = tables.get("kb", {})
        for iri in kb:
            if not is_absolute_iri(iri):
                self._mistake(("kb", iri), f"{iri}: an absolute IRI is expected")
        streams = self._named("streams", tables.get("streams", {}), _STREAM, "iri")
        self._check_different(streams)
        return Configuration(
            server,
            streams,
            *self._graphs(kb),
            self._known(("queries",), tables.get("queries", {}), _QUERIES),
            self._named("sinks", tables.get("sinks", {}), _SINK, "to"),
        )

    def _graphs(self, tables: Table) -> tuple[dict[str, str], dict[str, KeptGraph], dict[str, int]]:
        """The places of the graphs that have one, how each graph is kept, and for how long (ms) the
        answers of an endpoint are.
        """
        paths_of, graphs, refresh = dict[str, str](), dict[str, KeptGraph](), dict[str, int]()
        for iri, given in tables.items():
            table = self._known(
                ("kb", iri), given if isinstance(given, dict) else {"path": given}, _GRAPH
            )
            path, writable = table.get("path"), table.get("writable", False)
            if path is not None:
                paths_of[iri] = path
            elif not writable and isinstance(given, dict) and "path" not in given:
                self._mistake(("kb", iri), f"{iri}: it has no path, and is not writable = true")
            is_endpoint = path is not None and is_url(path)
            if is_endpoint and writable:
                self._mistake(("kb", iri), f"{iri}: an endpoint is not writable")
            if "refresh" in table and path is not None:
                refresh[path] = table["refresh"]
                if not is_endpoint:
                    reason = f"{iri}: refresh is for endpoints; files are watched"
                    self._mistake(("kb", iri, "refresh"), reason)
            if not is_endpoint:
                paths = () if path is None else (path,)
                graphs[iri] = KeptGraph(paths, table.get("watch", True), writable)
        return paths_of, graphs, refresh

    def _named(
        self, name: str, tables: Table, keys: Mapping[str, str], needed: str
    ) -> dict[str, Table]:
        """Tables of one kind, each under a name; each has the required key."""
        by_name = {}
        for each, value in tables.items():
            key_path = (name, each)
            by_name[each] = self._known(key_path, self._table(key_path, value), keys)
            if isinstance(value, dict) and needed not in value:
                self._mistake(key_path, f"[{name}.{each}] has no {needed}")
        return by_name

    def _known(self, key_path: tuple[str, ...], table: Table, keys: Mapping[str, str]) -> Table:
        """The values of the known keys of a table."""
        self._unknown(key_path, table, keys)
        values = {}
        for key in table.keys() & keys.keys():
            if keys[key] == "table":
                values[key] = self._table((*key_path, key), table[key])
                continue
            try:
                values[key] = self._kinds[keys[key]](self._filled(table[key]))
            except UsageError as error:
                self._mistake((*key_path, key), f"{key}: {error}")
        return values

    def _unknown(self, key_path: tuple[str, ...], table: Table, keys: Mapping[str, str]) -> None:
        for key in table.keys() - keys.keys():
            near = suggested(key, keys)
            meant = f"; did you mean {near}?" if near else f" ({', '.join(keys)})"
            self._mistake((*key_path, key), f"unknown key {key}{meant}")

    def _table(self, key_path: tuple[str, ...], value: object) -> Table:
        if isinstance(value, dict):
            return value
        self._mistake(key_path, f"{key_path[-1]}: a table is expected")
        return {}

    def _filled(self, value: object) -> object:
        """The value with `${NAME}` replaced from the environment."""
        if isinstance(value, list):
            return [self._filled(each) for each in value]
        if isinstance(value, dict):
            return {name: self._filled(each) for name, each in value.items()}
        return _VARIABLE.sub(self._variable, value) if isinstance(value, str) else value

    def _variable(self, match: re.Match[str]) -> str:
        try:
            return self._environment[match[1]]
        except KeyError:
            raise UsageError(f"the environment has no {match[1]}") from None

    def _check_token(self, server: Table) -> None:
        host, _ = address_of(server.get("listen", "127.0.0.1:8787"))
        if "token_file" not in server and not is_loopback(host):
            what = "listen: an address besides loopback needs token_file"
            self._mistake(("server", "listen"), what)

    def _check_different(self, streams: Mapping[str, Table]) -> None:
        """No two streams have the same IRI: events of one would never be evaluated."""
        names: dict[str, str] = {}
        for name, table in streams.items():
            iri = table.get("iri")
            if iri is not None and names.setdefault(iri, name) != name:
                what = f"iri: [streams.{names[iri]}] has it already; the IRIs must differ"
                self._mistake(("streams", name, "iri"), what)

    def _place(self, value: object) -> str:
        text = _text(value)
        return text if text == "-" or scheme_of(text) else str(self._directory / text)

    def _contexts(self, value: object) -> Mapping[str, Path]:
        if not isinstance(value, dict) or not all(map(is_absolute_iri, value)):
            raise UsageError('files by IRI are expected, such as { "http://e/c" = "c.jsonld" }')
        return {iri: self._directory / _text(file) for iri, file in value.items()}


def address_of(listen: str) -> tuple[str, int]:
    """The host and the port of HOST:PORT.

    Raises:
        UsageError: it is no address.

    >>> address_of("[::1]:8787")
    ('::1', 8787)
    """
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    if not host or _PORT.fullmatch(port) is None or int(port) > 65535:
        raise UsageError(f"{listen[:100]} is no address; say HOST:PORT")
    return host, int(port)


@lru_cache(256)
def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0")]
    [True, True, True, False]
    """
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost"
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise UsageError("a text in quotes is expected")
    if "\0" in value:
        raise UsageError("a text without the character NUL is expected")
    return value


def _iri(value: object) -> str:
    if is_absolute_iri(_text(value)):
        return str(value)
    raise UsageError('an absolute IRI such as "http://example/stream" is expected')


def _listen(value: object) -> str:
    text = _text(value)
    try:
        address_of(text)
    except UsageError:  # its text shows the value, which may come from the environment
        raise UsageError('no address: HOST:PORT such as "127.0.0.1:8787" is expected') from None
    return text


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(_text(each) for each in value)
    raise UsageError("a list of texts is expected")


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise UsageError("true or false is expected")


def _variables(value: object) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise UsageError('a table is expected, such as { channel = "#roads" }')


def _headers(value: object) -> dict[str, str]:
    if isinstance(value, dict) and all(map(_HEADER.fullmatch, value)):
        return {name: _text(text) for name, text in value.items()}
    raise UsageError('a table of texts is expected, such as { X-Key = "${KEY}" }')


def _method(value: object) -> str:
    if value in ("POST", "PUT", "PATCH"):
        return str(value)
    raise UsageError('"POST", "PUT" or "PATCH" is expected')


def _duration(value: object) -> int:
    try:
        return milliseconds(_text(value))
    except UsageError:  # its text shows the value, which may come from the environment
        raise UsageError('a duration such as "5 SECONDS" is expected') from None


def _interval(value: object) -> int:
    duration = _duration(value)
    if duration <= 0:
        raise UsageError("a duration above 0 is expected")
    return duration


def _size(value: object) -> int:
    match = _SIZE.fullmatch(_text(value).upper())
    if match is None or not int(match[1]):
        raise UsageError('a size such as "16 MB" is expected')
    return int(match[1]) * _BYTES[match[2]]


def _time(value: object) -> str:
    if value in ("message", "arrival"):
        return str(value)
    raise UsageError('"message" or "arrival" is expected')


def _time_unit(value: object) -> str:
    if value in TIME_UNITS:
        return str(value)
    raise UsageError('"s" or "ms" is expected')


_TABLES = dict.fromkeys(("server", "streams", "kb", "queries", "sinks"), "table")
_SERVER = {
    "listen": "listen",
    "data": "path",
    "token_file": "path",
    "hosts": "texts",
    "tls": "table",
    "behind_proxy": "flag",
    "sync": "duration",
    "retain": "duration",
    "answers": "duration",
    "max_body": "size",
    "max_kb": "size",
    "service_allow": "texts",
    "service_timeout": "duration",
    "kb_required": "flag",
}
_TLS = {"cert": "path", "key": "path"}
_STREAM = {
    "iri": "iri",
    "source": "place",
    "format": "text",
    "context": "path",
    "context_map": "contexts",
    "lift": "path",
    "types": "text",
    "csv": "text",
    "time": "time",
    "time_predicate": "iri",
    "time_unit": "time_unit",
    "watermark": "duration",
    "idle": "duration",
    "heartbeat": "interval",
    "max_ahead": "duration",
    "max_message": "size",
    "dedup": "duration",
}
_GRAPH = {"path": "place", "watch": "flag", "writable": "flag", "refresh": "interval"}
_QUERIES = {"directory": "path"}
_SINK = {
    "to": "place",
    "queries": "texts",
    "keep": "duration",
    "template": "template",
    "vars": "variables",
    "content_type": "text",
    "headers": "headers",
    "method": "method",
    "from": "text",
    "user": "text",
    "password": "text",
    "starttls": "flag",
    "past": "flag",
}
