"""Typical mistakes of a new user on the command line: status, message and remedy."""

from __future__ import annotations

import pytest

from tests.cli.test_run import Place, place

__all__ = ["place"]

STREAM = "--stream S1=stream.nq"
RUN = f"run query.rq --runtime local {STREAM} --kb kb.ttl"
SOME = "run query.rq --runtime local --kb kb.ttl"

# (the command, status, what the message says)
MISTAKES = [
    ("rnu query.rq", 2, "No such command 'rnu'. Did you mean 'run'?"),
    ("run", 2, "there is no query: give query files, or --queries DIR with some"),
    ("run nosuch.rq", 3, "cannot read the query nosuch.rq: No such file or directory"),
    (SOME, 2, "no input for stream S1 <http://example/stream?a=1>: give --stream S1=PATH"),
    (f"{SOME} --stream S1", 2, "--stream S1: expected NAME=PATH"),
    (f"{SOME} --stream T=stream.nq", 2, "no query reads a stream called T; streams: S1"),
    (f"{SOME} --stream S1=straem.nq", 3, "did you mean stream.nq?"),
    (f"{SOME} --stream S1=*.nx", 3, "no file matches *.nx"),
    (f"{SOME} --stream S1=query.rq", 3, "unknown format; a name ends in one of .nq"),
    (f"{SOME} --stream S1=kb.ttl", 3, "say how many triples are one event (--triples-per-event N"),
    (f"{SOME} --stram S1=stream.nq", 2, "No such option '--stram'. (Did you mean"),
    (f"{RUN} --format cvs", 2, "'cvs' is not one of 'jsonl', 'json', 'csv'"),
    (f"{RUN} --format trig", 2, "answers of query are solutions (SELECT): use jsonl"),
    (f"{RUN} --runtime lokal", 2, "'lokal' is not one of 'spark', 'local'"),
    (f"{RUN} --triples-per-event 0", 2, "0 is not in the range x>=1"),
    (f"{RUN} --follow", 2, "--follow needs --checkpoint DIR"),
    (f"{RUN} --checkpoint state", 2, "--checkpoint goes with --follow"),
    (f"{RUN} --out stream.nq", 2, "--out stream.nq is the same file as --stream S1=stream.nq"),
    (f"{RUN} --bad -", 2, "give a file; only answers go to standard output"),
    (f"{RUN} --out nodir/answers", 3, "nodir/answers: No such file or directory"),
    (f"{RUN} --entailment rdfs", 2, "needs an ontology"),
    (f"{RUN} --entailment owl", 2, "'owl' is not 'rdfs'"),
    (f"{RUN} --ontology none.ttl --entailment rdfs", 3, "no such file or directory: none.ttl"),
    (f"{RUN} --kb none.ttl", 3, "none.ttl"),
    (f"{RUN} --timeout 5", 2, "expected a duration such as '5 SECONDS'"),
    (f"{RUN} --time-predicate prov:generatedAtTime", 2, "write the whole IRI, such as http://"),
    (f"{RUN} --disable fast", 2, "no rule 'fast'. Rules: "),
    (f"{RUN} --threads none", 2, "'none' is not a valid integer"),
]


@pytest.mark.parametrize(("command", "status", "message"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_a_mistake_on_the_command_line(
    place: Place, command: str, status: int, message: str
) -> None:
    done = place.spaseq(*command.split())
    assert done.status == status
    assert message in " ".join(done.err.split())
    assert "Traceback" not in done.err
