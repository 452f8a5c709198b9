"""What people read has no control characters and no passwords, whatever the input holds."""

from __future__ import annotations

import io
import json
import logging
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import spaseq
from spaseq.cli.messages import ProgressLine
from spaseq.errors import Diagnostic, InputError, QueryText, Span
from spaseq.message_text import EscapedStream, one_line, public_address, visible, without_passwords
from spaseq.rdf.inputs.stream_options import BadInput, warn
from spaseq.runtime.job.job import Stats
from tests.cli.test_run import KB, QUERY, Done, Place, line, place
from tests.kb import raw_server, sparql_server

__all__ = ["place"]

NASTY = "\x1b[2J\x9b1m\x07\x7f\u202eab\u2066\u2028\x08"
CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]"
)
SECRETS = "geheim", "ada:", "t0ken"


def is_plain(text: str) -> bool:
    return not CONTROL.search(text)


def test_what_is_escaped() -> None:
    every = "".join(map(chr, range(0x3000))) + "\ud800\U0001f600"
    assert is_plain(visible(every)) and is_plain(one_line(every))
    assert visible("a\tb\r\nc\rd ä 日") == "a\tb\r\nc\\u000Dd ä 日"
    assert one_line("a\tb\r\nc") == "a\\u0009b\\u000D\\u000Ac"
    stream = io.StringIO()
    assert EscapedStream(stream).write(NASTY) == len(NASTY)
    assert is_plain(stream.getvalue()) and "\\u001B[2J" in stream.getvalue()


def test_passwords_in_texts() -> None:
    for text, wanted in {
        "http://ada:geheim@e/x": "http://**********@e/x",
        "<HTTPS://ada@e/>, <http://e/a@b>": "<HTTPS://***@e/>, <http://e/a@b>",
        "mail ada@e, http://e/ a@b": "mail ada@e, http://e/ a@b",
    }.items():
        assert without_passwords(text) == wanted
    assert public_address("http://ada:ge/heim@e/x?t0ken") == "http://***@e/x?***"
    assert public_address("http://e/x#?t") == "http://e/x#?***"
    assert public_address("http://e/x") == "http://e/x"


def test_a_caret_stands_under_its_place() -> None:
    source = QueryText("SELECT '\x1b' http://ada:geheim@e/ \u202e?x WHERE", "q\n.rq")
    start = source.text.index("?x")
    found = Diagnostic(
        "error", "code", f"no {NASTY}", Span(start, start + 2), source, (NASTY,), NASTY
    )
    rows = found.render().split("\n")
    assert is_plain(found.render())
    assert rows[0].startswith("q\\u000A.rq:1:")
    assert rows[2].index("^") == rows[1].index("?x") and rows[2].count("^") == 2
    assert "geheim" not in found.render()


def test_errors_and_logs(caplog: pytest.LogCaptureFixture) -> None:
    assert is_plain(str(InputError(f"cannot read {NASTY}\ud800")))
    with caplog.at_level(logging.WARNING, "spaseq"):
        warn(BadInput(f"a{NASTY}\nb", None, f"bad\n{NASTY}", "http://ada:geheim@e/"))
    (message,) = (record.getMessage() for record in caplog.records)
    assert is_plain(message) and "\n" not in message and "geheim" not in message


@pytest.mark.parametrize("command", ["check", "explain", "run"])
def test_a_query_and_its_name(place: Place, command: str) -> None:
    name = os.fsdecode(b"q\x1b[31m\xff\xe2\x80\xae.rq")
    bad = QUERY.replace("SEQ(A; B)", f"SEQ(A; B; C) # {NASTY}")
    for text in (bad, bad.replace("; C", ""), f"{NASTY} SELECT", f'SELECT "{NASTY}'):
        Path(name).write_text(text, encoding="utf-8")
        more = ("--runtime", "local", "--stream", "S1=stream.nq") if command == "run" else ()
        done = place.spaseq(command, name, *more)
        assert done.status in (0, 1, 3)
        assert is_plain(done.out) and is_plain(done.err)


def test_wrong_usage(place: Place) -> None:
    for arguments in (
        ("run", f"--{NASTY}"), ("check", NASTY), (NASTY,), ("fmt", "query.rq", f"--{NASTY}"),
        ("run", "query.rq", "--stream", NASTY), ("run", "query.rq", "--stream", f"S1={NASTY}"),
        ("run", "query.rq", "--format", NASTY), ("run", "query.rq", "--functions", NASTY),
        ("run", "query.rq", "--service-allow", NASTY), ("run", "query.rq", "--out", f"{NASTY}/a"),
    ):  # fmt: skip
        done = place.spaseq(*arguments)
        assert done.status in (2, 3), done
        assert is_plain(done.out) and is_plain(done.err)


def test_bad_input_of_a_run(place: Place) -> None:
    place.write(f"s{NASTY}.nq", line(0, 14) + f"<e:s> <e:p> {NASTY} <e:g> .\n" + line(2, 12))
    done = place.run("--stream", "x=y", stream=f"S1=s{NASTY}.nq")
    assert is_plain(done.err)
    done = place.run(stream=f"S1=s{NASTY}.nq")
    assert (done.status, len(done.out.splitlines())) == (0, 1), done.err
    assert "bad input" in done.err and is_plain(done.err)
    strict = place.run("--strict", stream=f"S1=s{NASTY}.nq")
    assert strict.status == 3 and is_plain(strict.err)


def test_what_an_endpoint_says(place: Place) -> None:
    said = f"HTTP/1.1 404 No\x1b[31m\r\nContent-Length: 40\r\n\r\n{NASTY}".encode() + b" " * 40
    with raw_server.talking(raw_server.saying(said)) as server:
        done = place.run("--service-retries", "0", kb=f"http://example/kb={server.url}")
    assert done.status == 0
    assert "HTTP status 404" in done.err and is_plain(done.err)


def test_progress_moves_the_cursor_by_itself() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    plain = Terminal()
    progress = ProgressLine(EscapedStream(plain))  # type: ignore[arg-type]
    progress._last = -1.0
    stats = Stats()
    stats.watermarks = {f"<{NASTY}>": None, "b": 1}
    progress(stats)
    progress.note(f"{NASTY}\nforged http://ada:geheim@e/")
    shown = plain.getvalue()
    assert shown.startswith("\r0 events") and is_plain(shown.replace("\r", ""))
    assert shown.count("\n") == 1 and "geheim" not in shown


def on_terminal(*arguments: str) -> str:
    """What the command writes to stdout if that is a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "spaseq", *arguments], stdout=theirs, stderr=subprocess.PIPE
    ) as running:
        os.close(theirs)
        pieces = []
        try:
            while piece := os.read(ours, 1 << 16):
                pieces.append(piece)
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        assert running.stderr is not None
        errors = running.stderr.read().decode()
    assert running.returncode == 0, errors
    return b"".join(pieces).decode().replace("\r", "")  # a terminal and CSV both write it before \n


@pytest.mark.thorough
@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "tsv"])
def test_answers_on_a_terminal_are_escaped_and_in_a_file_are_as_they_are(
    place: Place, form: str
) -> None:
    place.write("kb.ttl", KB.replace("Ada", "A\x7f\x9b1m\u202e\u2066da"))
    arguments = (
        "run", "query.rq", "--runtime", "local", "--stream", "S1=stream.nq", "--kb", "kb.ttl",
        "--format", form,
    )  # fmt: skip
    shown = on_terminal(*arguments)
    assert is_plain(shown) and "\\u202E" in shown
    plain = place.spaseq(*arguments).out
    assert "\u202e" in plain and visible(plain).replace("\r", "") == shown
    if form == "json":
        assert json.loads(shown) == json.loads(plain)


def test_fmt_and_check_on_a_terminal(place: Place) -> None:
    place.write("odd.rq", QUERY.replace("FILTER(", 'FILTER(?p1 != "\x9b1m\u202e" && '))
    for command in ("fmt", "check", "explain"):
        assert is_plain(on_terminal(command, "odd.rq"))
    assert "\u202e" in place.spaseq("fmt", "odd.rq").out


# --- passwords ------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[sparql_server.SparqlServer]:
    with sparql_server.serving(KB) as server:
        yield server.as_new()


@pytest.mark.parametrize("runtime", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_passwords_are_in_no_output(
    place: Place, server: sparql_server.SparqlServer, runtime: str
) -> None:
    url = server.url.replace("http://", "http://ada:geheim@") + "?key=t0ken"
    server.always = sparql_server.status(404)

    def outputs(done: Done) -> str:
        files = [p.read_text() for p in (Path("bad.jsonl"), Path("stats.json")) if p.exists()]
        return "".join((done.out, done.err, *files))

    sides = "--runtime", runtime, "--bad", "bad.jsonl", "--stats", "stats.json"
    for more in ((), ("--kb-required",), ("--kb", f"http://example/kb={url}x")):
        done = place.run(*sides, *more, kb=f"http://example/kb={url}")
        assert done.status in (0, 3), done.err
        assert not any(word in outputs(done) for word in SECRETS)
    place.write("query.rq", QUERY.replace("GRAPH <http://example/kb>", f"SERVICE <{url}>"))
    for arguments in (("--service-allow", "127.0.0.1"), ("--stream", "S1=none"), ()):
        done = place.run(*sides, *arguments)
        assert done.status in (0, 3), done.err
        assert not any(word in outputs(done) for word in SECRETS)


def test_passwords_are_in_no_finding(place: Place) -> None:
    query = QUERY.replace("GRAPH <http://example/kb>", "SERVICE <http://ada:geheim@e/>")
    place.write("query.rq", query)
    place.write("wrong.rq", query.replace("FILTER", "FLITER").replace("?s :owner", "?s ex:owner"))
    for command in ("explain", "check"):
        for name in ("query.rq", "wrong.rq"):
            done = place.spaseq(command, name)
            assert not any(word in done.out + done.err for word in SECRETS)
    assert "geheim" not in place.spaseq("check", "--json", "wrong.rq").out
    with pytest.raises(spaseq.errors.QueryError) as error:
        spaseq.Engine(Path("wrong.rq").read_text())
    assert "geheim" not in str(error.value)
    assert "ada:geheim@" in place.spaseq("fmt", "query.rq").out  # fmt writes the query itself
